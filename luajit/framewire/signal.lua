--- Receives signals through a descriptor, because Lua code must not run inside a signal handler. The descriptor is a
-- signalfd on Linux and a kqueue on macOS and FreeBSD. `open` blocks the signals. Threads that start later, and the
-- workers of `worker.group`, inherit the signal mask, and can receive the signals through a descriptor too. Processes
-- from `worker.start` do not inherit it.

local ffi = require "ffi"
local sys = require "framewire.sys"

local C = ffi.C

local M = {}

-- Signals that a program can wait for.
local RECEIVED = {
  "HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM", "CHLD", "CONT", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
  "VTALRM", "PROF", "WINCH", "IO",
}
-- Signals that a program can send but not wait for. The system does not let programs wait for the first two. The others
-- are the effect of a program's own faults, or of writing to a closed pipe.
local ONLY_SENT = { "KILL", "STOP", "ABRT", "BUS", "FPE", "ILL", "SEGV", "SYS", "TRAP", "PIPE" }

local numbers, names, can_receive = {}, {}, {}

local function add(list)
  for _, name in ipairs(list) do
    local number = sys["SIG" .. name]
    if number then numbers[name], names[number] = number, name end
  end
end

add(RECEIVED)
add(ONLY_SENT)
for _, name in ipairs(RECEIVED) do can_receive[name] = true end

--- Signal numbers by name. `open` does not accept all of these: not KILL, STOP, PIPE, or the signals of a program's
--- own faults, such as SEGV.
M.numbers = numbers

--- Signal names by number.
M.names = names

local Signals = {}
Signals.__index = Signals

local function set_of(list)
  local set = ffi.new("struct fw_sigset")
  C.sigemptyset(set)
  for _, name in ipairs(list) do
    if not can_receive[name] then
      return nil, ("a program cannot wait for the signal '%s'; use some of: %s")
        :format(tostring(name), table.concat(RECEIVED, ", "))
    end
    C.sigaddset(set, numbers[name])
  end
  return set
end

--- The next signal that has arrived.
---@return string|nil name nil if there is none
function Signals:read()
  local number = sys.read_signal(self.fd)
  return number and names[number]
end

--- Closes the descriptor and unblocks the signals. They have their default actions again.
function Signals:close()
  if self.fd < 0 then return end
  C.close(self.fd)
  self.fd = -1
  C.sigprocmask(sys.SIG_UNBLOCK, self.set, nil)
end

--- Blocks signals, and opens a descriptor that is readable when one of them has arrived.
---@param list string[] names without SIG
---@return table|nil signals with `fd`, `read()` and `close()`
---@return string? message
function M.open(list)
  if not sys.open_signals then return nil, "signals are not supported on " .. sys.name end
  local set, message = set_of(list)
  if not set then return nil, message end
  if C.sigprocmask(sys.SIG_BLOCK, set, nil) ~= 0 then return sys.fail("sigprocmask") end
  local fd = sys.open_signals(set, list, numbers)
  if fd < 0 then
    local _, problem, number = sys.fail("signal descriptor")
    C.sigprocmask(sys.SIG_UNBLOCK, set, nil)
    return nil, problem, number
  end
  return setmetatable({ fd = fd, set = set }, Signals)
end

--- Sends a signal to a process.
---@param pid integer
---@param name string
---@return true|nil ok
---@return string? message
function M.send(pid, name)
  if not sys.open_signals then return nil, "signals are not supported on " .. sys.name end
  -- The system sends the signal to a whole group of processes if the number is 0 or negative.
  if type(pid) ~= "number" or not (pid >= 1 and pid < 2 ^ 31) or pid % 1 ~= 0 then
    return nil, tostring(pid) .. " is not a process"
  end
  if not numbers[name] then return nil, "there is no signal '" .. tostring(name) .. "'; use a name such as TERM" end
  if C.kill(pid, numbers[name]) ~= 0 then return sys.fail("kill") end
  return true
end

return M
