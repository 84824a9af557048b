--- A poller that uses POSIX poll. Works on every system, but the cost of waiting grows with the number of descriptors.

local bit = require "bit"
local closed = require "framewire.closed"
local ffi = require "ffi"
local sys = require "framewire.sys"

local band = bit.band
local wait_for = sys.net[sys.poll_name]
local EINTR = sys.EINTR
local READABLE = sys.POLLIN + sys.POLLERR + sys.POLLHUP
local WRITABLE = sys.POLLOUT
local BROKEN = sys.POLLERR + sys.POLLHUP + sys.POLLNVAL

-- poll's flags for each interest (READ is 1, WRITE is 2).
local bits = { [0] = 0, sys.POLLIN, sys.POLLOUT, sys.POLLIN + sys.POLLOUT }

local Poll = {}
Poll.__index = Poll

-- Replaces the entry of this descriptor, if there is one. If a descriptor is closed without `remove`, the system can
-- give its number to a new one.
function Poll:add(fd, interest)
  local slot = self.slots[fd] or self.count
  if slot == self.capacity then
    local grown = ffi.new("struct fw_pollfd[?]", self.capacity * 2)
    ffi.copy(grown, self.watched, ffi.sizeof("struct fw_pollfd") * self.capacity)
    self.watched, self.capacity = grown, self.capacity * 2
  end
  self.watched[slot].fd = fd
  self.watched[slot].events = bits[interest]
  self.watched[slot].revents = 0
  self.slots[fd] = slot
  self.count = math.max(self.count, slot + 1)
  return true
end

function Poll:change(fd, interest)
  local slot = self.slots[fd]
  if not slot then return nil, "poll: descriptor is not watched" end
  self.watched[slot].events = bits[interest]
  return true
end

-- The last entry takes the place of the removed one, so the array has no gaps.
function Poll:remove(fd)
  local slot = self.slots[fd]
  if not slot then return nil, "poll: descriptor is not watched" end
  local last = self.count - 1
  if slot ~= last then
    self.watched[slot] = self.watched[last]
    self.slots[tonumber(self.watched[slot].fd)] = slot
  end
  self.slots[fd] = nil
  self.count = last
  return true
end

function Poll:wait(milliseconds)
  local watched = self.watched
  local left = wait_for(watched, self.count, milliseconds)
  if left < 0 then
    if sys.errno() == EINTR then return 0 end
    return sys.fail("poll")
  end
  -- The results are copied, because a callback that adds or removes a descriptor moves the entries of `watched`.
  local ready, flags, found = self.ready_fds, self.ready_flags, 0
  local slot = 0
  while left > 0 do
    local revents = watched[slot].revents
    if revents ~= 0 then
      -- On Windows, a descriptor is a 64-bit integer, for which LuaJIT would create an object.
      ready[found], flags[found] = tonumber(watched[slot].fd), revents
      found = found + 1
      left = left - 1
    end
    slot = slot + 1
  end
  return found
end

function Poll:ready(i)
  local flags = self.ready_flags[i]
  return self.ready_fds[i], band(flags, READABLE) ~= 0, band(flags, WRITABLE) ~= 0, band(flags, BROKEN) ~= 0
end

local Closed = closed.of(Poll, "the poller is closed")

-- The system keeps no state for poll, so there is nothing to release. Later calls fail, as with other pollers.
function Poll:close()
  self.watched, self.count = nil, nil
  setmetatable(self, Closed)
end

local M = {}

function M.new()
  return setmetatable({
    watched = ffi.new("struct fw_pollfd[?]", 64),
    capacity = 64,
    count = 0,
    slots = {},
    ready_fds = {},
    ready_flags = {},
  }, Poll)
end

return M
