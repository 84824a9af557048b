--- Reads and writes the frames of a WebSocket (RFC 6455). Bytes can arrive in any pieces. This module does no I/O.
--
-- A protocol calls these methods of its owner:
--   message(data, is_text)      a complete message
--   ping(data), pong(data)      control frames; the owner answers a ping
--   closed(code, reason)        the other side's closing frame; 1005 if it has no code
--   failed(code, reason)        the other side has broken the protocol; nothing is read after that

local bit = require "bit"
local ffi = require "ffi"
local buffer = require "framewire.buffer"
local handshake = require "framewire.websocket.handshake"
local utf8 = require "framewire.utf8"

local band, bxor, rshift, ror = bit.band, bit.bxor, bit.rshift, bit.ror
local string_of, copy = ffi.string, ffi.copy
local words_type = ffi.typeof("uint32_t *")

local CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
-- Longest payload of a control frame.
local CONTROL = 125
-- A message buffer that has grown larger than this is replaced by a small one.
local MAX_KEPT_BUFFER = 262144

local Protocol = {}
Protocol.__index = Protocol

local M = { TEXT = TEXT, BINARY = BINARY, CLOSE = CLOSE, PING = PING, PONG = PONG, CONTROL = CONTROL }

-- Applies a mask of four bytes, lowest byte first, to bytes in place. Returns the mask, rotated for the next byte.
local function unmask(data, length, mask)
  local whole = length - length % 4
  for i = 0, whole - 4, 4 do
    local word = ffi.cast(words_type, data + i)
    word[0] = bxor(word[0], mask)
  end
  for i = whole, length - 1 do data[i] = bxor(data[i], band(rshift(mask, (i - whole) * 8), 255)) end
  return ror(mask, (length - whole) * 8)
end

--- Whether a code may be in a closing frame.
---@param code integer
---@return boolean
function M.is_code(code)
  return code >= 1000 and code <= 1003 or code >= 1007 and code <= 1014 or code >= 3000 and code <= 4999
end

local function fail(self, code, reason)
  self.broken = true
  self.owner:failed(code, reason)
  return nil
end

local function read_close(self, data, length)
  if length == 0 then return self.owner:closed(1005, "") end
  if length == 1 then return fail(self, 1002, "a closing frame with half a code") end
  local code = data[0] * 256 + data[1]
  if not M.is_code(code) then return fail(self, 1002, "the closing code " .. code .. ", which must not be sent") end
  if utf8.check(utf8.START, data, 2, length) ~= utf8.START then
    return fail(self, 1007, "a closing reason that is not UTF-8")
  end
  self.owner:closed(code, string_of(data + 2, length - 2))
end

local function control(self, opcode, data, length)
  if opcode == PING then
    self.owner:ping(string_of(data, length))
  elseif opcode == PONG then
    self.owner:pong(string_of(data, length))
  else
    self.broken = true -- nothing follows a closing frame
    read_close(self, data, length)
  end
end

-- Reads a frame's header. Returns the header's size and the payload's length; nil if the frame is not valid; false if
-- the header is incomplete.
local function read_header(self, data, start, stop)
  local have = stop - start
  if have < 2 then return false end
  local first, second = data[start], data[start + 1]
  local opcode, is_final, is_masked = band(first, 15), first >= 128, second >= 128
  if band(first, 0x70) ~= 0 then return fail(self, 1002, "a reserved bit without an extension") end
  if is_masked == self.is_client then
    return fail(self, 1002, is_masked and "a server must not mask frames" or "a client must mask frames")
  end
  local length, size = band(second, 127), 2
  if opcode >= 8 then
    if opcode > PONG then return fail(self, 1002, "the unknown opcode " .. opcode) end
    if not is_final then return fail(self, 1002, "a control frame in parts") end
    if length > CONTROL then return fail(self, 1002, "a control frame longer than 125 bytes") end
  elseif opcode > BINARY then
    return fail(self, 1002, "the unknown opcode " .. opcode)
  elseif opcode == CONTINUATION then
    if not self.opcode then return fail(self, 1002, "a continuation without a beginning") end
  elseif self.opcode then
    return fail(self, 1002, "a new message inside of another one")
  end
  if length == 126 then
    size = 4
    if have < size then return false end
    length = data[start + 2] * 256 + data[start + 3]
    if length < 126 then return fail(self, 1002, "a length with more bytes than it needs") end
  elseif length == 127 then
    size = 10
    if have < size then return false end
    if data[start + 2] >= 128 then return fail(self, 1002, "a length beyond 63 bits") end
    length = 0
    for i = start + 2, start + 9 do length = length * 256 + data[i] end
    if length < 65536 then return fail(self, 1002, "a length with more bytes than it needs") end
  end
  if opcode < 8 and self.got + length > self.max_message then
    return fail(self, 1009, ("a message of more than %d bytes"):format(self.max_message))
  end
  if is_masked then
    if have < size + 4 then return false end
    self.mask = ffi.cast(words_type, data + start + size)[0]
    size = size + 4
  else
    self.mask = 0
  end
  self.frame_opcode, self.is_final = opcode, is_final
  return size, length
end

-- Handles a complete data frame that contains a whole message.
local function whole_message(self, data, length)
  local opcode = self.frame_opcode
  if self.mask ~= 0 then unmask(data, length, self.mask) end
  if opcode == TEXT and utf8.check(utf8.START, data, 0, length) ~= utf8.START then
    return fail(self, 1007, "a text that is not UTF-8")
  end
  self.owner:message(string_of(data, length), opcode == TEXT)
end

-- Handles received bytes of the payload of a control frame, or of a data frame that is incomplete or has only a part of
-- a message.
local function take_payload(self, data, length)
  local is_control = self.frame_opcode >= 8
  local target = is_control and self.control or self.partial
  local at = target.stop
  target:append_bytes(data, length)
  self.mask = unmask(target.data + at, length, self.mask)
  self.left = self.left - length
  if not is_control then
    self.got = self.got + length
    if self.opcode == TEXT then
      -- Each piece is checked, so that an invalid text is refused before its end.
      self.text_state = utf8.check(self.text_state, target.data, at, target.stop)
      if self.text_state == utf8.INVALID then return fail(self, 1007, "a text that is not UTF-8") end
    end
  end
  if self.left > 0 then return end
  if is_control then
    local size = target.stop
    target:clear()
    return control(self, self.frame_opcode, target.data, size)
  end
  if not self.is_final then return end
  if self.opcode == TEXT and self.text_state ~= utf8.START then
    return fail(self, 1007, "a text that ends inside of a character")
  end
  local opcode, size = self.opcode, target.stop
  self.opcode, self.got, self.text_state = nil, 0, utf8.START
  target:clear()
  self.owner:message(string_of(target.data, size), opcode == TEXT)
  if target.size > MAX_KEPT_BUFFER then self.partial = buffer.new(1024) end
end

-- Reads the frames from `place` to `stop`. Returns the position of the first byte that it cannot handle yet.
local function read_frames(self, data, place, stop)
  while not self.broken do
    if self.left > 0 then
      local length = math.min(self.left, stop - place)
      if length == 0 then return place end
      take_payload(self, data + place, length)
      place = place + length
    else
      local size, length = read_header(self, data, place, stop)
      if not size then return place end
      place = place + size
      local opcode = self.frame_opcode
      if opcode >= 8 or length > stop - place or not self.is_final or opcode == CONTINUATION then
        if opcode == TEXT or opcode == BINARY then self.opcode = opcode end
        self.left = length
        if length == 0 then take_payload(self, data + place, 0) end
      else
        whole_message(self, data + place, length)
        place = place + length
      end
    end
  end
  return stop
end

--- Reads received bytes, and may change them in place.
---@param data ffi.cdata* uint8_t *
---@param length integer
function Protocol:feed(data, length)
  if self.broken then return end
  local rest = self.rest
  if rest.stop > 0 then
    -- The last call has kept the beginning of a header.
    rest:append_bytes(data, length)
    local stop = rest.stop
    self.rest = self.spare
    self.spare = rest
    self.rest:clear()
    data, length = rest.data, stop
  end
  local place = read_frames(self, data, 0, length)
  if place < length and not self.broken then self.rest:append_bytes(data + place, length - place) end
end

--- Appends a frame with the final bit to a buffer.
---@param out table buffer
---@param opcode integer
---@param source string|ffi.cdata* bytes; pass a string as a string, not as a pointer, which would not keep it alive
---@param length integer
function Protocol:frame(out, opcode, source, length)
  out:reserve(length + 14)
  local data, place = out.data, out.stop
  local mask_bit = self.is_client and 128 or 0
  data[place] = opcode + 128
  if length < 126 then
    data[place + 1] = mask_bit + length
    place = place + 2
  elseif length < 65536 then
    data[place + 1] = mask_bit + 126
    data[place + 2], data[place + 3] = rshift(length, 8), band(length, 255)
    place = place + 4
  else
    data[place + 1] = mask_bit + 127
    local high = math.floor(length / 4294967296)
    for i = 0, 3 do
      data[place + 2 + i] = band(rshift(high, 24 - i * 8), 255)
      data[place + 6 + i] = band(rshift(bit.tobit(length % 4294967296), 24 - i * 8), 255)
    end
    place = place + 10
  end
  if self.is_client then
    copy(data + place, handshake.random(4), 4)
    local mask = ffi.cast(words_type, data + place)[0]
    place = place + 4
    copy(data + place, source, length)
    unmask(data + place, length, mask)
  else
    copy(data + place, source, length)
  end
  out.stop = place + length
end

--- Creates the protocol of one connection.
---@param owner table see above
---@param is_client boolean
---@param max_message integer the most bytes of one message
---@return table protocol
function M.new(owner, is_client, max_message)
  return setmetatable({
    owner = owner,
    is_client = is_client,
    max_message = max_message,
    --- Whether reading has stopped, after a closing frame or an error.
    broken = false,
    --- The message whose frames are arriving: its opcode, and how many of its bytes have arrived.
    opcode = nil,
    got = 0,
    --- The frame that is arriving: its opcode, whether it is the last of its message, how many of its bytes are
    -- missing, and the mask for the next byte.
    frame_opcode = 0,
    is_final = true,
    left = 0,
    mask = 0,
    --- The result of `utf8.check` for the received part of a text.
    text_state = utf8.START,
    --- The received bytes of the current message, and of the current control frame.
    partial = buffer.new(1024),
    control = buffer.new(CONTROL),
    --- The received beginning of a header, and a second buffer. The two are swapped before the first one is read, so
    -- that an incomplete header at its end can be copied to the other one.
    rest = buffer.new(16),
    spare = buffer.new(16),
  }, Protocol)
end

return M
