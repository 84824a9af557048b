--- Reads JSON: enough for the test data. Characters from U+0000 to U+00FF become one byte each.

local M = {}

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }
local words = { ["true"] = true, ["false"] = false }

local read_value

local function skip(text, place)
  return text:find("[^ \n\r\t]", place) or #text + 1
end

local function fail(place, what)
  error(("JSON: %s at byte %d"):format(what, place), 0)
end

local function read_string(text, place)
  local parts = {}
  place = place + 1
  while true do
    local stop = text:find('["\\]', place) or fail(place, "unfinished string")
    parts[#parts + 1] = text:sub(place, stop - 1)
    if text:byte(stop) == 34 then return table.concat(parts), stop + 1 end
    local letter = text:sub(stop + 1, stop + 1)
    if letter == "u" then
      local code = tonumber(text:sub(stop + 2, stop + 5), 16)
      if not code or code > 255 then fail(stop, "a character that is not one byte") end
      parts[#parts + 1] = string.char(code)
      place = stop + 6
    else
      parts[#parts + 1] = escapes[letter] or fail(stop, "unknown escape")
      place = stop + 2
    end
  end
end

local function read_list(text, place)
  local list = {}
  place = skip(text, place + 1)
  while text:sub(place, place) ~= "]" do
    list[#list + 1], place = read_value(text, place)
    place = skip(text, place)
    if text:sub(place, place) == "," then place = skip(text, place + 1) end
  end
  return list, place + 1
end

local function read_object(text, place)
  local object = {}
  place = skip(text, place + 1)
  while text:sub(place, place) ~= "}" do
    local name
    name, place = read_string(text, place)
    place = skip(text, place)
    if text:sub(place, place) ~= ":" then fail(place, "missing colon") end
    object[name], place = read_value(text, place + 1)
    place = skip(text, place)
    if text:sub(place, place) == "," then place = skip(text, place + 1) end
  end
  return object, place + 1
end

function read_value(text, place)
  place = skip(text, place)
  local first = text:sub(place, place)
  if first == '"' then return read_string(text, place) end
  if first == "[" then return read_list(text, place) end
  if first == "{" then return read_object(text, place) end
  local word = text:match("^[%w%.%+%-]+", place) or fail(place, "unexpected character")
  local value = tonumber(word)
  if value == nil then value = words[word] end
  if value == nil then fail(place, "unknown word") end
  return value, place + #word
end

--- Reads a JSON text.
---@param text string
---@return any
function M.decode(text)
  return (read_value(text, 1))
end

return M
