--- Functions for the opening handshake of a WebSocket: SHA-1, base64 and random bytes.

local bit = require "bit"

local sys = require "framewire.sys"

local band, bor, bxor, bnot, rol, rshift = bit.band, bit.bor, bit.bxor, bit.bnot, bit.rol, bit.rshift
local tobit = bit.tobit

local GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

local M = {}

local function word_at(text, place)
  local a, b, c, d = text:byte(place, place + 3)
  return bor(bit.lshift(a, 24), bit.lshift(b, 16), bit.lshift(c, 8), d)
end

local function bytes_of(word)
  return string.char(rshift(word, 24), band(rshift(word, 16), 255), band(rshift(word, 8), 255), band(word, 255))
end

--- The SHA-1 of a text, as 20 bytes.
---@param text string
---@return string
function M.sha1(text)
  local padding = ("\0"):rep((55 - #text) % 64)
  local padded = text .. "\128" .. padding .. "\0\0\0" .. string.char(math.floor(#text / 2 ^ 29))
    .. bytes_of(tobit(#text * 8 % 2 ^ 32))
  local h0, h1, h2, h3, h4 = 0x67452301, tobit(0xefcdab89), tobit(0x98badcfe), 0x10325476, tobit(0xc3d2e1f0)
  local words = {}
  for block = 1, #padded, 64 do
    for i = 0, 15 do words[i] = word_at(padded, block + i * 4) end
    for i = 16, 79 do words[i] = rol(bxor(words[i - 3], words[i - 8], words[i - 14], words[i - 16]), 1) end
    local a, b, c, d, e = h0, h1, h2, h3, h4
    for i = 0, 79 do
      local mix, constant
      if i < 20 then
        mix, constant = bor(band(b, c), band(bnot(b), d)), 0x5a827999
      elseif i < 40 then
        mix, constant = bxor(b, c, d), 0x6ed9eba1
      elseif i < 60 then
        mix, constant = bor(band(b, c), band(b, d), band(c, d)), 0x8f1bbcdc
      else
        mix, constant = bxor(b, c, d), 0xca62c1d6
      end
      local sum = tobit(rol(a, 5) + mix + e + constant + words[i])
      e, d, c, b, a = d, c, rol(b, 30), a, sum
    end
    h0, h1, h2, h3, h4 = tobit(h0 + a), tobit(h1 + b), tobit(h2 + c), tobit(h3 + d), tobit(h4 + e)
  end
  return bytes_of(h0) .. bytes_of(h1) .. bytes_of(h2) .. bytes_of(h3) .. bytes_of(h4)
end

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

--- Bytes as base64, with padding.
---@param bytes string
---@return string
function M.base64(bytes)
  local parts = {}
  for place = 1, #bytes, 3 do
    local a, b, c = bytes:byte(place, place + 2)
    local word = a * 65536 + (b or 0) * 256 + (c or 0)
    for i = 0, 3 do
      local digit = band(rshift(word, 18 - i * 6), 63) + 1
      parts[#parts + 1] = DIGITS:sub(digit, digit)
    end
    if not b then parts[#parts - 1] = "=" end
    if not c then parts[#parts] = "=" end
  end
  return table.concat(parts)
end

-- Random bytes, of which those from `place` on have not been used by the process `owner`.
local store, place, owner = "", 1, nil

--- Random bytes. Nobody can predict them if the system has /dev/urandom.
---@param count integer up to 4096
---@return string
function M.random(count)
  -- A forked process must not use the bytes that its parent read, because the parent and other children use them, too.
  local process = sys.process_id()
  if owner ~= process or place + count > #store + 1 then
    local file = io.open("/dev/urandom", "rb")
    if file then
      file:setvbuf("no")
      store = file:read(4096)
      file:close()
    else
      local bytes = {}
      for i = 1, 4096 do bytes[i] = string.char(math.random(0, 255)) end
      store = table.concat(bytes)
    end
    place, owner = 1, process
  end
  place = place + count
  return store:sub(place - count, place - 1)
end

--- A key for a client's handshake.
---@return string
function M.key()
  return M.base64(M.random(16))
end

--- Whether a client's key is base64 of 16 bytes.
---@param key string|nil
---@return boolean
function M.is_key(key)
  return key ~= nil and key:find("^[%w+/]+==$") ~= nil and #key == 24
end

--- The server's reply to a key: the value of Sec-WebSocket-Accept.
---@param key string
---@return string
function M.accept(key)
  return M.base64(M.sha1(key .. GUID))
end

return M
