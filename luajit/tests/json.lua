--- Tests of JSON: texts that must be accepted, texts that must be refused, and how values are written.

local check = require "tests.support.check"
local json = require "framewire.json"
local utf8 = require "framewire.utf8"

local function same(got, wanted)
  if type(got) ~= "table" or type(wanted) ~= "table" or got == json.null or wanted == json.null then
    return got == wanted and type(got) == type(wanted)
  end
  if json.is_array(got) ~= json.is_array(wanted) then return false end
  for key, value in pairs(got) do
    if not same(value, wanted[key]) then return false end
  end
  for key in pairs(wanted) do
    if got[key] == nil then return false end
  end
  return true
end

local array = json.array

-- Texts that are accepted, with their values.
local accepted = {
  { "[]", array {} }, { "{}", {} }, { " [ ] ", array {} }, { "\t\r\n { \n } \n", {} },
  { "null", json.null }, { "true", true }, { "false", false }, { '""', "" }, { "0", 0 }, { "-0", -0.0 }, { " 1 ", 1 },
  { "[null]", array { json.null } }, { "[1,null,3]", array { 1, json.null, 3 } }, { '[[],[[]],{"":{}}]',
    array { array {}, array { array {} }, { [""] = {} } } },
  { '{"a":1,"a":2}', { a = 2 } }, { '{"a":"b","a":"b"}', { a = "b" } }, { '{"":0}', { [""] = 0 } },
  { '{"1":"x"}', { ["1"] = "x" } }, { '{"foo\\u0000bar":42}', { ["foo\0bar"] = 42 } },
  { '{"min":-1.0e+28,"max":1.0e+28}', { min = -1e28, max = 1e28 } },
  { '{ "a" : [ 1 , { "b" : null } ] }', { a = array { 1, { b = json.null } } } },
  -- Numbers.
  { "[0e+1]", array { 0 } }, { "[0e1]", array { 0 } }, { "[1E22]", array { 1e22 } }, { "[1E-2]", array { 0.01 } },
  { "[1E+2]", array { 100 } }, { "[123e65]", array { 123e65 } }, { "[123.456e78]", array { 123.456e78 } },
  { "[20e1]", array { 200 } }, { "[ 4]", array { 4 } }, { "[-123]", array { -123 } }, { "[-1]", array { -1 } },
  { "[123.456789]", array { 123.456789 } }, { "[-0.0000000000000000000000000000000000000000000000000000000001]",
    array { -1e-58 } },
  { "[0.1]", array { 0.1 } }, { "[1.7976931348623157e308]", array { 1.7976931348623157e308 } },
  { "[5e-324]", array { 5e-324 } }, { "[1e-400]", array { 0 } }, { "[2.2250738585072011e-308]",
    array { 2.2250738585072011e-308 } },
  { "[0.30000000000000004]", array { 0.30000000000000004 } }, { "[100000000000000000000]", array { 1e20 } },
  { "9007199254740991", 9007199254740991 }, { "-9007199254740992", -9007199254740992 },
  { "1.5", 1.5 }, { "1.0", 1 }, { "123456789012345.6", 123456789012345.6 }, { "9999999999999998.0", 9999999999999998 },
  -- Strings.
  { '["\\u0060\\u012a\\u12AB"]', array { "`\196\170\225\138\171" } },
  { '["\\uD801\\udc37"]', array { "\240\144\144\183" } },
  { '["\\ud83d\\ude39\\ud83d\\udc8d"]', array { "\240\159\152\185\240\159\146\141" } },
  { '["\\"\\\\\\/\\b\\f\\n\\r\\t"]', array { '"\\/\b\f\n\r\t' } }, { '["\\\\u0000"]', array { "\\u0000" } },
  { '["\\\\a"]', array { "\\a" } }, { '["\\u0012"]', array { "\18" } }, { '["\\uFFFF"]', array { "\239\191\191" } },
  { '["\\uDBFF\\uDFFF"]', array { "\244\143\191\191" } }, { '["a/*b*/c/*d//e"]', array { "a/*b*/c/*d//e" } },
  { '["\127"]', array { "\127" } }, { '["\244\143\191\191"]', array { "\244\143\191\191" } },
  { '["\239\187\191x"]', array { "\239\187\191x" } }, { '["\226\130\172\240\157\132\158"]',
    array { "\226\130\172\240\157\132\158" } },
  { '["asd "]', array { "asd " } }, { '["\\u0000"]', array { "\0" } }, { '["\195\169\\n\195\169"]', array { "é\né" } },
  { '"\\u2028 \226\128\169"', "\226\128\168 \226\128\169" },
}

check.test("valid JSON is read", function()
  for _, case in ipairs(accepted) do
    local value, message = json.decode(case[1])
    assert(same(value, case[2]), ("%q: %s %s"):format(case[1], tostring(value), tostring(message)))
  end
  assert(1 / json.decode("-0") < 0, "minus zero")
  assert(1 / json.decode("-0.0") < 0, "minus zero with a fraction")
end)

-- Texts that are refused, with the line and column of the error.
local refused = {
  { ("1"):rep(400), 1, 1 }, { "-" .. ("1"):rep(400), 1, 1 },
  { "", 1, 1 }, { " ", 1, 2 }, { "[", 1, 2 }, { "]", 1, 1 }, { "[1", 1, 3 }, { "[1,", 1, 4 }, { "[,1]", 1, 2 },
  { "[1,]", 1, 4 }, { "[1,,2]", 1, 4 }, { "[1 true]", 1, 4 }, { "[1:2]", 1, 3 }, { '["a":1]', 1, 5 }, { "[1]]", 1, 4 },
  { "[1],", 1, 4 }, { "[][]", 1, 3 }, { "[}", 1, 2 }, { "[(1)]", 1, 2 }, { "[*]", 1, 2 }, { "[a]", 1, 2 },
  { "['a']", 1, 2 }, { "[1\n,\n2\n", 4, 1 }, { "[\n\n  x]", 3, 3 }, { '["\195\169" x]', 1, 6 }, { "[\0]", 1, 2 },
  { "1\0", 1, 2 }, { "[\12]", 1, 2 }, { "[\194\160]", 1, 2 }, { "\239\187\191{}", 1, 1 }, { "\255\254[\0", 1, 1 },
  { "{", 1, 2 }, { "{}}", 1, 3 }, { '{"a"}', 1, 5 }, { '{"a":}', 1, 6 }, { '{"a" 1}', 1, 6 }, { '{"a"::1}', 1, 6 },
  { '{"a":1,}', 1, 8 }, { '{"a":1,,"b":2}', 1, 8 }, { "{1:1}", 1, 2 }, { "{a:1}", 1, 2 }, { "{'a':1}", 1, 2 },
  { '{"a":1 "b":2}', 1, 8 }, { '{"a","b"}', 1, 5 }, { '{"a":"b"}#', 1, 10 }, { '{"a":1}/**/', 1, 8 },
  { '{"a":1}//', 1, 8 }, { '{"a":[1}', 1, 8 }, { "{[]:1}", 1, 2 }, { "{null:1}", 1, 2 }, { "{,}", 1, 2 },
  { "nul", 1, 1 }, { "nulL", 1, 1 }, { "True", 1, 1 }, { "TRUE", 1, 1 }, { "falsey", 1, 6 }, { "truee", 1, 5 },
  { "undefined", 1, 1 }, { "NaN", 1, 1 }, { "nan", 1, 1 }, { "Infinity", 1, 1 }, { "-Infinity", 1, 2 },
  { "01", 1, 1 }, { "-01", 1, 2 }, { "00", 1, 1 }, { "+1", 1, 1 }, { "++1", 1, 1 }, { "-", 1, 2 }, { "--1", 1, 2 },
  { "- 1", 1, 2 }, { "-a", 1, 2 }, { ".5", 1, 1 }, { "-.5", 1, 2 }, { "1.", 1, 3 }, { "1.e1", 1, 3 }, { "0.e1", 1, 3 },
  { "1e", 1, 3 }, { "1e+", 1, 4 }, { "1E-", 1, 4 }, { "0e", 1, 3 }, { "0x1", 1, 2 }, { "0xfF", 1, 2 },
  { "1.2.3", 1, 4 },
  { "1_000", 1, 2 }, { "1 000", 1, 3 }, { "1e1.5", 1, 4 }, { "9.3e+", 1, 6 }, { "1+2", 1, 2 }, { "1-", 1, 2 },
  { "\239\188\145", 1, 1 }, { "[1e999]", 1, 2 }, { "[-1e999]", 1, 2 }, { "1f", 1, 2 }, { "1a", 1, 2 }, { "inf", 1, 1 },
  { '"', 1, 2 }, { '"a', 1, 3 }, { "'a'", 1, 1 }, { "a", 1, 1 }, { '"a"b', 1, 4 }, { '"\n"', 1, 2 }, { '"\t"', 1, 2 },
  { '"\0"', 1, 2 }, { '"\31"', 1, 2 }, { '"\\', 1, 2 }, { '"\\"', 1, 4 }, { '"\\x00"', 1, 2 }, { '"\\a"', 1, 2 },
  { '"\\\t"', 1, 2 }, { '"\\\240\159\152\128"', 1, 2 }, { '"\\u"', 1, 2 }, { '"\\u00A"', 1, 2 }, { '"\\u00"', 1, 2 },
  { '"\\u00Ag"', 1, 2 }, { '"\\U0041"', 1, 2 }, { '"\\\'"', 1, 2 }, { '"\\\0"', 1, 2 },
  { '"\\ud800"', 1, 2 }, { '"\\udc00"', 1, 2 }, { '"\\ud800\\ud800"', 1, 2 }, { '"\\ud800\\u0041"', 1, 2 },
  { '"\\ud800\\n"', 1, 2 }, { '"\\ud800\\u"', 1, 2 }, { '"\\ud83dx"', 1, 2 }, { '"\\ud800\\', 1, 2 },
  { '"\255"', 1, 2 }, { '"ab\128"', 1, 4 }, { '"\195"', 1, 2 }, { '"\195("', 1, 2 }, { '"\192\175"', 1, 2 },
  { '"\224\128\175"', 1, 2 }, { '"\237\160\128"', 1, 2 }, { '"\240\128\128\175"', 1, 2 },
  { '"\244\144\128\128"', 1, 2 },
  { '"\\n\255"', 1, 4 }, { '"\226\130"', 1, 2 },
  { "<null>", 1, 1 }, { "[\226\129\160]", 1, 2 }, { "\195\165", 1, 1 }, { "{\"\195\":1}", 1, 3 }, { "*", 1, 1 },
  { "[#]", 1, 2 },
}

check.test("invalid JSON is refused, with the place of the error", function()
  for _, case in ipairs(refused) do
    local value, message = json.decode(case[1])
    check.equal(value, nil, ("%q"):format(case[1]))
    check.contains(message, ("line %d, column %d: "):format(case[2], case[3]), ("%q"):format(case[1]))
  end
  assert(#accepted + #refused > 180, "too few texts")
  check.contains(select(2, json.decode("[1")), "the text ends here")
  check.equal(select(3, json.decode("[1,\n?]")), 5, "place")
  for _, value in ipairs { 1, true, {}, print } do
    check.contains(select(2, json.decode(value)), "needs a string")
  end
  check.contains(select(2, json.decode()), "needs a string")
end)

check.test("an incomplete text is refused", function()
  local text = '{"name":["\195\169\\u00e9\\ud83d\\ude00",-12.5e+3,true,false,null,{"a":{}}]}'
  assert(json.decode(text))
  for stop = 0, #text - 1 do
    local value, message, place = json.decode(text:sub(1, stop))
    check.equal(value, nil, text:sub(1, stop))
    assert(place <= stop + 1, message)
  end
end)

check.test("changed bytes give an error or a value, never a crash", function()
  local text = '[{"a":"b\\u0041","c":-1.5e2},[true,null,"\240\159\152\128"]]'
  math.randomseed(7)
  for _ = 1, 20000 do
    local place, byte = math.random(#text), math.random(0, 255)
    local changed = text:sub(1, place - 1) .. string.char(byte) .. text:sub(place + 1)
    local value, message = json.decode(changed)
    if value == nil then
      check.contains(message, "line ")
    else
      assert(same(json.decode(assert(json.encode(value))), value))
    end
  end
end)

check.test("whole numbers stay exact up to 64 bits", function()
  for _, text in ipairs {
    "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
    "18446744073709551615", "1234567890123456789",
  } do
    local value = json.decode(text)
    check.equal(type(value), "cdata", text)
    check.equal(json.encode(value), text)
  end
  check.equal(json.decode("9223372036854775807"), 9223372036854775807LL)
  check.equal(json.decode("18446744073709551615"), 18446744073709551615ULL)
  for text, wanted in pairs {
    ["18446744073709551616"] = 2 ^ 64, ["-9223372036854775809"] = -2 ^ 63, ["9007199254740992"] = 2 ^ 53,
    ["99999999999999999999"] = 1e20, ["1e19"] = 1e19, ["9007199254740994.0"] = 2 ^ 53 + 2,
    ["1000000000000000000000000000000"] = 1e30,
  } do
    check.equal(type(json.decode(text)), "number", text)
    check.equal(json.decode(text), wanted, text)
  end
end)

check.test("doubles do not change when they are written and read", function()
  math.randomseed(3)
  local values = { 0.1, 1 / 3, 2 ^ 53, 2 ^ 53 + 2, 2 ^ 60, 1e21, 1e300, 5e-324, 1.7976931348623157e308, -2.5,
    4294967296, 123456789 }
  for _ = 1, 5000 do values[#values + 1] = (math.random() - 0.5) * 10 ^ math.random(-300, 300) end
  for _, value in ipairs(values) do
    local text = json.encode(value)
    check.equal(json.decode(text), value, text)
  end
  check.equal(json.encode(-0.0), "-0")
  check.equal(json.encode(0.1), "0.1")
  check.equal(json.encode(100), "100")
  check.equal(json.encode(-7), "-7")
end)

check.test("the depth is limited for reading and for writing", function()
  local function nested(depth) return ("["):rep(depth) .. ("]"):rep(depth) end
  assert(json.decode(nested(512)))
  check.contains(select(2, json.decode(nested(513))), "too deeply nested")
  check.contains(select(2, json.decode(("["):rep(100000))), "too deeply nested")
  check.contains(select(2, json.decode(('{"a":'):rep(100000))), "too deeply nested")
  assert(json.encode(json.decode(nested(4096), { max_depth = 4096 }), { max_depth = 4096 }))
  check.contains(select(2, json.decode("[[1]]", { max_depth = 1 })), "column 2: too deeply nested")
  assert(json.decode("1", { max_depth = 1 }))
  for _, depth in ipairs { 0, -1, 4097, 1.5, "x", 0 / 0 } do
    check.contains(select(2, json.decode("1", { max_depth = depth })), "use a whole number from 1 to 4096")
  end
  local loop = {}
  loop.self = loop
  check.contains(select(2, json.encode(loop)), "may contain itself")
end)

check.test("values are written as JSON", function()
  for _, case in ipairs {
    { {}, "{}" }, { array {}, "[]" }, { { 1, 2 }, "[1,2]" }, { { a = 1 }, '{"a":1}' }, { true, "true" },
    { false, "false" },
    { json.null, "null" }, { "\0\1\n\"\\/\127\195\169", '"\\u0000\\u0001\\n\\"\\\\/\127\195\169"' },
    { { { array {}, {} } }, "[[[],{}]]" }, { -1LL, "-1" }, { 5ULL, "5" }, { { json.null }, "[null]" },
  } do
    check.equal(json.encode(case[1]), case[2])
  end
  check.equal(json.encode({ b = 1, a = { 2, c = nil }, [""] = {} }, { sort = true }), '{"":{},"a":[2],"b":1}')
  check.equal(json.encode({ a = { 1, {} }, b = array {}, c = { d = 1 } }, { sort = true, indent = 2 }),
    '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": [],\n  "c": {\n    "d": 1\n  }\n}')
  check.equal(json.encode({ 1 }, { indent = "\t" }), "[\n\t1\n]")
end)

check.test("objects are written in the same way with and without cached texts", function()
  local long = ("x"):rep(65)
  local many = {}
  for i = 1, 30 do many["name " .. i] = "value " .. i end
  for _, object in ipairs {
    { id = "79190", name = "a \"lamp\"\n", price = 12.5, on = true, off = false }, { zero = 0 }, { zero = -0.0 },
    { text = long }, { [long] = "text" }, { inner = { text = "a" }, nothing = json.null, list = array { "b" } }, many,
    { number = 2 ^ 60 }, { exact = 9007199254740993LL }, { empty = "" }, { [""] = "name" },
  } do
    local first = json.encode(object)
    assert(same(json.decode(first), object), first)
    for _ = 1, 3 do check.equal(json.encode(object), first) end
  end
  check.equal(json.encode { zero = -0.0 }, '{"zero":-0}')
  for _, case in ipairs {
    { { id = "79190", text = "\255" }, "not UTF-8, at value.text" }, { { id = 0 / 0 }, "nan" },
    { { id = "79190", [1] = "79190", [2] = 1 }, "with keys other" }, { { id = print }, "a value of type function" },
  } do
    for _ = 1, 2 do check.contains(select(2, json.encode(case[1])), case[2]) end
  end
  for i = 1, 3000 do check.equal(json.encode { id = "text " .. i }, '{"id":"text ' .. i .. '"}') end
  check.equal(json.encode { id = "text 1" }, '{"id":"text 1"}')
end)

check.test("values that JSON does not have are refused, with their place", function()
  local ffi = require "ffi"
  for _, case in ipairs {
    { function() end, "a value of type function, at value" }, { 0 / 0, "nan" }, { math.huge, "inf" },
    { -math.huge, "inf" },
    { coroutine.create(print), "type thread" }, { { a = { 1, print } }, "at value.a[2]" },
    { { 1, 2, x = 1 }, "with keys other" },
    { { 1, nil, 3 }, "holes" }, { { [2] = 1 }, "a key of type number" }, { { [true] = 1 }, "a key of type boolean" },
    { array { x = 1 }, "keys other" }, { array { 1, x = 2 }, "keys other" },
    { "\255", "not UTF-8" }, { { a = "\192\128" }, "not UTF-8, at value.a" },
    { { ["\255"] = 1 }, "name that is not UTF-8" },
    { ffi.new("int[2]"), "a C value" }, { ffi.new("void *"), "a C value" },
  } do
    local text, message = json.encode(case[1])
    check.equal(text, nil, case[2])
    check.contains(message, case[2])
    check.equal(select("#", json.encode(case[1], { sort = true })), 2)
  end
  check.contains(select(2, json.encode(nil)), "use json.null")
  for _, indent in ipairs { -1, 65, "x", true } do
    check.contains(select(2, json.encode(1, { indent = indent })), "indent is")
  end
  check.equal(json.encode { "still works" }, '["still works"]')
  check.equal(pcall(function() json.null.x = 1 end), false, "changing null")
end)

check.test("a byte that is not UTF-8 is found in one pass", function()
  check.contains(select(2, json.decode('"ab\195\164\255x"')), "line 1, column 5: a byte that is not UTF-8")
  local began = os.clock()
  local text = ("x"):rep(1000000)
  check.contains(select(2, json.decode('"' .. text .. "\255" .. text .. '"')), "line 1, column 1000002")
  assert(os.clock() - began < 1, "seconds: " .. os.clock() - began)
end)

check.test("the check of UTF-8 does not depend on how the text is divided", function()
  local ffi = require "ffi"
  for text, wanted in pairs {
    ["abcdefgh\195\169ijkl\226\130\172\240\159\152\128"] = true, ["\244\143\191\191\237\159\191\238\128\128"] = true,
    ["abc\237\160\128"] = false, ["abcdefg\244\144\128\128"] = false, ["\192\128"] = false, ["\195"] = false,
    ["aaaa\128"] = false, ["\240\143\191\191"] = false, ["\248\136\128\128\128"] = false, [""] = true,
  } do
    check.equal(utf8.valid(text), wanted, text)
    local data = ffi.cast("const uint8_t *", text)
    for cut = 0, #text do
      local state = utf8.check(utf8.START, data, 0, cut)
      if state ~= utf8.INVALID then state = utf8.check(state, data, cut, #text) end
      check.equal(state == utf8.START, wanted, text)
    end
  end
end)

check.test("the place of a mistake after a long line is found quickly", function()
  local began = os.clock()
  check.equal(select(2, json.decode("[" .. (" "):rep(40000) .. "\nx")), "line 2, column 1: expected a value")
  assert(os.clock() - began < 1, "seconds: " .. os.clock() - began)
end)
