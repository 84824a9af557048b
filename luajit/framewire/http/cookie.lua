--- Reads and writes cookie headers as in RFC 6265.

local time = require "framewire.time"
local trim = require "framewire.http.trim"

local M = {}

local TOKEN = "^[%w!#$%%&'*+%-.^_`|~]+$"

--- Reads the header "Cookie".
---@param header string|nil
---@return table<string, string> values by name, without quotation marks around them; of several cookies with the same
--- name, the first, because browsers send the cookie with the longest path first
function M.parse(header)
  local values = {}
  for pair in (header or ""):gmatch("[^;]+") do
    local name, value = pair:match("^[ \t]*([^= \t]+)[ \t]*=(.*)$")
    value = value and trim(value)
    if name and values[name] == nil then values[name] = value:match('^"(.*)"$') or value end
  end
  return values
end

local same_site = { strict = "Strict", lax = "Lax", none = "None" }

local known = {
  path = true, domain = true, max_age = true, expires = true, secure = true, http_only = true, same_site = true,
  partitioned = true,
}

local function check_prefix(name, options)
  if name:find("^__Secure%-") and not options.secure then
    return "a cookie whose name begins with __Secure- needs secure = true"
  end
  if name:find("^__Host%-") and (not options.secure or options.domain or options.path ~= "/") then
    return 'a cookie whose name begins with __Host- needs secure = true and path = "/", and no domain'
  end
end

--- Writes the value of the header "Set-Cookie".
---@param name string
---@param value string printable ASCII characters except spaces, commas, semicolons, quotation marks and backslashes;
--- use `http.encode` for other text
---@param options? table `path`, `domain`, `max_age` (seconds; 0 removes the cookie), `expires` (seconds since 1970),
--- `secure`, `http_only`, `same_site` ("Strict", "Lax" or "None"), `partitioned`
---@return string|nil header
---@return string? message
function M.format(name, value, options)
  options = options or {}
  for option in pairs(options) do
    if not known[option] then return nil, ("a cookie has no option '%s'"):format(tostring(option)) end
  end
  if type(name) ~= "string" or not name:find(TOKEN) then
    return nil, ("'%s' is not a name for a cookie; use letters, digits, - and _"):format(tostring(name))
  end
  value = tostring(value)
  if value:find('[^\33-\126]') or value:find('[",;\\]') then
    return nil, ("the value of the cookie '%s' has a character that cookies cannot hold; use http.encode"):format(name)
  end
  local problem = check_prefix(name, options)
  if problem then return nil, problem end
  local parts = { name .. "=" .. value }
  for _, field in ipairs { "path", "domain" } do
    local text = options[field]
    if text then
      if type(text) ~= "string" or text:find("[%c;]") or text == "" then
        return nil, ("%s is '%s', which a cookie cannot hold"):format(field, tostring(text))
      end
      parts[#parts + 1] = (field == "path" and "Path=" or "Domain=") .. text
    end
  end
  for _, field in ipairs { "max_age", "expires" } do
    local number = options[field]
    if number and (type(number) ~= "number" or number % 1 ~= 0 or number < 0 or number > 2 ^ 40) then
      return nil, ("%s is %s; use a whole number of seconds from 0 to 2^40"):format(field, tostring(number))
    end
  end
  if options.max_age then parts[#parts + 1] = ("Max-Age=%d"):format(options.max_age) end
  if options.expires then parts[#parts + 1] = "Expires=" .. time.http_date(options.expires) end
  local site = options.same_site and same_site[tostring(options.same_site):lower()]
  if options.same_site and not site then
    return nil, ("same_site is %s; use Strict, Lax or None"):format(tostring(options.same_site))
  end
  if site == "None" and not options.secure then return nil, "same_site = \"None\" needs secure = true" end
  if options.partitioned and not options.secure then return nil, "partitioned needs secure = true" end
  if options.secure then parts[#parts + 1] = "Secure" end
  if options.http_only then parts[#parts + 1] = "HttpOnly" end
  if site then parts[#parts + 1] = "SameSite=" .. site end
  if options.partitioned then parts[#parts + 1] = "Partitioned" end
  return table.concat(parts, "; ")
end

return M
