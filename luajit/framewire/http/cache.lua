--- A cache of parsed request heads and their bytes. If the bytes of the next request begin with the bytes of a cached
-- head, the head does not have to be parsed again: every head ends with its first empty line, so the same bytes are the
-- same head. The server has a second cache of this kind, for heads without their request line.

local bit = require "bit"
local ffi = require "ffi"

local C, copy = ffi.C, ffi.copy
local band, bxor, rshift = bit.band, bit.bxor, bit.rshift
local u32 = ffi.typeof("const uint32_t *")

local SLOTS = 64
local SLOT_SIZE = 1024
-- The number of bytes at the beginning of a head that are hashed. A shorter head is not kept. Only a head without its
-- request line can be that short.
local HASHED = 16

local Cache = {}
Cache.__index = Cache

-- Hashes the first bytes. In a head with its request line, they are the method and the beginning of the target, which
-- often differ between requests.
local function slot_of(data, start)
  local words = ffi.cast(u32, data + start)
  local mix = bxor(words[0], words[1] * 5, words[2] * 17, words[3] * 257)
  return band(bxor(mix, rshift(mix, 15), rshift(mix, 7)), SLOTS - 1)
end

--- Searches for a head.
---@param data ffi.cdata* uint8_t *
---@param start integer
---@param stop integer
---@return table|nil head
---@return integer? length of the head in bytes
function Cache:find(data, start, stop)
  local left = stop - start
  if left < HASHED then return nil end
  local slot = slot_of(data, start)
  local length = self.lengths[slot]
  if length == 0 or length > left then return nil end
  if C.memcmp(self.bytes + slot * SLOT_SIZE, data + start, length) ~= 0 then return nil end
  return self.heads[slot], length
end

--- Stores a head, in place of an earlier one with the same hash.
---@param data ffi.cdata* uint8_t *
---@param start integer
---@param stop integer
---@param head table
function Cache:keep(data, start, stop, head)
  local length = stop - start
  if length < HASHED or length > SLOT_SIZE then return end
  local slot = slot_of(data, start)
  copy(self.bytes + slot * SLOT_SIZE, data + start, length)
  self.lengths[slot] = length
  self.heads[slot] = head
end

local M = {}

--- Creates an empty cache.
---@return table cache
function M.new()
  return setmetatable({
    bytes = ffi.new("uint8_t[?]", SLOTS * SLOT_SIZE),
    lengths = ffi.new("int32_t[?]", SLOTS),
    heads = {},
  }, Cache)
end

return M
