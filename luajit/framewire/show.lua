--- Shows a value as text, for people and for tests: tables with their fields in order.
--
--   print(show { name = "ball", at = { 3, 4 } })
--   -- { at = { 3, 4 }, name = "ball" }

-- Lua's reserved words, which cannot be names of fields.
local WORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true until
  while]]):gmatch("%a+") do WORDS[word] = true end

-- The longest text of a table that is written on one line.
local LINE = 80

local function plain(value)
  if type(value) == "string" then
    return (("%q"):format(value):gsub("\\\n", "\\n"):gsub("\r", "\\r"):gsub("%z", "\\0"))
  end
  return tostring(value)
end

local function name_of(key, text)
  if type(key) == "string" and key:find("^[%a_][%w_]*$") and not WORDS[key] then return key end
  return "[" .. text .. "]"
end

-- The order of keys: numbers, then strings, then all other keys in the order of their texts.
local rank = { number = 1, string = 2 }

local function keys_of(value, length)
  local keys = {}
  for key in pairs(value) do
    local is_item = type(key) == "number" and key >= 1 and key <= length and key % 1 == 0
    if not is_item then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b)
    local one, other = rank[type(a)] or 3, rank[type(b)] or 3
    if one ~= other then return one < other end
    if one == 3 then return tostring(a) < tostring(b) end
    return a < b
  end)
  return keys
end

local function write(value, depth, indent, parents)
  if type(value) ~= "table" then return plain(value) end
  if parents[value] then return "<contains itself>" end
  if depth == 0 then return "{ ... }" end
  parents[value] = true
  local inner, parts = indent .. "  ", {}
  local function add(text) parts[#parts + 1] = text end
  for _, item in ipairs(value) do add(write(item, depth - 1, inner, parents)) end
  for _, key in ipairs(keys_of(value, #parts)) do
    add(name_of(key, write(key, 1, inner, parents)) .. " = " .. write(value[key], depth - 1, inner, parents))
  end
  parents[value] = nil
  if #parts == 0 then return "{}" end
  local line = "{ " .. table.concat(parts, ", ") .. " }"
  if #line <= LINE and not line:find("\n", 1, true) then return line end
  return "{\n" .. inner .. table.concat(parts, ",\n" .. inner) .. ",\n" .. indent .. "}"
end

--- Returns a value as text. For a table that contains only strings, finite numbers, booleans and other such tables, the
-- text is a Lua expression for the same table, unless `depth` cuts it off; but numbers are rounded to 14 digits.
---@param value any
---@param depth? integer how many levels of nested tables to show, 20 by default
---@return string
return function(value, depth)
  return write(value, depth or 20, "", {})
end
