-- Functions that implement operations by calling mGBA's functions. They work around bugs of mGBA.

local files = require "files"
local game = require "game"
local eventqueue = require "eventqueue"
local holds = require "holds"
local log = require "log"
local memory = require "memory"
local refusal = require "refusal"
local timelines = require "timelines"

local refuse, sentence = refusal.refuse, refusal.sentence
local BAD_ARGUMENT, FAILED, UNSUPPORTED = refusal.BAD_ARGUMENT, refusal.FAILED, refusal.UNSUPPORTED
local NOT_FOUND = refusal.NOT_FOUND
local unpack = string.unpack

local emulator = {}

-- The number of the last frame that ran; 0 without a game. After a reset, the numbers start again.
function emulator.frame()
  return emu and emu:currentFrame() & 0xFFFFFFFF or 0
end

local core -- the object `emu` of the last frame; mGBA creates a new one for each game that the user opens
local pressed = 0 -- the keys that holds and timelines have pressed and not released since

local function press(keys)
  pressed = pressed | keys
  if emu then
    emu:addKeys(keys)
  end
end

local function release(keys)
  pressed = pressed & ~keys
  if emu then
    emu:clearKeys(keys)
  end
end

-- The holds and the timelines, which press this emulator's keys.
emulator.holds = holds.new(press, release)
emulator.timelines = timelines.new(emulator.holds, press, release, function(id, cancelled)
  eventqueue.add(eventqueue.timeline_over(id, cancelled))
end, emulator.frame)

-- Called after each frame: advances holds and timelines. When the user opens a game, mGBA releases all keys. The keys
-- of holds and timelines are then pressed again.
function emulator.advance()
  if emu ~= core then
    core = emu
    local down = pressed & emulator.holds.down()
    if down ~= 0 then
      press(down)
    end
  end
  emulator.holds.advance()
  emulator.timelines.advance()
end

-- Converts the result of a function of mGBA to a boolean; some versions return 1 and 0.
function emulator.yes(value)
  return value == true or type(value) == "number" and value ~= 0
end

-- The value of a register. On the Game Boy, a register has 8 bits and a pair of registers 16. mGBA sets only these bits
-- of its result; the others are random.
function emulator.register(name)
  local value = emu:readRegister(name)
  if not value then
    refuse(BAD_ARGUMENT, "unknown register %q; there are r0 to r15 and cpsr, on the Game Boy a, b, c, d, e, f, h, l, af, "
      .. "bc, de, hl, pc and sp", sentence(name))
  end
  if memory.is_advance() then
    return value
  end
  return value & (#name == 1 and 0xFF or 0xFFFF)
end

local THUMB = 0x20

-- Sets a register, or refuses an unknown one. If this switches the processor between ARM and Thumb, the instructions
-- that mGBA has already fetched are of the other kind, and mGBA crashes when it runs them. So this function then jumps
-- to the next instruction, which makes mGBA fetch again.
function emulator.write_register(name, value)
  local before = emulator.register(name)
  local pc = name == "cpsr" and emu:readRegister("pc")
  emu:writeRegister(name, value)
  if pc and (before ~ emu:readRegister(name)) & THUMB ~= 0 then
    emu:writeRegister("pc", pc - (before & THUMB ~= 0 and 2 or 4)) -- pc is one instruction ahead
  end
end

-- Raises a refusal if mGBA must not open this path.
local function check_path(path)
  local fine, problem = files.may_open(path)
  if problem then
    refuse(BAD_ARGUMENT, "`path` cannot be opened: %s; use a path of a regular file, or of a new one, not %q", problem,
      sentence(path))
  elseif not fine then
    refuse(BAD_ARGUMENT, "`path` must name a regular file, or a new one; %q is a device, a FIFO or a file of the "
      .. "kernel", sentence(path))
  end
end

-- Loads a ROM. If the file is not a ROM, or mGBA cannot load it, raises a refusal that says why.
function emulator.load_rom(path)
  check_path(path)
  local good, problem = files.check_rom(path, memory.is_advance())
  if not good then
    local status = files.is_missing(path) and NOT_FOUND or FAILED
    refuse(status, "%s is not loaded: %s; the current game continues", sentence(path), sentence(problem))
  end
  memory.forget()
  if not emulator.yes(emu:loadFile(path)) then
    -- mGBA 0.10.1 keeps the running game, 0.10.5 does not.
    local text = "mGBA could not load %s and may have given up the running game; if it does not continue, load a game "
      .. "in mGBA's window"
    log.error(text, sentence(path))
    refuse(FAILED, text, sentence(path))
  end
end

-- Resets the console. During the reset, mGBA calls the `reset` callbacks of scripts. Afterwards it treats the current
-- frame callback as ended, and refuses all calls from it. mGBA marks a running callback with `mCtx` in Lua's registry,
-- so this function sets `mCtx` again.
function emulator.reset()
  local registry = debug and debug.getregistry() or {}
  local context = registry.mCtx
  emu:reset()
  registry.mCtx = context
  memory.forget()
  game.note(game.RESET)
end

-- In a Game Boy's savestate: the offset of the processor's flags, and the flag of a halted processor.
local CPU_FLAGS, HALTED = 0x44, 0x10
-- Addresses of the Game Boy's registers.
local IE, IF, LCDC, STAT, LYC, TAC, SC = 0xFFFF, 0xFF0F, 0xFF40, 0xFF41, 0xFF45, 0xFF07, 0xFF02

-- Whether an interrupt will wake the halted processor of a Game Boy even if no key is pressed.
local function will_wake()
  local function is_set(register, bits)
    return emu:read8(register) & bits == bits
  end
  local enabled, display = emu:read8(IE), is_set(LCDC, 0x80)
  -- In this order: an interrupt that is pending already, the vertical blank, the display's status, the timer, and the
  -- end of a serial transfer.
  return enabled & emu:read8(IF) & 0x1F ~= 0
    or enabled & 1 ~= 0 and display
    or enabled & 2 ~= 0 and display and (emu:read8(STAT) & 0x38 ~= 0 or is_set(STAT, 0x40) and emu:read8(LYC) < 154)
    or enabled & 4 ~= 0 and is_set(TAC, 4)
    or enabled & 8 ~= 0 and is_set(SC, 0x81)
end

-- Runs one instruction. On a Game Boy with a halted processor, mGBA returns from this call only when something wakes
-- the processor. If nothing will wake it, the step is refused.
function emulator.step()
  if not memory.is_advance() then
    local state = emu:saveStateBuffer(0) or ""
    local flags = #state > CPU_FLAGS and unpack("<I4", state, CPU_FLAGS + 1) or HALTED
    if flags & HALTED ~= 0 and not will_wake() then
      refuse(UNSUPPORTED, "the Game Boy's processor is halted and no interrupt will wake it; mGBA would step forever. Run "
        .. "frames or reset instead")
    end
  end
  emu:step()
end

-- Loads a ROM, if possible without a reset. mGBA frees the memory of the old ROM, but the processor still has pointers
-- to it, so the next instruction would crash mGBA. Loading a state that was saved before sets these pointers again. If
-- the new ROM is another game, mGBA rejects that state; then the new game starts from the beginning. Raises a refusal
-- if the ROM is not loaded.
function emulator.exchange_rom(path)
  local state = emu:saveStateBuffer(0)
  emulator.load_rom(path)
  if not state or not emulator.yes(emu:loadStateBuffer(state, 0)) then
    emulator.reset()
  end
end

-- Loads a state from bytes. Returns whether that worked; it fails if the bytes are not a state of this console.
function emulator.load_state(data, flags)
  return files.is_state(data, memory.is_advance()) and game.note_state(emulator.yes(emu:loadStateBuffer(data, flags)))
end

-- Loads a state from a file. Returns whether that worked. Raises a refusal if the file does not exist.
function emulator.load_state_file(path, flags)
  check_path(path)
  local loaded = emulator.yes(emu:loadStateFile(path, flags))
  local missing, problem = files.is_missing(path)
  if missing and not loaded then
    refuse(NOT_FOUND, "no state is loaded: %s", sentence(problem))
  end
  return loaded
end

-- Uses a file as the game's save. If `temporary`, the file is the save only until a reset or until another save is
-- loaded, and the game's changes are not written to it. Returns whether that worked.
function emulator.load_save_file(path, temporary)
  check_path(path)
  return emulator.yes(emu:loadSaveFile(path, temporary))
end

-- Saves a state to a file. Returns whether that worked. mGBA 0.10.1 cannot write a state without a picture to a file:
-- it writes zeros, and reports that it failed. The script then writes the file itself.
function emulator.save_state_file(path, flags)
  check_path(path)
  if emulator.yes(emu:saveStateFile(path, flags)) then
    return true
  end
  local state = emu:saveStateBuffer(flags)
  return state ~= nil and files.write(path, state) == true
end

local PNG = "\x89PNG" -- the first bytes of a PNG file

local function is_png(data)
  return type(data) == "string" and data:sub(1, #PNG) == PNG
end

-- Writes a picture of the screen to a file, and checks the file, because mGBA does not report whether it succeeded.
function emulator.screenshot_file(path)
  check_path(path)
  emu:screenshot(path)
  local good, problem = files.is_written(path, PNG)
  if not good then
    refuse(FAILED, "mGBA wrote no picture: %s", sentence(problem))
  end
end

local function read_and_remove(path)
  local file = io.open(path, "rb")
  local data = file and file:read("a")
  if file then
    file:close()
  end
  os.remove(path)
  return data
end

-- Returns a picture of the screen as PNG. mGBA 0.10 writes pictures only to files. If the script cannot create a file,
-- it uses a savestate with a picture, which is a PNG too.
function emulator.screenshot()
  local named, path = pcall(os.tmpname)
  if named then
    emu:screenshot(path)
    local data = read_and_remove(path)
    if is_png(data) then
      return data
    end
  end
  local state = emu:saveStateBuffer(1)
  return is_png(state) and state or refuse(FAILED, "mGBA gave no picture")
end

return emulator
