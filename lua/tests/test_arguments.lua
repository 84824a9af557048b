local arguments = require "arguments"
local harness = require "harness"
local refusal = require "refusal"
local test, eq = harness.test, harness.eq
local types = arguments.types

test("numbers are read as Lua's tonumber reads them", function()
  for text, number in pairs { ["255"] = 255, ["0xfF"] = 255, [" 7 "] = 7, ["1e2"] = 100, ["0"] = 0 } do
    eq(types.u8.read(text), number, text)
  end
  for _, text in ipairs { "", "x", "1.5", "0x", "12abc", "1 2", "--1", "99999999999999999999" } do
    eq(types.u8.read(text), nil, text)
  end
end)

test("the refusal of a number out of range has the argument's name and the range", function()
  local problem = harness.refusal(arguments.check, { name = "value", kind = types.u8 }, 256)
  eq(problem.status, refusal.BAD_ARGUMENT)
  eq(problem.text, "`value` must be from 0 to 255, not 256")
  harness.refusal(arguments.check, { name = "value", kind = types.i32 }, -0x80000001)
  harness.refusal(arguments.check, arguments.new("length", "u32", 0, 16 * 1024 * 1024), 16 * 1024 * 1024 + 1)
  harness.refusal(arguments.check, arguments.new("keys", "u16", 0, 0x3FF), 0x400)
  arguments.check({ name = "value", kind = types.i32 }, -0x80000000)
end)

test("an empty path and a path with a NUL are refused", function()
  harness.refusal(arguments.check, { name = "path", kind = types.path }, "a\0b")
  harness.refusal(arguments.check, { name = "path", kind = types.path }, "")
end)

test("bytes are converted to pairs of hexadecimal digits and back", function()
  local all = {}
  for value = 0, 255 do
    all[value + 1] = string.char(value)
  end
  all = table.concat(all)
  eq(arguments.to_hex("\xd3\0\xea"), "d3,00,ea")
  eq(arguments.to_hex(""), "")
  eq(arguments.from_hex(arguments.to_hex(all)), all)
  eq(arguments.from_hex(arguments.to_hex(all):upper()), all)
  eq(arguments.from_hex(" d3,\n0 , e a"), "\xd3\0\xea")
  eq(arguments.from_hex(""), "")
end)

test("text that is not a list of pairs of hexadecimal digits is not accepted", function()
  for _, text in ipairs { "zz", "d3,", ",d3", "d3,,00", "d3;00", "123", "0x12", ",", "d3,g", "-1" } do
    eq(arguments.from_hex(text), nil, text)
  end
end)

test("the names of buttons are case-sensitive", function()
  eq(types.button.read("Start"), 8)
  eq(types.buttons.read("A;L"), 0x201)
  harness.refusal(types.button.read, "start")
  harness.refusal(types.buttons.read, "A;X")
  harness.refusal(types.buttons.read, ";")
end)

test("text from outside becomes one line of valid UTF-8", function()
  eq(refusal.printable("ö"), "ö")
  eq(refusal.printable("\xf6"), "\\xf6")
  eq(refusal.sentence("a\nb"), "a")
  eq(refusal.sentence("a" .. ("ö"):rep(1000)), "a" .. ("ö"):rep(149) .. "...")
end)
