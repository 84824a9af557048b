--- Tests of the HTTP parsers without a server, mostly with valid input that arrives in pieces.

local ffi = require "ffi"
local cache = require "framewire.http.cache"
local check = require "tests.support.check"
local chunked = require "framewire.http.chunked"
local parser = require "framewire.http.parser"

local limits = { max_target = 100, max_headers = 10 }

local function bytes_of(text)
  local data = ffi.new("uint8_t[?]", #text + 1)
  ffi.copy(data, text)
  return data
end

local function parse(text)
  local data = bytes_of(text)
  local stop, found = parser.find_end(data, 0, #text)
  check.equal(found, true, "end of the head")
  return parser.parse(data, 0, stop, limits)
end

check.test("a head is parsed", function()
  local head = parse("POST /a%20b?x=1&y HTTP/1.1\r\nHost: h:1\r\nX-One:  a b \t\r\nx-one: c\r\nCookie: a=1\r\n"
    .. "Cookie: b=2\r\nContent-Length: 12\r\nExpect: 100-Continue\r\n\r\n")
  check.equal(head.method, "POST")
  check.equal(head.path, "/a%20b")
  check.equal(head.query, "x=1&y")
  check.equal(head.version, 1.1)
  check.equal(head.headers["x-one"], "a b, c")
  check.equal(head.headers["cookie"], "a=1; b=2")
  check.equal(head.length, 12)
  check.equal(head.keep_alive, true)
  check.equal(head.expect_continue, true)
end)

check.test("the forms of a target are distinguished", function()
  local head = parse("GET http://h:80?q HTTP/1.1\r\nHost: h\r\n\r\n")
  check.equal(head.path, "/")
  check.equal(head.query, "q")
  check.equal(head.authority, "h:80")
  check.equal(parse("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").path, "*")
  check.equal(parse("GET /? HTTP/1.1\r\nHost: h\r\n\r\n").query, "")
end)

check.test("keep-alive depends on the version and on the header Connection", function()
  local function keeps(version, connection)
    return parse("GET / HTTP/" .. version .. "\r\nHost: h\r\n" .. (connection or "") .. "\r\n").keep_alive
  end
  check.equal(keeps("1.1"), true)
  check.equal(keeps("1.1", "Connection: close\r\n"), false)
  check.equal(keeps("1.1", "Connection: keep-alive, Close\r\n"), false)
  check.equal(keeps("1.1", "Connection: x-close\r\n"), true)
  check.equal(keeps("1.0"), false)
  check.equal(keeps("1.0", "Connection: Keep-Alive\r\n"), true)
end)

check.test("the end of a head is found wherever the bytes are cut", function()
  local text = "GET / HTTP/1.1\r\nHost: h\r\nX: 1\r\n\r\nrest"
  local data = bytes_of(text)
  for cut = 0, #text do
    local place, found = parser.find_end(data, 0, cut)
    if not found then place, found = parser.find_end(data, place, #text) end
    check.equal(found, true)
    check.equal(place, #text - 4)
  end
end)

check.test("a chunked body is decoded wherever the bytes are cut", function()
  local text = "5\r\nhello\r\n1;x=\"y\"\r\n \r\n00A\r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\n"
  for first = 0, #text do
    local data = bytes_of(text .. "next")
    local decoder = chunked.new(0, 100)
    local stop = first
    local done, status = decoder:feed(data, stop)
    assert(done ~= nil, status)
    if not done then
      -- The rest of the text comes directly after the bytes that `compact` has kept.
      stop = decoder:compact(data, stop)
      local rest = text:sub(first + 1) .. "next"
      ffi.copy(data + stop, rest, #rest)
      stop = stop + #rest
      done = decoder:feed(data, stop)
    else
      stop = #text + 4
    end
    check.equal(done, true)
    check.equal(ffi.string(data + decoder.start, decoder.stop - decoder.start), "hello 0123456789")
    if first < #text then check.equal(ffi.string(data + decoder.raw, stop - decoder.raw), "next") end
  end
end)

check.test("a chunked body is decoded byte by byte", function()
  local text = "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
  local data, decoder, stop = ffi.new("uint8_t[64]"), chunked.new(0, 10), 0
  for i = 1, #text do
    data[stop] = text:byte(i)
    stop = stop + 1
    local done = decoder:feed(data, stop)
    check.equal(done, i == #text)
    if not done then stop = decoder:compact(data, stop) end
  end
  check.equal(ffi.string(data, decoder.stop), "abcde")
end)

check.test("a chunk that exceeds the limit is refused before its data arrives", function()
  local decoder = chunked.new(0, 10)
  local text = "6\r\nabcdef\r\n5\r\n"
  local done, status = decoder:feed(bytes_of(text), #text)
  check.equal(done, nil)
  check.equal(status, 413)
end)

check.test("the cache finds a head only if all its bytes match", function()
  local heads = cache.new()
  local one, other = "GET /same-prefix/1 HTTP/1.1\r\n\r\n", "GET /same-prefix/2 HTTP/1.1\r\n\r\n"
  local head = {}
  heads:keep(bytes_of(one), 0, #one, head)
  check.equal(heads:find(bytes_of(one .. "more"), 0, #one + 4), head)
  check.equal(select(2, heads:find(bytes_of(one), 0, #one)), #one)
  check.equal(heads:find(bytes_of(other), 0, #other), nil)
  check.equal(heads:find(bytes_of(one), 0, #one - 1), nil, "one byte short")
  check.equal(heads:find(bytes_of(one), 0, 3), nil)
end)

check.test("a head with cached header lines is the same as a parsed head", function()
  local small = { max_target = 40, max_head = 200, max_headers = 10 }
  local fields = cache.new()
  local lines = "Host: 127.0.0.1:8080\r\nContent-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
  local function parse_with(first)
    local text = first .. "\r\n" .. lines
    return parser.parse(bytes_of(text), 0, #text, small), text
  end
  local head, text = parse_with("GET /a HTTP/1.0")
  parser.remember(bytes_of(text), 0, #text, head, fields)
  local function recall(first, rest)
    local whole = first .. "\r\n" .. (rest or lines)
    return parser.recall(bytes_of(whole .. "more"), 0, #whole + 4, small, fields)
  end
  check.equal(recall("GET /b HTTP/1.1"), nil, "HTTP/1.0 has other rules")
  head, text = parse_with("GET /a HTTP/1.1")
  parser.remember(bytes_of(text), 0, #text, head, fields)
  for _, first in ipairs { "GET /b?x=1?y HTTP/1.1", "POST / HTTP/1.1", "DELETE /%20/ HTTP/1.1", "HEAD /? HTTP/1.1" } do
    local found, place = recall(first)
    check.equal(place, #first + 2 + #lines)
    local parsed = parse_with(first)
    for name in pairs(parsed) do
      if name ~= "headers" then check.equal(found[name], parsed[name], name) end
    end
    for name, value in pairs(parsed.headers) do check.equal(found.headers[name], value, name) end
    check.equal(found.query, parsed.query)
  end
  for _, first in ipairs {
    "GET /b HTTP/1.0", "GET /b HTTP/1.2", "GET  /b HTTP/1.1", "GET /b  HTTP/1.1", "GET /b c HTTP/1.1",
    "get /b HTTP/1.1", "GET b HTTP/1.1", "GET * HTTP/1.1", "CONNECT /b HTTP/1.1", "GET http://x/ HTTP/1.1",
    "GET /b\tHTTP/1.1", "GET /b",
    "GET /\127 HTTP/1.1", "GET /# HTTP/1.1", "GET /\195\164 HTTP/1.1", "GET /\0 HTTP/1.1", "/b HTTP/1.1",
    " /b HTTP/1.1", "GET HTTP/1.1", "GET /b HTTP/1.1\n", "", "GET /" .. ("x"):rep(40) .. " HTTP/1.1",
  } do
    check.equal(recall(first), nil, first)
  end
  check.equal(recall("GET /b HTTP/1.1", "Host: 127.0.0.1:8080\r\nContent-Length: 4\r\n\r\n"), nil, "other header lines")
  small.max_head = 60
  check.equal(recall("GET /b HTTP/1.1"), nil, "longer than allowed")
end)

check.test("long runs of spaces in headers, cookies, forms and URLs take little time", function()
  local http = require "framewire.http"
  local url = require "framewire.http.url"
  local spaces = (" "):rep(16000)
  local began = os.clock()
  check.equal(select(2, parse("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x" .. spaces .. "y\r\n\r\n")), 501)
  check.equal(http.cookie.parse("a = x" .. spaces .. "y ; b = z ").a, "x" .. spaces .. "y")
  local part = "--b\r\nContent-Disposition: form-data; name=a\r\nX: y" .. spaces:sub(1, 8000) .. "y\r\n\r\nv\r\n"
  assert(http.form.parse("multipart/form-data; boundary=b", part:rep(5) .. "--b--\r\n"))
  local base = assert(url.parse("http://h/x", "http"))
  check.equal(#url.resolve(base, ("a"):rep(20000) .. "/"), #"http://h/" + 20001)
  assert(os.clock() - began < 1, "seconds: " .. os.clock() - began)
end)
