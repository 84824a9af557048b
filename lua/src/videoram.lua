-- The video RAM of a Game Boy as a memory domain: its banks of 8 KiB, one after the other. It replaces mGBA's own
-- domain, in which each bank is followed by the same number of bytes of the cartridge's RAM. In addition, the offset of
-- a write to mGBA's domain counts from the bank that the game has mapped. If that is the second bank, a write can go
-- outside of mGBA's memory.

local concat = table.concat

local BANK, PAST = 0x2000, 0xA000 -- bytes of a bank, and the address after the video RAM on the bus
local MGBA_BANK = 0x4000 -- bytes from one bank to the next in mGBA's domain
local SELECT = 0xFF4F -- the register that maps a bank, in a Game Boy Color

local VideoRam = {}
VideoRam.__index = VideoRam

function VideoRam:base() return self.domain:base() end
function VideoRam.bound() return PAST end
function VideoRam:name() return self.domain:name() end
function VideoRam:size() return self.bytes end

function VideoRam:readRange(offset, length)
  local pieces, count = {}, 0
  while length > 0 do
    local at = offset % self.bytes
    local bank, within = at // BANK, at % BANK
    local piece = math.min(length, BANK - within)
    count = count + 1
    pieces[count] = self.domain:readRange(bank * MGBA_BANK + within, piece)
    offset, length = offset + piece, length - piece
  end
  return concat(pieces)
end

function VideoRam:read8(offset)
  return self:readRange(offset, 1):byte()
end

function VideoRam:write8(offset, value)
  local at = offset % self.bytes
  local bank, within = at // BANK, at % BANK
  local mapped = self.bytes > BANK and emu:read8(SELECT) & 1 or 0
  if bank == mapped then
    self.domain:write8(within, value)
  elseif bank > mapped then
    self.domain:write8(MGBA_BANK + within, value)
  else
    -- No time passes in the console between these calls.
    emu:write8(SELECT, bank)
    self.domain:write8(within, value)
    emu:write8(SELECT, mapped)
  end
end

-- `new` creates the domain from mGBA's own domain.
return {
  new = function(domain)
    return setmetatable({ domain = domain, bytes = domain:size() // 2 }, VideoRam)
  end,
}
