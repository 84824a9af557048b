--- What JSON has and Lua does not.

local M = {}

--- Stands for null.
M.null = setmetatable({}, {
  __tostring = function() return "null" end,
  __newindex = function() error("json.null cannot be changed", 2) end,
  __metatable = "json.null",
})

--- The mark of arrays: their metatable.
M.Array = { __name = "json.array" }

--- How deep values can be nested, and the most that a caller can ask for: each level needs room on Lua's stack.
M.DEPTH, M.DEEPEST = 512, 4096

--- Reads the option `max_depth`.
---@param options? table
---@return integer|nil depth
---@return string? message
function M.read_depth(options)
  local depth = options and options.max_depth
  if depth == nil then return M.DEPTH end
  if type(depth) == "number" and depth % 1 == 0 and depth >= 1 and depth <= M.DEEPEST then return depth end
  return nil, ("max_depth is %s; use a whole number from 1 to %d"):format(tostring(depth), M.DEEPEST)
end

return M
