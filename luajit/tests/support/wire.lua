--- Writes and reads handshakes and frames of WebSockets, for tests in which one side does not use framewire.websocket.

local bit = require "bit"
local ffi = require "ffi"
local check = require "tests.support.check"
local client = require "tests.support.client"
local handshake = require "framewire.websocket.handshake"

local char = string.char
local MASK = "\1\200\3\255"

local M = {}

--- A client's request to open a WebSocket; `%s` stands for the path.
M.OPENING = "GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
  .. "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

--- Opens a WebSocket on a server of this machine. Returns the connection, as `client.connect` does, and the answer.
function M.open(port, path)
  local connection = client.connect(port)
  connection:send(M.OPENING:format(path))
  local answer = assert(connection:receive())
  check.equal(answer.status, 101)
  return connection, answer
end

--- Opens a WebSocket for the client at the other side of a socket.
function M.accept(connected, timeout)
  local head = ""
  while not head:find("\r\n\r\n", 1, true) do head = head .. assert(connected:read(65536, timeout)) end
  local key = head:match("Sec%-WebSocket%-Key: ([^\r]+)")
  assert(connected:write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    .. "Sec-WebSocket-Accept: " .. handshake.accept(key) .. "\r\n\r\n", timeout))
end

-- Applies a mask of four bytes. Applying it again gives the data back.
local function mask(data, key)
  local size = #data
  local bytes = ffi.new("uint8_t[?]", size + 4)
  ffi.copy(bytes, data, size)
  local words, word = ffi.cast("uint32_t *", bytes), ffi.cast("const uint32_t *", key)[0]
  for i = 0, math.floor((size + 3) / 4) - 1 do words[i] = bit.bxor(words[i], word) end
  return ffi.string(bytes, size)
end

--- The bytes of a frame. `first` is its first byte: the final bit, the reserved bits and the opcode. The frames of
-- clients are masked. `length` can replace the bytes of the length; in a masked frame, the mask bit is added to them.
function M.encode(first, data, is_masked, length)
  local size = #data
  if not length then
    if size < 126 then
      length = char(size)
    elseif size < 65536 then
      length = char(126, bit.rshift(size, 8), size % 256)
    else
      length = char(127, 0, 0, 0, 0, bit.rshift(size, 24), bit.rshift(size, 16) % 256, bit.rshift(size, 8) % 256,
        size % 256)
    end
  end
  if is_masked then
    length = char(length:byte() + 128) .. length:sub(2) .. MASK
    data = mask(data, MASK)
  end
  return char(first) .. length .. data
end

--- Reads the frame that begins at a place. Returns its first byte, its payload and where the next frame begins; nil if
-- it is not complete. Fails if the frame is masked and `is_masked` is false, or the other way round.
function M.decode(data, place, is_masked)
  local available = #data - place + 1
  if available < 2 then return nil end
  local first, length, size = data:byte(place), data:byte(place + 1), 2
  check.equal(length >= 128, is_masked, "whether a frame is masked")
  length = length % 128
  if length >= 126 then
    size = length == 126 and 4 or 10
    if available < size then return nil end
    length = 0
    for i = place + 2, place + size - 1 do length = length * 256 + data:byte(i) end
  end
  local payload_at = place + size + (is_masked and 4 or 0)
  local next_place = payload_at + length
  if next_place > #data + 1 then return nil end
  local payload = data:sub(payload_at, next_place - 1)
  if is_masked then payload = mask(payload, data:sub(place + size, place + size + 3)) end
  return first, payload, next_place
end

return M
