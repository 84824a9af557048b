--- The running operating system: its declarations and constants, how to report its errors, and what is the same for all
-- kinds of sockets. The rest of the library uses this module. Only ffi/bsd.lua checks `ffi.os` too.

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

--- Whether the system call that failed last only has to be tried again later.
---@return boolean
function sys.is_temporary()
  local number = sys.errno()
  return number == sys.EAGAIN or number == sys.EINTR
end

--- Like `fail`, but if the call only has to be tried again later, the message is "again".
function sys.fail_or_again(what)
  if sys.is_temporary() then return nil, "again" end
  return sys.fail(what)
end

--- If a connection could not be accepted because the system lacks descriptors or memory, makes the loop ignore the
-- listener for a moment. The listener stays readable, so without this pause, the loop would never sleep.
---@param number integer|nil of the error
---@return boolean paused
function sys.pause_accepting(loop, listener, number)
  if number ~= sys.EMFILE and number ~= sys.ENFILE and number ~= sys.ENOBUFS then return false end
  loop:change(listener.fd, 0)
  loop:after(0.1, function()
    if listener.fd >= 0 then loop:change(listener.fd, loop.READ) end
  end)
  return true
end

--- How many times `is_stalled` must be called during a time-out.
sys.STALL_CHECKS = 4

--- Whether the other side of a socket has received no byte for a whole time-out. The system can hold many bytes, so the
--- other side can receive some of them without an event in the loop. In that case, the system holds fewer bytes than at
--- the last check, and this function updates `progress`.
---@param one table has the socket's `fd`; `progress`: when the other side last received bytes; and `queued`: how many
--- bytes the system held at the last check, or nil if there was no check yet
---@param now number
---@param timeout number seconds
---@return boolean
function sys.is_stalled(one, now, timeout)
  local queued = sys.queued and sys.queued(one.fd)
  if queued and one.queued and queued < one.queued then one.progress = now end
  one.queued = queued
  return now >= one.progress + timeout
end

--- Creates a socket with the flags that all sockets of this library have.
---@return integer|nil fd if it is nil, the other results are those of `fail`
function sys.open_socket(family, kind)
  local fd = sys.net.socket(family, kind + sys.socket_flags, 0)
  if fd < 0 then return sys.fail("socket") end
  if sys.after_socket then sys.after_socket(fd) end
  return fd
end

sys.terminal = require(sys.terminal_module)(sys)

return sys
