local fake = require "fake"
local harness = require "harness"
local memory = require "memory"
local test, eq = harness.test, harness.eq

-- Creates a Game Boy with the domain wram as mGBA has it: `size` bytes in `ram`, in banks of 4 KiB. In a Game Boy
-- without colour, mGBA takes all of the work RAM for one bank, so the second bank cannot be reached by its address
-- alone.
local function game_boy(ram, size)
  emu = fake.emu { platform = 1 }
  local function place(offset)
    local window = size == 0x2000 and 0x2000 or 0x1000
    return offset % window & 0xFFF | offset // window << 12
  end
  emu.memory.wram = {
    size = function() return size end,
    read8 = function(_, offset) return ram[place(offset)] or 0 end,
    write8 = function(_, offset, value) ram[place(offset)] = value end,
    readRange = function(self, offset, length)
      local bytes = {}
      for index = 1, length do
        bytes[index] = string.char(self:read8(offset + index - 1))
      end
      return table.concat(bytes)
    end,
  }
end

test("each byte of the domain wram of a Game Boy is another byte of its work RAM", function()
  for _, size in ipairs { 0x2000, 0x8000 } do
    local ram = {}
    game_boy(ram, size)
    for offset = 0, 0x1FFF do
      ram[offset] = offset // 7 & 0xFF
    end
    for _, offset in ipairs { 0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFE } do
      eq(memory.domain("wram"):read8(offset), ram[offset], offset)
      eq(memory.domain_read16("wram", offset), ram[offset] | ram[offset + 1] << 8, offset)
    end
    eq(memory.domain("wram"):readRange(0xFFE, 4), string.char(ram[0xFFE], ram[0xFFF], ram[0x1000], ram[0x1001]))
    memory.domain_write32("wram", 0xFFE, 0x04030201)
    eq(table.concat({ ram[0xFFE], ram[0xFFF], ram[0x1000], ram[0x1001], ram[0], ram[1] }, " "), "1 2 3 4 0 0")
    eq(memory.size("wram"), size)
  end
end)
