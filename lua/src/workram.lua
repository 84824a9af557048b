-- The work RAM of a Game Boy without colour as a memory domain. It replaces mGBA's own domain, in which the second bank
-- repeats the first. This domain has no `read16` and no `read32`: memory.lua reads numbers of several bytes with
-- `readRange`.

local BANK, BYTES = 0x1000, 0x2000 -- bytes of a bank, and of the whole work RAM

local WorkRam = {}
WorkRam.__index = WorkRam

function WorkRam:base() return self.domain:base() end
function WorkRam:bound() return self.domain:bound() end
function WorkRam:name() return self.domain:name() end
function WorkRam.size() return BYTES end

-- mGBA's domain chooses the bank by the offset, as if each bank had the size of the whole work RAM.
local function offset_of_mgba(offset)
  return offset < BANK and offset or offset + BYTES
end

function WorkRam:readRange(offset, length)
  local first = offset < BANK and math.min(length, BANK - offset) or length
  local bytes = self.domain:readRange(offset_of_mgba(offset), first)
  if first < length then
    bytes = bytes .. self.domain:readRange(offset_of_mgba(BANK), length - first)
  end
  return bytes
end

function WorkRam:read8(offset)
  return self.domain:read8(offset_of_mgba(offset))
end

function WorkRam:write8(offset, value)
  self.domain:write8(offset_of_mgba(offset), value)
end

-- `new` creates the domain from mGBA's own domain. In a Game Boy Color, which has more banks, mGBA's own is right.
return {
  new = function(domain)
    return domain:size() == BYTES and setmetatable({ domain = domain }, WorkRam) or domain
  end,
}
