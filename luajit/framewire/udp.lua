--- UDP over IPv4 and IPv6.
--
--   local one = assert(udp.open { port = 9000 })
--   local other = assert(udp.open())
--   other:send_to("hello", "127.0.0.1", 9000)
--   print(one:read(1))   --> hello  127.0.0.1  and the other's port
--
-- Methods that take a time-out can wait. While such a method waits in a task of a loop, the loop continues.

local ffi = require "ffi"
local poller = require "framewire.poller"
local socket = require "framewire.socket"
local sys = require "framewire.sys"
local time = require "framewire.time"

local net = sys.net
-- The size of the buffer for a datagram, in bytes. Every datagram is smaller than this.
local SIZE = 65536
-- The most host addresses in each socket's cache.
local REMEMBERED = 256

local storage = ffi.new("struct fw_sockaddr_storage")
local length_box = ffi.new("uint32_t[1]")
local chunk = ffi.new("uint8_t[?]", SIZE)

local Udp = {}
Udp.__index = Udp

-- The address of a host in the form that the system's functions take, from the cache if possible.
local function address_of(self, host, port)
  local key = tostring(host) .. " " .. tostring(port)
  local bytes = self.known[key]
  if bytes then return bytes end
  local found, message = socket.find_all(host, port, sys.AI_NUMERICSERV)
  if not found then return nil, message end
  for _, entry in ipairs(found) do
    if entry.family == self.family then
      if self.known_count == REMEMBERED then self.known, self.known_count = {}, 0 end
      self.known[key] = entry.bytes
      self.known_count = self.known_count + 1
      return entry.bytes
    end
  end
  local kind = self.family == sys.AF_INET6 and "IPv6" or "IPv4"
  return nil, ("%s has no %s address, which this socket needs"):format(tostring(host), kind)
end

--- Sends one datagram. It is sent completely or not at all. UDP does not report whether it arrives.
---@param data string up to 65,507 bytes; the network divides datagrams of more than about 1,400 bytes
---@param host string name or address; the socket keeps up to 256 addresses, so a name is usually looked up only for the
--- first datagram to it
---@param port integer
---@return true|nil ok, string? message "again" if the system's buffer is full
function Udp:send_to(data, host, port)
  if type(data) ~= "string" then return nil, "a datagram is a string, not a value of type " .. type(data) end
  local bytes, message = address_of(self, host, port)
  if not bytes then return nil, message end
  local sent = net.sendto(self.fd, data, #data, sys.send_flags, ffi.cast("const struct fw_sockaddr *", bytes), #bytes)
  if sent >= 0 then return true end
  return sys.fail_or_again("sendto")
end

--- Receives a datagram that has already arrived.
---@return string|nil data, string address the sender's address; if `data` is nil, "again" (no datagram yet) or an error
---@return integer port the sender's port
function Udp:receive()
  length_box[0] = ffi.sizeof(storage)
  local got = tonumber(net.recvfrom(self.fd, chunk, SIZE, 0, ffi.cast("struct fw_sockaddr *", storage), length_box))
  if got < 0 then return sys.fail_or_again("recvfrom") end
  return ffi.string(chunk, got), socket.describe(storage)
end

--- Receives a datagram, and waits if necessary.
---@param timeout? number seconds; forever if left out
---@return string|nil data, string address the sender's address; if `data` is nil, "timeout" or an error
---@return integer port the sender's port
function Udp:read(timeout)
  local deadline = time.deadline(timeout)
  while true do
    local data, address, port = self:receive()
    if data or address ~= "again" then return data, address, port end
    local ready, message = self:wait(poller.READ, deadline - time.monotonic())
    if not ready then return nil, message end
  end
end

-- As for TCP sockets: `wait(interest, timeout)`, `name()`, `close()`, and `set(name, value)` with the options
-- "broadcast" (true or false), "send_buffer" and "receive_buffer" (bytes).
for _, name in ipairs { "wait", "name", "set", "close" } do Udp[name] = socket.methods[name] end

local M = {}

--- Opens a socket.
---@param options? table `host` ("127.0.0.1": only this machine; "0.0.0.0" or "::": all machines), `port` (0: any free
--- port), `reuse_port` (several sockets share the port)
---@return table|nil udp a loop can watch its field `fd`
---@return string? message
function M.open(options)
  if not sys.SOCK_DGRAM then return nil, "UDP is not supported on " .. sys.name end
  options = options or {}
  local host, port = options.host or "127.0.0.1", options.port or 0
  local addresses, message = socket.find_all(host, port, sys.AI_PASSIVE + sys.AI_NUMERICSERV)
  for _, entry in ipairs(addresses or {}) do
    local fd
    fd, message = sys.open_socket(entry.family, sys.SOCK_DGRAM)
    if fd then
      local self = setmetatable({ fd = fd, family = entry.family, known = {}, known_count = 0 }, Udp)
      local ok = true
      if options.reuse_port then ok, message = self:set("reuse_port", true) end
      local address = ffi.cast("const struct fw_sockaddr *", entry.bytes)
      if ok and net.bind(fd, address, #entry.bytes) == 0 then return self end
      if ok then message = select(2, sys.fail("bind")) end
      self:close()
    end
  end
  return nil, ("cannot open UDP on %s port %s: %s"):format(tostring(host), tostring(port), message)
end

return M
