--- What JSON has and Lua does not: null, and arrays as a separate type. Also the limits on nesting.

local M = {}

--- The value for JSON's null.
M.null = setmetatable({}, {
  __tostring = function() return "null" end,
  __newindex = function() error("json.null cannot be changed", 2) end,
  __metatable = "json.null",
})

--- The mark of arrays: their metatable.
M.Array = { __name = "json.array" }

--- How deeply values can be nested: by default, and the most that the option `max_depth` can set. The limit exists
--- because each level needs room on Lua's stack.
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
