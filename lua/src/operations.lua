-- The table of operations: each of them once. crates/protocol/src/op.rs has the same table for the other end.

local arguments = require "arguments"
local emulator = require "emulator"
local game = require "game"
local limits = require "limits"
local lockstep = require "lockstep"
local memory = require "memory"
local refusal = require "refusal"
local watches = require "watches"

local domain, register, yes = memory.domain, emulator.register, emulator.yes
local holds, timelines = emulator.holds, emulator.timelines
local refuse, UNSUPPORTED = refusal.refuse, refusal.UNSUPPORTED
local unpack = string.unpack

local READ, CHANGE = "read", "change"
local LINKED = true

local by_code, by_name = {}, {}

-- Defines an operation. `takes` is a list of "name:type", a default behind "=" for text messages. `run` gets the
-- arguments and returns the result, or raises a refusal. An operation that is `linked` is a link's alone, whose
-- connection `run` gets before the arguments.
local function operation(code, name, effect, takes, result, run, linked)
  local op = { code = code, name = name, effect = effect, change = effect == CHANGE, result = result, run = run }
  op.game = true -- whether it needs one
  op.is_last = false -- whether it must be the last of its batch
  op.linked = linked or false
  op.arguments = {}
  local binary = "<"
  local narrow = false
  op.moved_at = nil -- the place of the argument that says how many bytes of memory it reads or writes
  for word in takes:gmatch("%S+") do
    local argument, kind, default = word:match("^([%w_]+):([%w_]+)=?(.*)$")
    local spec = { name = argument, kind = arguments.types[kind], default = tonumber(default) }
    binary = binary .. spec.kind.format
    table.insert(op.arguments, spec)
    narrow = narrow or spec.kind.narrow
    if spec.kind == arguments.types.length then
      op.moved_at = #op.arguments
    end
  end
  op.format, op.count = binary, #op.arguments
  if narrow then
    function op.run(...)
      for index, spec in ipairs(op.arguments) do
        arguments.check(spec, (select(linked and index + 1 or index, ...)))
      end
      return run(...)
    end
  end
  by_code[code], by_name[name] = op, op
  return op
end

operation(0x01, "echo", READ, "data:bytes", "bytes", arguments.as_it_is).game = false

operation(0x10, "current_frame", READ, "", "int", function() return emu:currentFrame() end)
operation(0x11, "frame_cycles", READ, "", "int", function() return emu:frameCycles() end)
operation(0x12, "frequency", READ, "", "int", function() return emu:frequency() end)
operation(0x13, "game_code", READ, "", "text", function() return emu:getGameCode() end)
-- The last of a Game Boy's 16 letters came to mean colour: 0x80 or 0xC0.
operation(0x14, "game_title", READ, "", "text", function()
  local title = emu:getGameTitle()
  return title and #title == 16 and title:gsub("[\x80-\xff]$", "") or title
end)
operation(0x15, "platform", READ, "", "int", function() return emu:platform() end)
operation(0x16, "rom_size", READ, "", "int", function() return emu:romSize() end)
operation(0x17, "checksum", READ, "", "int", function() return (unpack(">I4", emu:checksum())) end)

local on_bus, in_domain = memory.check_bus, memory.check_domain

operation(0x20, "read8", READ, "address:u32", "int", memory.read8).check = function(address) on_bus(address, 1) end
operation(0x21, "read16", READ, "address:u32", "int", memory.read16).check = function(address) on_bus(address, 2) end
operation(0x22, "read32", READ, "address:u32", "int", memory.read32).check = function(address) on_bus(address, 4) end
operation(0x23, "read_range", READ, "address:u32 length:length", "bytes", function(address, length)
  return emu:readRange(address, length)
end).check = on_bus
operation(0x24, "write8", CHANGE, "address:u32 value:u8", "none", memory.write8).check = function(address)
  on_bus(address, 1, true)
end
operation(0x25, "write16", CHANGE, "address:u32 value:u16", "none", memory.write16).check = function(address)
  on_bus(address, 2, true)
end
operation(0x26, "write32", CHANGE, "address:u32 value:u32", "none", memory.write32).check = function(address)
  on_bus(address, 4, true)
end
-- Each byte is a call of mGBA's, so that more of them would freeze it for seconds.
local function check_size(data)
  if #data > limits.write then
    refuse(refusal.BAD_ARGUMENT, "`data` must be at most %d bytes, not %d; write the rest with further requests",
      limits.write, #data)
  end
end

operation(0x27, "write_range", CHANGE, "address:u32 data:bytes", "none", function(address, data)
  check_size(data)
  memory.write_range(address, data)
end).check = function(address, data)
  check_size(data)
  on_bus(address, #data, true)
end

operation(0x30, "domains", READ, "", "names", function()
  local names = {}
  for name in pairs(emu.memory) do
    names[#names + 1] = name
  end
  return names
end)
operation(0x31, "domain_base", READ, "domain:name", "int", function(name) return domain(name):base() end)
operation(0x32, "domain_bound", READ, "domain:name", "int", function(name) return domain(name):bound() end)
operation(0x33, "domain_name", READ, "domain:name", "text", function(name) return domain(name):name() end)
operation(0x34, "domain_size", READ, "domain:name", "int", function(name) return domain(name):size() end)
operation(0x35, "domain_read8", READ, "domain:name address:u32", "int", function(name, address)
  return domain(name):read8(address)
end).check = function(name, address)
  in_domain(name, address, 1)
end
operation(0x36, "domain_read16", READ, "domain:name address:u32", "int", memory.domain_read16).check = function(
  name, address)
  in_domain(name, address, 2)
end
operation(0x37, "domain_read32", READ, "domain:name address:u32", "int", memory.domain_read32).check = function(
  name, address)
  in_domain(name, address, 4)
end
operation(0x38, "domain_read_range", READ, "domain:name address:u32 length:length", "bytes", function(name, address, length)
  return domain(name):readRange(address, length)
end).check = in_domain
operation(0x39, "domain_write8", CHANGE, "domain:name address:u32 value:u8", "none", memory.domain_write8).check = function(
  name, address)
  in_domain(name, address, 1, true)
end
operation(0x3a, "domain_write16", CHANGE, "domain:name address:u32 value:u16", "none",
  memory.domain_write16).check = function(name, address)
  in_domain(name, address, 2, true)
end
operation(0x3b, "domain_write32", CHANGE, "domain:name address:u32 value:u32", "none",
  memory.domain_write32).check = function(name, address)
  in_domain(name, address, 4, true)
end

operation(0x40, "read_register", READ, "register:name", "int", register)
operation(0x41, "write_register", CHANGE, "register:name value:i32", "none", emulator.write_register)

operation(0x50, "get_keys", READ, "", "int", function() return emu:getKeys() end)
operation(0x51, "get_key", READ, "key:key", "int", function(key) return emu:getKey(key) end)
operation(0x52, "set_keys", CHANGE, "keys:keys", "none", function(keys)
  timelines.let_go(0x3FF, emu:getKeys() & ~keys)
  emu:setKeys(keys)
end)
operation(0x53, "add_keys", CHANGE, "keys:keys", "none", function(keys)
  timelines.let_go(keys, 0)
  emu:addKeys(keys)
end)
operation(0x54, "clear_keys", CHANGE, "keys:keys", "none", function(keys)
  timelines.let_go(keys, emu:getKeys() & keys)
  emu:clearKeys(keys)
end)
operation(0x55, "hold_keys", CHANGE, "keys:keys frames:u32", "none", function(keys, frames)
  if keys == 0 then
    refuse(refusal.BAD_ARGUMENT, "`keys` names no key")
  end
  holds.hold(keys, frames)
end)
operation(0x56, "play_keys", CHANGE, "steps:bytes", "int", timelines.play)
operation(0x57, "cancel_keys", CHANGE, "id:u32", "bool", timelines.cancel)
operation(0x58, "timeline", READ, "id:u32", "names", timelines.describe)

operation(0x60, "save_state", READ, "flags:flags=31", "bytes", function(flags)
  return emu:saveStateBuffer(flags) or refuse(refusal.FAILED, "mGBA could not save the state")
end)
operation(0x61, "load_state", CHANGE, "data:bytes flags:flags=29", "bool", emulator.load_state)
operation(0x62, "save_state_file", CHANGE, "path:path flags:flags=31", "bool", emulator.save_state_file)
operation(0x63, "load_state_file", CHANGE, "path:path flags:flags=29", "bool", function(path, flags)
  return game.note_state(emulator.load_state_file(path, flags))
end)
operation(0x64, "save_state_slot", CHANGE, "slot:slot flags:flags=31", "bool", function(slot, flags)
  return yes(emu:saveStateSlot(slot, flags))
end)
operation(0x65, "load_state_slot", CHANGE, "slot:slot flags:flags=29", "bool", function(slot, flags)
  return game.note_state(yes(emu:loadStateSlot(slot, flags)))
end)

operation(0x70, "load_file", CHANGE, "path:path", "bool", function(path)
  local loaded = emulator.exchange_rom(path)
  if loaded then
    game.note(game.GAME)
    game.check()
  end
  return loaded
end)
operation(0x71, "load_rom", CHANGE, "path:path", "bool", function(path)
  emulator.load_rom(path)
  emulator.reset()
  game.check_break()
  return true
end)
operation(0x72, "load_save_file", CHANGE, "path:path temporary:boolean", "bool", function(path, temporary)
  return emulator.load_save_file(path, temporary == 1)
end)
operation(0x73, "autoload_save", CHANGE, "", "bool", function() return yes(emu:autoloadSave()) end)

operation(0x80, "reset", CHANGE, "", "none", emulator.reset)
operation(0x81, "step", CHANGE, "", "none", emulator.step)
operation(0x82, "pause", CHANGE, "", "none", function()
  refuse(UNSUPPORTED, "mGBA's Lua cannot pause; pause in its window, or use lockstep")
end).game = false
operation(0x83, "resume", CHANGE, "", "none", lockstep.stop).game = false
operation(0x84, "set_speed", CHANGE, "thousandths:u32", "none", function()
  refuse(UNSUPPORTED, "mGBA's Lua cannot set the speed; its window can")
end).game = false
operation(0x85, "advance", CHANGE, "frames:frames", "int", function(client, frames)
  if not lockstep.on then
    refuse(UNSUPPORTED, "mGBA's Lua cannot run frames; begin lockstep, in which each frame waits for `advance`")
  end
  return emulator.frame() + lockstep.advance(client.session, frames) & 0xFFFFFFFF
end, LINKED).is_last = true
operation(0x86, "lockstep", CHANGE, "timeout:timeout", "none", function(client, timeout)
  if timeout == 0 then
    lockstep.stop()
  else
    lockstep.begin(client.session, timeout / 1000)
  end
end, LINKED)

operation(0x90, "screenshot", READ, "", "bytes", emulator.screenshot)
operation(0x91, "screenshot_file", CHANGE, "path:path", "none", emulator.screenshot_file)

operation(0xa0, "console_log", CHANGE, "message:text", "none", function(text) console:log(text) end).game = false
operation(0xa1, "console_warn", CHANGE, "message:text", "none", function(text) console:warn(text) end).game = false
operation(0xa2, "console_error", CHANGE, "message:text", "none", function(text) console:error(text) end).game = false

operation(0xb0, "watch", READ, "id:u32 every:u32 flags:u8 ranges:bytes", "bytes", watches.watch, LINKED)
operation(0xb1, "unwatch", READ, "id:u32", "none", watches.unwatch, LINKED)

by_name.write_range.moved_at = 2

local WRITE_COST = 64 -- a byte is written by a call of its own, and read with many others

-- How many bytes of memory an operation with these arguments moves, as many as it would read in the same time.
local function moved_bytes(op, a, b, c)
  local place = op.moved_at
  if not place then
    return 0
  end
  local value = place == 2 and b or place == 3 and c or a
  return type(value) == "string" and WRITE_COST * #value or value
end

-- Does an operation for a link's connection, or nil for a text message. True and its result, or false, a status and what
-- was wrong.
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
  if type(result) == "table" then
    return false, result.status, result.text
  end
  return false, refusal.FAILED, "mGBA refused: " .. refusal.sentence(result)
end

return { by_code = by_code, by_name = by_name, attempt = attempt, moved_bytes = moved_bytes }
