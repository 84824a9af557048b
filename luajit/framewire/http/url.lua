--- Percent encoding and query strings.

local M = {}

local function byte_of(digits)
  return string.char(tonumber(digits, 16))
end

--- Decodes %XX.
---@param text string
---@param plus? boolean whether + means a space, as it does in queries
---@return string|nil decoded nil if a % is not followed by two hexadecimal digits
function M.decode(text, plus)
  if plus then text = text:gsub("+", " ") end
  if not text:find("%", 1, true) then return text end
  local _, signs = text:gsub("%%", "")
  local decoded, codes = text:gsub("%%(%x%x)", byte_of)
  return codes == signs and decoded or nil
end

--- Encodes everything except letters, digits and -._~
---@param text string
---@return string
function M.encode(text)
  return (text:gsub("[^%w%-%._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

--- The first value of a name in a query string.
---@param query? string what follows the ?
---@param name string
---@return string|nil value decoded; nil if it is not there or cannot be decoded
function M.param(query, name)
  if not query then return nil end
  for pair in query:gmatch("[^&]+") do
    local key, value = pair:match("^([^=]*)=?(.*)$")
    if M.decode(key, true) == name then return M.decode(value, true) end
  end
  return nil
end

return M
