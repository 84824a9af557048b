--- Tests of forms and cookies.

local check = require "tests.support.check"
local client = require "tests.support.client"
local http = require "framewire.http"
local process = require "tests.support.process"

local form, cookie = http.form, http.cookie
local URLENCODED = "application/x-www-form-urlencoded"

local function fields_of(parsed)
  local parts = {}
  for i, field in ipairs(parsed.fields) do
    local file = field.filename and ("(%s,%s)"):format(field.filename, field.type or "") or ""
    parts[i] = field.name .. "=" .. field.value .. file
  end
  return table.concat(parts, "|")
end

check.test("urlencoded forms are read", function()
  for text, wanted in pairs {
    [""] = "", ["a=1"] = "a=1", ["a=1&b=2&a=3"] = "a=1|b=2|a=3", ["a"] = "a=", ["a="] = "a=", ["=b"] = "=b",
    ["a=b=c"] = "a=b=c", ["&&a=1&&"] = "a=1", ["a+b=c+d%2B%26"] = "a b=c d+&", ["%c3%A9=%00"] = "é=\0",
  } do
    check.equal(fields_of(assert(form.parse(URLENCODED, text))), wanted, text)
  end
  local parsed = assert(form.parse(URLENCODED .. " ; charset=utf-8", "a=1&b=2&a=3"))
  check.equal(parsed:get("a"), "1")
  check.equal(parsed:get("c"), nil)
  check.equal(table.concat(parsed:all("a"), ","), "1,3")
  check.equal(#parsed:all("c"), 0)
  for _, text in ipairs { "%", "a=%2", "%zz=1", "a=1&b=%" } do
    check.equal(select(3, form.parse(URLENCODED, text)), 400, text)
  end
  check.equal(select(3, form.parse(URLENCODED, ("a&"):rep(1001))), 413)
  check.equal(select(3, form.parse(URLENCODED, "a&b&c", { max_fields = 2 })), 413)
  assert(form.parse(URLENCODED, "a&b", { max_fields = 2 }))
end)

-- A part of a multipart body.
local function part(head, data) return "--xx\r\n" .. head .. "\r\n\r\n" .. data .. "\r\n" end

local FIELD = 'Content-Disposition: form-data; name="a"'

local function parse(text, limits) return form.parse("multipart/form-data; boundary=xx", text, limits) end

check.test("multipart forms are read", function()
  for text, wanted in pairs {
    [part(FIELD, "1") .. "--xx--\r\n"] = "a=1",
    [part(FIELD, "1") .. "--xx--"] = "a=1",
    ["before\r\n" .. part(FIELD, "1") .. "--xx--\r\nafter"] = "a=1",
    [part(FIELD, "") .. part(FIELD, "\r\n") .. "--xx--"] = "a=|a=\r\n",
    [part(FIELD, "\0\255\r\n--x\r\n-xx") .. "--xx--"] = "a=\0\255\r\n--x\r\n-xx",
    ["--xx \t\r\n" .. FIELD .. "\r\n\r\n1\r\n--xx--"] = "a=1",
    [part('content-disposition:form-data;name=a;filename="b.txt"\r\nContent-Type: text/x', "1") .. "--xx--"] =
      "a=1(b.txt,text/x)",
    [part('Content-Disposition: form-data; filename="q%22\\"\\\\C:\\d.txt"; name="a%0D%0Ab%41"', "1") .. "--xx--"] =
      'a\r\nb%41=1(q""\\C:\\d.txt,)',
    [part('X-Other: y\r\nContent-Disposition: form-data; name="é"; filename=""', "") .. "--xx--"] = "é=(,)",
    ["--xx--"] = "",
  } do
    check.equal(fields_of(assert(parse(text))), wanted, text)
  end
  local quoted = 'Multipart/Form-Data; charset=utf-8; Boundary="x x"'
  check.equal(assert(form.parse(quoted, "--x x\r\n" .. FIELD .. "\r\n\r\n1\r\n--x x--")):get("a"), "1")
end)

check.test("malformed multipart forms are refused", function()
  for text, status in pairs {
    [""] = 400, ["xx"] = 400, ["--xx"] = 400, ["--xx\r\n"] = 400, ["--xx-"] = 400, ["--xy--"] = 400,
    [part(FIELD, "1")] = 400, [part(FIELD, "1") .. "--xx"] = 400, ["--xx\r\n" .. FIELD .. "\r\n--xx--"] = 400,
    [part("", "1") .. "--xx--"] = 400, [part("Content-Type: a/b", "1") .. "--xx--"] = 400,
    [part("Content-Disposition: form-data", "1") .. "--xx--"] = 400,
    [part("Content-Disposition: attachment; name=a", "1") .. "--xx--"] = 400,
    [part('Content-Disposition: form-data; name="a', "1") .. "--xx--"] = 400,
    [part('Content-Disposition: form-data; name=a; name=b', "1") .. "--xx--"] = 400,
    [part('Content-Disposition: form-data; name="a" x', "1") .. "--xx--"] = 400,
    [part(FIELD .. "\r\nbad header", "1") .. "--xx--"] = 400, [part(FIELD .. "\r\nX: \1", "1") .. "--xx--"] = 400,
    [part(FIELD .. "\r\n folded", "1") .. "--xx--"] = 400, ["--xxy\r\n" .. FIELD .. "\r\n\r\n1\r\n--xx--"] = 400,
    [part(FIELD .. "\r\nX: " .. ("y"):rep(9000), "1") .. "--xx--"] = 431,
    [part(FIELD, "1"):rep(1001) .. "--xx--"] = 413,
  } do
    local parsed, message, got = parse(text)
    check.equal(parsed, nil, text)
    check.equal(got, status, text .. ": " .. tostring(message))
  end
  check.equal(select(3, parse(part(FIELD, "1"):rep(3) .. "--xx--", { max_fields = 2 })), 413)
  check.equal(select(3, parse(part(FIELD, "1") .. "--xx--", { max_part_head = 10 })), 431)
  for _, kind in ipairs { "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=a@b",
    'multipart/form-data; boundary="', "multipart/form-data; boundary=" .. ("x"):rep(71) } do
    local status = select(3, form.parse(kind, "--xx--"))
    assert(status == 400 or status == 415, kind)
  end
  for _, kind in ipairs { "", "text/plain", "application/json", ";", "multipart/mixed; boundary=xx" } do
    check.equal(select(3, form.parse(kind, "a=1")), 415, kind)
  end
  check.equal(select(3, form.parse(nil, "a=1")), 415)
end)

check.test("written forms can be read", function()
  check.equal(form.encode_urlencoded { b = 1, a = "x y&=é", c = { "1", "2" }, d = true },
    "a=x%20y%26%3D%C3%A9&b=1&c=1&c=2&d=true")
  check.equal(form.encode_urlencoded {}, "")
  local body, kind = form.encode_multipart {
    { name = 'a"\r\n', value = "1" }, { name = "f", value = "\0\r\n--", filename = 'x".bin', type = "a/b" },
    { name = "g", value = 5, filename = "y" },
  }
  check.equal(fields_of(assert(form.parse(kind, body))),
    'a"\r\n=1|f=\0\r\n--(x".bin,a/b)|g=5(y,application/octet-stream)')
  check.equal(pcall(form.encode_multipart, { { name = "a", value = "1", type = "a\r\nb" } }), false)
end)

check.test("each name that is written in a multipart form is read again", function()
  for code = 0, 255 do
    local c = string.char(code)
    for _, name in ipairs { c, "a" .. c, c .. "a", c .. c, "\\" .. c, c .. '"', "a" .. c .. c .. c .. "b" } do
      local is_written, body, kind = pcall(form.encode_multipart, { { name = name, value = "1", filename = name } })
      local is_control = code < 32 and not c:find("[\t\r\n]") or code == 127
      check.equal(is_written, not is_control, name)
      if is_written then
        local field = assert(form.parse(kind, body)).fields[1]
        check.equal(field.name, name)
        check.equal(field.filename, name)
      else
        check.contains(body, "has a control character; use only tabs and line breaks")
      end
    end
  end
  check.contains(form.encode_multipart { { name = "a\\b", value = "1" } }, 'name="a\\b"')
end)

check.test("random bytes are a form or an error, never a crash", function()
  math.randomseed(11)
  local good = part(FIELD, "1") .. part('Content-Disposition: form-data; name="f"; filename="x"', "2") .. "--xx--"
  for _ = 1, 5000 do
    local place = math.random(#good)
    local text = good:sub(1, place - 1) .. string.char(math.random(0, 255)) .. good:sub(place + math.random(0, 2))
    local parsed, message, status = parse(text)
    assert(parsed or message and status, text)
  end
end)

check.test("cookies are read", function()
  for header, wanted in pairs {
    ["a=1"] = { a = "1" }, ["a=1; b=2"] = { a = "1", b = "2" }, ["a=1;b=2;;"] = { a = "1", b = "2" },
    ["a=1; a=2"] = { a = "1" }, ['a="q r"'] = { a = "q r" }, ["a=b=c"] = { a = "b=c" }, ["a="] = { a = "" },
    [" a = 1 "] = { a = "1" }, ["a"] = {}, ["=1"] = {}, [""] = {}, ["a=%20"] = { a = "%20" }, ['a="'] = { a = '"' },
  } do
    local got = cookie.parse(header)
    for name, value in pairs(wanted) do check.equal(got[name], value, header) end
    for name in pairs(got) do assert(wanted[name], header .. " gave " .. name) end
  end
  check.equal(next(cookie.parse(nil)), nil)
end)

check.test("cookies are written", function()
  check.equal(cookie.format("a", "1"), "a=1")
  check.equal(cookie.format("a", ""), "a=")
  check.equal(cookie.format("a", 1, {
    path = "/x", domain = "example.org", max_age = 60, expires = 784111777, secure = true, http_only = true,
    same_site = "none", partitioned = true,
  }), "a=1; Path=/x; Domain=example.org; Max-Age=60; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Secure; HttpOnly; "
    .. "SameSite=None; Partitioned")
  check.equal(cookie.format("__Host-a", "1", { secure = true, path = "/" }), "__Host-a=1; Path=/; Secure")
  for _, case in ipairs {
    { "", "1" }, { "a b", "1" }, { "a=", "1" }, { nil, "1" }, { "a", "x y" }, { "a", "x;y" }, { "a", 'x"' },
    { "a", "x,y" }, { "a", "x\\" }, { "a", "é" }, { "a", "x\r\nSet-Cookie: b=2" }, { "a", "\0" },
    { "a", "1", { path = "/;x" } }, { "a", "1", { path = "/\r\n" } }, { "a", "1", { domain = "" } },
    { "a", "1", { path = 1 } }, { "a", "1", { max_age = 1.5 } }, { "a", "1", { max_age = -1 } },
    { "a", "1", { max_age = "1" } }, { "a", "1", { expires = 0 / 0 } }, { "a", "1", { expires = math.huge } },
    { "a", "1", { same_site = "maybe" } }, { "a", "1", { same_site = "None" } }, { "a", "1", { partitioned = true } },
    { "a", "1", { httponly = true } }, { "__Host-a", "1", { secure = true } },
    { "__Host-a", "1", { secure = true, path = "/", domain = "x" } }, { "__Secure-a", "1" },
  } do
    local text, message = cookie.format(unpack(case, 1, 3))
    check.equal(text, nil, tostring(message))
    check.equal(type(message), "string")
  end
end)

check.test("requests and responses have forms and cookies", function()
  process.with_server({
    log = function() end,
    handler = http.routes {
      ["POST /form"] = function(request, response)
        local parsed, message, status = request:form { max_fields = 3 }
        if not parsed then return response:text(status, message) end
        response:cookie("first", "1")
        response:cookie("second", "2", { path = "/" })
        response:text(200, fields_of(parsed) .. " " .. tostring(request:cookie("b")))
      end,
      ["GET /bad"] = function(_, response) response:cookie("a", "x y") end,
    },
  }, function(port)
    local answer = client.ask(port, "POST", "/form", { ["Content-Type"] = URLENCODED, Cookie = "a=1; b=2" }, "x=1&y=2")
    check.equal(answer.body, "x=1|y=2 2")
    check.equal(answer.headers["set-cookie"], "second=2; Path=/", "the last of the two")
    local body, kind = form.encode_multipart { { name = "f", value = ("z"):rep(300000), filename = "big" } }
    answer = client.ask(port, "POST", "/form", { ["Content-Type"] = kind }, body)
    check.equal(#answer.body, #"f=(big,application/octet-stream) nil" + 300000)
    check.equal(client.ask(port, "POST", "/form", { ["Content-Type"] = URLENCODED }, "a&b&c&d").status, 413)
    check.equal(client.ask(port, "POST", "/form", { ["Content-Type"] = "text/plain" }, "a").status, 415)
    check.equal(client.ask(port, "POST", "/form", {}, "a").status, 415)
    check.equal(client.ask(port, "GET", "/bad").status, 500)
  end)
end)
