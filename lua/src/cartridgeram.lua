-- The RAM of a Game Boy's cartridge as a memory domain. It replaces mGBA's own domain, which returns only 0xFF while
-- the game has the RAM locked, and always writes to the bank that the game has mapped. This domain has no `read16` and
-- no `read32`: memory.lua reads numbers of several bytes with `readRange`. Instead of `write8` it has `write`.

local refusal = require "refusal"

local byte, pack, rep = string.byte, string.pack, string.rep

local BASE, BANK, PAST = 0xA000, 0x2000, 0xC000 -- where the bus shows a bank, its size, and the first address after it
local KIND = 0x147 -- the address in the ROM of the byte that says which memory controller the cartridge has
local LOCK, UNLOCKED, LOCKED = 0, 0x0A, 0 -- the register that unlocks the RAM, and its values

local CartridgeRam = {}
CartridgeRam.__index = CartridgeRam

function CartridgeRam:base() return self.domain:base() end
function CartridgeRam.bound() return PAST end
function CartridgeRam:name() return self.domain:name() end
function CartridgeRam:size() return self.domain:size() end

-- Whether the cartridge's controller locks its RAM in the usual way (MBC1, MBC3, MBC5), and a write to the RAM has no
-- other effect.
local function has_lock(kind)
  return kind >= 0x02 and kind <= 0x03 or kind >= 0x0F and kind <= 0x13 or kind >= 0x19 and kind <= 0x1E
end

-- Whether the RAM is unlocked. Only then can a byte of it be changed on the bus. The test restores this byte, and no
-- time passes in the console.
local function is_unlocked()
  local before = emu:read8(BASE)
  local other = before ~ 0x5A
  emu:write8(BASE, other)
  local changed = emu:read8(BASE) == other
  if changed then
    emu:write8(BASE, before)
  end
  return changed
end

function CartridgeRam:readRange(offset, length)
  local bytes = self.domain:readRange(offset, length)
  if bytes ~= rep("\xFF", length) or not self.has_lock or is_unlocked() then
    return bytes
  end
  emu:write8(LOCK, UNLOCKED)
  bytes = self.domain:readRange(offset, length)
  emu:write8(LOCK, LOCKED)
  return bytes
end

function CartridgeRam:read8(offset)
  return byte(self:readRange(offset, 1))
end

-- Writes a byte. Returns whether that worked. If mGBA changes another byte instead, restores that byte.
local function write_byte(self, offset, value)
  local mapped = BASE + offset % BANK
  local before = emu:read8(mapped)
  self.domain:write8(offset, value)
  if self:read8(offset) == value then
    return true
  elseif emu:read8(mapped) ~= before then
    self.domain:write8(offset, before)
  end
  return false
end

-- Writes `value` as `count` bytes: all of them or none.
function CartridgeRam:write(offset, count, value)
  local before = self:readRange(offset, count)
  local after = pack("<I" .. count, value)
  if after == before then
    return
  end
  for index = 1, count do
    local old, new = byte(before, index), byte(after, index)
    if old ~= new and not write_byte(self, offset + index - 1, new) then
      -- Undoes the writes so far. Bytes that already had the right value are skipped: they were not written, and may
      -- lie in another bank, where a write would change the wrong byte.
      for earlier = 1, index - 1 do
        if byte(before, earlier) ~= byte(after, earlier) then
          write_byte(self, offset + earlier - 1, byte(before, earlier))
        end
      end
      refusal.refuse(refusal.UNSUPPORTED, "mGBA's Lua writes only the bank of cartridge RAM that the game has mapped "
        .. "and unlocked, and offset %d is not in it", offset + index - 1)
    end
  end
end

-- `new` creates the domain from mGBA's own domain.
return {
  new = function(domain)
    local kind = emu.memory.cart0:read8(KIND)
    return setmetatable({ domain = domain, has_lock = has_lock(kind) }, CartridgeRam)
  end,
}
