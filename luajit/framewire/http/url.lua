--- URLs, query strings and percent encoding.

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

--- The value of a name in a query string. If the name occurs several times, the first.
---@param query? string the part of the URL after the ?
---@param name string
---@return string|nil value decoded; nil if it is missing or cannot be decoded
function M.param(query, name)
  if not query then return nil end
  for pair in query:gmatch("[^&]+") do
    local key, value = pair:match("^([^=]*)=?(.*)$")
    if M.decode(key, true) == name then return M.decode(value, true) end
  end
  return nil
end

local ports = { http = 80, https = 443, ws = 80, wss = 443 }

--- Splits an absolute URL.
---@param text string
---@param ... string the schemes to accept: http, https, ws, wss
---@return table|nil url `scheme`, `host` (IPv6 without brackets), `port`, `authority` (for the header Host), `target`
--- (path and query, at least "/")
---@return string? message
function M.parse(text, ...)
  local scheme, authority, target = tostring(text):match("^(%a+)://([^/?#]*)([^#]*)")
  scheme = scheme and scheme:lower()
  local known = false
  for i = 1, select("#", ...) do known = known or select(i, ...) == scheme end
  if not known then return nil, ("'%s' is not a URL like %s://host:port/path"):format(tostring(text), (...)) end
  if authority:find("@", 1, true) then return nil, "the URL must not have a user name; send an Authorization header" end
  local host, port = authority:match("^%[([%x:.]+)%]:?(%d*)$")
  if not host then host, port = authority:match("^([^:%[%]%s%c]+):?(%d*)$") end
  port = host and (port == "" and ports[scheme] or tonumber(port))
  if not host or port > 65535 or target:find("[%c \128-\255]") then
    return nil, ("'%s' is not a URL like %s://host:port/path"):format(tostring(text), (...))
  end
  if target:byte(1) ~= 47 then target = "/" .. target end
  return { scheme = scheme, host = host, port = port, authority = authority, target = target }
end

-- Removes the segments `.` and `..` from an absolute path (RFC 3986, section 5.2.4).
local function without_dots(path)
  local parts = {}
  for part in path:gmatch("/([^/]*)") do
    if part == ".." then parts[#parts] = nil elseif part ~= "." then parts[#parts + 1] = part end
  end
  if path:find("/%.%.?$") then parts[#parts + 1] = "" end
  return path == "" and "" or "/" .. table.concat(parts, "/")
end

--- Resolves a reference relative to a base URL (RFC 3986, section 5.2).
---@param base table URL from `parse`
---@param reference string such as "/path", "other?x=1" or a whole URL
---@return string
function M.resolve(base, reference)
  local hierarchy, rest = reference:match("^([^?#]*)(.*)$")
  local root, path = hierarchy:match("^(%a[%w+.-]*://[^/]*)(.*)$")
  if root then return root .. without_dots(path) .. rest end
  if hierarchy:find("^%a[%w+.-]*:") then return reference end
  root, path = hierarchy:match("^(//[^/]*)(.*)$")
  if root then return base.scheme .. ":" .. root .. without_dots(path) .. rest end
  root, path = base.scheme .. "://" .. base.authority, base.target:match("^[^?]*")
  if hierarchy == "" then return root .. (rest:byte() == 63 and path or base.target) .. rest end
  if hierarchy:byte() ~= 47 then hierarchy = path:match("^.*/") .. hierarchy end
  return root .. without_dots(hierarchy) .. rest
end

return M
