--- Reads JSON directly from the bytes of the text.
--
-- Each reading function takes the text's bytes and a position, `place`, which begins at 0. It returns a value and the
-- position after it; or nil, the position of the error, and the reason. No function checks for the end of the text: a
-- Lua string has a zero byte after its end, and a zero byte ends every value.

local bit = require "bit"
local ffi = require "ffi"
local num = require "framewire.num"
local utf8 = require "framewire.utf8"
local values = require "framewire.json.values"

local band = bit.band
local string_of, hex_value = ffi.string, num.hex_value
local null, Array = values.null, values.Array
local setmetatable, tonumber = setmetatable, tonumber
local bytes_type = ffi.typeof("const uint8_t *")
local int64, uint64 = ffi.typeof("int64_t"), ffi.typeof("uint64_t")

local QUOTE, BACKSLASH, COMMA, COLON, MINUS, DOT, ZERO, PLUS = 34, 92, 44, 58, 45, 46, 48, 43
local OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT = 91, 93, 123, 125

-- The kinds of each byte: white space; a byte that strings can contain without an escape; a digit.
local SPACE, PLAIN, DIGIT = 1, 2, 4
local class = ffi.new("uint8_t[256]")
for byte = 0x20, 0x7f do class[byte] = PLAIN end
class[QUOTE], class[BACKSLASH] = 0, 0
for byte = 48, 57 do class[byte] = PLAIN + DIGIT end
class[32] = PLAIN + SPACE
for _, byte in ipairs { 9, 10, 13 } do class[byte] = SPACE end

local escapes = { [34] = '"', [47] = "/", [92] = "\\" }
for letter, character in pairs { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" } do
  escapes[letter:byte()] = character
end

-- Powers of ten that a double holds exactly.
local tens = ffi.new("double[23]")
for power = 0, 22 do tens[power] = tonumber("1e" .. power) end

local function skip(data, place)
  while band(class[data[place]], SPACE) ~= 0 do place = place + 1 end
  return place
end

-- Reads four hexadecimal digits. Returns their value, or nil.
local function read_hex(data, place)
  local code = 0
  for i = place, place + 3 do
    local digit = hex_value(data[i])
    if not digit then return nil end
    code = code * 16 + digit
  end
  return code
end

-- Reads an escape. `place` is at its backslash.
local function read_escape(data, place)
  local letter = data[place + 1]
  if letter ~= 117 then -- u
    local character = escapes[letter]
    if not character then return nil, place, "an unknown escape; use \\n, \\t, \\\\, \\\" or \\u and four digits" end
    return character, place + 2
  end
  local code = read_hex(data, place + 2)
  if not code then return nil, place, "\\u needs four hexadecimal digits" end
  if code < 0xd800 or code > 0xdfff then return utf8.char(code), place + 6 end
  local low = code < 0xdc00 and data[place + 6] == BACKSLASH and data[place + 7] == 117 and read_hex(data, place + 8)
  if not low or low < 0xdc00 or low > 0xdfff then return nil, place, "half of a surrogate pair" end
  return utf8.char(0x10000 + (code - 0xd800) * 1024 + low - 0xdc00), place + 12
end

-- Returns the text from `start` to `stop` if it is UTF-8. With `is_ascii`, the check is not necessary.
local function checked(data, start, stop, is_ascii)
  if not is_ascii then
    local state, complete = utf8.check(utf8.START, data, start, stop)
    if state ~= utf8.START then return nil, complete, "a byte that is not UTF-8" end
  end
  return string_of(data + start, stop - start)
end

-- Reads the rest of a string that began at `start` and has its first escape at `place`.
local function read_escaped(data, start, place, is_ascii)
  local parts, count = {}, 0
  while true do
    local part, at, reason = checked(data, start, place, is_ascii)
    if not part then return nil, at, reason end
    parts[count + 1] = part
    part, at, reason = read_escape(data, place)
    if not part then return nil, at, reason end
    parts[count + 2] = part
    count = count + 2
    start, place, is_ascii = at, at, true
    local byte = data[place]
    while band(class[byte], PLAIN) ~= 0 or byte >= 0x80 do
      if byte >= 0x80 then is_ascii = false end
      place = place + 1
      byte = data[place]
    end
    if byte == QUOTE then
      part, at, reason = checked(data, start, place, is_ascii)
      if not part then return nil, at, reason end
      parts[count + 1] = part
      return table.concat(parts), place + 1
    elseif byte ~= BACKSLASH then
      return nil, place, "a control character in a string, or a string without its end"
    end
  end
end

-- Reads a string. `place` is at its first quotation mark.
local function read_string(data, place)
  local start, is_ascii = place + 1, true
  place = start
  local byte = data[place]
  while band(class[byte], PLAIN) ~= 0 or byte >= 0x80 do
    if byte >= 0x80 then is_ascii = false end
    place = place + 1
    byte = data[place]
  end
  if byte == QUOTE then
    if is_ascii then return string_of(data + start, place - start), place + 1 end
    local text, at, reason = checked(data, start, place, false)
    if not text then return nil, at, reason end
    return text, place + 1
  elseif byte == BACKSLASH then
    return read_escaped(data, start, place, is_ascii)
  end
  return nil, place, "a control character in a string, or a string without its end"
end

-- Reads a whole number with more than 15 digits, which a double may not hold exactly.
local function read_long(data, start, place)
  local text = string_of(data + start, place - start)
  local value = tonumber(text)
  if value > -9007199254740992 and value < 9007199254740992 then return value end
  local is_negative = data[start] == MINUS
  local digits = is_negative and place - start - 1 or place - start
  if digits > 20 then return value end
  local exact = uint64(0)
  for i = place - digits, place - 1 do
    local digit = data[i] - ZERO
    -- If `exact` is over 1844674407370955161, or is this number and the digit is over 5, the result exceeds 64 bits.
    if exact > 1844674407370955161ULL or exact == 1844674407370955161ULL and digit > 5 then return value end
    exact = exact * 10 + digit
  end
  if exact <= 9007199254740992ULL then return value end
  if not is_negative then
    if exact <= 9223372036854775807ULL then return int64(exact) end
    return exact
  end
  if exact <= 9223372036854775808ULL then return -int64(exact) end
  return value
end

-- Returns the number that was read from `start` to `place`, or an error if a double cannot hold it.
local function in_range(value, start, place)
  if value - value ~= 0 then return nil, start, "a number beyond the range of a double" end
  return value, place
end

local function read_number(data, place)
  local start = place
  local is_negative = data[place] == MINUS
  if is_negative then place = place + 1 end
  local first = place
  local mantissa = 0
  while band(class[data[place]], DIGIT) ~= 0 do
    mantissa = mantissa * 10 + (data[place] - ZERO)
    place = place + 1
  end
  local digits = place - first
  if digits == 0 then return nil, place, "a digit is missing" end
  if data[first] == ZERO and digits > 1 then return nil, first, "a number must not have leading zeros" end
  local byte = data[place]
  if byte ~= DOT and byte ~= 69 and byte ~= 101 then -- 69 is E, 101 is e
    if digits > 15 then return in_range(read_long(data, start, place), start, place) end
    if is_negative then return -mantissa, place end
    return mantissa, place
  end
  if byte == DOT then
    place = place + 1
    local fraction = place
    while band(class[data[place]], DIGIT) ~= 0 do
      mantissa = mantissa * 10 + (data[place] - ZERO)
      place = place + 1
    end
    local decimals = place - fraction
    if decimals == 0 then return nil, place, "a digit is missing after the decimal point" end
    byte = data[place]
    if byte ~= 69 and byte ~= 101 and digits + decimals <= 15 then
      -- Both operands are exact, so only the division rounds.
      local value = mantissa / tens[decimals]
      if is_negative then return -value, place end
      return value, place
    end
  end
  if byte == 69 or byte == 101 then
    place = place + 1
    if data[place] == PLUS or data[place] == MINUS then place = place + 1 end
    local exponent = place
    while band(class[data[place]], DIGIT) ~= 0 do place = place + 1 end
    if place == exponent then return nil, place, "a digit is missing in the exponent" end
  end
  return in_range(tonumber(string_of(data + start, place - start)), start, place)
end

local read_value

local function read_list(data, place, depth)
  local list, count = {}, 0
  if depth == 0 then return nil, place, "too deeply nested" end
  place = skip(data, place + 1)
  if data[place] == CLOSE_LIST then return setmetatable(list, Array), place + 1 end
  while true do
    local value, at, reason = read_value(data, place, depth - 1)
    if value == nil then return nil, at, reason end
    count = count + 1
    list[count] = value
    place = skip(data, at)
    local byte = data[place]
    if byte == COMMA then
      place = skip(data, place + 1)
    elseif byte == CLOSE_LIST then
      return setmetatable(list, Array), place + 1
    else
      return nil, place, "expected , or ] in an array"
    end
  end
end

local function read_object(data, place, depth)
  local object = {}
  if depth == 0 then return nil, place, "too deeply nested" end
  place = skip(data, place + 1)
  if data[place] == CLOSE_OBJECT then return object, place + 1 end
  while true do
    if data[place] ~= QUOTE then return nil, place, "expected a name in quotation marks" end
    local name, value, at, reason
    name, at, reason = read_string(data, place)
    if name == nil then return nil, at, reason end
    place = skip(data, at)
    if data[place] ~= COLON then return nil, place, "expected : after a name" end
    value, at, reason = read_value(data, skip(data, place + 1), depth - 1)
    if value == nil then return nil, at, reason end
    object[name] = value
    place = skip(data, at)
    local byte = data[place]
    if byte == COMMA then
      place = skip(data, place + 1)
    elseif byte == CLOSE_OBJECT then
      return object, place + 1
    else
      return nil, place, "expected , or } in an object"
    end
  end
end

local words = { [116] = { "true", true }, [102] = { "false", false }, [110] = { "null", null } }

local function read_word(data, place)
  local word = words[data[place]]
  if word then
    local text = word[1]
    local same = 0
    while same < #text and data[place + same] == text:byte(same + 1) do same = same + 1 end
    if same == #text then return word[2], place + same end
  end
  return nil, place, "expected a value"
end

function read_value(data, place, depth)
  local byte = data[place]
  if byte == QUOTE then return read_string(data, place) end
  if byte == OPEN_OBJECT then return read_object(data, place, depth) end
  if byte == OPEN_LIST then return read_list(data, place, depth) end
  if byte == MINUS or band(class[byte], DIGIT) ~= 0 then return read_number(data, place) end
  return read_word(data, place)
end

-- An error message with the line and the column of a position. Columns count characters.
local function describe(text, place, reason)
  local before = text:sub(1, place)
  local _, lines = before:gsub("\n", "")
  -- The pattern is anchored at the beginning: otherwise, the time would grow with the square of a line's length.
  local _, columns = (before:match("^.*\n(.*)$") or before):gsub("[^\128-\191]", "")
  if place >= #text then reason = reason .. "; the text ends here" end
  return ("line %d, column %d: %s"):format(lines + 1, columns + 1, reason)
end

local M = {}

--- See framewire.json.
function M.decode(text, options)
  if type(text) ~= "string" then return nil, "json.decode needs a string, not a value of type " .. type(text) end
  local depth, message = values.read_depth(options)
  if not depth then return nil, message end
  local data = ffi.cast(bytes_type, text)
  local value, place, reason = read_value(data, skip(data, 0), depth)
  if value == nil then return nil, describe(text, place, reason), place + 1 end
  place = skip(data, place)
  if place < #text then return nil, describe(text, place, "expected the end of the text"), place + 1 end
  return value
end

return M
