-- Clients of the script, without a server around it: the test gives them their turns.

local connection = require "connection"
local fake = require "fake"
local frames = require "frames"
local turn = require "turn"

local client = {
  END = "<|END|>",
  GAME = { getGameTitle = "GAME", currentFrame = 9, read8 = 1, getKeys = 0, readRange = "\0" }, -- what it says
}

local END = client.END

-- A client's end and the script's, and a turn for it.
function client.connect()
  emu, console = fake.emu(client.GAME), fake.console()
  local socket = fake.socket()
  local self = connection.new(socket)
  return socket, self, function()
    local done = turn.take(self, false, os.clock())
    -- The script sleeps between turns.
    while self.socket and connection.has_long_reply(self) and connection.flush_rested(self) do
    end
    return done
  end
end

-- The turns until nothing is done any more.
function client.settle(take)
  while take() do
  end
  take()
end

function client.greet(socket, take, name)
  socket:arrive(("framewire.hello,1,%016x%s"):format(name, END))
  client.settle(take)
  local welcome = socket.written
  socket.written = ""
  return welcome:gsub("<|END|>$", "")
end

function client.request(id, batch, answered)
  return string.pack("<s4", string.pack("<I1I4I4I2", frames.REQUEST, id, answered or 1, 1) .. batch)
end

-- The replies in a stream of frames: id to its first result's status, and the number of frames of each kind.
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
