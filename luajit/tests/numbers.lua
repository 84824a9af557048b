--- Tests of numbers, times and percent encoding.

local ffi = require "ffi"
local check = require "tests.support.check"
local num = require "framewire.num"
local time = require "framewire.time"
local url = require "framewire.http.url"

local bytes = ffi.new("uint8_t[32]")

check.test("decimals are read strictly", function()
  check.equal(num.parse_decimal("0123"), 123)
  check.equal(num.parse_decimal("9007199254740992"), 9007199254740992)
  check.equal(num.parse_decimal("9007199254740993"), nil)
  for _, text in ipairs { "", "-1", "+1", " 1", "1 ", "0x1", "1e3", "1.0", "99999999999999999999" } do
    check.equal(num.parse_decimal(text), nil, text)
  end
end)

check.test("words keep their value and their order of bytes", function()
  num.write_u32(bytes, 0xfedcba98)
  check.equal(num.hex(ffi.string(bytes, 4)), "98badcfe")
  check.equal(num.read_u32(bytes), 0xfedcba98)
  check.equal(num.unsigned(-1), 4294967295)
  check.equal(num.power_of_two(1), 1)
  check.equal(num.power_of_two(65), 128)
end)

check.test("HTTP dates are written and read", function()
  check.equal(time.http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT")
  -- Among these are moments before, in and after leap days, and a March 1 in a year without one, 2100.
  for _, seconds in ipairs { 0, 951782399, 951782400, 951868800, 1709164800, 4107542400, 1234567890 } do
    check.equal(time.parse_http_date(time.http_date(seconds)), seconds, time.http_date(seconds))
  end
  for _, seconds in ipairs { -62167219201, -2 ^ 62 } do
    check.equal(time.http_date(seconds), "Sat, 01 Jan 0000 00:00:00 GMT", tostring(seconds))
  end
  for _, seconds in ipairs { 253402300799, 253402300800, 2 ^ 62 } do
    check.equal(time.http_date(seconds), "Fri, 31 Dec 9999 23:59:59 GMT", tostring(seconds))
  end
  check.equal(time.parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), nil)
  check.equal(time.parse_http_date("Sun, 06 Xxx 1994 08:49:37 GMT"), nil)
end)

check.test("clocks go forward", function()
  -- On a busy machine, the sleep can take longer.
  check.eventually(5, function()
    local before = time.monotonic()
    time.sleep(0.02)
    local passed = time.monotonic() - before
    assert(passed >= 0.02, "slept for " .. passed)
    return passed < 1
  end, "the sleep ended in time")
  assert(math.abs(time.wall() - os.time()) < 2)
  assert(time.cpu() > 0)
end)

check.test("percent encoding is decoded once, and refused if it is malformed", function()
  check.equal(url.decode("a%20b%2525+c"), "a b%25+c")
  check.equal(url.decode("a+b%2B", true), "a b+")
  for _, text in ipairs { "%", "%2", "%zz", "a%2x%20" } do check.equal(url.decode(text), nil, text) end
  check.equal(url.decode(url.encode("ü/?&=%+ \0")), "ü/?&=%+ \0")
  check.equal(url.param("a=1&b=2&b=3&c&d=%zz", "b"), "2")
  check.equal(url.param("a=1&b=2&c", "c"), "")
  check.equal(url.param("a=1", "x"), nil)
  check.equal(url.param("d=%zz", "d"), nil)
  check.equal(url.param(nil, "d"), nil)
end)
