--- The terminal on Windows, where it is called a console. Special keys arrive as the same escape sequences as in other
-- terminals.

local bit = require "bit"
local ffi = require "ffi"

local C = ffi.C

-- The numbers of the standard handles (-10, -11 and -12 as unsigned numbers) by stream: 0 input, 1 output, 2 errors.
local STANDARD = { [0] = 0xfffffff6, 0xfffffff5, 0xfffffff4 }
-- Bits of a console's input mode: ENABLE_PROCESSED_INPUT, which turns Ctrl+C into a signal, ENABLE_LINE_INPUT,
-- ENABLE_ECHO_INPUT and ENABLE_VIRTUAL_TERMINAL_INPUT.
local PROCESSED, LINE, ECHO, SEQUENCES = 1, 2, 4, 0x200
-- The type of the records that report a key, and the code of the key Alt.
local KEY_EVENT, ALT = 1, 0x12
-- Bits of the modifiers in these records: AltGr, and the two Ctrl keys.
local ALT_GR, CTRL = 1, 12
local FOREVER, UTF8 = 0xffffffff, 65001
-- Milliseconds between two checks of a pipe.
local CHECK_INTERVAL = 5

return function(sys)
  local M = {}

  local function handle(stream)
    return C.GetStdHandle(STANDARD[stream] or STANDARD[0])
  end

  local mode = ffi.new("uint32_t[1]")

  function M.is_terminal(stream)
    return C.GetConsoleMode(handle(stream), mode) ~= 0
  end

  function M.size(stream)
    local facts = ffi.new("struct fw_console_facts")
    if C.GetConsoleScreenBufferInfo(handle(stream), facts) == 0 then return nil end
    return facts.right - facts.left + 1, facts.bottom - facts.top + 1
  end

  function M.raw(keep_signals)
    if C.GetConsoleMode(handle(0), mode) == 0 then return sys.fail("GetConsoleMode") end
    local saved = mode[0]
    local raw = bit.bor(bit.band(saved, bit.bnot(LINE + ECHO + PROCESSED)), SEQUENCES, keep_signals and PROCESSED or 0)
    if C.SetConsoleMode(handle(0), raw) == 0 then return sys.fail("SetConsoleMode") end
    return { saved = saved }
  end

  function M.restore(changed)
    C.SetConsoleMode(handle(0), changed.saved)
  end

  local count = ffi.new("uint32_t[1]")

  -- Polls a pipe, because Windows cannot wait for the handle of a pipe.
  local function wait_for_pipe(seconds)
    local deadline = sys.monotonic() + seconds
    while C.PeekNamedPipe(handle(0), nil, 0, nil, count, nil) ~= 0 and count[0] == 0 do
      if sys.monotonic() >= deadline then return nil, "timeout" end
      C.Sleep(CHECK_INTERVAL)
    end
    return true
  end

  local record = ffi.new("struct fw_input_record")
  -- A character in UTF-16 and in UTF-8. `high` is the first half of a surrogate pair whose second half has not arrived.
  local units, bytes, high = ffi.new("uint16_t[2]"), ffi.new("char[4]"), nil
  -- The bytes of the console's input that have not been read.
  local received = ""

  -- Whether the record contains a character. There are also records of keys such as Shift, of released keys, and of
  -- changes of the window.
  local function has_character()
    if record.type ~= KEY_EVENT then return false end
    -- If the user types the number of a character while Alt is down, the character comes with the release of Alt.
    if record.unit ~= 0 then return record.is_down ~= 0 or record.key == ALT end
    -- The character 0, which is Ctrl+Space.
    return record.is_down ~= 0 and record.key == bit.band(C.VkKeyScanW(0), 255)
      and bit.band(record.modifiers, CTRL) ~= 0 and bit.band(record.modifiers, ALT_GR) == 0
  end

  -- Takes the next record from the console's input, and adds its character to `received`. Waits if there is no record.
  local function take_record()
    if C.ReadConsoleInputW(handle(0), record, 1, count) == 0 then return false end
    if not has_character() then return true end
    local unit = record.unit
    if unit >= 0xd800 and unit < 0xdc00 then
      high = unit
      return true
    end
    units[0], units[1] = high or unit, unit
    local length = C.WideCharToMultiByte(UTF8, 0, units, high and 2 or 1, bytes, 4, nil, nil)
    high = nil
    received = received .. ffi.string(bytes, length):rep(math.max(1, record.repeats))
    return true
  end

  -- Waits at most `seconds` for a character, because `read` itself has no time-out.
  function M.wait(seconds)
    if not M.is_terminal(0) then return wait_for_pipe(seconds) end
    local deadline = sys.monotonic() + seconds
    while received == "" do
      local left = deadline - sys.monotonic()
      local milliseconds = left > 2e6 and FOREVER or math.max(0, math.ceil(left * 1000))
      if C.WaitForSingleObject(handle(0), milliseconds) ~= 0 then return nil, "timeout" end
      if not take_record() then break end -- the next `read` reports that the input is closed
    end
    return true
  end

  local byte = ffi.new("uint8_t[1]")

  function M.read()
    if received == "" and not M.is_terminal(0) then
      if C.ReadFile(handle(0), byte, 1, count, nil) ~= 0 and count[0] == 1 then return byte[0] end
      return nil, "closed"
    end
    -- The records are read directly. `ReadFile` converts characters to the code page of the console, which is rarely
    -- UTF-8, and waits for another record if the next one has no character.
    while received == "" do
      if not take_record() then return nil, "closed" end
    end
    local first = received:byte()
    received = received:sub(2)
    return first
  end

  return M
end
