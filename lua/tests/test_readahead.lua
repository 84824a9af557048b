local client = require "client"
local harness = require "harness"
local limits = require "limits"
local operations = require "operations"
local ticks = require "ticks"
local test, eq = harness.test, harness.eq

local MIB = 1024 * 1024

-- Reads fake memory. The bytes of each read are its address as text, repeated.
local function read_range(_, address, length)
  return ("%08x"):format(address):rep((length + 7) // 8):sub(1, length)
end

local function read(address, length)
  return string.pack("<I1I4I4", 0x23, address, length)
end

-- Connects a link to a game whose memory can be read. The last result is a list with the length of each read.
local function link(name)
  local socket, self, take = client.link(name)
  ticks.now = ticks.now + 60 * ticks.per_second
  local reads = {}
  emu.readRange = function(core, address, length)
    table.insert(reads, length)
    return read_range(core, address, length)
  end
  emu.platform = function() return 0 end
  emu.game = "\0\0\0\1"
  emu.checksum = function() return emu.game end
  return socket, self, take, reads
end

-- Runs frames with one turn each, until nothing waits any more. Returns the number of frames.
local function run(self, take)
  for frame = 1, 1000 do
    ticks.now = ticks.now + 1
    take()
    if not self.deferred[1] and self.unsent == 0 then
      return frame
    end
  end
  error("it does not come to an end")
end

-- The encoded results in the reply to request `id`. Each begins with its status: 0 for success, or a status of
-- refusal.lua. In a result with bytes, a tag and the length follow, so the bytes begin after 6 bytes.
local function result(stream, id)
  local reply = client.replies(stream)[id]
  return reply and reply.body
end

-- Connects a link that asks for `length` bytes of the ROM, and gives it turns until the script has read the first part.
-- Returns what `link` returns.
local function link_with_begun_read(name, length)
  local socket, self, take, reads = link(name)
  socket:arrive(client.request(1, read(0x08000000, length)))
  while #reads == 0 do
    take(-math.huge) -- reads one part: the time of this turn is over from the beginning
  end
  eq(self.deferred[1].ahead ~= nil, true)
  return socket, self, take
end

test("16 MiB of a ROM are read in small parts, and other requests are performed in the meantime", function()
  local socket, self, take, reads = link(800)
  socket:arrive(client.request(1, read(0x08000000, 16 * MIB)) .. client.request(2, "\x10"))
  take()
  eq(result(socket.written, 2) ~= nil, true, "the request after it")
  run(self, take)
  eq(#reads, 16 * MIB // limits.read_part)
  for _, length in ipairs(reads) do
    eq(length, limits.read_part)
  end
  local wanted = {}
  for part = 0, #reads - 1 do
    wanted[part + 1] = read_range(nil, 0x08000000 + part * limits.read_part, limits.read_part)
  end
  local bytes = result(socket.written, 1)
  eq(bytes:sub(1, 6), string.pack("<I2I4", 0x0500, 16 * MIB))
  eq(bytes:sub(7) == table.concat(wanted), true, "the bytes")
end)

test("a later request is performed even if reading ahead uses all of a turn's time", function()
  local socket, self, take = link(806)
  socket:arrive(client.request(1, read(0x08000000, 16 * MIB)))
  take(-math.huge)
  socket:arrive(client.request(2, "\x10"))
  take(-math.huge)
  eq(result(socket.written, 2) ~= nil, true, "the later request")
  eq(self.deferred[1].ahead ~= nil, true, "more is to be read")
end)

test("memory other than a ROM is read all at once, even in a batch that also reads a ROM", function()
  local socket, self, take, reads = link(801)
  socket:arrive(client.request(1, read(0x02000000, MIB)))
  run(self, take)
  eq(reads[1], MIB)
  socket:arrive(client.request(2, read(0x02000000, 100) .. read(0x08000000, MIB + 3), 2, 2))
  run(self, take)
  eq(reads[2], 3, "the last part first")
  eq(reads[#reads], 100, "the memory after all of the ROM")
  eq(#result(socket.written, 2), 6 + 100 + 6 + MIB + 3)
end)

-- Some cartridges have ports, for example to a clock, within the first bytes of the ROM. The bus has the same ROM again
-- every 0x02000000 bytes.
test("bytes of the ROM that may be ports are read together with the rest of the batch, even if read twice", function()
  for number, order in ipairs {
    { 0x08400000, 0x08000000 }, { 0x08000000, 0x08400000 }, { 0x08000000, 0x08000000 }, { 0x0A000000, 0x08000000 },
  } do
    local socket, self, take = link(810 + number)
    local port_reads = {}
    emu.readRange = function(core, address, length)
      if address % 0x02000000 == 0 then
        table.insert(port_reads, ticks.now)
      end
      return read_range(core, address, length)
    end
    socket:arrive(client.request(1, read(order[1], 4 * MIB) .. read(order[2], MIB // 4), 1, 2))
    run(self, take)
    eq(#result(socket.written, 1), 6 + 4 * MIB + 6 + MIB // 4)
    for _, tick in ipairs(port_reads) do
      eq(tick, ticks.now, "order " .. number)
    end
  end
end)

test("if another game is loaded during a read, all bytes are from the new ROM", function()
  local socket, self, take = link_with_begun_read(802, 4 * MIB)
  emu.game = "\0\0\0\2"
  emu.readRange = function(_, _, length) return ("n"):rep(length) end
  run(self, take)
  eq(result(socket.written, 1):sub(7) == ("n"):rep(4 * MIB), true, "the bytes")
end)

test("if the ROM is patched during a read, all bytes in the reply are from after the patch", function()
  local other, _, take_other = client.link(805)
  local socket, self, take = link_with_begun_read(804, 16 * MIB)
  rawset(emu, "memory", { cart0 = { size = function() return 32 * MIB end, write8 = function() end } })
  emu.readRange = function(_, _, length) return ("p"):rep(length) end
  other:arrive(client.request(1, string.pack("<I1s4I4I1", 0x39, "cart0", 1, 1)))
  take_other()
  eq(client.read_stream(other.written)[1], 0)
  run(self, take)
  eq(result(socket.written, 1):sub(7) == ("p"):rep(16 * MIB), true, "the bytes")
end)

test("if code writes to the ROM during a read, all bytes in the reply are from after the write", function()
  local other, _, take_other = client.link(807)
  local socket, self, take = link_with_begun_read(806, 16 * MIB)
  emu.write8 = function() emu.readRange = function(_, _, length) return ("w"):rep(length) end end
  operations.scripts.allowed = true
  other:arrive(client.request(1, string.pack("<I1s4", 0xd0, "emu:write8(0x08000000, 1)")))
  take_other()
  operations.scripts.allowed = false
  eq(result(other.written, 1):find('"error"', 1, true), nil)
  run(self, take)
  eq(result(socket.written, 1):sub(7) == ("w"):rep(16 * MIB), true, "the bytes")
end)

test("a ROM is not read ahead for requests that are too large", function()
  local socket, self, take, reads = link(815)
  socket:arrive(client.request(1, read(0x08000000, 20 * MIB)))
  run(self, take)
  eq(result(socket.written, 1):byte(), 1)
  eq(#reads, 0)
  socket:arrive(client.request(2, read(0x08400000, 16 * MIB):rep(3), 2, 3))
  run(self, take)
  eq(result(socket.written, 2):byte(6 + 16 * MIB + 1), 6, "the second result")
  eq(#reads, 2, "the third read is not performed")
end)

test("if mGBA cannot read a part, the whole read is refused", function()
  local socket, self, take = link(803)
  emu.readRange = function() error("no such memory") end
  socket:arrive(client.request(1, read(0x08000000, 4 * MIB)))
  run(self, take)
  eq(result(socket.written, 1):byte(), 4)
end)
