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
-- turn. This turn has no time limit, so that no result depends on the speed of this machine. If the function gets an
-- argument, this is the processor time at which the time limit begins.
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

-- Greets the script as a link whose session has the number `name`, so that the connection uses binary frames. Returns
-- the welcome.
function client.greet(socket, take, name)
  socket:arrive(("framewire.hello,1,%016x%s"):format(name, END))
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

-- Encodes a request with the batch `batch`, which has one operation. The link has the replies to all requests before
-- `answered`.
function client.request(id, batch, answered)
  return string.pack("<s4", string.pack("<I1I4I4I2", frames.REQUEST, id, answered or 1, 1) .. batch)
end

-- Decodes a stream of binary frames. Returns the status of the first result in each reply, by id, and how many binary
-- frames of each kind there are.
function client.read_stream(stream)
  local replies, kinds, at = {}, {}, 1
  while at <= #stream do
    local body
    body, at = string.unpack("<s4", stream, at)
    kinds[body:byte()] = (kinds[body:byte()] or 0) + 1
    if body:byte() == frames.REPLY then
      local id, _, count = string.unpack("<I4I4I2", body, 2)
      replies[id] = count > 0 and body:byte(12) or 0
    end
  end
  return replies, kinds
end

return client
