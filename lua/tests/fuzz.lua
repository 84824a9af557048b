-- Sends mutated input to the script:  lua5.4 lua/tests/fuzz.lua [COUNT] [SEED]
--
-- The input arrives on one connection after another, cut into pieces at random positions. It must not raise an error,
-- and the script must finish its work on each piece. At the same time, a link and a text client send requests that have
-- exactly one correct reply. The test fails if a reply is wrong or missing, or if there is an additional one.

local folder = arg[0]:match("^(.*)fuzz%.lua$")
package.path = folder .. "?.lua;" .. folder .. "../src/?.lua;" .. package.path

local harness = require "harness"
harness.root = folder .. "../../"

local client = require "client"
local emulator = require "emulator"
local events = require "events"
local fake = require "fake"
local frames = require "frames"
local keyboard = require "keyboard"
local limits = require "limits"
local lockstep = require "lockstep"
local log = require "log"
local ticks = require "ticks"
local watches = require "watches"
local random = math.random
local END = client.END

local COUNT = math.tointeger(tonumber(arg[1] or 20000))
local SEED = math.tointeger(tonumber(arg[2] or 1))
local TURNS = 1000 -- within this many turns, the script must process everything that has arrived
local SECONDS = 5 -- and also within this many seconds of processor time
local STREAM = 20 -- inputs for one connection, unless it is closed earlier

assert(COUNT and SEED, "usage: lua5.4 lua/tests/fuzz.lua [COUNT] [SEED]")
math.randomseed(SEED)
log.set_level("none")

-- The input may contain any path, so the functions that change files or read them do nothing.
os.remove, os.tmpname = function() end, function() return "none" end -- luacheck: ignore
io.open = function() return nil, "no file" end -- luacheck: ignore

---- Input ------------------------------------------------------------------------------------------------------------

local function seeds()
  local list = {}
  for _, row in ipairs(harness.vectors "ops.tsv") do
    local op = harness.unhex(row[3])
    table.insert(list, client.request(random(9), op))
    table.insert(list, client.keyed_request(random(9), "key" .. random(9), op))
  end
  for _, row in ipairs(harness.vectors "marker.tsv") do
    table.insert(list, row[3] .. END)
  end
  local range = string.pack("<s1I4I2s1I4I2", "", 0x02000000, 4, "wram", 8, 1)
  local batches = {
    string.pack("<I2I1I4I1I4", 2, 0x86, 1000, 0x85, 3),
    string.pack("<I2I1s4I1I4", 2, 0x56, keyboard.steps "0:1,3:5,9:0", 0x57, 0),
    string.pack("<I2I1I4I4I1s4I1I4", 2, 0xb0, 1, 2, 1, range, 0xb1, 1),
    string.pack("<I2I1I4I4I1s4", 1, 0xb0, 1, 1, 1, range),
  }
  for index, batch in ipairs(batches) do
    table.insert(list, client.frame(frames.REQUEST, string.pack("<I4I4", index, 1) .. batch))
  end
  table.insert(list, client.cancel(3))
  table.insert(list, client.ping(3))
  table.insert(list, client.hello(0xaa))
  table.insert(list, "framewire.echo," .. ("x"):rep(300) .. END)
  table.insert(list, "GET /core/reset HTTP/1.1\r\nHost: localhost\r\n\r\n")
  return list
end

local SEEDS = seeds()
local BYTES = { 0, 1, 2, 4, 127, 128, 255, ("<|END|>"):byte(1, -1) }

local function mutated()
  local data = SEEDS[random(#SEEDS)]
  for _ = 1, random(0, 3) do
    local at, way = random(#data + 1), random(6)
    if way == 1 then -- replaces a byte, often by one with a special meaning
      data = data:sub(1, at - 1) .. string.char(random(2) == 1 and BYTES[random(#BYTES)] or random(0, 255)) .. data:sub(at + 1)
    elseif way == 2 then -- inserts a byte
      data = data:sub(1, at - 1) .. string.char(random(0, 255)) .. data:sub(at)
    elseif way == 3 then -- removes some bytes
      data = data:sub(1, at - 1) .. data:sub(at + random(8))
    elseif way == 4 then -- cuts off the rest
      data = data:sub(1, at - 1)
    elseif way == 5 then -- replaces the rest with the end of another input
      local other = SEEDS[random(#SEEDS)]
      data = data:sub(1, at - 1) .. other:sub(random(#other))
    else -- repeats the rest
      data = data .. data:sub(at)
    end
  end
  return data
end

---- Clients ----------------------------------------------------------------------------------------------------------

-- Gives a connection turns until it does nothing more. `take` gives one turn; `self` is the script's connection.
local function settle(take, self)
  local start = os.clock()
  for _ = 1, TURNS do
    if not self.socket or not take(os.clock()) then
      assert(os.clock() - start < SECONDS, "it took too long")
      return
    end
  end
  error("it does not come to an end")
end

-- How many times the emulator was reset.
local function resets()
  return fake.count_calls("reset")
end

-- Connects a client whose replies are checked. `message` returns a message, the correct reply, and how many resets the
-- message causes.
local function checked_client(greet, message)
  local socket, self, take = client.connect()
  if greet then
    client.greet(socket, take, 0x1234567890ABCDEF)
  end
  local checked = {}

  -- Sends a part of a message, perhaps all of it, in one or more pieces.
  function checked.begin()
    checked.rest, checked.right, checked.resets = message()
    for _ = 1, random(3) do
      local part = random(0, #checked.rest)
      socket:arrive(checked.rest:sub(1, part))
      checked.rest = checked.rest:sub(part + 1)
      if random(2) == 1 then
        settle(take, self)
      end
    end
  end

  -- Sends the rest, and compares the reply with the correct one.
  function checked.finish()
    socket:arrive(checked.rest)
    emu.calls = {}
    local early = socket.written ~= ""
    settle(take, self)
    if socket.written ~= checked.right then
      error(("a wrong reply: %q, not %q"):format(socket.written, checked.right))
    end
    -- If the whole message had arrived earlier, it was performed together with the mutated input, so its resets are not
    -- counted here.
    if not early and checked.rest ~= "" and resets() ~= checked.resets then
      error(("%d resets instead of %d"):format(resets(), checked.resets))
    end
    socket.written = ""
  end

  return checked
end

local id, key = 0, 0

local function request(body, keyed)
  return keyed and client.keyed_request(id, "own" .. key, body, id) or client.request(id, body, id)
end

local last_change -- the last request and its reply, if it was a request that changes something
local last_keyed = false -- whether the last such request had a key

local function frame_message()
  local way = random(5)
  if way == 1 and last_change then
    return last_change.request, last_change.reply, 0 -- a repeat, which is answered from memory
  end
  id = id + 1
  if way == 2 and last_keyed then
    last_change = nil
    return request("\x80", true), frames.encode_reply(id, 9, 1, frames.encode.none()), 0 -- a repeat with the same key
  elseif way <= 3 then
    last_keyed = random(2) == 1
    key = key + 1
    last_change = { request = request("\x80", last_keyed), reply = frames.encode_reply(id, 9, 1, frames.encode.none()) }
    return last_change.request, last_change.reply, 1
  end
  last_change = nil
  if way == 4 then
    local data = ("%x"):format(random(0)):rep(random(0, 3))
    return request(string.pack("<I1s4", 0x01, data)), frames.encode_reply(id, 9, 1, frames.encode.bytes(data)), 0
  end
  return request(string.pack("<I1I4", 0x20, 0x02000000)), frames.encode_reply(id, 9, 1, frames.encode.int(1)), 0
end

local function text_message()
  local way = random(3)
  if way == 1 then
    return "core.getGameTitle" .. END, "GAME" .. END, 0
  elseif way == 2 then
    return "coreAdapter.reset" .. END, "<|SUCCESS|>" .. END, 1
  end
  local text = ("%x"):format(random(0)):rep(random(3))
  return "framewire.echo," .. text .. END, text .. END, 0
end

---- The run -----------------------------------------------------------------------------------------------------------

local socket, self, take
local last = {} -- the inputs that were sent on the current connection

local function renew()
  if self and self.socket then
    socket:hang_up()
    for _ = 1, TURNS do
      if not self.socket then
        break
      end
      take(os.clock())
      ticks.now = ticks.now + 1
    end
    assert(not self.socket, "a connection that ended is not closed")
  end
  socket, self, take = client.connect()
  last = {}
  if random(2) == 1 then
    client.greet(socket, take, random(5))
  elseif random(4) > 1 then
    -- If the first message is unknown, the script ignores everything after it.
    socket:arrive("framewire.echo,x" .. END)
    settle(take, self)
  end
end

local others = { checked_client(true, frame_message), checked_client(false, text_message) }

-- Does a part of what the script does in each frame.
local function run_frame()
  events.send({ self }, watches.after_frame())
  emulator.advance()
  while lockstep.waits(1) do
    settle(take, self)
  end
  lockstep.run()
  watches.before_frame()
end

local function run()
  renew()
  for number = 1, COUNT do
    if not self.socket or self.dismissed or number % STREAM == 0 then
      renew()
    end
    local data = mutated()
    table.insert(last, data)
    local other = others[number % 2 + 1]
    other.begin()
    local at = 1
    while at <= #data and self.socket do
      local stop = random(4) == 1 and random(at, #data) or #data
      socket:arrive(data:sub(at, stop))
      settle(take, self)
      at = stop + 1
    end
    run_frame()
    assert(self.unsent <= 2 * limits.full_outbox, "too much waits to be sent")
    socket.written = ""
    other.finish()
  end
  renew()
end

local fine, problem = xpcall(run, debug.traceback)
if not fine then
  io.stderr:write("FAILED with seed ", SEED, " after these inputs on one connection:\n")
  for _, data in ipairs(last) do
    io.stderr:write(("  %q\n"):format(data))
  end
  io.stderr:write(tostring(problem), "\n")
  os.exit(1)
end
print(COUNT .. " mutated inputs (seed " .. SEED .. "): no error, no hang, no wrong reply")
