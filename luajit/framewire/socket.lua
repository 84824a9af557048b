--- TCP sockets over IPv4 and IPv6. All sockets are non-blocking, but methods that take a time-out can wait. While such
-- a method waits in a task of a loop (framewire.task), the loop continues.
--
--   local listener = assert(socket.listen { host = "127.0.0.1", port = 8080 })
--   local client = assert(socket.connect("localhost", 8080, 3))
--   client:write("ping\n", 1)
--   print(client:read(100, 1))

local bit = require "bit"
local ffi = require "ffi"
local poller = require "framewire.poller"
local resolve = require "framewire.resolve"
local sys = require "framewire.sys"
local tasks = require "framewire.task"
local time = require "framewire.time"

local net = sys.net
local EAGAIN, EINTR = sys.EAGAIN, sys.EINTR

local M = {}

local Socket = {}
Socket.__index = Socket

--- The methods of sockets. framewire.tls and framewire.udp reuse some of them.
M.methods = Socket

local int_box = ffi.new("int[1]")
local length_box = ffi.new("uint32_t[1]")
local storage = ffi.new("struct fw_sockaddr_storage")
local text_buffer = ffi.new("char[64]")
local CHUNK = 65536
local chunk = ffi.new("uint8_t[?]", CHUNK)

local function generic(address)
  return ffi.cast("struct fw_sockaddr *", address)
end

--- Returns an address as text and its port; for a unix socket, its path and 0.
---@param given ffi.cdata* struct fw_sockaddr_storage
---@return string|nil address
---@return integer port
function M.describe(given)
  if not ffi.istype("struct fw_sockaddr_storage", given) then error("this is not a struct fw_sockaddr_storage", 2) end
  local family = generic(given).family
  if family == sys.AF_UNIX then return ffi.string(ffi.cast("struct fw_sockaddr_un *", given).path), 0 end
  local kind = family == sys.AF_INET6 and "struct fw_sockaddr_in6 *" or "struct fw_sockaddr_in *"
  local address = ffi.cast(kind, given)
  if net.inet_ntop(family, address.address, text_buffer, 64) == nil then return sys.fail("inet_ntop") end
  local port = bit.bswap(address.port)
  return ffi.string(text_buffer), bit.rshift(port, 16)
end

--- The addresses of a name, or of each name in a list, in the form that the system's functions take.
---@param hosts string|string[]
---@param port integer
---@param hints integer getaddrinfo's flags
---@return table[]|nil addresses each with `family` and `bytes`
---@return string? message
function M.find_all(hosts, port, hints)
  if type(port) ~= "number" or not (port >= 0 and port <= 65535) or port % 1 ~= 0 then
    return nil, ("'%s' is not a port; use a whole number from 0 to 65535"):format(tostring(port))
  end
  if type(hosts) ~= "table" then hosts = { hosts } end
  local addresses, message = {}, "the list of hosts is empty; give at least one name or address"
  local function add(name)
    local found
    found, message = resolve.find(name, tostring(port), hints)
    for _, entry in ipairs(found or {}) do addresses[#addresses + 1] = entry end
  end
  for _, host in ipairs(hosts) do
    local names = { host }
    -- In a task, `resolve.addresses` uses another thread, because the loop must not stop during the look-up.
    if tasks.current() then
      names, message = resolve.addresses(host)
    end
    for _, name in ipairs(names or {}) do add(name) end
  end
  if #addresses == 0 then return nil, message end
  return addresses
end

local function address_of(entry)
  return ffi.cast("const struct fw_sockaddr *", entry.bytes), #entry.bytes
end

-- The longest time-out of one call of poll, in seconds. A longer wait calls poll several times, because poll takes
-- milliseconds in an int.
local LONGEST_POLL = 60

local function set_option(fd, level, name, value)
  int_box[0] = value
  return net.setsockopt(fd, level, name, int_box, 4) == 0
end

--- Creates a socket object for an open descriptor, which must be non-blocking.
---@param fd integer
---@return table socket
function M.wrap(fd)
  return setmetatable({ fd = fd }, Socket)
end

--- Opens a listening socket.
---@param options? table `port` (0: any free port), `host` ("127.0.0.1"; "::" or "0.0.0.0" for every interface),
--- `backlog` (1024), `reuse_port` (several sockets share the port and its connections)
---@return table|nil socket, string? message
function M.listen(options)
  options = options or {}
  local host, port = options.host or "127.0.0.1", options.port or 0
  local function try(entry)
    local fd, problem, number = sys.open_socket(entry.family, sys.SOCK_STREAM)
    if not fd then return nil, problem, number end
    -- Windows does not need this option. There, it would allow other programs to take the port.
    if sys.name ~= "windows" then set_option(fd, sys.SOL_SOCKET, sys.SO_REUSEADDR, 1) end
    if options.reuse_port and sys.SO_REUSEPORT then set_option(fd, sys.SOL_SOCKET, sys.SO_REUSEPORT, 1) end
    -- Accepted connections inherit this option.
    set_option(fd, sys.IPPROTO_TCP, sys.TCP_NODELAY, 1)
    local address, length = address_of(entry)
    if net.bind(fd, address, length) ~= 0 or net.listen(fd, options.backlog or 1024) ~= 0 then
      local _, text, code = sys.fail("listen")
      sys.close(fd)
      return nil, text, code
    end
    return M.wrap(fd)
  end
  local addresses, message = M.find_all(host, port, sys.AI_PASSIVE + sys.AI_NUMERICSERV)
  local socket, number
  for _, entry in ipairs(addresses or {}) do
    socket, message, number = try(entry)
    if socket then return socket end
  end
  return nil, ("cannot listen on %s port %s: %s"):format(tostring(host), tostring(port), message), number
end

-- Tries the remaining addresses in order, until it has started a connection that does not fail at once.
local function start_next(socket)
  local message, number = "no address is left", nil
  while socket.addresses[1] do
    local entry = table.remove(socket.addresses, 1)
    local fd
    fd, message, number = sys.open_socket(entry.family, sys.SOCK_STREAM)
    if fd then
      set_option(fd, sys.IPPROTO_TCP, sys.TCP_NODELAY, 1)
      if net.connect(fd, address_of(entry)) == 0 or sys.errno() == sys.EINPROGRESS then
        socket.fd = fd
        return true
      end
      message, number = select(2, sys.fail("connect"))
      sys.close(fd)
    end
  end
  return nil, message, number
end

--- Starts a connection and returns at once. The socket becomes writable when the connection is established or has
--- failed.
---@param host string|string[] a name or an address, or a list of alternatives
---@param port integer
---@return table|nil socket when it is writable, call its method `connected`
---@return string? message
function M.start_connect(host, port)
  local addresses, message = M.find_all(host, port, sys.AI_NUMERICSERV)
  if not addresses then return nil, message end
  local socket = M.wrap(-1)
  socket.addresses = addresses
  local ok, number
  ok, message, number = start_next(socket)
  if not ok then return nil, message, number end
  return socket
end

--- After a failed connection: starts a connection to the next address. The descriptor changes, so stop watching the old
--- one before this call, and watch the new one afterwards.
---@return true|nil ok nil if there are no more addresses, or if connections to all of them fail at once
---@return string? message
function Socket:try_next()
  if not self.addresses then return nil, "this socket was not made by start_connect" end
  self:close()
  return start_next(self)
end

--- Connects, and waits until the connection is established. Tries the addresses one after the other. Each gets an equal
--- share of the remaining time. Looking up a name can take longer than the time-out: the system sets its own limit.
---@param host string|string[] a name or an address, or a list of alternatives
---@param port integer
---@param timeout? number seconds, 5 by default
---@return table|nil socket
---@return string? message
function M.connect(host, port, timeout)
  local deadline = time.deadline(timeout or 5)
  local socket, message = M.start_connect(host, port)
  local started = socket
  while started do
    local ready
    local share = (deadline - time.monotonic()) / (#socket.addresses + 1)
    ready, message = tasks.close_on_error(socket, socket.wait, socket, poller.WRITE, share)
    if ready then
      ready, message = socket:connected()
      if ready then
        socket.addresses = nil
        return socket
      end
    end
    local next_message
    started, next_message = socket:try_next()
    if next_message ~= "no address is left" then message = next_message or message end
  end
  if type(host) == "table" then host = table.concat(host, ", ") end
  return nil, ("cannot connect to %s port %s: %s"):format(tostring(host), tostring(port), message)
end

--- Whether the connection of `start_connect` is established. Call it only when the socket has become writable: before
--- that, the result is true although the connection is not established yet.
---@return true|nil ok
---@return string? message
function Socket:connected()
  length_box[0] = 4
  if net.getsockopt(self.fd, sys.SOL_SOCKET, sys.SO_ERROR, int_box, length_box) ~= 0 then
    return sys.fail("getsockopt")
  end
  if int_box[0] ~= 0 then return nil, "connect: " .. sys.strerror(int_box[0]), int_box[0] end
  return true
end

--- Accepts one connection.
---@param timeout? number seconds to wait for a connection; if left out, `accept` does not wait
---@return table|nil socket
---@return string? message "again" if no connection is waiting, or "timeout"
function Socket:accept(timeout)
  local deadline = time.deadline(timeout)
  while true do
    local fd = sys.accept(self.fd)
    if fd >= 0 then return M.wrap(fd) end
    if sys.errno() ~= EAGAIN then return sys.fail("accept") end
    if not timeout then return nil, "again" end
    -- After this wait, another process can have accepted the connection.
    local ready, message = self:wait(poller.READ, deadline - time.monotonic())
    if not ready then return nil, message end
  end
end

--- Sends as many bytes as fit into the system's buffer.
---@param data string
---@param from? integer first byte to send, 1 by default
---@return integer|nil sent how many bytes
---@return string? message "again" if the buffer is full
function Socket:send(data, from)
  if type(data) ~= "string" then error("a socket sends strings, not a " .. type(data), 2) end
  local skip = (from or 1) - 1
  if not (skip >= 0 and skip <= #data) then error(("there is no byte %s in %d bytes"):format(from, #data), 2) end
  local sent, message, number = self:send_bytes(ffi.cast("const uint8_t *", data) + skip, #data - skip)
  -- This is not a tail call: during the call, `data` must keep the string alive, because the caller may have no other
  -- reference to it.
  return sent, message, number
end

--- Sends bytes from C memory, as many as fit into the system's buffer.
---@param source ffi.cdata* uint8_t *
---@param length integer
---@return integer|nil sent how many bytes
---@return string? message "again" if the buffer is full
function Socket:send_bytes(source, length)
  local sent = tonumber(net.send(self.fd, source, length, sys.send_flags))
  if sent >= 0 then return sent end
  return sys.fail_or_again("send")
end

--- Receives the available bytes into C memory.
---@param target ffi.cdata* uint8_t *
---@param room integer how many bytes fit there, at least 1
---@return integer|nil count, string? message "again" if there is nothing yet, "closed" if the other side has finished
function Socket:receive_into(target, room)
  local got = tonumber(net.recv(self.fd, target, room, 0))
  if got > 0 then return got end
  if got == 0 then return nil, "closed" end
  return sys.fail_or_again("recv")
end

--- Receives the bytes that are available.
---@param limit? integer maximum number of bytes, 65,536 by default
---@return string|nil data, string? message "again" if there is nothing yet, "closed" if the other side has finished
function Socket:receive(limit)
  limit = limit or CHUNK
  if limit < 1 or limit ~= limit then error(("a socket receives at least one byte, not %s"):format(limit), 2) end
  local got, message, number = self:receive_into(chunk, math.min(limit, CHUNK))
  if not got then return nil, message, number end
  return ffi.string(chunk, got)
end

--- Waits until the socket is ready.
---@param interest integer READ, WRITE or their sum
---@param timeout? number seconds; forever if left out
---@return true|nil ready
---@return string? message "timeout" or an error, such as "closed" if the socket has been closed meanwhile
function Socket:wait(interest, timeout)
  -- Without this check, poll would ignore the descriptor -1 and wait.
  if self.fd < 0 then return nil, "the socket is closed" end
  local task = tasks.current()
  if task then return task:wait(self.fd, interest, timeout) end
  local one = ffi.new("struct fw_pollfd[1]")
  local deadline = time.deadline(timeout)
  one[0].fd = self.fd
  one[0].events = (interest % 2 == 1 and sys.POLLIN or 0) + (interest >= 2 and sys.POLLOUT or 0)
  repeat
    local left = math.max(0, deadline - time.monotonic())
    local count = net[sys.poll_name](one, 1, math.ceil(math.min(left, LONGEST_POLL) * 1000))
    if count > 0 then return true end
    if count < 0 and sys.errno() ~= EINTR then return sys.fail("poll") end
  until left <= 0
  return nil, "timeout"
end

--- Sends everything, and waits if necessary.
---@param data string
---@param timeout? number seconds for all of the data; forever if left out
---@return true|nil ok
---@return string? message
function Socket:write(data, timeout)
  local deadline = time.deadline(timeout)
  local from = 1
  while from <= #data do
    local sent, message, interest = self:send(data, from)
    if sent then
      from = from + sent
    else
      if message ~= "again" then return nil, message end
      local ready
      -- A TLS socket may have to wait until it is readable.
      ready, message = self:wait(interest or poller.WRITE, deadline - time.monotonic())
      if not ready then return nil, message end
    end
  end
  return true
end

--- Receives at least one byte, and waits if necessary.
---@param limit? integer maximum number of bytes, 65,536 by default
---@param timeout? number seconds; forever if left out
---@return string|nil data
---@return string? message "timeout", "closed" or an error
function Socket:read(limit, timeout)
  local deadline = time.deadline(timeout)
  while true do
    local data, message, interest = self:receive(limit)
    if data then return data end
    if message ~= "again" then return nil, message end
    local ready
    ready, message = self:wait(interest or poller.READ, deadline - time.monotonic())
    if not ready then return nil, message end
  end
end

-- Asks the system for an address of a socket, with the function `getsockname` or `getpeername`.
local function address_from(name, fd)
  length_box[0] = ffi.sizeof(storage)
  ffi.fill(storage, ffi.sizeof(storage)) -- otherwise, part of an earlier path of a unix socket could remain
  if net[name](fd, generic(storage), length_box) ~= 0 then return sys.fail(name) end
  return M.describe(storage)
end

--- This side's address.
---@return string|nil address, integer port
function Socket:name()
  return address_from("getsockname", self.fd)
end

--- The other side's address.
---@return string|nil address, integer port
function Socket:peer()
  return address_from("getpeername", self.fd)
end

local options = {
  nodelay = { sys.IPPROTO_TCP, sys.TCP_NODELAY },
  keepalive = { sys.SOL_SOCKET, sys.SO_KEEPALIVE },
  reuse_port = { sys.SOL_SOCKET, sys.SO_REUSEPORT },
  broadcast = { sys.SOL_SOCKET, sys.SO_BROADCAST },
  send_buffer = { sys.SOL_SOCKET, sys.SO_SNDBUF },
  receive_buffer = { sys.SOL_SOCKET, sys.SO_RCVBUF },
}

--- Sets an option: "nodelay", "keepalive", "reuse_port" and, for UDP, "broadcast" take true or false; "send_buffer" and
--- "receive_buffer" take a number of bytes.
---@param name string
---@param value boolean|integer
---@return true|nil ok
---@return string? message
function Socket:set(name, value)
  local option = options[name]
  if not option then return nil, "unknown socket option '" .. tostring(name) .. "'" end
  if not option[2] then return nil, "the socket option '" .. name .. "' is not supported on " .. sys.name end
  if type(value) == "boolean" then value = value and 1 or 0 end
  if type(value) ~= "number" then return nil, name .. " must be true, false or a number, not " .. tostring(value) end
  if not set_option(self.fd, option[1], option[2], value) then return sys.fail(name) end
  return true
end

--- Closes the sending direction. The socket can still receive.
function Socket:finish()
  net.shutdown(self.fd, sys.SHUT_WR)
end

--- Closes the socket; a second call does nothing.
function Socket:close()
  if self.fd >= 0 then
    tasks.closing(self.fd)
    sys.close(self.fd)
    self.fd = -1
  end
end

return M
