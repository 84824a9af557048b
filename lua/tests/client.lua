-- A client of the script, for tests without a server: the test itself gives the script's connection its turns (see
-- turn.lua).

local connection = require "connection"
local fake = require "fake"
local frames = require "frames"
local turn = require "turn"

local client = {
  END = "<|END|>",
  GAME = { getGameTitle = "GAME", currentFrame = 9, read8 = 1, getKeys = 0, readRange = "\0" }, -- what mGBA returns
}

local END = client.END

-- Connects a client. Returns the client's socket, the script's connection, and a function that gives the connection a
-- turn. By default, the turn has no time limit, so that no result depends on the speed of this machine. If the function
-- gets an argument, the turn has a time limit, which begins at this processor time.
function client.connect()
  emu, console = fake.emu(client.GAME), fake.console()
  local socket = fake.socket()
  local self = connection.new(socket)
  return socket, self, function(now)
    local done = turn.take(self, false, now or math.huge)
    -- Between turns, the script sleeps, and then sends more of a long reply.
    while self.socket and connection.has_long_reply(self) and connection.flush_rested(self) do
    end
    return done
  end
end

-- Gives turns until a turn performs no request, and then one more turn: a turn without a request can still read, send
-- or close.
function client.settle(take)
  while take() do
  end
  take()
end

-- The first message of a link whose session has the number `name`.
function client.hello(name)
  return ("framewire.hello,1,%016x%s"):format(name, END)
end

-- Greets the script as a link whose session has the number `name`, so that the connection uses binary frames. Returns
-- the welcome.
function client.greet(socket, take, name)
  socket:arrive(client.hello(name))
  client.settle(take)
  local welcome = socket.written
  socket.written = ""
  return welcome:gsub("<|END|>$", "")
end

-- Connects a link whose session has the number `name`. Returns what `client.connect` returns.
function client.link(name)
  local socket, self, take = client.connect()
  client.greet(socket, take, name)
  return socket, self, take
end

-- Encodes a binary frame.
function client.frame(kind, body)
  return string.pack("<s4", string.char(kind) .. body)
end

-- Encodes a request with the batch `batch`, which has `count` operations (1 by default). The link has the replies to
-- all requests before `answered`.
function client.request(id, batch, answered, count)
  return client.frame(frames.REQUEST, string.pack("<I4I4I2", id, answered or 1, count or 1) .. batch)
end

-- Like `request`, with an idempotency key.
function client.keyed_request(id, key, batch, answered, count)
  return client.frame(frames.KEYED_REQUEST, string.pack("<I4I4s1I2", id, answered or 1, key, count or 1) .. batch)
end

function client.cancel(id)
  return client.frame(frames.CANCEL, string.pack("<I4", id))
end

function client.ping(id)
  return client.frame(frames.PING, string.pack("<I4", id))
end

-- Iterates over the binary frames in a stream: returns the kind of each, and its body.
function client.each_frame(stream)
  local at = 1
  return function()
    if at > #stream then
      return nil
    end
    local frame
    frame, at = string.unpack("<s4", stream, at)
    return frame:byte(), frame:sub(2)
  end
end

-- Decodes the replies in a stream of binary frames. Returns, by id: the frame counter (`frame`), the number of results
-- (`count`), and the encoded results (`body`).
function client.replies(stream)
  local replies = {}
  for kind, body in client.each_frame(stream) do
    if kind == frames.REPLY then
      local id, frame, count, at = string.unpack("<I4I4I2", body)
      replies[id] = { frame = frame, count = count, body = body:sub(at) }
    end
  end
  return replies
end

-- Decodes a stream of binary frames. Returns the status of the first result in each reply, by id, and how many binary
-- frames of each kind there are.
function client.read_stream(stream)
  local statuses, kinds = {}, {}
  for id, reply in pairs(client.replies(stream)) do
    statuses[id] = reply.body:byte() or 0
  end
  for kind in client.each_frame(stream) do
    kinds[kind] = (kinds[kind] or 0) + 1
  end
  return statuses, kinds
end

return client
