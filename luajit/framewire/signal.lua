--- Signals as a descriptor to read, because Lua code must not run inside a signal handler. It is a signalfd on Linux
-- and a kqueue on macOS and BSD. From `open` on, the signals are blocked for the whole process. Threads and processes
-- that start later inherit that, and wait for them in the same way.

local ffi = require "ffi"
local sys = require "framewire.sys"

local C = ffi.C

local M = {}

-- `numbers` has the names for which the library has constants.
local numbers, names = {}, {}
for _, name in ipairs { "HUP", "INT", "KILL", "USR1", "USR2", "TERM", "CHLD" } do
  local number = sys["SIG" .. name]
  if number then numbers[name], names[number] = number, name end
end

--- Signal numbers by name.
M.numbers = numbers

--- Signal names by number.
M.names = names

local Signals = {}
Signals.__index = Signals

local function set_of(list)
  local set = ffi.new("struct fw_sigset")
  C.sigemptyset(set)
  for _, name in ipairs(list) do
    local number = numbers[name]
    if not number then
      return nil, "unknown signal '" .. tostring(name) .. "'; use INT, TERM, HUP, CHLD, USR1 or USR2"
    end
    C.sigaddset(set, number)
  end
  return set
end

--- The next signal that has arrived.
---@return string|nil name nil if there is none
function Signals:read()
  local number = sys.read_signal(self.fd)
  return number and names[number]
end

--- Closes the descriptor and restores the signals' default actions.
function Signals:close()
  C.close(self.fd)
  C.sigprocmask(sys.SIG_UNBLOCK, self.set, nil)
end

--- Blocks signals and returns a descriptor that is readable when one has arrived.
---@param list string[] names without SIG
---@return table|nil signals with `fd`, `read()` and `close()`
---@return string? message
function M.open(list)
  if not sys.open_signals then return nil, "signals are not supported on " .. sys.name end
  local set, message = set_of(list)
  if not set then return nil, message end
  if C.sigprocmask(sys.SIG_BLOCK, set, nil) ~= 0 then return sys.fail("sigprocmask") end
  local fd = sys.open_signals(set, list, numbers)
  if fd < 0 then return sys.fail("signal descriptor") end
  return setmetatable({ fd = fd, set = set }, Signals)
end

--- Sends a signal to a process.
---@param pid integer
---@param name string
---@return true|nil ok
---@return string? message
function M.send(pid, name)
  if C.kill(pid, numbers[name] or -1) ~= 0 then return sys.fail("kill") end
  return true
end

return M
