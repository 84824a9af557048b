--- Waits for many descriptors at once: one interface for epoll, kqueue, poll and WSAPoll.
--
-- A poller has these methods:
--   add(fd, interest), change(fd, interest), remove(fd)   return true, or nil and a message
--   wait(milliseconds)                                    returns how many are ready, or nil and a message; -1 waits
--                                                         forever; a signal can end the wait early, with 0
--   ready(i)                                              returns fd, readable, writable, broken; i begins at 0
--   close()
-- All pollers are level-triggered: `wait` reports a descriptor again as long as it is ready. `broken` means that
-- nothing can be sent any more.

local sys = require "framewire.sys"

local M = {}

--- Bits of an interest: READ waits until the descriptor is readable, WRITE until it is writable. An interest of 0 waits
--- for neither.
M.READ = 1
M.WRITE = 2

--- The names that `new` accepts on this system, best first.
M.names = sys.pollers

--- Creates a poller.
---@param name? string one of `names`; the best one by default
---@return table|nil poller
---@return string? message
function M.new(name)
  name = name or sys.pollers[1]
  for _, known in ipairs(sys.pollers) do
    if known == name then return require("framewire.poller." .. name).new() end
  end
  return nil, ("no poller '%s' on this system; choose from: %s"):format(name, table.concat(sys.pollers, ", "))
end

return M
