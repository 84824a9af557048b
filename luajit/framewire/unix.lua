--- Unix sockets: connections between processes on one machine, with a path instead of a port. The functions return the
-- same objects as framewire.socket, so streams, tasks, HTTP and WebSockets can use them.
--
--   local listener = assert(unix.listen("/run/user/1000/game.sock"))
--   local client = assert(unix.connect("/run/user/1000/game.sock", 1))

local ffi = require "ffi"
local files = require "framewire.files"
local poller = require "framewire.poller"
local socket = require "framewire.socket"
local sys = require "framewire.sys"

local M = {}

local UNSUPPORTED = "unix sockets are not supported on " .. sys.name

-- Returns the C structure for a path, and its length; or nil and a message.
local function address_of(path)
  if not sys.AF_UNIX then return nil, UNSUPPORTED end
  if type(path) ~= "string" or path == "" then return nil, "a unix socket needs a path" end
  local address = ffi.new("struct fw_sockaddr_un")
  if #path >= ffi.sizeof(address.path) then
    return nil, ("the path of a unix socket has up to %d bytes, not %d"):format(ffi.sizeof(address.path) - 1, #path)
  end
  if path:find("\0", 2, true) or path:byte(1) == 0 and sys.name ~= "linux" then
    return nil, "the path of a unix socket contains a zero byte"
  end
  address.family = sys.AF_UNIX
  ffi.copy(address.path, path, #path)
  -- A path ends with a zero byte, which counts in `length`. A Linux name that is not a file begins with a zero byte
  -- instead, and has none at its end.
  local length = ffi.offsetof("struct fw_sockaddr_un", "path") + #path + (path:byte(1) == 0 and 0 or 1)
  return address, length
end

local function generic(address)
  return ffi.cast("struct fw_sockaddr *", address)
end

--- Connects to a socket.
---@param path string as for `listen`
---@param timeout? number seconds, 5 by default
---@return table|nil socket, string? message, integer? number the system's error number
function M.connect(path, timeout)
  local address, length = address_of(path)
  if not address then return nil, length end
  local fd, message = sys.open_socket(sys.AF_UNIX, sys.SOCK_STREAM)
  if not fd then return nil, message end
  local connected = socket.wrap(fd)
  if sys.net.connect(fd, generic(address), length) == 0 then return connected end
  local number = sys.errno()
  if number == sys.EINPROGRESS then
    local ok
    ok, message, number = connected:wait(poller.WRITE, timeout or 5)
    if ok then ok, message, number = connected:connected() end
    if ok then return connected end
  else
    message = number == sys.EAGAIN and "the listener's queue is full" or sys.strerror(number)
  end
  connected:close()
  return nil, ("cannot connect to %s: %s"):format(path, message), number
end

-- Removes the file of a socket if no process listens on it. Works only on Linux: elsewhere, `files.facts` does not
-- recognise sockets.
local function remove_stale(path)
  local facts = files.facts(path, { follow = false })
  -- A connection to an ordinary file is refused too, but that file must not be removed.
  if not facts or facts.kind ~= "socket" then return end
  local other, _, number = M.connect(path, 1)
  if other then
    other:close()
  elseif number == sys.ECONNREFUSED then
    ffi.C.unlink(path)
  end
end

--- Listens on a path. On Linux, this replaces the file of a socket if no process listens on it any more.
---@param path string up to 107 bytes, or 103 on macOS and FreeBSD; on Linux, a name that begins with a zero byte does
--- not create a file
---@param backlog? integer 1024 by default
---@return table|nil socket, string? message
function M.listen(path, backlog)
  local address, length = address_of(path)
  if not address then return nil, length end
  if path:byte(1) ~= 0 then remove_stale(path) end
  local fd, message = sys.open_socket(sys.AF_UNIX, sys.SOCK_STREAM)
  if not fd then return nil, message end
  if sys.net.bind(fd, generic(address), length) ~= 0 or sys.net.listen(fd, backlog or 1024) ~= 0 then
    message = sys.strerror(sys.errno())
    sys.close(fd)
    return nil, ("cannot listen on %s: %s"):format(path, message)
  end
  return socket.wrap(fd)
end

--- Creates two sockets that are connected to each other.
---@return table|nil one, table|string other the other socket, or a message
function M.pair()
  if not sys.AF_UNIX then return nil, UNSUPPORTED end
  local fds = ffi.new("int[2]")
  if sys.net.socketpair(sys.AF_UNIX, sys.SOCK_STREAM + sys.socket_flags, 0, fds) ~= 0 then
    return sys.fail("socketpair")
  end
  if sys.after_socket then
    sys.after_socket(fds[0])
    sys.after_socket(fds[1])
  end
  return socket.wrap(fds[0]), socket.wrap(fds[1])
end

return M
