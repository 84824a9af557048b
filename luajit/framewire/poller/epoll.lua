--- A poller that uses epoll, on Linux. The cost of waiting does not grow with the number of idle descriptors.

local bit = require "bit"
local ffi = require "ffi"
local sys = require "framewire.sys"

local C, band = ffi.C, bit.band
local EINTR = sys.EINTR
local READABLE = sys.EPOLLIN + sys.EPOLLERR + sys.EPOLLHUP
local WRITABLE = sys.EPOLLOUT
local BROKEN = sys.EPOLLERR + sys.EPOLLHUP
local CAPACITY = 512

local Epoll = {}
Epoll.__index = Epoll

-- epoll's flags for each interest (READ is 1, WRITE is 2).
local bits = { [0] = 0, sys.EPOLLIN, sys.EPOLLOUT, sys.EPOLLIN + sys.EPOLLOUT }

local scratch = ffi.new("struct fw_epoll_event")

local function control(self, operation, fd, interest)
  scratch.events = bits[interest]
  scratch.fd = fd
  if C.epoll_ctl(self.fd, operation, fd, scratch) ~= 0 then return sys.fail("epoll_ctl") end
  return true
end

function Epoll:add(fd, interest)
  return control(self, sys.EPOLL_CTL_ADD, fd, interest)
end

function Epoll:change(fd, interest)
  return control(self, sys.EPOLL_CTL_MOD, fd, interest)
end

function Epoll:remove(fd)
  return control(self, sys.EPOLL_CTL_DEL, fd, 0)
end

function Epoll:wait(milliseconds)
  local count = C.epoll_wait(self.fd, self.events, CAPACITY, milliseconds)
  if count < 0 then
    if sys.errno() == EINTR then return 0 end
    return sys.fail("epoll_wait")
  end
  return count
end

function Epoll:ready(i)
  if not (i >= 0 and i < CAPACITY) then error("there is no ready descriptor with that number", 2) end
  local event = self.events[i]
  local flags = event.events
  return event.fd, band(flags, READABLE) ~= 0, band(flags, WRITABLE) ~= 0, band(flags, BROKEN) ~= 0
end

function Epoll:close()
  if self.fd >= 0 then C.close(self.fd) end
  self.fd = -1
end

local M = {}

function M.new()
  local fd = C.epoll_create1(sys.EPOLL_CLOEXEC)
  if fd < 0 then return sys.fail("epoll_create1") end
  return setmetatable({ fd = fd, events = ffi.new("struct fw_epoll_event[?]", CAPACITY) }, Epoll)
end

return M
