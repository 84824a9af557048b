-- Memory: which memory the console has, and how numbers are read and written. crates/protocol/src/access.rs has the
-- same rules.
--
-- A number consists of the bytes from its address on, lowest byte first. If its address is aligned, mGBA reads or
-- writes it in a single access. Otherwise, the script reads or writes it byte by byte, because mGBA rotates unaligned
-- values or ignores the lowest bits of the address.

local cartridgeram = require "cartridgeram"
local limits = require "limits"
local refusal = require "refusal"
local videoram = require "videoram"
local workram = require "workram"

local byte, concat, format, unpack = string.byte, table.concat, string.format, string.unpack
local refuse, sentence = refusal.refuse, refusal.sentence
local BAD_ARGUMENT, UNSUPPORTED = refusal.BAD_ARGUMENT, refusal.UNSUPPORTED

local memory = {
  ROM_DOMAINS = { cart0 = true, cart1 = true, cart2 = true },
  rom_writes = 0, -- how many times clients have, or may have, written to the ROM in memory
}

local GAME_BOY_ADVANCE = 0

-- The parts of the bus that have memory. Each range has its first address and the address after its last.
local BUS = {
  [true] = { -- the Game Boy Advance
    name = "Game Boy Advance",
    { 0, 0x4000 },
    { 0x02000000, 0x10000000 },
    writable = { { 0x02000000, 0x08000000 }, { 0x080000C4, 0x080000CA }, { 0x0E000000, 0x10000000 } },
  },
  [false] = { name = "Game Boy", { 0, 0x10000 }, writable = { { 0, 0x10000 } } },
}
-- From this address on, numbers on the bus are read and written byte by byte: the memory for saves has an 8-bit bus.
local SAVE = 0x0E000000
-- The range of the video memory, which cannot be written byte by byte.
local VIDEO, PAST_VIDEO = 0x05000000, 0x08000000
local VIDEO_DOMAINS = { palette = true, vram = true, oam = true }
-- What replaces mGBA's domains of a Game Boy.
local REPLACEMENTS = { sram = cartridgeram, vram = videoram, wram = workram }

-- What is known about the console and its domains. It is forgotten after each frame.
local advance
local domains, sizes = {}, {}

-- Forgets what is known about the console, because another game may have been loaded.
function memory.forget()
  advance = nil
  domains, sizes = {}, {}
end

-- Whether the console is a Game Boy Advance.
local function is_advance()
  if advance == nil then
    advance = emu:platform() == GAME_BOY_ADVANCE
  end
  return advance
end
memory.is_advance = is_advance

local function lies_in(ranges, address, length)
  for index = 1, #ranges do
    local range = ranges[index]
    if address >= range[1] and address < range[2] and address + length <= range[2] then
      return true
    end
  end
  return false
end

local function hex(address)
  return address == 0 and "0x0" or format("%#x", address)
end

local function accepted(ranges)
  local texts = {}
  for index, range in ipairs(ranges) do
    texts[index] = hex(range[1]) .. " to " .. hex(range[2] - 1)
  end
  return concat(texts, ", ")
end

-- Whether the bus has these bytes.
function memory.has_bus(address, length)
  return lies_in(BUS[is_advance()], address, length)
end

-- Raises a refusal unless the bus has these bytes and, if `change`, they can be written.
function memory.check_bus(address, length, change)
  local bus = BUS[is_advance()]
  if not lies_in(bus, address, length) then
    local problem = length < 2 and format("which is not on the bus of the %s", bus.name)
      or format("and %d bytes from there go beyond what the %s has on its bus", length, bus.name)
    refuse(BAD_ARGUMENT, "address is %s, %s; accepted is %s", hex(address), problem, accepted(bus))
  elseif change and not lies_in(bus.writable, address, length) then
    local what = address < 0x4000 and "the BIOS" or "the cartridge's ROM"
    local problem = length < 2 and format("where %s is, which cannot be written on the bus", what)
      or format("and %d bytes from there reach %s, which cannot be written on the bus", length, what)
    refuse(BAD_ARGUMENT, "address is %s, %s; accepted is %s; the domain cart0 accepts writes to the ROM", hex(address),
      problem, accepted(bus.writable))
  end
end

-- Returns mGBA's domain of this name, or a replacement that works around mGBA's bugs; nil if there is no such domain.
function memory.find(name)
  local found = domains[name]
  if found == nil then
    found = emu.memory[name]
    local replacement = REPLACEMENTS[name]
    if found and replacement and not is_advance() then
      found = replacement.new(found)
    end
    domains[name] = found or false
  end
  return found or nil
end

-- Like `find`, but raises a refusal if there is no such domain.
function memory.domain(name)
  local found = memory.find(name)
  if found then
    return found
  end
  local names = {}
  for each in pairs(emu.memory) do
    names[#names + 1] = each
  end
  table.sort(names)
  refuse(BAD_ARGUMENT, "unknown memory domain %q; this console has %s", sentence(name), concat(names, ", "))
end

-- How many bytes a domain has. For the ROM of a Game Boy game, mGBA before 0.10.2 returns the size of the largest
-- cartridge.
function memory.size(name)
  local size = sizes[name]
  if not size then
    local found = memory.domain(name)
    size = name == "cart0" and not is_advance() and emu:romSize() or found:size()
    sizes[name] = size
  end
  return size
end

-- Raises a refusal unless a domain has these bytes and, if `change`, they can be written.
function memory.check_domain(name, offset, length, change)
  local found, size = memory.domain(name), memory.size(name)
  if offset >= size or offset + length > size then
    local bytes = length == 1 and "1 byte" or format("%d bytes", length)
    local least = length > 1 and length or 1
    local range = size >= least and format("0 to %d for %s", size - least, bytes) or format("at most %d bytes", size)
    refuse(BAD_ARGUMENT, "address is %d, and an access of %s goes beyond the domain %q, which has %d bytes; accepted is %s",
      offset, bytes, name, size, range)
  elseif name == "eeprom" then
    refuse(UNSUPPORTED, "mGBA's Lua shows the BIOS in place of an EEPROM; a state with flag 2 contains the EEPROM")
  elseif change and (name == "bios" or name == "io") then
    refuse(BAD_ARGUMENT, "address is %d, in the domain %q, which takes no writes; accepted is a write on the bus, if "
      .. "the bus accepts writes there", offset, name)
  elseif name == "sram" and is_advance() and found:name() ~= "SRAM" and (change or offset + length > 0x10000) then
    refuse(UNSUPPORTED, "mGBA's Lua reads only the bank of flash memory that the game has chosen, and writes none")
  end
end

-- Limits the length of a write. Each byte needs its own call to mGBA, so more bytes would freeze mGBA for seconds.
function memory.check_size(data)
  if #data > limits.write then
    refuse(BAD_ARGUMENT, "`data` must be at most %d bytes, not %d; write the rest with further requests", limits.write, #data)
  end
end

-- Raises a refusal that begins with `place` unless these bytes exist: on the bus if `name` is empty, otherwise in the
-- domain of this name.
function memory.check(place, name, address, length)
  local fine, problem
  if name == "" then
    fine, problem = pcall(memory.check_bus, address, length)
  else
    fine, problem = pcall(memory.check_domain, name, address, length)
  end
  if not fine and type(problem) == "table" then
    refuse(problem.status, "%s: %s", place, problem.text)
  elseif not fine then
    error(problem, 0)
  end
end

-- Numbers on the bus.

function memory.read8(address)
  return emu:read8(address)
end

function memory.read16(address)
  if address & 1 == 0 and address < SAVE then
    -- Past the end of a ROM, mGBA returns more than 16 bits.
    return emu:read16(address) & 0xFFFF
  end
  return (unpack("<I2", emu:readRange(address, 2)))
end

function memory.read32(address)
  if address & 3 == 0 and address < SAVE then
    return emu:read32(address)
  end
  return (unpack("<I4", emu:readRange(address, 4)))
end

local function write_byte(address, value)
  if address < VIDEO or address >= PAST_VIDEO then
    emu:write8(address, value)
    return
  end
  -- Writes two bytes at once: the new one, and its neighbour unchanged.
  local even, shift = address & ~1, 8 * (address & 1)
  emu:write16(even, emu:read16(even) & ~(0xFF << shift) | value << shift)
end
memory.write8 = write_byte

-- Writes a number of `count` bytes, lowest byte first. The function `write` writes one byte.
local function write_bytes(write, address, count, value)
  for index = 0, count - 1 do
    write(address + index & 0xFFFFFFFF, value >> 8 * index & 0xFF)
  end
end

function memory.write16(address, value)
  if address & 1 == 0 and address < SAVE then
    emu:write16(address, value)
  else
    write_bytes(write_byte, address, 2, value)
  end
end

function memory.write32(address, value)
  if address & 3 == 0 and address < SAVE then
    emu:write32(address, value)
  else
    write_bytes(write_byte, address, 4, value)
  end
end

function memory.write_range(address, data)
  local core, write8, write = emu, emu.write8, write_byte
  -- If all bytes lie outside of the video memory, they are written without a check of each byte's address.
  if address >= PAST_VIDEO or address + #data <= VIDEO then
    function write(at, value)
      write8(core, at, value)
    end
  end
  for index = 1, #data do
    write(address + index - 1 & 0xFFFFFFFF, byte(data, index))
  end
end

-- Numbers in domains. The replacements of mGBA's domains have no `read16` and no `read32`.

function memory.domain_read16(name, offset)
  local found = memory.domain(name)
  local read = found.read16
  if read and offset & 1 == 0 then
    return read(found, offset) & 0xFFFF
  end
  return (unpack("<I2", found:readRange(offset, 2)))
end

function memory.domain_read32(name, offset)
  local found = memory.domain(name)
  local read = found.read32
  if read and offset & 3 == 0 then
    return read(found, offset)
  end
  return (unpack("<I4", found:readRange(offset, 4)))
end

-- Returns a function that writes a number of `count` bytes to a domain.
local function domain_writer(count)
  return function(name, offset, value)
    local found = memory.domain(name)
    if memory.ROM_DOMAINS[name] then
      memory.rom_writes = memory.rom_writes + 1
    end
    local on_advance = is_advance()
    if on_advance and VIDEO_DOMAINS[name] then
      -- mGBA cannot write single bytes to a domain of video memory, so the script writes on the bus instead.
      local address = found:base() + offset % found:size()
      local write = count == 1 and memory.write8 or count == 2 and memory.write16 or memory.write32
      write(address, value)
    elseif on_advance and count == 2 and offset & 1 == 0 then
      found:write16(offset, value)
    elseif on_advance and count == 4 and offset & 3 == 0 then
      found:write32(offset, value)
    elseif name == "sram" and not on_advance then
      found:write(offset, count, value)
    else
      write_bytes(function(at, each) found:write8(at, each) end, offset, count, value)
    end
  end
end

memory.domain_write8, memory.domain_write16 = domain_writer(1), domain_writer(2)
memory.domain_write32 = domain_writer(4)

return memory
