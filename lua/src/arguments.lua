-- The types of arguments: how an argument is read from text, and which values are accepted. A type has these fields:
--
--  read        a function that converts text to a value; if the text does not have this type, it returns nil, or raises
--              a refusal
--  expected    says in error texts what `read` accepts; not needed if `read` raises its own refusals
--  low, high   the smallest and the largest number that is accepted
--  check       a function that checks a value in some other way, and raises a refusal if the value is not accepted
--  narrow      true if the binary form of the type can also represent values that are not accepted
--  free        true if the text may contain commas; in a text message, this argument gets all text that belongs to no
--              other argument

local refusal = require "refusal"

local find, format, gsub, sub = string.find, string.format, string.gsub, string.sub
local refuse, sentence, BAD_ARGUMENT = refusal.refuse, refusal.sentence, refusal.BAD_ARGUMENT

local function integer(low, high, narrow)
  return {
    read = function(text)
      return math.tointeger(tonumber(text))
    end,
    expected = format("a whole number from %d to %d", low, high),
    low = low,
    high = high,
    narrow = narrow,
  }
end

-- Checks a text that mGBA gets as a C string: it must not be empty or contain a NUL.
local function check_c_string(value, name)
  if value == "" then
    refuse(BAD_ARGUMENT, "`%s` is missing", name)
  end
  if find(value, "\0", 1, true) then
    refuse(BAD_ARGUMENT, "`%s` holds a NUL character", name)
  end
end

local function as_it_is(text)
  return text
end

-- Maps one or two hexadecimal digits to a byte. An entry is added when its digits first occur. For any other text, the
-- result is empty and `has_invalid_digits` becomes true.
local has_invalid_digits
local FROM_HEX = setmetatable({}, {
  __index = function(known, digits)
    if not find(digits, "^%x%x?$") then
      has_invalid_digits = true
      return ""
    end
    known[digits] = string.char(tonumber(digits, 16))
    return known[digits]
  end,
})
local TO_HEX = {}
for value = 0, 255 do
  TO_HEX[string.char(value)] = format("%02x,", value)
end

-- Reads the text between the brackets of bytes, such as `d3,00,ea`. messages.lua removes the brackets. Returns nil if
-- the text is not valid.
local function from_hex(text)
  text = gsub(text, "%s+", "")
  has_invalid_digits = sub(text, -1) == ","
  local bytes = gsub(text, "([^,]+),?", FROM_HEX)
  if has_invalid_digits or find(text, ",,", 1, true) or sub(text, 1, 1) == "," then
    return nil
  end
  return bytes
end

local function to_hex(bytes)
  return sub(gsub(bytes, ".", TO_HEX), 1, -2)
end

local types = {
  u8 = integer(0, 0xFF),
  u16 = integer(0, 0xFFFF),
  u32 = integer(0, 0xFFFFFFFF),
  i32 = integer(-0x80000000, 0x7FFFFFFF),
  bool = integer(0, 1, true),
  bytes = { read = from_hex, expected = "pairs of hexadecimal digits in brackets, such as [d3,00,ea]" },
  name = { read = as_it_is, check = check_c_string, narrow = true },
  path = { read = as_it_is, check = check_c_string, narrow = true, free = true },
  text = { read = as_it_is, free = true },
}

-- Creates an argument from its name, the name of its type and, if not all numbers of the type are accepted, the
-- accepted range.
local function new(name, kind, low, high)
  return { name = name, kind = low and integer(low, high, true) or types[kind] }
end

function types.bool.read(text)
  local word = text:lower():match("^%s*(%a+)%s*$")
  return word == "true" and 1 or word == "false" and 0 or nil
end
types.bool.expected = "true or false"

-- The types below occur only in text messages.

local BUTTONS = { "A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L" }
local BUTTON_NUMBER = {}
for index, name in ipairs(BUTTONS) do
  BUTTON_NUMBER[name] = index - 1
end

-- The names of the keys in a mask, joined by `separator`.
local function names(mask, separator)
  local list = {}
  for key, name in ipairs(BUTTONS) do
    if mask & 1 << key - 1 ~= 0 then
      list[#list + 1] = name
    end
  end
  return table.concat(list, separator)
end

local function button_number(name)
  return BUTTON_NUMBER[name]
    or refuse(BAD_ARGUMENT, "unknown button %q; buttons are %s, with exactly these letters", sentence(name),
      table.concat(BUTTONS, ", "))
end

types.key_mask = { -- in text, the number of one key
  read = function(text)
    local key = types.u8.read(text)
    return key and key >= 0 and key <= 9 and 1 << key or nil
  end,
  expected = "a whole number from 0 to 9",
}
types.button_key = { read = button_number }
types.button = {
  read = function(text)
    return 1 << button_number(text)
  end,
}
types.buttons = {
  read = function(text)
    local mask = 0
    for name in text:gmatch("[^;]+") do
      mask = mask | 1 << button_number(name)
    end
    return mask ~= 0 and mask or refuse(BAD_ARGUMENT, "no button is named; separate several buttons with `;`")
  end,
}

-- Raises a refusal if the argument `spec` does not accept `value`.
local function check(spec, value)
  local kind = spec.kind
  if kind.low and (value < kind.low or value > kind.high) then
    refuse(BAD_ARGUMENT, "`%s` must be from %d to %d, not %d", spec.name, kind.low, kind.high, value)
  end
  if kind.check then
    kind.check(value, spec.name)
  end
end

return {
  types = types,
  new = new,
  check = check,
  to_hex = to_hex,
  from_hex = from_hex,
  as_it_is = as_it_is,
  names = names,
}
