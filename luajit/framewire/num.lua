--- Numbers and bytes: decimal and hexadecimal digits, unsigned words, powers of two, rounding and grouping.

local bit = require "bit"

local band, bor, lshift, rshift, tohex = bit.band, bit.bor, bit.lshift, bit.rshift, bit.tohex

local M = {}

--- Reads a string that has only decimal digits: no sign, space or fraction.
---@param text string
---@return integer|nil value nil if there are other characters, or if the number is greater than 2^53
function M.parse_decimal(text)
  if not text:find("^%d+$") then return nil end
  local value = tonumber(text)
  -- `tonumber` rounds 2^53 + 1 to 2^53.
  if value == 9007199254740992 and not text:find("^0*9007199254740992$") then return nil end
  return value <= 9007199254740992 and value or nil
end

--- The value of a hexadecimal digit, or nil.
---@param byte integer
---@return integer|nil
function M.hex_value(byte)
  if byte >= 48 and byte <= 57 then return byte - 48 end
  byte = bor(byte, 32)
  if byte >= 97 and byte <= 102 then return byte - 87 end
  return nil
end

--- Bytes as hexadecimal digits in lower case, two for each byte.
---@param bytes string
---@return string
function M.hex(bytes)
  return (bytes:gsub(".", function(c) return tohex(c:byte(), 2) end))
end

--- Converts a 32-bit result of the bit library, which is signed, to an unsigned number.
---@param value integer
---@return integer 0 to 2^32-1
function M.unsigned(value)
  return value % 4294967296
end

--- Reads 32 bits, lowest byte first.
---@param source ffi.cdata* uint8_t *
---@return integer
function M.read_u32(source)
  return bor(source[0], lshift(source[1], 8), lshift(source[2], 16), lshift(source[3], 24)) % 4294967296
end

--- Writes 32 bits, lowest byte first.
---@param target ffi.cdata* uint8_t *
---@param value integer
function M.write_u32(target, value)
  for i = 0, 3 do target[i] = band(rshift(value, i * 8), 255) end
end

--- The smallest power of two that is greater than or equal to a value.
---@param value integer at least 1
---@return integer
function M.power_of_two(value)
  local power = 1
  while power < value do power = power * 2 end
  return power
end

--- Rounds to decimal places. Halves are rounded away from zero.
---@param value number
---@param places? integer 0 by default; a negative number rounds to tens, hundreds and so on
---@return number
function M.round(value, places)
  local factor = 10 ^ (places or 0)
  local scaled = math.abs(value) * factor
  -- From 2^52 on, doubles have no fractions.
  if scaled ~= scaled or scaled >= 4503599627370496 then return value end
  -- 1.005 is stored as a slightly smaller number. With 15 digits, it becomes the intended number again.
  scaled = tonumber(("%.15g"):format(scaled))
  local rounded = math.floor(scaled + 0.5) / factor
  return value < 0 and -rounded or rounded
end

--- Formats a number for people: 1,234,567.89.
---@param value number
---@param places? integer digits after the decimal point; by default, as many as the number needs, with at most 14
--- significant digits
---@param separator? string between thousands, "," by default
---@return string
function M.group(value, places, separator)
  if value ~= value or value == math.huge or value == -math.huge then return tostring(value) end
  local text
  if places then
    text = ("%." .. places .. "f"):format(M.round(value, places))
  else
    text = ("%.14g"):format(value)
    local minus, digit, digits, exponent = text:match("^(%-?)(%d)%.?(%d*)e%-(%d+)$")
    if exponent then
      text = minus .. "0." .. ("0"):rep(exponent - 1) .. digit .. digits
    elseif text:find("e", 1, true) then
      text = ("%.0f"):format(value)
    end
  end
  local sign, whole, rest = text:match("^(%-?)(%d+)(.*)$")
  if not whole:find("[1-9]") and not rest:find("[1-9]") then sign = "" end
  local first = (#whole - 1) % 3 + 1
  local groups = whole:sub(first + 1):gsub("%d%d%d", function(three) return (separator or ",") .. three end)
  return sign .. whole:sub(1, first) .. groups .. rest
end

return M
