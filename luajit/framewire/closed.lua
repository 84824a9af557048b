--- Closed objects. After `close`, an object's methods fail with a message and do not access its memory. To close an
-- object, its metatable is replaced. Unlike a check in every method, this costs nothing while the object is open.

local M = {}

--- The metatable for closed objects of a class. Except for the methods in `raises`, every method returns nil and the
--- message; `close` does nothing.
---@param class table with the methods of open objects
---@param message string such as "the channel is closed"
---@param raises? table<string, true> methods that raise the message as an error, because their callers check no result
---@return table metatable
function M.of(class, message, raises)
  local closed = {}
  closed.__index = closed
  for name, value in pairs(class) do
    if type(value) == "function" then
      closed[name] = raises and raises[name] and function() error(message, 2) end
        or function() return nil, message end
    end
  end
  closed.close = function() end
  return closed
end

return M
