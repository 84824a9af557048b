--- Reads and writes JSON (RFC 8259). The error message for text that is not valid JSON has the line and column.
--
--   local value = assert(json.decode('{"name": "ball", "at": [120, 80]}'))
--   print(value.name, value.at[2])
--   print(json.encode { name = "ball", at = { 120, 80 } })
--
-- JSON's null is `json.null`, because a Lua table cannot hold nil. Decoded arrays have a mark, so an empty array stays
-- an array; `json.array` marks a table of your own. A whole number beyond 2^53 becomes LuaJIT's int64_t or uint64_t if
-- it fits, so it stays exact. All other numbers are doubles, correctly rounded.

local decoder = require "framewire.json.decoder"
local encoder = require "framewire.json.encoder"
local values = require "framewire.json.values"

local M = {}

--- The value for JSON's null.
M.null = values.null

--- Marks a table as an array, so that it is encoded as one even if it is empty.
---@param list? table a new one by default
---@return table list
function M.array(list)
  return setmetatable(list or {}, values.Array)
end

--- Whether a table has the mark of an array.
---@param value any
---@return boolean
function M.is_array(value)
  return getmetatable(value) == values.Array
end

--- Reads a JSON text. If an object has a name twice, the last value is used.
---@param text string UTF-8
---@param options? table `max_depth`: how deeply arrays and objects may be nested, 512 by default, at most 4096
---@return any value nil if the text is not JSON
---@return string? message with line and column
---@return integer? place the byte of the text where the error is, from 1
M.decode = decoder.decode

--- Writes a value as JSON.
--
-- A table is an array if it has the mark or if its keys are exactly 1 to `#table`. It is an object if all its keys are
-- strings. An empty table without the mark is an object.
---@param value any
---@param options? table `sort`: sort the members of each object by name; `indent`: write each value on a line of its
--- own, indented for each level by this number of spaces (0 to 64), or by this text of spaces and tabs; `max_depth`:
--- 512 by default, at most 4096
---@return string|nil text
---@return string? message what cannot be encoded, and where it is in the value
M.encode = encoder.encode

return M
