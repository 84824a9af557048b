-- The functions that operations use: mGBA's own, and workarounds for the bugs of mGBA's.

local files = require "files"
local game = require "game"
local happenings = require "happenings"
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

local GAME_BOY_ADVANCE = 0

-- The number of the last frame, which is smaller again after a reset; 0 without a game.
function emulator.frame()
  return emu and emu:currentFrame() & 0xFFFFFFFF or 0
end

local function press(keys)
  if emu then
    emu:addKeys(keys)
  end
end

local function release(keys)
  if emu then
    emu:clearKeys(keys)
  end
end

-- The holds of this emulator's keys, and the timelines.
emulator.holds = holds.new(press, release)
emulator.timelines = timelines.new(emulator.holds, press, release, function(id, cancelled)
  happenings.add(happenings.timeline_over(id, cancelled))
end, emulator.frame)

-- Called after each frame: advances holds and timelines.
function emulator.advance()
  emulator.holds.advance()
  emulator.timelines.advance()
end

-- The result of a function of mGBA as a boolean; some versions return 1 and 0.
function emulator.yes(value)
  return value == true or type(value) == "number" and value ~= 0
end

-- The value of a register. The Game Boy's have 8 bits, pairs of them 16; mGBA sets only these bits, the others are random.
function emulator.register(name)
  local value = emu:readRegister(name)
  if not value then
    refuse(BAD_ARGUMENT, "unknown register %q; there are r0 to r15 and cpsr, on the Game Boy a, b, c, d, e, f, h, l, af, "
      .. "bc, de, hl, pc and sp", sentence(name))
  end
  if emu:platform() == GAME_BOY_ADVANCE then
    return value
  end
  return value & (#name == 1 and 0xFF or 0xFFFF)
end

local THUMB = 0x20

-- Sets a register that exists. When this switches between ARM and Thumb, mGBA keeps the instructions that it has fetched
-- already, and crashes when it runs them as the other kind. A jump to the next instruction fetches them again.
function emulator.write_register(name, value)
  local before = emulator.register(name)
  local pc = name == "cpsr" and emu:readRegister("pc")
  emu:writeRegister(name, value)
  if pc and (before ~ emu:readRegister(name)) & THUMB ~= 0 then
    emu:writeRegister("pc", pc - (before & THUMB ~= 0 and 2 or 4)) -- it is one instruction ahead
  end
end

-- Refuses a path that must not be given to mGBA.
local function check_path(path)
  if not files.may_open(path) then
    refuse(BAD_ARGUMENT, "`path` must name a regular file, or a new one; %q is a device, a FIFO or a file of the "
      .. "kernel", sentence(path))
  end
end

-- Loads a ROM. If the file is not a ROM, raises a refusal that says why.
function emulator.load_rom(path)
  check_path(path)
  local advance = emu:platform() == GAME_BOY_ADVANCE
  local good, problem = files.check_rom(path, advance)
  if not good then
    local status = files.is_missing(path) and NOT_FOUND or FAILED
    refuse(status, "%s is not loaded: %s; the current game continues", sentence(path), sentence(problem))
  end
  memory.forget()
  if not emulator.yes(emu:loadFile(path)) then
    local text = "mGBA could not load %s and has given up the running game; load one in its window"
    log.error(text, sentence(path))
    refuse(FAILED, text, sentence(path))
  end
end

-- Resets the console. mGBA calls the "reset" callbacks of scripts during the reset, and then treats the running callback as
-- ended: mGBA's functions no longer work in it, unless the script names that callback again.
function emulator.reset()
  local registry = debug and debug.getregistry() or {}
  local context = registry.mCtx
  emu:reset()
  registry.mCtx = context
  memory.forget()
  game.note(game.RESET)
end

local CPU_FLAGS, HALTED = 0x44, 0x10 -- in a Game Boy's savestate
local IE, IF, LCDC, STAT, LYC, TAC, SC = 0xFFFF, 0xFF0F, 0xFF40, 0xFF41, 0xFF45, 0xFF07, 0xFF02 -- its registers

-- Whether an interrupt will wake the halted processor of a Game Boy without a key.
local function will_wake()
  local function is_set(register, bits)
    return emu:read8(register) & bits == bits
  end
  local enabled, display = emu:read8(IE), is_set(LCDC, 0x80)
  return enabled & emu:read8(IF) & 0x1F ~= 0
    or enabled & 1 ~= 0 and display
    or enabled & 2 ~= 0 and display and (emu:read8(STAT) & 0x38 ~= 0 or is_set(STAT, 0x40) and emu:read8(LYC) < 154)
    or enabled & 4 ~= 0 and is_set(TAC, 4)
    or enabled & 8 ~= 0 and is_set(SC, 0x81)
end

-- Runs an instruction. On a halted Game Boy, mGBA returns from this call only when something wakes the processor.
function emulator.step()
  if emu:platform() ~= GAME_BOY_ADVANCE then
    local state = emu:saveStateBuffer(0) or ""
    local flags = #state > CPU_FLAGS and unpack("<I4", state, CPU_FLAGS + 1) or HALTED
    if flags & HALTED ~= 0 and not will_wake() then
      refuse(UNSUPPORTED, "the Game Boy's processor is halted and no interrupt will wake it; mGBA would step forever. Run "
        .. "frames or reset instead")
    end
  end
  emu:step()
end

-- Loads a ROM without a reset, as far as possible. The processor keeps pointers to the old ROM's memory, which mGBA has
-- freed, and the next instruction would crash; loading the earlier state sets them again. Another game rejects that state and
-- starts from the beginning.
function emulator.exchange_rom(path)
  local state = emu:saveStateBuffer(0)
  emulator.load_rom(path)
  if not state or not emulator.yes(emu:loadStateBuffer(state, 0)) then
    emulator.reset()
  end
  return true
end

-- Loads a state from bytes; returns whether they are a state.
function emulator.load_state(data, flags)
  local advance = emu:platform() == GAME_BOY_ADVANCE
  return files.is_state(data, advance) and game.note_state(emulator.yes(emu:loadStateBuffer(data, flags)))
end

-- Loads a state from a file; returns whether that worked. Raises a refusal if there is no file.
function emulator.load_state_file(path, flags)
  check_path(path)
  local loaded = emulator.yes(emu:loadStateFile(path, flags))
  local missing, problem = files.is_missing(path)
  if missing and not loaded then
    refuse(NOT_FOUND, "no state is loaded: %s", sentence(problem))
  end
  return loaded
end

-- Makes a file the game's save, permanently or until another is loaded; returns whether that worked.
function emulator.load_save_file(path, temporary)
  check_path(path)
  return emulator.yes(emu:loadSaveFile(path, temporary))
end

-- Saves a state to a file; returns whether that worked. mGBA 0.10.1 cannot save a state without a picture: it writes zeros.
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

-- Writes a picture to a file. mGBA does not report whether it succeeded.
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

-- mGBA 0.10 writes pictures to files only. If no file can be created, a savestate with a picture is used: it is a PNG too.
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
