local emulator = require "emulator"
local fake = require "fake"
local harness = require "harness"
local memory = require "memory"
local refusal = require "refusal"
local test, eq = harness.test, harness.eq

local ROM = harness.root .. "rom/framewire-demo.gba"
local STATE = string.pack("<I4", 0x01000007) .. ("\0"):rep(0x61000 - 4)

-- Creates an `emu` whose functions return `values`, and a console.
local function begin(values)
  emu, console = fake.emu(values), fake.console()
end

local function calls()
  return table.concat(emu.calls, "\n")
end

-- Makes mGBA's function `screenshot` write these bytes to its file, or no file if `bytes` is nil. Returns a table that
-- gets the path of the last file.
local function write_pictures(bytes)
  local written = {}
  rawset(emu, "screenshot", function(_, path)
    written.path = path
    if bytes then
      local file = assert(io.open(path, "wb"))
      file:write(bytes)
      file:close()
    end
  end)
  return written
end

test("`yes` converts the booleans of every version of mGBA", function()
  for value, wanted in pairs { [true] = true, [false] = false, [1] = true, [0] = false } do
    eq(emulator.yes(value), wanted, tostring(value))
  end
  eq(emulator.yes(nil), false)
end)

test("without a game the frame is 0", function()
  emu = nil
  eq(emulator.frame(), 0)
end)

test("holds and timelines keep their keys down after the user has opened a game", function()
  local holds, timelines = emulator.holds, emulator.timelines
  begin()
  emulator.advance()
  holds.hold(1, 2)
  holds.hold(2, 9)
  timelines.play(string.pack("<I4I2I4I2I4I2", 0, 4, 5, 8, 6, 0))
  timelines.let_go(2, 0) -- a client takes this key away
  emulator.advance()
  begin { currentFrame = 9 } -- mGBA's new object for the game
  emulator.advance()
  eq(calls(), "addKeys 5")
  for _ = 1, 3 do
    emulator.advance()
  end
  eq(calls(), "addKeys 5\nclearKeys 1\naddKeys 8\nclearKeys 4", "the calls until the hold has ended")
  timelines.cancel(0)
end)

test("the refusal of an unknown domain lists the domains of the console", function()
  begin()
  local problem = harness.refusal(memory.domain, "ram")
  eq(problem.status, refusal.BAD_ARGUMENT)
  eq(problem.text, "unknown memory domain \"ram\"; this console has vram, wram")
end)

test("`cart0` of a Game Boy is as large as the ROM, that of a GBA as large as its part of the bus", function()
  for platform, size in pairs { [0] = 0x2000000, [1] = 0x8000 } do
    begin { platform = platform, size = 0x2000000, romSize = 0x8000 }
    emu.memory.cart0 = emu.memory.wram
    eq(memory.size("cart0"), size)
    eq(memory.size("wram"), 0x2000000)
    memory.check_domain("cart0", size - 2, 2, true)
    local problem = harness.refusal(memory.check_domain, "cart0", size - 1, 2, true)
    eq(problem.status, refusal.BAD_ARGUMENT)
    eq(problem.text:find(("accepted is 0 to %d for 2 bytes"):format(size - 2), 1, true) ~= nil, true, problem.text)
  end
end)

test("loading a state file that does not exist is refused as not found", function()
  begin { loadStateFile = false }
  local problem = harness.refusal(emulator.load_state_file, "/nowhere/at/all.ss1", 0)
  eq(problem.status, refusal.NOT_FOUND)
  eq(problem.text:find("/nowhere/at/all.ss1", 1, true) ~= nil, true, problem.text)
end)

test("mGBA does not get a file that is not a ROM, because it would close the running game", function()
  begin { platform = 0, loadFile = true, saveStateBuffer = "before" }
  local refused = { [harness.root .. "lua/README.md"] = refusal.FAILED, ["/nowhere/at/all.gba"] = refusal.NOT_FOUND }
  for path, status in pairs(refused) do
    for _, load in ipairs { emulator.load_rom, emulator.exchange_rom } do
      local problem = harness.refusal(load, path)
      eq(problem.status, status)
      eq(problem.text:find(path, 1, true) ~= nil and problem.text:find("the current game continues", 1, true) ~= nil, true)
    end
  end
  eq(calls():find("loadFile", 1, true), nil)
end)

test("after the ROM is exchanged, the state of the running game is loaded again", function()
  begin { platform = 0, loadFile = true, saveStateBuffer = "before", loadStateBuffer = true }
  emulator.exchange_rom(ROM)
  eq(calls():gsub("platform\n", ""), ("saveStateBuffer 0\nloadFile %s\nloadStateBuffer before 0"):format(ROM))
end)

test("a new ROM that rejects the state of the running game starts from the beginning", function()
  begin { platform = 0, loadFile = true, saveStateBuffer = "before", loadStateBuffer = false }
  emulator.exchange_rom(ROM)
  eq(emu.calls[#emu.calls], "reset")
end)

test("if mGBA cannot load a ROM, this is an error, and the console is not reset", function()
  begin { platform = 0, loadFile = false, saveStateBuffer = "before" }
  eq(harness.refusal(emulator.exchange_rom, ROM).text:find("given up the running game", 1, true) ~= nil, true)
  local hint = "may have given up the running game; if it does not continue, load a game in mGBA's window"
  eq(harness.refusal(emulator.load_rom, ROM).text:find(hint, 1, true) ~= nil, true, "mGBA 0.10.1 keeps the game")
  eq(calls():find("reset", 1, true), nil)
end)

test("mGBA does not get bytes that are not a state of this console", function()
  begin { platform = 0, loadStateBuffer = true }
  for _, data in ipairs { "", "state", ("\0"):rep(#STATE), STATE:sub(1, -2), "\x89PNG\r\n\26\nno state" } do
    eq(emulator.load_state(data, 29), false)
  end
  eq(calls():find("loadStateBuffer", 1, true), nil)
  eq(emulator.load_state(STATE, 29), true)
end)

test("a picture is read from a file, which is then removed", function()
  begin()
  local written = write_pictures("\x89PNG picture")
  eq(emulator.screenshot(), "\x89PNG picture")
  eq(io.open(written.path, "rb"), nil, "the file")
end)

test("if no file can be written, the picture comes from a savestate", function()
  begin { saveStateBuffer = "\x89PNG state" }
  write_pictures(nil)
  eq(emulator.screenshot(), "\x89PNG state")
  begin { saveStateBuffer = "no picture" }
  write_pictures("no picture")
  eq(harness.refusal(emulator.screenshot).status, refusal.FAILED)
end)

test("holds end while there is no game", function()
  begin()
  local holds, key = emulator.holds, 0x200
  for _ = 1, 3 do
    holds.hold(key, 0)
  end
  eq(holds.down() & key, key)
  emu = nil
  for _ = 1, 20 do
    holds.advance()
  end
  eq(holds.down() & key, 0)
end)

-- Creates a Game Boy with these registers. `halted` says whether its processor is halted.
local function game_boy(halted, registers)
  local flags = string.pack("<I4", halted and 0x10 or 0)
  emu = fake.emu { platform = 1, saveStateBuffer = ("\0"):rep(0x44) .. flags .. ("\0"):rep(100) }
  emu.read8 = function(_, address) return registers[address] or 0 end
end

local function steps()
  return fake.count_calls("step")
end

test("a step of a halted Game Boy that nothing will wake is refused, because it would never end", function()
  local operations = require "operations"
  local sleeping = {
    {}, -- nothing wakes it
    { [0xFFFF] = 0x10 }, -- only a key wakes it
    { [0xFFFF] = 0x01 }, -- the end of the picture wakes it, but the display is off
    { [0xFFFF] = 0x02, [0xFF40] = 0x80, [0xFF41] = 0x40, [0xFF45] = 200 }, -- line 200 would wake it, but does not exist
    { [0xFFFF] = 0x04, [0xFF07] = 0x01 }, -- the timer wakes it, but is off
    { [0xFFFF] = 0x08, [0xFF02] = 0x80 }, -- a serial transfer wakes it, but uses the other end's clock
    { [0xFF0F] = 0x1F }, -- all interrupts are requested, but none is enabled
  }
  for index, registers in ipairs(sleeping) do
    game_boy(true, registers)
    local done, status = operations.attempt(operations.by_name.step)
    eq(done, false, "case " .. index)
    eq(status, 2)
    eq(steps(), 0)
    game_boy(false, registers)
    eq(operations.attempt(operations.by_name.step), true, "not halted, case " .. index)
    eq(steps(), 1)
  end
  -- These wake it: the end of the picture, the end of a line, line 100, the timer, and an interrupt that is pending.
  local waking = {
    { [0xFFFF] = 0x01, [0xFF40] = 0x80 },
    { [0xFFFF] = 0x02, [0xFF40] = 0x80, [0xFF41] = 0x08 },
    { [0xFFFF] = 0x02, [0xFF40] = 0x80, [0xFF41] = 0x40, [0xFF45] = 100 },
    { [0xFFFF] = 0x04, [0xFF07] = 0x05 },
    { [0xFFFF] = 0x10, [0xFF0F] = 0x10 },
  }
  for index, registers in ipairs(waking) do
    game_boy(true, registers)
    eq(operations.attempt(operations.by_name.step), true, "case " .. index)
    eq(steps(), 1)
  end
end)
