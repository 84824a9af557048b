--- The running operating system: its declarations and constants, and how to report its errors. The rest of the library
-- uses this module. Only ffi/bsd.lua checks `ffi.os` too.

local ffi = require "ffi"

local files = {
  Linux = "framewire.ffi.linux",
  OSX = "framewire.ffi.bsd",
  BSD = "framewire.ffi.bsd",
  Windows = "framewire.ffi.windows",
}

local file = files[ffi.os]
if not file then
  error("framewire does not support the operating system '" .. ffi.os .. "'")
end

local sys = require(file)

--- Returns what a function returns when it fails: nil, a message about the last system error, and the error's number.
-- Use it as `return sys.fail("connect")`.
---@param what string what was tried
---@return nil, string message, integer number
function sys.fail(what)
  local number = sys.errno()
  return nil, what .. ": " .. sys.strerror(number), number
end

--- Whether a connection could not be accepted because the system lacks descriptors or memory. The listener stays
-- readable, so a loop that does not pause would never sleep.
---@param number integer of the error
---@return boolean
function sys.lacks_resources(number)
  return number == sys.EMFILE or number == sys.ENFILE or number == sys.ENOBUFS
end

sys.terminal = require(sys.terminal_module)(sys)

return sys
