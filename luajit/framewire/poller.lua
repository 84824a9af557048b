--- Waits for many descriptors at once: one interface for epoll, kqueue, poll and WSAPoll.
--
-- A poller has these methods:
--   add(fd, interest), change(fd, interest), remove(fd)   true, or nil and a message
--   wait(milliseconds)                                    how many are ready; -1 waits forever
--   ready(i)                                              fd, readable, writable, broken; i from 0
--   close()
-- All are level-triggered: what is not read is reported again. `broken` means that nothing can be sent any more.

local sys = require "framewire.sys"

local M = {}

--- Interest in reading, and in writing. Add them for both; 0 means neither.
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
