--- Checks whether bytes are UTF-8, even if they arrive in pieces. Overlong forms, surrogates and codes above U+10FFFF
-- are not allowed.

local bit = require "bit"
local ffi = require "ffi"

local band = bit.band
local four_bytes = ffi.typeof("const int32_t *")
local bytes_type = ffi.typeof("const uint8_t *")
-- The highest bits of four bytes.
local HIGH = bit.tobit(0x80808080)

-- States between two bytes. START: a character is complete. 1 to 3: this many continuation bytes must follow. E0, ED,
-- F0 and F4: after this first byte, not every continuation byte is allowed.
local START, E0, ED, F0, F4, INVALID = 0, 4, 5, 6, 7, 8

-- The state after a byte: `after[state * 256 + byte]`.
local after = ffi.new("uint8_t[?]", 9 * 256)

local function allow(state, first, last, next_state)
  for byte = first, last do after[state * 256 + byte] = next_state end
end

for place = 0, 9 * 256 - 1 do after[place] = INVALID end
allow(START, 0x00, 0x7f, START)
allow(START, 0xc2, 0xdf, 1)
allow(START, 0xe0, 0xe0, E0)
allow(START, 0xe1, 0xec, 2)
allow(START, 0xed, 0xed, ED)
allow(START, 0xee, 0xef, 2)
allow(START, 0xf0, 0xf0, F0)
allow(START, 0xf1, 0xf3, 3)
allow(START, 0xf4, 0xf4, F4)
allow(1, 0x80, 0xbf, START)
allow(2, 0x80, 0xbf, 1)
allow(3, 0x80, 0xbf, 2)
allow(E0, 0xa0, 0xbf, 1)
allow(ED, 0x80, 0x9f, 1)
allow(F0, 0x90, 0xbf, 2)
allow(F4, 0x80, 0x8f, 2)

local M = {}

--- The state before the first byte, and after every complete character.
M.START = START

--- The state after a byte that is not allowed at its position.
M.INVALID = INVALID

--- Checks bytes that continue earlier ones.
---@param state integer START, or the result of the call for the bytes before
---@param data ffi.cdata* uint8_t *
---@param start integer
---@param stop integer
---@return integer state START if the bytes end with a complete character; INVALID if they are not UTF-8
---@return integer complete the end of the last complete character; `start` if there is none
function M.check(state, data, start, stop)
  local place, complete = start, start
  while place < stop do
    if state == START then
      while place + 4 <= stop and band(ffi.cast(four_bytes, data + place)[0], HIGH) == 0 do place = place + 4 end
      complete = place
      if place == stop then return START, complete end
    end
    state = after[state * 256 + data[place]]
    if state == INVALID then return INVALID, complete end
    place = place + 1
  end
  if state == START then complete = place end
  return state, complete
end

--- Whether a whole string is UTF-8.
---@param text string
---@return boolean
function M.valid(text)
  return M.check(START, ffi.cast(bytes_type, text), 0, #text) == START
end

--- Encodes a character as UTF-8.
---@param code integer 0 to 0x10ffff
---@return string
function M.char(code)
  local floor, char = math.floor, string.char
  if code < 0x80 then return char(code) end
  if code < 0x800 then return char(0xc0 + floor(code / 64), 0x80 + code % 64) end
  if code < 0x10000 then return char(0xe0 + floor(code / 4096), 0x80 + floor(code / 64) % 64, 0x80 + code % 64) end
  return char(0xf0 + floor(code / 262144), 0x80 + floor(code / 4096) % 64, 0x80 + floor(code / 64) % 64,
    0x80 + code % 64)
end

return M
