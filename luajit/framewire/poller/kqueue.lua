--- A poller that uses kqueue, on macOS and FreeBSD. `make test-kqueue` tests it on Linux with libkqueue.

local bit = require "bit"
local ffi = require "ffi"
local sys = require "framewire.sys"

local C, band = ffi.C, bit.band
local CAPACITY = 512

local Kqueue = {}
Kqueue.__index = Kqueue

local change = ffi.new("struct fw_kevent[1]")

local function apply(self, fd, filter, flags)
  change[0].ident, change[0].filter, change[0].flags = fd, filter, flags
  change[0].fflags, change[0].data = 0, 0
  if C.kevent(self.fd, change, 1, nil, 0, nil) < 0 then return sys.fail("kevent") end
  return true
end

function Kqueue:change(fd, interest)
  local before = self.interests[fd] or 0
  -- The keys of this list, 1 and 2, are the bits READ and WRITE.
  for wanted, filter in pairs { sys.EVFILT_READ, sys.EVFILT_WRITE } do
    local had, wants = band(before, wanted) ~= 0, band(interest, wanted) ~= 0
    if had ~= wants then
      local ok, message = apply(self, fd, filter, wants and sys.EV_ADD or sys.EV_DELETE)
      if not ok then return nil, message end
    end
  end
  self.interests[fd] = interest
  return true
end

-- Removes the earlier filters of this descriptor, if there are any. If a descriptor was closed without `remove`, the
-- system has already removed its filters, and may have given its number to a new descriptor.
function Kqueue:add(fd, interest)
  if self.interests[fd] then self:remove(fd) end
  return self:change(fd, interest)
end

function Kqueue:remove(fd)
  local ok, message = self:change(fd, 0)
  self.interests[fd] = nil
  return ok, message
end

function Kqueue:wait(milliseconds)
  local timeout = nil
  if milliseconds >= 0 then
    timeout = self.timeout
    timeout.sec = math.floor(milliseconds / 1000)
    timeout.nsec = milliseconds % 1000 * 1000000
  end
  local count = C.kevent(self.fd, nil, 0, self.events, CAPACITY, timeout)
  if count < 0 then
    if sys.errno() == sys.EINTR then return 0 end
    return sys.fail("kevent")
  end
  return count
end

function Kqueue:ready(i)
  if not (i >= 0 and i < CAPACITY) then error("there is no ready descriptor with that number", 2) end
  local event = self.events[i]
  local writable = event.filter == sys.EVFILT_WRITE
  -- On the read filter, EV_EOF means that the other side sends no more. Reading reports that.
  local broken = writable and band(event.flags, sys.EV_EOF) ~= 0
  return tonumber(event.ident), not writable, writable, broken
end

function Kqueue:close()
  if self.fd >= 0 then C.close(self.fd) end
  self.fd = -1
end

local M = {}

function M.new()
  local fd = C.kqueue()
  if fd < 0 then return sys.fail("kqueue") end
  return setmetatable({
    fd = fd,
    events = ffi.new("struct fw_kevent[?]", CAPACITY),
    timeout = ffi.new("struct fw_timespec"),
    interests = {},
  }, Kqueue)
end

return M
