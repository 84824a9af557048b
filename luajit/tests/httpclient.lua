--- Tests of the HTTP client, with the library's own server and with servers that send malformed answers.

local check = require "tests.support.check"
local http = require "framewire.http"
local loops = require "framewire.loop"
local process = require "tests.support.process"
local socket = require "framewire.socket"
local url = require "framewire.http.url"
local worker = require "framewire.worker"

-- The port of another server, to which "GET /away" redirects.
local other_port

local options = {
  log = function() end,
  handler = http.routes {
    ["GET /"] = function(request, response)
      response:cookie("a", "1")
      response:cookie("b", "2")
      response:text(200, "hello from " .. select(2, request:peer()))
    end,
    ["POST /echo"] = function(request, response)
      response:header("X-Type", request.headers["content-type"] or "none")
      response:header("X-Agent", request.headers["user-agent"])
      response:send(200, request.body)
    end,
    ["GET /auth"] = function(request, response)
      response:text(200, (request.headers.authorization or "none") .. " " .. request.headers.host)
    end,
    ["GET /big"] = function(_, response)
      response:start(200, "text/plain")
      for _ = 1, 50 do response:write(("0123456789"):rep(2000)) end
      response:finish()
    end,
    ["GET /none"] = function(_, response) response:send(204, "") end,
    ["GET /to/:where"] = function(_, response) response:redirect(302, "../" .. "auth") end,
    ["GET /away"] = function(_, response) response:redirect(307, ("http://localhost:%d/x"):format(other_port)) end,
    ["POST /see"] = function(_, response) response:redirect(303, "/method") end,
    ["POST /keep"] = function(_, response) response:redirect(308, "/echo") end,
    ["GET /method"] = function(request, response) response:text(200, request.method .. #request.body) end,
    ["GET /loop"] = function(_, response) response:redirect(301, "/loop") end,
    ["GET /slow"] = http.task(function(_, response)
      require("framewire.task").sleep(0.2)
      response:text(200, "slow")
    end),
    ["GET /json"] = function(_, response) response:json(200, { a = { 1, 2 } }) end,
  },
}

local function with_client(settings, body)
  process.with_server(options, function(port)
    local client = http.client(settings)
    body(client, ("http://127.0.0.1:%d"):format(port), port)
    client:close()
    check.contains(select(2, client:get("http://127.0.0.1/")), "closed")
  end)
end

check.test("several requests use one connection", function()
  with_client(nil, function(client, base)
    local first = assert(client:get(base .. "/"))
    check.equal(first.status, 200)
    check.equal(table.concat(first.cookies, "|"), "a=1|b=2")
    check.equal(first.url, base .. "/")
    for _ = 1, 20 do
      check.equal(assert(client:get(base)).body, first.body, "the same client port, so the same connection")
    end
    check.equal(assert(client:request { url = base .. "/", method = "HEAD" }).headers["content-length"],
      tostring(#first.body))
    check.equal(assert(client:get(base .. "/none")).status, 204)
    check.equal(assert(client:get(base .. "/missing#part")).status, 404)
    check.equal(assert(client:get(base .. "/json")):json().a[2], 2)
    check.equal(#assert(client:get(base .. "/big")).body, 1000000)
    local answer = assert(client:post(base .. "/echo", { body = ("\0\255"):rep(200000) }))
    check.equal(answer.body, ("\0\255"):rep(200000))
    check.equal(answer.headers["x-type"], "none")
    answer = assert(client:post(base .. "/echo", { json = { 1, "x" }, headers = { ["User-Agent"] = "test" } }))
    check.equal(answer.body .. answer.headers["x-type"] .. answer.headers["x-agent"], '[1,"x"]application/jsontest')
    answer = assert(client:post(base .. "/echo", { form = { a = "1 2" } }))
    check.equal(answer.body .. answer.headers["x-type"], "a=1%202application/x-www-form-urlencoded")
    check.equal(assert(client:post(base .. "/echo", {})).body, "")
    local parts, size = 0, 0
    answer = assert(client:get(base .. "/big", { on_data = function(data) parts, size = parts + 1, size + #data end }))
    assert(parts > 1 and size == 1000000 and answer.body == "", "the body in parts")
    check.equal(assert(client:get(base)).body, first.body, "still the same connection")
  end)
end)

check.test("redirects are followed up to a limit, and do not disclose secrets", function()
  local listener = assert(socket.listen())
  other_port = select(2, listener:name())
  with_client({ headers = { Authorization = "secret" } }, function(client, base, port)
    local host = "127.0.0.1:" .. port
    check.equal(assert(client:get(base .. "/to/x")).body, "secret " .. host)
    check.equal(assert(client:get(base .. "/to/x", { max_redirects = 0 })).status, 302)
    check.equal(assert(client:post(base .. "/see", { body = "x" })).body, "GET0")
    check.equal(assert(client:post(base .. "/keep", { body = "kept" })).body, "kept")
    local parts = {}
    assert(client:post(base .. "/see", { body = "x", on_data = function(data) parts[#parts + 1] = data end }))
    check.equal(table.concat(parts), "GET0", "on_data gets no part of the redirect itself")
    check.contains(select(2, client:get(base .. "/loop")), "more than 5 redirects")
    local seen
    local loop = assert(loops.new())
    loop:spawn(function()
      local one = assert(listener:accept(5))
      seen = assert(one:read(4096, 5))
      one:write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 5)
      one:close()
    end)
    loop:spawn(function()
      check.equal(assert(client:get(base .. "/away")).status, 200)
      loop:stop()
    end)
    assert(loop:run())
    listener:close()
    check.equal(seen:find("secret", 1, true), nil, "the header for another server")
    check.contains(seen, "Host: localhost:" .. other_port)
  end)
end)

check.test("time-outs, limits and invalid arguments end requests", function()
  with_client({ max_body = 5000 }, function(client, base)
    -- On a busy machine, the answer can come before the client notices its time-out.
    check.eventually(5, function()
      local message
      local seconds = process.timed(function() message = select(2, client:get(base .. "/slow", { timeout = 0.05 })) end)
      return seconds < 0.15 and tostring(message):find("timeout", 1, true)
    end, "a request ended at its time-out")
    check.contains(select(2, client:get(base .. "/big")), "more than 5000 bytes")
    check.contains(select(2, client:get(base, { on_data = function() return false end })), "stopped by on_data")
    for wrong, part in pairs {
      ["ftp://x/"] = "is not a URL", ["http://"] = "is not a URL", ["http://u:p@h/"] = "Authorization",
      ["http://h:99999/"] = "is not a URL", ["http://h/\r\nX: y"] = "is not a URL", ["http://a b/"] = "is not a URL",
      ["/path"] = "is not a URL", ["http://[::1/"] = "is not a URL",
      ["http://127.0.0.1:" .. process.free_port()] = "refused",
    } do check.contains(select(2, client:get(wrong)), part, wrong) end
    for wrong, part in pairs {
      [{ url = base, headers = { ["A\r\n"] = "b" } }] = "malformed",
      [{ url = base, headers = { A = "b\nc" } }] = "malformed",
      [{ url = base, headers = { ["Content-Length"] = 5 } }] = "Content-Length",
      [{ url = base, method = "get" }] = "capital",
      [{ url = base, body = 5 }] = "must be a string", [{ url = base, bdy = "x" }] = "no option 'bdy'",
      [{}] = "is not a URL",
      [{ url = base, json = print }] = "cannot encode", [{ url = 5 }] = "must be a string",
    } do check.contains(select(2, client:request(wrong)), part) end
    check.contains(select(2, client:request()), "a request is a URL")
    check.equal(pcall(http.client, { tiemout = 1 }), false)
    check.equal(pcall(http.client, { timeout = "x" }), false)
    for _, name in ipairs { "headers", "tls" } do
      check.contains(select(2, pcall(http.client, { [name] = "x" })), name .. " must be a table, not a string")
    end
  end)
end)

-- Sends a request to a server that answers with these bytes and closes the connection. Returns what the client returns.
local function answered_with(bytes, request)
  local listener = assert(socket.listen())
  local loop = assert(loops.new { log = function() end })
  local _, port = listener:name()
  loop:spawn(function()
    local one = assert(listener:accept(5))
    one:read(65536, 5)
    one:write(bytes, 5)
    one:close()
  end)
  local answer, message
  loop:spawn(function()
    local client = http.client { timeout = 2, max_body = 100000 }
    request = request or {}
    request.url = "http://127.0.0.1:" .. port .. "/"
    answer, message = client:request(request)
    client:close()
    loop:stop()
  end)
  assert(loop:run())
  listener:close()
  loop:close()
  return answer, message
end

check.test("answers in all formats are read", function()
  for bytes, wanted in pairs {
    ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"] = "abc", ["HTTP/1.0 200 OK\r\n\r\nabc"] = "abc",
    ["HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc"] = "abc",
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n"] = "abc",
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n02\r\nbc\r\n0\r\n\r\n"] = "abc",
    ["HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"] = "abc",
    ["HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"] = "",
    ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"] = "abc",
    ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef"] = "abc",
  } do
    local answer, message = answered_with(bytes)
    check.equal(answer and answer.body, wanted, bytes .. tostring(message))
  end
  check.equal(assert(answered_with("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", { method = "HEAD" })).body, "")
  local answer = assert(answered_with("HTTP/1.1 204 None\r\n\r\nHTTP/1.1 200 OK\r\n\r\nof no request"))
  check.equal(answer.keep, false, "a connection with bytes of no request is not used again")
end)

check.test("malformed answers are errors", function()
  for bytes, part in pairs {
    [""] = "closed before the answer", ["HTTP/1.1 200 OK\r\n"] = "closed", ["garbage\r\n\r\n"] = "does not begin with",
    ["HTTP/2 200\r\n\r\n"] = "does not begin with", ["HTTP/1.1 20 OK\r\n\r\n"] = "does not begin with",
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"] = "in the middle",
    ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"] = "two lengths",
    ["HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"] = "the length",
    ["HTTP/1.1 200 OK\r\nContent-Length: 0x3\r\n\r\nabc"] = "the length",
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc"] = "unknown transfer coding",
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"] = "chunk size",
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n"] = "chunk size",
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n"] = "longer than its size",
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"] = "closed",
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\nabc"] = "in the middle",
    ["HTTP/1.1 200 OK\r\nbad header\r\n\r\n"] = "malformed header",
    ["HTTP/1.1 200 OK\r\n folded: x\r\n\r\n"] = "malformed header",
    ["HTTP/1.1 200 OK\r\nA: " .. ("x"):rep(70000)] = "too long",
    ["HTTP/1.1 200 OK\r\n\r\n" .. ("x"):rep(100001)] = "more than 100000",
    ["HTTP/1.1 101 Switching\r\n\r\n"] = "another protocol", [("HTTP/1.1 100 Continue\r\n\r\n"):rep(9)] = "interim",
    ["HTTP/1.1 302 Found\r\nLocation: ftp://x/\r\n\r\n"] = "is not a URL",
  } do
    local answer, message = answered_with(bytes)
    check.equal(answer, nil, bytes:sub(1, 80))
    check.contains(message, part, bytes:sub(1, 80))
  end
end)

check.test("a kept connection that the server has closed is replaced", function()
  local listener = assert(socket.listen())
  local _, port = listener:name()
  local loop = assert(loops.new { log = function(line) error(line) end })
  local accepted = 0
  local reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
  loop:spawn(function()
    -- The server answers once per connection and closes it. Before it closes the second, it reads another request.
    for round = 1, 4 do
      local one = assert(listener:accept(5))
      accepted = accepted + 1
      assert(one:read(65536, 5))
      assert(one:write(reply, 5))
      if round == 2 then assert(one:read(65536, 5)) end
      one:close()
    end
  end)
  loop:spawn(function()
    local client = http.client { timeout = 2 }
    local base = "http://127.0.0.1:" .. port
    check.equal(assert(client:get(base)).body, "ok")
    loop:sleep(0.02)
    check.equal(assert(client:get(base)).body, "ok")
    check.equal(accepted, 2, "the client noticed the closed connection before it sent the request")
    check.equal(assert(client:get(base)).body, "ok")
    check.equal(accepted, 3, "the request was repeated")
    loop:sleep(0.02)
    check.equal(assert(client:post(base, { body = "x" })).body, "ok")
    client:close()
    loop:stop()
  end)
  assert(loop:run())
  listener:close()
end)

check.test("kept connections to other servers are closed after idle_timeout", function()
  with_client({ idle_timeout = 0.05 }, function(client, base, port)
    assert(client:get(base))
    local kept = next(client.idle)
    local link = client.idle[kept][1]
    require("framewire.time").sleep(0.1)
    assert(client:get("http://localhost:" .. port))
    check.equal(client.idle[kept], nil)
    check.equal(link.socket.fd, -1)
  end)
end)

check.test("a worker does not use the connections that its parent's client keeps", function()
  with_client(nil, function(client, base)
    local mine = assert(client:get(base)).body
    local child = assert(worker.start(function()
      local other = assert(client:get(base)).body
      assert(other ~= mine, "the same client port, so the same connection")
      check.equal(assert(client:get(base)).body, other, "the worker keeps its own connection")
      client:close()
    end))
    check.equal(child:wait(5), 0)
    check.equal(assert(client:get(base)).body, mine, "still the same connection")
  end)
end)

check.test("tasks share a client", function()
  with_client(nil, function(client, base)
    -- If the requests ran one after the other, they would always take longer. A busy machine delays them only
    -- sometimes.
    check.eventually(10, function()
      local loop = assert(loops.new { log = function(line) error(line) end })
      local all = {}
      local seconds = process.timed(function()
        for i = 1, 20 do all[i] = loop:spawn(function() return assert(client:get(base .. "/slow")).body end) end
        loop:spawn(function()
          for i = 1, 20 do check.equal(select(2, all[i]:join()), "slow") end
          loop:stop()
        end)
        assert(loop:run())
      end)
      return seconds < 2
    end, "the requests ran at the same time")
    local kept = 0
    for _, list in pairs(client.idle) do kept = kept + #list end
    check.equal(kept, 8, "kept connections: the default of max_idle")
  end)
end)

check.test("cancelled connections and requests close their descriptors", function()
  process.in_task(function(loop)
    local listener = assert(socket.listen()) -- it never answers
    local port = select(2, listener:name())
    local client = http.client()
    local before = process.descriptors()
    local waiting = { -- a connection that is not accepted
      fd = -1, addresses = {}, wait = function() loop:sleep(5) end, close = function(self) self.fd = "closed" end,
    }
    local start_connect = socket.start_connect
    for what, start in pairs {
      request = function() client:get("http://127.0.0.1:" .. port) end,
      websocket = function() require("framewire.websocket").connect("ws://127.0.0.1:" .. port) end,
      tls = function() require("framewire.tls").connect("127.0.0.1", port) end,
      connect = function()
        socket.start_connect = function() return waiting end
        socket.connect("127.0.0.1", port)
      end,
    } do
      local task = loop:spawn(start)
      socket.start_connect = start_connect
      loop:sleep(0.05)
      task:cancel()
      check.equal(task:join(), false, what)
      check.equal(process.descriptors(), before, what)
    end
    check.equal(waiting.fd, "closed")
    local server = process.serve_on(loop, function(_, response) response:text(200, "hello") end)
    before = process.descriptors()
    local failing = { on_data = function() error("as asked", 0) end }
    check.equal(select(2, pcall(client.get, client, "http://127.0.0.1:" .. server, failing)), "as asked")
    loop:sleep(0.05)
    check.equal(process.descriptors(), before)
    listener:close()
  end)
end)

check.test("a reply that keeps coming ends after the time-out, and does not hold up the loop", function()
  local listener = assert(socket.listen())
  local child = assert(require("framewire.worker").start(function()
    local one = assert(listener:accept(5))
    one:read(1000, 5)
    one:write("HTTP/1.1 200 OK\r\nContent-Length: 100000000000000\r\n\r\n", 1)
    while one:write(("x"):rep(262144), 5) do end
  end))
  process.in_task(function(loop)
    local time = require "framewire.time"
    local began, ticks, has_begun = time.monotonic(), 0, false
    loop:every(0.01, function() if has_begun then ticks = ticks + 1 end end)
    local _, message = http.client():get("http://127.0.0.1:" .. select(2, listener:name()), {
      timeout = 1, max_body = 1e15,
      on_data = function()
        has_begun = true
        time.sleep(0.005) -- slower than the server
        return time.monotonic() < began + 5
      end,
    })
    check.contains(message, "timeout")
    assert(ticks > 0, "ticks: " .. ticks)
  end)
  listener:close()
  child:signal("KILL")
  child:wait()
end)

check.test("URLs are split and resolved", function()
  local place = assert(url.parse("HTTP://[::1]:81?x=1#y", "http"))
  check.equal(place.host .. place.port .. place.target .. place.authority, "::181/?x=1[::1]:81")
  check.equal(assert(url.parse("https://example.org", "http", "https")).port, 443)
  local base = assert(url.parse("http://h:1/a/b?c", "http"))
  for reference, wanted in pairs {
    ["/x"] = "/x", ["x"] = "/a/x", ["../x"] = "/x", ["../../x/"] = "/x/", ["./"] = "/a/", ["?q"] = "/a/b?q",
    ["x?../y"] = "/a/x?../y", [""] = "/a/b?c", ["#y"] = "/a/b?c#y", ["c//d"] = "/a/c//d", [".."] = "/", ["../.."] = "/",
  } do check.equal(url.resolve(base, reference), "http://h:1" .. wanted, reference) end
  check.equal(url.resolve(base, "//o/p"), "http://o/p")
  check.equal(url.resolve(base, "https://o/p"), "https://o/p")
end)

check.test("the examples of RFC 3986 for references are resolved", function()
  local base = assert(url.parse("http://a/b/c/d;p?q", "http"))
  for reference, wanted in pairs {
    ["g:h"] = "g:h", ["g"] = "http://a/b/c/g", ["./g"] = "http://a/b/c/g", ["g/"] = "http://a/b/c/g/",
    ["/g"] = "http://a/g", ["//g"] = "http://g", ["?y"] = "http://a/b/c/d;p?y", ["g?y"] = "http://a/b/c/g?y",
    ["#s"] = "http://a/b/c/d;p?q#s", ["g#s"] = "http://a/b/c/g#s", ["g?y#s"] = "http://a/b/c/g?y#s",
    [";x"] = "http://a/b/c/;x", ["g;x"] = "http://a/b/c/g;x", ["g;x?y#s"] = "http://a/b/c/g;x?y#s",
    [""] = "http://a/b/c/d;p?q", ["."] = "http://a/b/c/", ["./"] = "http://a/b/c/", [".."] = "http://a/b/",
    ["../"] = "http://a/b/", ["../g"] = "http://a/b/g", ["../.."] = "http://a/", ["../../"] = "http://a/",
    ["../../g"] = "http://a/g", ["../../../g"] = "http://a/g", ["../../../../g"] = "http://a/g",
    ["/./g"] = "http://a/g", ["/../g"] = "http://a/g", ["g."] = "http://a/b/c/g.", [".g"] = "http://a/b/c/.g",
    ["g.."] = "http://a/b/c/g..", ["..g"] = "http://a/b/c/..g", ["./../g"] = "http://a/b/g",
    ["./g/."] = "http://a/b/c/g/", ["g/./h"] = "http://a/b/c/g/h", ["g/../h"] = "http://a/b/c/h",
    ["g;x=1/./y"] = "http://a/b/c/g;x=1/y", ["g;x=1/../y"] = "http://a/b/c/y", ["g?y/./x"] = "http://a/b/c/g?y/./x",
    ["g?y/../x"] = "http://a/b/c/g?y/../x", ["g#s/./x"] = "http://a/b/c/g#s/./x",
    ["g#s/../x"] = "http://a/b/c/g#s/../x", ["http:g"] = "http:g",
    -- Of section 5.2.4, and the same rule for references with a host.
    ["/a/b/c/./../../g"] = "http://a/a/g", ["mid/content=5/../6"] = "http://a/b/c/mid/6",
    ["//o/x/../y"] = "http://o/y", ["https://o/x/./y/.."] = "https://o/x/", ["//o?a/../b"] = "http://o?a/../b",
  } do check.equal(url.resolve(base, reference), wanted, reference) end
end)
