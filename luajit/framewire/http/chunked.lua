--- Decodes chunked bodies in place. It accepts any division of the bytes into pieces, but no deviation from the format.

local bit = require "bit"
local ffi = require "ffi"
local num = require "framewire.num"
local parser = require "framewire.http.parser"

local C, band = ffi.C, bit.band
local class, TOKEN, VALUE = parser.class, parser.TOKEN, parser.VALUE
local CR, LF, COLON, SEMICOLON = 13, 10, 58, 59

-- Longest size line, extensions included, and longest trailer section, in bytes.
local LINE_LIMIT, TRAILER_LIMIT = 256, 8192

local M = {}

local Decoder = {}
Decoder.__index = Decoder

-- Finds the end of the line that begins at `self.raw`. Returns the offset of the line's CR; false if it has not
-- arrived; nil and a reason if the line is not valid.
local function line_end(self, data, stop, limit)
  local left = stop - self.raw
  -- If there is no newline, memchr returns a null pointer, which is true as a condition but equals nil.
  local newline = left > 0 and C.memchr(data + self.raw, LF, left) or nil
  local place = newline ~= nil and tonumber(ffi.cast("uint8_t *", newline) - data)
  if (place or stop) - self.raw > limit then return nil, "a line of the chunked body is too long" end
  if not place then return false end
  if place == self.raw or data[place - 1] ~= CR then return nil, "a bare line feed in the chunked body" end
  return place - 1
end

-- The steps. Each processes the bytes from `self.raw` as far as it can. It returns true to continue with `self.step`,
-- false if it needs more bytes or if the body has ended (`self.done`), or nil, status and reason.
local steps = {}

function steps.size(self, data, stop)
  local last, reason = line_end(self, data, stop, LINE_LIMIT)
  if last == nil then return nil, 400, reason end
  if not last then return false end
  local size, place = 0, self.raw
  local digit = num.hex_value(data[place])
  while digit do
    size = size * 16 + digit
    place = place + 1
    if place - self.raw > 12 then return nil, 400, "a chunk size with too many digits" end
    digit = num.hex_value(data[place])
  end
  if place == self.raw then return nil, 400, "a chunk must begin with its size in hexadecimal digits" end
  if place < last and data[place] ~= SEMICOLON then return nil, 400, "a malformed chunk size" end
  while place < last do
    if band(class[data[place]], VALUE) == 0 then return nil, 400, "a control character in a chunk extension" end
    place = place + 1
  end
  self.raw = last + 2
  self.left = size
  if size == 0 then
    self.step = steps.trailer
  else
    if self.stop - self.start + size > self.limit then return nil, 413, "the body is too large" end
    self.step = steps.data
  end
  return true
end

function steps.data(self, data, stop)
  local count = math.min(stop - self.raw, self.left)
  if count > 0 then
    if self.raw ~= self.stop then C.memmove(data + self.stop, data + self.raw, count) end
    self.raw = self.raw + count
    self.stop = self.stop + count
    self.left = self.left - count
  end
  if self.left > 0 then return false end
  self.step = steps.data_end
  return true
end

function steps.data_end(self, data, stop)
  local left = stop - self.raw
  if left >= 1 and data[self.raw] ~= CR or left >= 2 and data[self.raw + 1] ~= LF then
    return nil, 400, "a chunk is longer than its size"
  end
  if left < 2 then return false end
  self.raw = self.raw + 2
  self.step = steps.size
  return true
end

-- Trailer fields are checked and dropped.
function steps.trailer(self, data, stop)
  local last, reason = line_end(self, data, stop, TRAILER_LIMIT)
  if last == nil then return nil, 400, reason end
  if not last then return false end
  local place = self.raw
  self.trailer = self.trailer + last - place
  if self.trailer > TRAILER_LIMIT then return nil, 431, "the trailer is too large" end
  self.raw = last + 2
  if place == last then
    self.done = true
    return false
  end
  local first = place
  while band(class[data[place]], TOKEN) ~= 0 do place = place + 1 end
  if place == first or data[place] ~= COLON then return nil, 400, "a malformed trailer" end
  place = place + 1
  while place < last do
    if band(class[data[place]], VALUE) == 0 then return nil, 400, "a control character in a trailer" end
    place = place + 1
  end
  return true
end

--- Decodes the bytes that have arrived.
---@param data ffi.cdata* uint8_t *
---@param stop integer just after the last byte received
---@return boolean|nil done true: the decoder's fields say where the body is, `data[start]` to `data[stop - 1]`, and
--- where the next request begins, `raw`; false: more bytes are needed; nil: the body is not valid
---@return integer? status for the error response, if `done` is nil
---@return string? reason
function Decoder:feed(data, stop)
  local going, status, reason = true, nil, nil
  while going do
    going, status, reason = self.step(self, data, stop)
  end
  if going == nil then return nil, status, reason end
  return self.done
end

--- Moves the bytes that are not decoded yet to the end of the decoded ones. So a body of many small chunks needs no
-- more room than the decoded body.
---@param data ffi.cdata* uint8_t *
---@param stop integer just after the last byte received
---@return integer stop the new `stop`
function Decoder:compact(data, stop)
  local rest = stop - self.raw
  if rest > 0 and self.raw ~= self.stop then C.memmove(data + self.stop, data + self.raw, rest) end
  self.raw = self.stop
  return self.stop + rest
end

--- Adapts the offsets after the caller has moved all bytes down.
---@param by integer
function Decoder:shift(by)
  self.start, self.stop, self.raw = self.start - by, self.stop - by, self.raw - by
end

--- Creates a decoder for one body.
---@param start integer where in the buffer the body begins
---@param limit integer most bytes of decoded body
---@return table decoder
function M.new(start, limit)
  return setmetatable({
    step = steps.size,
    --- Decoded bytes: from `start` to `stop`.
    start = start,
    stop = start,
    --- The next byte to decode.
    raw = start,
    --- Remaining bytes of the current chunk.
    left = 0,
    --- Bytes of trailer lines so far.
    trailer = 0,
    limit = limit,
    done = false,
  }, Decoder)
end

return M
