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

  function M.wait(seconds)
    if not M.is_terminal(0) then return wait_for_pipe(seconds) end
    local milliseconds = seconds > 2e6 and 0xffffffff or math.max(0, math.ceil(seconds * 1000))
    if C.WaitForSingleObject(handle(0), milliseconds) == 0 then return true end
    return nil, "timeout"
  end

  local byte = ffi.new("uint8_t[1]")

  function M.read()
    if C.ReadFile(handle(0), byte, 1, count, nil) ~= 0 and count[0] == 1 then return byte[0] end
    return nil, "closed"
  end

  return M
end
