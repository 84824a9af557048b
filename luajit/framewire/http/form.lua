--- Reads and writes forms: application/x-www-form-urlencoded and multipart/form-data (RFC 7578).

local trim = require "framewire.http.trim"
local url = require "framewire.http.url"

local M = {}

--- Default limits: for the number of fields, and for the bytes in the headers of one part.
local defaults = { max_fields = 1000, max_part_head = 8192 }

local Form = {}
Form.__index = Form

--- The first value of a name.
---@param name string
---@return string|nil value the text of a field, or the content of a file
function Form:get(name)
  local field = self:field(name)
  return field and field.value
end

--- All values of a name, in the order in which they were sent.
---@param name string
---@return string[]
function Form:all(name)
  local values = {}
  for _, field in ipairs(self.fields) do
    if field.name == name then values[#values + 1] = field.value end
  end
  return values
end

--- The first field of a name, as a table.
---@param name string
---@return table|nil field `name`, `value`; in multipart forms also `filename` and `type`, if they were sent
function Form:field(name)
  for _, field in ipairs(self.fields) do
    if field.name == name then return field end
  end
  return nil
end

local function new_form(fields)
  return setmetatable({ fields = fields }, Form)
end

--- Reads a form of the type application/x-www-form-urlencoded, or a query.
---@param text string
---@param limits? table `max_fields`
---@return table|nil form with `get(name)`, `all(name)`, `field(name)` and the list `fields`
---@return string? message
---@return integer? status for the error response
function M.parse_urlencoded(text, limits)
  local most = limits and limits.max_fields or defaults.max_fields
  local fields = {}
  for pair in text:gmatch("[^&]+") do
    local name, value = pair:match("^([^=]*)=?(.*)$")
    name, value = url.decode(name, true), url.decode(value, true)
    if not name or not value then return nil, "a % in the form is not followed by two hexadecimal digits", 400 end
    if #fields == most then return nil, ("the form has more than %d fields"):format(most), 413 end
    fields[#fields + 1] = { name = name, value = value }
  end
  return new_form(fields)
end

-- Splits `value; name=text; name="text"`. Returns the value in lower case and a table, or nil.
local function parse_parameters(text)
  local value, place = text:match("^%s*([^;%s]*)%s*()")
  local parameters = {}
  while place <= #text do
    local name, after = text:match("^;%s*([%w!#$&+^_`|~*.-]+)=()", place)
    if not name then
      if text:find("^;%s*$", place) then break end
      return nil
    end
    local given
    if text:sub(after, after) == '"' then
      local parts, at = {}, after + 1
      while true do
        local stop = text:find('["\\]', at)
        if not stop then return nil end
        parts[#parts + 1] = text:sub(at, stop - 1)
        if text:sub(stop, stop) == '"' then
          place = stop + 1
          break
        end
        -- A backslash escapes only a quotation mark or a backslash. Any other backslash is part of the text: old
        -- browsers send file names with plain backslashes.
        local following = text:sub(stop + 1, stop + 1)
        local is_escape = following == '"' or following == "\\"
        parts[#parts + 1] = is_escape and following or "\\"
        at = is_escape and stop + 2 or stop + 1
      end
      given = table.concat(parts)
    else
      given, place = text:match("^([^;%s]*)()", after)
    end
    name = name:lower()
    if parameters[name] then return nil end
    parameters[name] = given
    place = text:match("^%s*()", place)
  end
  return value:lower(), parameters
end

local unescaped = { ["%22"] = '"', ["%0D"] = "\r", ["%0A"] = "\n" }

-- Undoes the escapes that browsers use in names between quotation marks.
local function unescape(text)
  return (text:gsub("%%[02][2DAda]", function(code) return unescaped[code:upper()] end))
end

-- A control character that the value of a header must not have: any except tab.
local CONTROL = "[%z\1-\8\10-\31\127]"

local function parse_part_head(text)
  local headers = {}
  for line in (text .. "\r\n"):gmatch("(.-)\r\n") do
    local name, value = line:match("^([%w!#$%%&'*+%-.^_`|~]+):(.*)$")
    if not name or value:find(CONTROL) then return nil end
    headers[name:lower()] = trim(value)
  end
  return headers
end

-- Reads one part of a multipart body.
local function parse_part(head, data)
  local headers = parse_part_head(head)
  if not headers then return nil, "a part of the form has a malformed header" end
  local kind, parameters = parse_parameters(headers["content-disposition"] or "")
  if kind ~= "form-data" or not parameters.name then
    return nil, "a part of the form needs Content-Disposition: form-data with a name"
  end
  local filename = parameters.filename and unescape(parameters.filename)
  return { name = unescape(parameters.name), value = data, filename = filename, type = headers["content-type"] }
end

--- Reads a form of the type multipart/form-data.
---@param text string
---@param boundary string
---@param limits? table `max_fields`, `max_part_head`
---@return table|nil form as `parse_urlencoded` returns it
---@return string? message
---@return integer? status for the error response
function M.parse_multipart(text, boundary, limits)
  local most = limits and limits.max_fields or defaults.max_fields
  local most_head = limits and limits.max_part_head or defaults.max_part_head
  if #boundary < 1 or #boundary > 70 or boundary:find("[^%w'()+_,./:=? -]") then
    return nil, "the boundary of the form is malformed", 400
  end
  local delimiter = "\r\n--" .. boundary
  -- At the very beginning of the body, the delimiter has no line break before it.
  local place
  if text:sub(1, #delimiter - 2) == delimiter:sub(3) then
    place = #delimiter - 1
  else
    place = select(2, text:find(delimiter, 1, true))
    if not place then return nil, "the form does not contain its boundary", 400 end
    place = place + 1
  end
  local fields = {}
  while text:sub(place, place + 1) ~= "--" do
    local start = text:match("^[ \t]*\r\n()", place)
    if not start then return nil, "a boundary of the form must be followed by a line break", 400 end
    local stop, after = text:find(delimiter, start, true)
    if not stop then return nil, "the form ends without its last boundary", 400 end
    local head_stop, data_start = text:find("\r\n\r\n", start, true)
    -- In an empty part, the delimiter's line break can also be the second of the two that end the headers.
    if not head_stop or data_start >= stop + 2 then return nil, "the headers of a part of the form have no end", 400 end
    if head_stop - start > most_head then return nil, "the headers of a part of the form are too large", 431 end
    if #fields == most then return nil, ("the form has more than %d fields"):format(most), 413 end
    local field, message = parse_part(text:sub(start, head_stop - 1), text:sub(data_start + 1, stop - 1))
    if not field then return nil, message, 400 end
    fields[#fields + 1] = field
    place = after + 1
  end
  return new_form(fields)
end

--- Reads a form of either type.
---@param content_type string|nil
---@param body string
---@param limits? table `max_fields` (1000), `max_part_head` (8192 bytes)
---@return table|nil form
---@return string? message
---@return integer? status for the error response: 400, 413, 415 or 431
function M.parse(content_type, body, limits)
  local kind, parameters = parse_parameters(content_type or "")
  if kind == "application/x-www-form-urlencoded" then return M.parse_urlencoded(body, limits) end
  if kind == "multipart/form-data" then
    if not parameters.boundary then return nil, "the content type of the form has no boundary", 400 end
    return M.parse_multipart(body, parameters.boundary, limits)
  end
  return nil, "send a form: application/x-www-form-urlencoded or multipart/form-data", 415
end

-- Returns the names in alphabetical order, so equal tables result in equal texts.
local function sorted(fields)
  local names = {}
  for name in pairs(fields) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- Writes fields as application/x-www-form-urlencoded, which is also the format of a query.
---@param fields table<string, string|number|boolean|string[]> a list is a field with several values
---@return string
function M.encode_urlencoded(fields)
  local parts = {}
  for _, name in ipairs(sorted(fields)) do
    local values = fields[name]
    if type(values) ~= "table" then values = { values } end
    for _, value in ipairs(values) do parts[#parts + 1] = url.encode(name) .. "=" .. url.encode(tostring(value)) end
  end
  return table.concat(parts, "&")
end

-- Escapes a name or a file name as browsers do. In addition, it doubles backslashes where a reader would take a single
-- one for an escape: before another backslash, and before the closing quotation mark.
local function escape(text)
  text = text:gsub("(\\+)()", function(run, after) return (#run > 1 or after > #text) and run .. run or run end)
  return (text:gsub('["\r\n]', { ['"'] = "%22", ["\r"] = "%0D", ["\n"] = "%0A" }))
end

--- Writes fields as multipart/form-data. Raises an error if a type contains a control character, or if a name or a file
--- name contains one that is not a tab or a line break.
---@param fields table[] each with `name` and `value`; for a file, also `filename` and optionally `type`
---@return string body
---@return string content_type
function M.encode_multipart(fields)
  local boundary
  repeat
    local parts = {}
    for i = 1, 4 do parts[i] = ("%08x"):format(math.random(0, 0x7fffffff)) end
    boundary = "framewire-" .. table.concat(parts)
    local is_free = true
    for _, field in ipairs(fields) do
      if tostring(field.value):find(boundary, 1, true) then is_free = false end
    end
  until is_free
  local lines = {}
  for _, field in ipairs(fields) do
    lines[#lines + 1] = "--" .. boundary
    local disposition = ('Content-Disposition: form-data; name="%s"'):format(escape(field.name))
    if field.filename then disposition = ('%s; filename="%s"'):format(disposition, escape(field.filename)) end
    if disposition:find(CONTROL) then
      local message = "%q or its file name has a control character; use only tabs and line breaks"
      error(message:format(field.name), 2)
    end
    lines[#lines + 1] = disposition
    local kind = field.type or field.filename and "application/octet-stream"
    if kind then
      if kind:find("%c") then error("a control character in the type of the field '" .. field.name .. "'", 2) end
      lines[#lines + 1] = "Content-Type: " .. kind
    end
    lines[#lines + 1] = ""
    lines[#lines + 1] = tostring(field.value)
  end
  lines[#lines + 1] = "--" .. boundary .. "--\r\n"
  return table.concat(lines, "\r\n"), "multipart/form-data; boundary=" .. boundary
end

return M
