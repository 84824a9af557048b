-- Implements the operations. Their codes, names and arguments are in optable.lua, which is generated.

local arguments = require "arguments"
local code = require "code"
local emulator = require "emulator"
local evaluate = require "evaluate"
local frozen = require "frozen"
local game = require "game"
local lockstep = require "lockstep"
local memory = require "memory"
local optable = require "optable"
local refusal = require "refusal"
local runs = require "runs"
local watches = require "watches"

local domain, yes = memory.domain, emulator.yes
local holds, timelines = emulator.holds, emulator.timelines
local refuse, UNSUPPORTED = refusal.refuse, refusal.UNSUPPORTED
local unpack = string.unpack

local run = {} -- by operation: a function that gets the arguments and returns the result, or raises a refusal
-- By operation: a function that gets the arguments, without a connection, and raises a refusal if an expression in them
-- cannot be compiled, or if the operation would access memory that does not exist.
local check = {}

run.echo = arguments.as_it_is

function run.current_frame() return emu:currentFrame() end
function run.frame_cycles() return emu:frameCycles() end
function run.frequency() return emu:frequency() end
function run.game_code() return emu:getGameCode() end
-- A Game Boy game's title has 16 characters. In later games, the last one is a flag instead: 0x80 or 0xC0 for colour.
function run.game_title()
  local title = emu:getGameTitle()
  return title and #title == 16 and title:gsub("[\x80-\xff]$", "") or title
end
function run.platform() return emu:platform() end
function run.rom_size() return emu:romSize() end
function run.checksum() return (unpack(">I4", emu:checksum())) end

local function on_bus(size, is_write)
  return function(address)
    memory.check_bus(address, size, is_write)
  end
end

local function in_domain(size, is_write)
  return function(name, address)
    memory.check_domain(name, address, size, is_write)
  end
end

run.read8, check.read8 = memory.read8, on_bus(1)
run.read16, check.read16 = memory.read16, on_bus(2)
run.read32, check.read32 = memory.read32, on_bus(4)
run.write8, check.write8 = memory.write8, on_bus(1, true)
run.write16, check.write16 = memory.write16, on_bus(2, true)
run.write32, check.write32 = memory.write32, on_bus(4, true)

function run.read_range(address, length) return emu:readRange(address, length) end
check.read_range = memory.check_bus

function run.write_range(address, data)
  memory.check_size(data)
  memory.write_range(address, data)
end
function check.write_range(address, data)
  memory.check_size(data)
  memory.check_bus(address, #data, true)
end

function run.domains()
  local names = {}
  for name in pairs(emu.memory) do
    names[#names + 1] = name
  end
  return names
end
function run.domain_base(name) return domain(name):base() end
function run.domain_bound(name) return domain(name):bound() end
function run.domain_name(name) return domain(name):name() end
run.domain_size = memory.size

function run.domain_read8(name, address) return domain(name):read8(address) end
check.domain_read8 = in_domain(1)
run.domain_read16, check.domain_read16 = memory.domain_read16, in_domain(2)
run.domain_read32, check.domain_read32 = memory.domain_read32, in_domain(4)
run.domain_write8, check.domain_write8 = memory.domain_write8, in_domain(1, true)
run.domain_write16, check.domain_write16 = memory.domain_write16, in_domain(2, true)
run.domain_write32, check.domain_write32 = memory.domain_write32, in_domain(4, true)

function run.domain_read_range(name, address, length) return domain(name):readRange(address, length) end
check.domain_read_range = memory.check_domain

run.read_register, run.write_register = emulator.register, emulator.write_register

function run.get_keys() return emu:getKeys() end
function run.get_key(key) return emu:getKey(key) end
-- `timelines.let_go` takes its first keys away from holds and timelines; its second are the keys that are released now.
function run.set_keys(keys)
  timelines.let_go(0x3FF, emu:getKeys() & ~keys)
  emu:setKeys(keys)
end
function run.add_keys(keys)
  timelines.let_go(keys, 0)
  emu:addKeys(keys)
end
function run.clear_keys(keys)
  timelines.let_go(keys, emu:getKeys() & keys)
  emu:clearKeys(keys)
end
function run.hold_keys(keys, frames)
  if keys == 0 then
    refuse(refusal.BAD_ARGUMENT, "`keys` names no key")
  end
  holds.hold(keys, frames)
end
run.play_keys, run.append_keys = timelines.play, timelines.append
run.cancel_keys, run.timeline = timelines.cancel, timelines.describe

function run.save_state(flags)
  return emu:saveStateBuffer(flags) or refuse(refusal.FAILED, "mGBA could not save the state")
end
run.load_state, run.save_state_file = emulator.load_state, emulator.save_state_file
function run.load_state_file(path, flags) return game.note_state(emulator.load_state_file(path, flags)) end
function run.save_state_slot(slot, flags) return yes(emu:saveStateSlot(slot, flags)) end
function run.load_state_slot(slot, flags) return game.note_state(yes(emu:loadStateSlot(slot, flags))) end

function run.load_file(path)
  emulator.exchange_rom(path)
  game.note(game.GAME)
  game.check()
  return true
end
function run.load_rom(path)
  emulator.load_rom(path)
  emulator.reset()
  game.check()
  return true
end
function run.load_save_file(path, temporary) return emulator.load_save_file(path, temporary == 1) end
function run.autoload_save() return yes(emu:autoloadSave()) end

-- While the game is recorded or replayed, refuses a change that recordings do not contain.
local function check_may_change(what)
  if watches.report_keys() then
    refuse(refusal.BUSY, "the game is being recorded or replayed, and recordings do not hold %s; end that first", what)
  end
end

run.reset, run.resume = emulator.reset, lockstep.stop
function run.step()
  check_may_change("single steps")
  emulator.step()
end
function run.advance(client, frames)
  if not lockstep.on then
    refuse(UNSUPPORTED, "mGBA's Lua cannot run frames; begin lockstep, in which each frame waits for `advance`")
  end
  return emulator.frame() + lockstep.advance(client.session, frames) & 0xFFFFFFFF
end
function run.lockstep(client, timeout)
  if timeout == 0 then
    lockstep.stop()
  else
    lockstep.begin(client.session, timeout / 1000)
  end
end

run.screenshot, run.screenshot_file = emulator.screenshot, emulator.screenshot_file

function run.console_log(text) console:log(text) end
function run.console_warn(text) console:warn(text) end
function run.console_error(text) console:error(text) end

function run.watch(client, id, every, flags, ranges)
  local name = frozen.first()
  if name and flags & watches.FLAG_KEYS ~= 0 then -- recordings use such watches
    refuse(refusal.BUSY, "the value at %s is frozen, but a replay would not write it and would therefore differ; "
      .. "unfreeze it before you record", name)
  end
  return watches.watch(client, id, every, flags, ranges)
end
run.unwatch = watches.unwatch

-- Returns a run, and not its result, if it needs frames; requests.lua then waits for its end.
function run.run(client, steps) return runs.begin(steps, client.session) end
function run.evaluate(expressions) return code.evaluate(expressions, emulator.frame()) end
run.read_at, run.write_at = frozen.read_at, frozen.write_at
check.run, check.evaluate, check.freeze = runs.check, code.compile_all, frozen.check
function check.read_at(address, length)
  code.check_address(address, length)
end
function check.write_at(address, data)
  memory.check_size(data)
  code.check_address(address, #data, true)
end
function run.freeze(name, kind, address, data)
  check_may_change("writes to memory")
  frozen.freeze(name, kind, address, data)
end
run.unfreeze, run.frozen = frozen.unfreeze, frozen.list

-- `allowed` is a setting: whether clients may send code.
local scripts = { allowed = false }

function run.script(source)
  if not scripts.allowed then
    refuse(UNSUPPORTED, "framewire.lua does not run code from clients in this window; set allow_script = true at its "
      .. "top, or FRAMEWIRE_SCRIPT_ALLOW_SCRIPT=true in mGBA's environment, and load it again")
  end
  if watches.report_keys() then
    refuse(refusal.BUSY, "a recording or a replay is under way, and recordings do not hold scripts; end it first")
  end
  local reply, problem = evaluate(source)
  memory.rom_writes = memory.rom_writes + 1 -- the code may have written to the ROM
  return reply or refuse(refusal.BAD_ARGUMENT, "the code is not Lua: %s", refusal.sentence(problem))
end

-- Operations that mGBA's Lua cannot perform. They are refused with these texts, which say what to use instead.
local NO_CHEATS = "mGBA's Lua has no cheats; use Tools > Cheats in its window"
local NO_SENSORS = "mGBA's Lua has no sensors; its window has them in Tools > Game Pak sensors"
local NO_LAYERS = "mGBA's Lua has no layers; its window has them in Audio/Video > Video layers and Audio channels"
local CANNOT = {
  cycles = "mGBA's Lua cannot read the cycle counter; use `current_frame`, or an embedded core",
  pause = "mGBA's Lua cannot pause; pause in its window, or use lockstep",
  set_speed = "mGBA's Lua cannot set the speed; its window can",
  cheats = NO_CHEATS, add_cheat = NO_CHEATS, load_cheats = NO_CHEATS,
  enable_cheat = NO_CHEATS, remove_cheat = NO_CHEATS,
  sensors = NO_SENSORS, set_sensor = NO_SENSORS,
  layers = NO_LAYERS, set_layer = NO_LAYERS,
  rewind = "framewire.lua keeps no history, but `framewire serve` does: use its POST /v1/rewind; or use snapshots, or "
    .. "hold the window's key for rewind",
}
for name, text in pairs(CANNOT) do
  run[name] = function() refuse(UNSUPPORTED, text) end
end

local function set(...)
  local members = {}
  for _, name in ipairs { ... } do
    members[name] = true
  end
  return members
end

local NEEDS_NO_GAME = set("echo", "resume", "console_log", "console_warn", "console_error", "script")
-- Operations only for links. Their functions in `run` get the link's connection as the first argument.
local LINKED = set("advance", "lockstep", "run", "watch", "unwatch")
-- The index of the argument that says how many bytes an operation moves, that is, reads or writes. The argument is a
-- length, or the data itself.
local MOVED = { read_range = 2, domain_read_range = 3, write_range = 2, read_at = 2, write_at = 2 }

-- Returns a function that first checks the arguments of an operation, and then performs it. This is for operations with
-- an argument whose binary form can hold values that are not accepted (`narrow` in arguments.lua).
local function checked(op, perform)
  local before = op.linked and 1 or 0
  return function(...)
    for index, spec in ipairs(op.arguments) do
      arguments.check(spec, (select(before + index, ...)))
    end
    return perform(...)
  end
end

local by_code, by_name = {}, {}

for _, row in ipairs(optable) do
  local name = row.name
  local op = { code = row.code, name = name, change = row.change, result = row.result, format = row.format }
  op.message = row.message -- mGBA-http's message with the same arguments, or nil
  op.game = not (NEEDS_NO_GAME[name] or CANNOT[name])
  op.linked, op.moved_at = LINKED[name] or false, MOVED[name]
  op.run, op.check = assert(run[name], name), check[name]
  op.arguments, op.count = {}, #row.arguments
  for index, argument in ipairs(row.arguments) do
    op.arguments[index] = arguments.new(table.unpack(argument))
  end
  for _, spec in ipairs(op.arguments) do
    if spec.kind.narrow then
      op.run = checked(op, run[name])
    end
  end
  by_code[op.code], by_name[name] = op, op
end

-- A byte that is written counts as this many bytes: each is written by its own call to mGBA, but one call reads many
-- bytes.
local WRITE_COST = 64

-- How many bytes of memory an operation with these arguments moves. For writes, this is the number of bytes that could
-- be read in the same time.
local function moved_bytes(op, a, b, c)
  local place = op.moved_at
  if not place then
    return 0
  end
  local value = place == 2 and b or place == 3 and c or a
  return type(value) == "string" and WRITE_COST * #value or value
end

-- Performs an operation. `client` is the connection of a link, or nil for a text message. Returns true and the result;
-- or false, a status and the reason.
local function attempt(op, client, a, b, c, d)
  if op.game and not emu then
    return false, refusal.NO_GAME, "no game is loaded in mGBA"
  end
  local done, result
  if op.linked then
    done, result = pcall(op.run, client, a, b, c, d)
  else
    done, result = pcall(op.run, a, b, c, d)
  end
  if done and (result ~= nil or op.result == "none") then
    return true, result
  end
  if done then
    return false, refusal.FAILED, "mGBA gave no answer"
  end
  return false, refusal.of(result)
end

return { by_code = by_code, by_name = by_name, attempt = attempt, moved_bytes = moved_bytes, scripts = scripts }
