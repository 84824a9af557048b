local code = require "code"
local fake = require "fake"
local harness = require "harness"
local memory = require "memory"
local test, eq = harness.test, harness.eq

-- Creates a console with 256 bytes, on the bus and in the domain `wram`. Each byte holds its own address. Returns a
-- function that restores `memory`.
local function console_of_addresses()
  emu = fake.emu()
  memory.forget()
  local function range(_, address, length)
    local bytes = {}
    for index = 1, length do
      bytes[index] = string.char(address + index - 1)
    end
    return table.concat(bytes)
  end
  emu.readRange = range
  emu.memory.wram = { readRange = range, size = function() return 256 end, name = function() return "WRAM" end }
  local has_bus = memory.has_bus
  memory.has_bus = function(address, length) return address >= 0 and address + length <= 256 end
  return function() memory.has_bus = has_bus end
end

test("expressions have the values in the test vectors, which the Rust code uses too", function()
  local restore = console_of_addresses()
  local check_bus, check_domain = memory.check_bus, memory.check_domain
  memory.check_bus = function() end
  local is_compiling = true
  memory.check_domain = function(name, offset, length)
    -- Some test vectors read memory that does not exist. The script would refuse to compile them, so this check is off
    -- during the compilation.
    if not is_compiling then
      check_domain(name, offset, length)
    end
  end
  for _, row in ipairs(harness.vectors("code.tsv")) do
    local text, bytes, wanted = row[1], harness.unhex(row[2]), row[3]
    is_compiling = true
    local value = code.compile(bytes, text)
    is_compiling = false
    eq(tostring(value(77) or "none"), wanted, text)
  end
  memory.check_bus, memory.check_domain = check_bus, check_domain
  restore()
end)

test("bytes that are not an expression are refused", function()
  emu = fake.emu()
  memory.forget()
  for _, wrong in ipairs { "", "\3", "\x13", "\x32", "\1\1", "\0\0", "\2\9\0\1", "\2\0\1", "\x20\1", ("\x10"):rep(300) } do
    eq(harness.refusal(code.compile, wrong, "until[0]").text:match("^until%[0%]: ") ~= nil, true)
  end
  local far = "\2\0\0\0" .. ("<i8"):pack(0x10000000)
  eq(harness.refusal(code.compile, far, "stop[1]").text:match("^stop%[1%]: address is 0x10000000, ") ~= nil, true)
end)

test("one request evaluates several expressions", function()
  emu = fake.emu()
  local frame, division_by_zero = "\1", "\x30\0" .. ("<i8"):pack(1) .. "\0" .. ("<i8"):pack(0)
  local found = code.evaluate(("<s2s2"):pack(frame, division_by_zero), 7)
  eq(found, ("<I1i8I1i8"):pack(1, 7, 0, 0))
  eq(harness.refusal(code.evaluate, ("<s2"):pack(frame):rep(257), 7).text:match("more than 256") ~= nil, true)
end)
