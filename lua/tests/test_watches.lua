local connection = require "connection"
local fake = require "fake"
local game = require "game"
local harness = require "harness"
local limits = require "limits"
local log = require "log"
local refusal = require "refusal"
local watches = require "watches"
local test, eq = harness.test, harness.eq

local memory = {} -- the bytes of ranges, by domain and address; zeros if there is no entry
local reads = 0
local keys = 0

local function reader(domain)
  return function(_, address, length)
    reads = reads + 1
    local found = memory[domain .. address]
    return found or ("\0"):rep(length)
  end
end

-- Creates the connection of a link, and a game.
local function link()
  emu, console = fake.emu(), fake.console()
  memory, keys = {}, 0
  rawset(emu, "readRange", reader "")
  rawset(emu, "getKeys", function() return keys end)
  for name, domain in pairs(emu.memory) do
    rawset(domain, "readRange", reader(name))
  end
  local self = connection.new(fake.socket())
  self.session = {}
  return self
end

local function range(domain, address, length)
  return string.pack("<s1I4I2", domain, address, length)
end

-- `watches.watch` gets the connection, the watch's id, `every`, the flags (1: with the keys) and the ranges.

-- Runs a frame in which the keys `held` are held. Returns the items that the connection gets, as text: `WATCH@TICKS`,
-- and `RANGE=BYTES` for each change. Range 65535 is the held keys. Range 65534 says why the frame does not continue the
-- frame before: 1 after a reset, 2 after a loaded state, 3 with another game.
local function frame(self, held)
  keys = held or keys
  watches.before_frame()
  self.changes = nil
  local any = watches.after_frame()
  eq(any, self.changes ~= nil)
  local texts = {}
  for index, item in ipairs(self.changes or {}) do
    local kind, id, ticks, count, at = string.unpack("<I1I4I4I2", item)
    eq(kind, 1)
    local words = { ("%d@%d"):format(id, ticks) }
    for _ = 1, count do
      local number, bytes
      number, bytes, at = string.unpack("<I2s4", item, at)
      table.insert(words, number .. "=" .. bytes:gsub(".", function(char) return ("%02x"):format(char:byte()) end))
    end
    eq(at, #item + 1)
    texts[index] = table.concat(words, " ")
  end
  return table.concat(texts, "; ")
end

-- Ends all watches of a connection.
local function ends(self)
  self.watches = {}
  watches.after_frame()
end

test("a watch returns the current bytes, then reports each changed range once, with all of its bytes", function()
  local self = link()
  memory["16"] = "\1\2"
  memory.wram4 = "\3"
  eq(watches.watch(self, 7, 0, 0, range("", 16, 2) .. range("wram", 4, 1)), "\1\2\3")
  eq(frame(self), "")
  memory["16"] = "\1\4"
  eq(frame(self), "7@2 0=0104")
  eq(frame(self), "")
  memory["16"], memory.wram4 = "\1\2", "\0"
  eq(frame(self), "7@4 0=0102 1=00")
  ends(self)
end)

test("a watch with `every` reports every few frames, with changes or without", function()
  local self = link()
  watches.watch(self, 1, 3, 0, range("", 16, 1))
  local texts = {}
  for tick = 1, 7 do
    memory["16"] = tick == 3 and "\1" or memory["16"]
    texts[tick] = frame(self)
  end
  eq(table.concat(texts, "|"), "||1@3 0=01|||1@6|")
  ends(self)
end)

test("the keys that were held in a frame are reported in the first frame and when they change", function()
  local self = link()
  watches.watch(self, 2, 0, 1, "")
  eq(frame(self, 1), "2@1 65535=0100")
  eq(frame(self, 1), "")
  -- A key of the keyboard goes down after the frame, before the callback.
  keys = 1
  watches.before_frame()
  keys = 3
  self.changes = nil
  eq(watches.after_frame(), false)
  eq(frame(self, 3), "2@4 65535=0300")
  eq(frame(self, 0x3FF), "2@5 65535=ff03")
  ends(self)
end)

test("single steps are refused while a watch reports keys, because a replay does not repeat them", function()
  local operations = require "operations"
  local self = link()
  watches.watch(self, 2, 0, 1, "")
  local done, status, problem = operations.attempt(operations.by_name.step)
  eq(done, false)
  eq(status, refusal.BUSY)
  eq(problem:find("recordings do not hold single steps", 1, true) ~= nil, true)
  eq(fake.count_calls "step", 0)
  ends(self)
  eq(operations.attempt(operations.by_name.step), true)
end)

test("a watch replaces one with the same id, and memory is not read for a watch that has ended", function()
  local self = link()
  watches.watch(self, 1, 1, 0, range("", 16, 1))
  watches.watch(self, 2, 1, 0, "")
  watches.watch(self, 1, 1, 0, range("", 17, 1):rep(2))
  eq(frame(self), "2@1; 1@1")
  watches.unwatch(self, 2)
  watches.unwatch(self, 99)
  eq(frame(self), "1@2")
  watches.unwatch(self, 1)
  reads = 0
  eq(frame(self), "")
  watches.watch(self, 1, 1, 0, "")
  watches.unwatch(self, 1)
  watches.watch(self, 1, 1, 0, "")
  eq(frame(self), "1@1", "once")
  eq(reads, 0)
  ends(self)
end)

test("every watch reports another game, in the first frame of that game", function()
  local self = link()
  rawset(emu, "getGameTitle", function() return self.title end)
  game.check()
  watches.watch(self, 1, 0, 0, range("", 16, 1))
  eq(frame(self), "")
  game.note(game.RESET)
  eq(frame(self), "", "the same game")
  self.title = "ANOTHER"
  game.check()
  memory["16"] = "\1"
  eq(frame(self), "1@3 0=01 65534=03")
  eq(frame(self), "")
  ends(self)
end)

test("without a watch nothing is read", function()
  local self = link()
  watches.watch(self, 1, 1, 1, range("", 16, 1))
  self.socket = nil
  eq(watches.after_frame(), false, "the connection is gone")
  rawset(emu, "getKeys", function() error "asked for keys" end)
  reads = 0
  watches.after_frame()
  watches.before_frame()
  eq(reads, 0)
end)

test("a domain that another game does not have reports no changes", function()
  local self = link()
  watches.watch(self, 1, 2, 0, range("wram", 4, 1) .. range("", 16, 1))
  emu.memory = { cart0 = emu.memory.vram }
  require("memory").forget() -- as at the beginning of each frame
  memory["16"] = "\1"
  eq(frame(self), "1@1 1=01")
  eq(frame(self), "1@2")
  ends(self)
end)

test("a watch that is not valid is refused with the reason, and the existing watch continues", function()
  local self = link()
  watches.watch(self, 1, 1, 0, "")
  local most = limits.watch_length
  local cases = {
    { 0, range("wram", 16, 0), "not 0" },
    { 0, range("", 1, 0), "ends within its range 0" },
    { 0, range("", 1, 0) .. "\3", "ranges[0]: these bytes are not an expression" },
    { 0, range("", 16, most + 1), "1 to 4096 bytes, not 4097" },
    { 0, range("nowhere", 16, 1), 'unknown memory domain "nowhere"; this console has vram, wram' },
    { 0, range("w\0", 16, 1), "NUL" },
    { 0, range("", 16, 1):sub(1, -2), "ends within its range 0" },
    { 0, range("", 1, 1) .. "\200", "ends within its range 1" },
    { 0, range("", 16, 1) .. range("", 0x10000000, 1), "ranges[1]: address is 0x10000000, which is not on the bus" },
    { 0, range("wram", 0x3FFFF, 2), "ranges[0]: address is 262143, and an access of 2 bytes goes beyond the domain" },
    { 0, range("", 16, 1):rep(limits.watch_ranges + 1), "more than 256" },
    { 8, "", "from 0 to 7, not 8" },
  }
  for _, case in ipairs(cases) do
    local problem = harness.refusal(watches.watch, self, 1, 9, case[1], case[2])
    eq(problem.status, refusal.BAD_ARGUMENT)
    eq(problem.text:find(case[3], 1, true) ~= nil, true, problem.text)
  end
  eq(harness.refusal(watches.watch, self, 1, 9, 2, "").status, refusal.UNSUPPORTED)
  eq(frame(self), "1@1")
  ends(self)
end)

test("watching too much is refused as busy, unless the watch replaces an equally large one", function()
  local self, other = link(), link()
  local largest = range("", 16, limits.watch_length)
  local all = limits.watched_bytes // limits.watch_length
  watches.watch(self, 1, 0, 0, largest:rep(all))
  eq(harness.refusal(watches.watch, self, 2, 0, 0, range("", 16, 1)).status, refusal.BUSY)
  watches.watch(self, 1, 0, 0, largest:rep(all))

  local many = range("", 16, 1):rep(limits.watch_ranges)
  for id = 1, limits.watched_ranges // limits.watch_ranges do
    watches.watch(other, id, 0, 0, many)
  end
  eq(harness.refusal(watches.watch, other, 0, 0, 0, range("", 16, 1)).status, refusal.BUSY)
  ends(other)
  for id = 1, limits.watches do
    watches.watch(other, id, 0, 0, "")
  end
  eq(harness.refusal(watches.watch, other, 0, 0, 0, "").status, refusal.BUSY)

  local crowd = {}
  for index = 1, limits.all_bytes // limits.watched_bytes - 1 do
    crowd[index] = connection.new(fake.socket())
    crowd[index].session = {}
    watches.watch(crowd[index], 1, 0, 0, largest:rep(all))
  end
  eq(harness.refusal(watches.watch, other, 1, 0, 0, range("", 16, 1)).text, "other connections watch too much already")
  for _, each in ipairs(crowd) do
    each.watches = {}
  end
  watches.watch(other, 1, 0, 0, range("", 16, 1))
  ends(self)
  ends(other)
end)

test("an error in a watch closes only its connection", function()
  local self, other = link(), connection.new(fake.socket())
  other.session = {}
  watches.watch(self, 1, 1, 0, range("", 16, 1))
  watches.watch(other, 1, 1, 0, range("wram", 16, 1))
  rawset(emu, "readRange", function() error "out of luck" end)
  log.set_level "error"
  eq(watches.after_frame(), true)
  log.set_level "none"
  eq(self.socket, nil)
  eq(#other.changes, 1)
  eq(console.lines[1]:find("out of luck", 1, true) ~= nil, true, console.lines[1])
  ends(other)
end)

test("a watch with keys reports a frame that does not continue the last one, unless it began in between", function()
  local self = link()
  watches.watch(self, 1, 0, 1, "")
  watches.watch(self, 2, 0, 0, "")
  eq(frame(self), "1@1 65535=0000")
  game.note(game.STATE)
  watches.watch(self, 3, 0, 1, "")
  eq(frame(self), "1@2 65534=02; 3@1 65535=0000")
  eq(frame(self), "")
  game.note(game.RESET)
  eq(frame(self), "1@4 65534=01; 3@3 65534=01")
  ends(self)
end)
