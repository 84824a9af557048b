--- Tests of the HTTP server with a real client: the format and the order of responses.

local ffi = require "ffi"
local sys = require "framewire.sys"
local check = require "tests.support.check"
local client = require "tests.support.client"
local http = require "framewire.http"
local loops = require "framewire.loop"
local process = require "tests.support.process"
local socket = require "framewire.socket"
local time = require "framewire.time"

local BIG = ("0123456789abcdef"):rep(65536 * 8) -- 8 MiB

local late, loop
local handler = http.routes {
  ["GET /"] = function(_, response) response:text(200, "hello") end,
  ["POST /echo"] = function(request, response)
    response:send(200, request.body, request.headers["content-type"])
  end,
  ["GET /echo"] = function(request, response) response:text(200, request:param("message") or "") end,
  ["GET /headers"] = function(request, response)
    response:header("X-Method", request.method)
    response:html(201, tostring(request.headers["x-test"]) .. tostring((request:peer())))
  end,
  ["GET /nothing"] = function(_, response) response:send(204, "ignored") end,
  ["GET /big"] = function(_, response) response:text(200, BIG) end,
  ["GET /stream"] = function(_, response)
    response:start(200, "text/plain")
    for i = 1, 3 do response:write("part " .. i .. "\n") end
    response:write("")
    response:finish()
  end,
  ["GET /fail"] = function() error("as asked") end,
  ["GET /fail-late"] = function(_, response)
    response:start(200, "text/plain")
    response:write("half")
    error("as asked")
  end,
  ["GET /silent"] = function() end,
  ["GET /twice"] = function(_, response)
    response:text(200, "first")
    local ok, message = response:text(200, "second")
    assert(ok == nil and message:find("already"))
  end,
  ["GET /later"] = function(request, response)
    local answer = response:later()
    loop:after(tonumber(request:param("after")), function() answer:text(200, "late " .. request.query) end)
  end,
  ["GET /later-now"] = function(_, response) response:later():text(200, "late but at once") end,
  ["GET /later-stream"] = function(_, response)
    local answer, count = response:later(), 0
    answer:start(200, "text/plain")
    local timer
    timer = loop:every(0.01, function()
      count = count + 1
      answer:write("part " .. count .. "\n")
      if count == 3 then
        timer:cancel()
        answer:finish()
      end
    end)
  end,
  ["GET /hold"] = function(_, response) late = response:later() end,
  ["GET /held"] = function(_, response) response:text(200, tostring(late ~= nil)) end,
  ["GET /release"] = function(_, response)
    -- Sends another connection's response while this handler is still running.
    late:text(200, "released")
    response:text(200, "done")
  end,
  ["GET /inject"] = function(_, response) response:header("X-Bad", "a\r\nX-Injected: b") end,
}

for _, name in ipairs { "epoll", "poll" } do
  local function with_server(body)
    process.with_server({
      handler = handler,
      poller = name,
      log = function() end,
      limits = { max_body = 2097152 },
      on_start = function(running) loop = running end,
    }, body)
  end

  -- Registers a test whose body gets the port of a running server.
  local function test(what, body)
    check.test(name .. ": " .. what, function() with_server(body) end)
  end

  test("responses have the headers that the RFC requires", function(port)
    local answer = client.ask(port, "GET", "/")
    check.equal(answer.status, 200)
    check.equal(answer.body, "hello")
    check.equal(answer.headers["content-type"], "text/plain; charset=utf-8")
    check.equal(answer.headers["connection"], nil)
    local sent = time.parse_http_date(answer.headers["date"])
    assert(math.abs(sent - time.wall()) <= 2, "Date: " .. answer.headers["date"])
    answer = client.ask(port, "GET", "/headers", { ["X-Test"] = "value" })
    check.equal(answer.status, 201)
    check.equal(answer.headers["x-method"], "GET")
    check.equal(answer.body, "value127.0.0.1")
    check.equal(client.ask(port, "GET", "/none").status, 404)
    answer = client.ask(port, "DELETE", "/echo")
    check.equal(answer.status, 405)
    check.equal(answer.headers["allow"], "GET, HEAD, POST")
  end)

  test("the date follows the clock", function(port)
    local connection = client.connect(port)
    -- On a busy machine, more time can pass.
    check.eventually(10, function()
      local first = connection:ask("GET", "/").headers["date"]
      time.sleep(1.1)
      local second = connection:ask("GET", "/").headers["date"]
      local passed = time.parse_http_date(second) - time.parse_http_date(first)
      assert(passed >= 1, first .. " and then " .. second)
      return passed == 1 or passed == 2
    end, "the date was one or two seconds later")
  end)

  test("a large response arrives before the connection closes", function(port)
    local connection = client.connect(port)
    connection:send("GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    time.sleep(0.3) -- so that the system's buffers are full
    local answer = assert(connection:receive())
    check.equal(#answer.body, #BIG)
    check.equal(connection:is_closed(), true)
  end)

  test("one connection serves many requests", function(port)
    local connection = client.connect(port)
    for i = 1, 200 do
      check.equal(connection:ask("GET", "/echo?message=" .. i).body, tostring(i))
      check.equal(connection:ask("POST", "/echo", nil, ("x"):rep(i * 37)).body, ("x"):rep(i * 37))
    end
    connection:close()
  end)

  test("HEAD has the headers of GET and no body", function(port)
    local connection = client.connect(port)
    for _, path in ipairs { "/", "/big", "/stream" } do
      local head = connection:ask("HEAD", path)
      check.equal(head.status, 200)
      if path == "/" then check.equal(head.headers["content-length"], "5") end
    end
    check.equal(connection:ask("GET", "/").body, "hello")
    local nothing = connection:ask("GET", "/nothing")
    check.equal(nothing.status, 204)
    check.equal(nothing.headers["content-length"], nil)
    check.equal(connection:ask("GET", "/").body, "hello")
  end)

  test("pipelined requests are answered in order, wherever they are cut", function(port)
    local requests = "GET /echo?message=1 HTTP/1.1\r\nHost: a\r\n\r\n"
      .. "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n2"
      .. "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n3\r\n0\r\n\r\n"
      .. "GET /later-now HTTP/1.1\r\nHost: a\r\n\r\n"
      .. "GET /later?after=0 HTTP/1.1\r\nHost: a\r\n\r\n"
      .. "GET /later-now HTTP/1.1\r\nHost: a\r\n\r\n"
      .. "GET /echo?message=6 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    local wanted = { "1", "2", "3", "late but at once", "late after=0", "late but at once", "6" }
    for cut = 1, #requests do
      local connection = client.connect(port)
      connection:send(requests:sub(1, cut))
      -- Every seventh time, wait long enough that the server receives the first part separately.
      if cut % 7 == 0 then time.sleep(0.002) end
      connection:send(requests:sub(cut + 1))
      for i, body in ipairs(wanted) do
        check.equal(assert(connection:receive()).body, body, ("answer %d, cut at byte %d"):format(i, cut))
      end
      check.equal(connection:is_closed(), true)
      connection:close()
    end
  end)

  test("requests that arrive byte by byte are answered", function(port)
    local connection = client.connect(port)
    local request = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    for _ = 1, 3 do
      for i = 1, #request do
        connection:send(request:sub(i, i))
        if i % 16 == 0 then time.sleep(0.0005) end
      end
      check.equal(connection:receive().body, "ab")
    end
  end)

  test("a thousand requests that are sent at once are all answered", function(port)
    local connection = client.connect(port)
    connection:send(("GET / HTTP/1.1\r\nHost: a\r\n\r\n"):rep(1000))
    for _ = 1, 1000 do check.equal(assert(connection:receive()).body, "hello") end
  end)

  test("responses of two thousand lengths are complete", function(port)
    local connection = client.connect(port)
    for length = 1, 2000 do
      local request = ("GET /echo?message=%s HTTP/1.1\r\nHost: a\r\n\r\n"):format(BIG:sub(1, length))
      connection:send(request:rep(2))
      for _ = 1, 2 do check.equal(#assert(connection:receive()).body, length) end
    end
  end)

  test("large bodies are received and sent completely", function(port)
    local connection = client.connect(port)
    local body = BIG:sub(1, 2097152)
    check.equal(connection:ask("POST", "/echo", nil, body).body == body, true, "2 MiB")
    connection:send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for i = 0, 19 do connection:send("186A0\r\n" .. body:sub(i * 100000 + 1, i * 100000 + 100000) .. "\r\n") end
    connection:send("0\r\n\r\n")
    check.equal(connection:receive().body == body:sub(1, 2000000), true, "20 chunks")
    check.equal(connection:ask("GET", "/big").body == BIG, true, "8 MiB")
  end)

  test("a slow reader gets everything, and requests after it wait", function(port)
    local connection = client.connect(port)
    connection.socket:set("receive_buffer", 65536)
    connection:send(("GET /big HTTP/1.1\r\nHost: a\r\n\r\n"):rep(2) .. "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    time.sleep(0.05)
    for _ = 1, 2 do check.equal(assert(connection:receive()).body == BIG, true) end
    check.equal(assert(connection:receive()).body, "hello")
    local later = "GET /later?after=0.01 HTTP/1.1\r\nHost: a\r\n\r\n"
    connection:send(("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n" .. later):rep(20))
    connection:send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n" .. later)
    time.sleep(0.3)
    for _ = 1, 20 do
      check.equal(assert(connection:receive()).body, "")
      check.equal(assert(connection:receive()).body, "late after=0.01")
    end
    check.equal(assert(connection:receive()).body == BIG, true)
    check.equal(assert(connection:receive()).body, "late after=0.01")
  end)

  test("a body that is too large is refused at once", function(port)
    local connection = client.connect(port)
    connection:send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2097153\r\nExpect: 100-continue\r\n\r\n")
    check.equal(connection:receive().status, 413)
    check.equal(connection:is_closed(), true)
    connection = client.connect(port)
    connection:send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n200001\r\n")
    check.equal(connection:receive().status, 413)
    connection:close()
  end)

  test("100 Continue is sent if the client waits for it", function(port)
    local head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    local connection = client.connect(port)
    for _ = 1, 2 do
      connection:send(head)
      check.equal(connection:receive().status, 100)
      connection:send("ab")
      check.equal(connection:receive().body, "ab")
    end
    connection:send(head .. "cd")
    check.equal(connection:receive().status, 200, "no 100 Continue if the body came with the head")
  end)

  test("responses of unknown length are complete", function(port)
    local connection = client.connect(port)
    check.equal(connection:ask("GET", "/stream").body, "part 1\npart 2\npart 3\n")
    check.equal(connection:ask("GET", "/later-stream").body, "part 1\npart 2\npart 3\n")
    check.equal(connection:ask("GET", "/").body, "hello")
    connection:send("GET /stream HTTP/1.0\r\n\r\n")
    local answer = connection:receive()
    check.equal(answer.headers["transfer-encoding"], nil)
    check.equal(answer.body, "part 1\npart 2\npart 3\n")
  end)

  test("a connection with HTTP/1.0 stays open only with keep-alive", function(port)
    local connection = client.connect(port)
    for _ = 1, 2 do
      connection:send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
      local answer = connection:receive()
      check.equal(answer.headers["connection"], "keep-alive")
      check.equal(answer.body, "hello")
    end
    connection:send("GET / HTTP/1.0\r\n\r\n")
    check.equal(connection:receive().headers["connection"], "close")
    check.equal(connection:is_closed(), true)
  end)

  test("a request whose handler fails gets a 500 and does not disturb other requests", function(port)
    for _, path in ipairs { "/fail", "/silent", "/inject" } do
      local answer = client.ask(port, "GET", path)
      check.equal(answer.status, 500, path)
      check.equal(answer.headers["x-injected"], nil)
    end
    check.equal(client.ask(port, "GET", "/twice").body, "first")
    local connection = client.connect(port)
    local answer = connection:ask("GET", "/fail-late")
    check.equal(answer, nil, "a cut answer")
    check.equal(client.ask(port, "GET", "/").body, "hello")
  end)

  test("a handler can send the response of another connection", function(port)
    local waiting, other = client.connect(port), client.connect(port)
    waiting:send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
    check.eventually(5, function() return client.ask(port, "GET", "/held").body == "true" end, "/hold has arrived")
    other:send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /release HTTP/1.1\r\nHost: a\r\n\r\n")
    check.equal(other:receive().body, "hello")
    check.equal(other:receive().body, "done")
    check.equal(waiting:receive().body, "released")
    check.equal(waiting:receive().body, "hello")
  end)

  test("a client that disconnects while it waits does not disturb other clients", function(port)
    for _ = 1, 20 do
      local connection = client.connect(port)
      connection:send("GET /later?after=0.02 HTTP/1.1\r\nHost: a\r\n\r\nGET /big HTTP/1.1\r\nHost: a\r\n\r\n")
      connection:close()
    end
    time.sleep(0.1)
    check.equal(client.ask(port, "GET", "/").body, "hello")
  end)

  test("a half-closed client still gets its answers", function(port)
    local connection = client.connect(port)
    connection:send("GET /later?after=0.02 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
    connection.socket:finish()
    check.equal(connection:receive().body, "late after=0.02")
    check.equal(connection:receive().body, "hello")
    check.equal(connection:is_closed(), true)
  end)

  check.test(name .. ": a stopping server completes the requests in progress", function()
    local connection
    with_server(function(port)
      connection = client.connect(port)
      check.equal(connection:ask("GET", "/").body, "hello")
      connection:send("GET /later?after=0.2 HTTP/1.1\r\nHost: a\r\n\r\n")
      -- The server answers this request only after it has read the request above, on the other connection.
      check.equal(client.ask(port, "GET", "/").body, "hello")
    end)
    -- The server has received the signal to stop and has ended by now; its response is on the way.
    local answer = connection:receive()
    check.equal(answer.body, "late after=0.2")
  end)
end

check.test("a handler that stops the server does not lose its own response", function()
  local listener = assert(socket.listen())
  local _, port = listener:name()
  process.run_with(function()
    local one = assert(loops.new())
    local server
    server = assert(http.new(one, listener, { handler = function(_, response)
      server:stop(2, function() one:stop() end)
      response:text(200, "bye")
    end }))
    assert(one:run())
  end, function()
    listener:close()
    local connection = client.connect(port)
    check.equal(connection:ask("POST", "/stop").body, "bye")
    check.equal(connection:is_closed(), true)
    connection:close()
  end, true) -- the server ends by itself
end)

check.test("a task that fails while it writes its response gets a 500 and does not disturb other responses", function()
  process.with_server({
    log = function() end,
    handler = http.task(function(request, response)
      if request.path == "/body" then return response:text(200, nil) end
      if request.path == "/status" then return response:text(nil, "x") end
      response:start(200, "text/plain")
      response:write(request.path == "/part" and {} or "one\n")
      require("framewire.task").sleep(0.3)
      response:write("two\n")
      response:finish()
    end),
  }, function(port)
    local other = client.connect(port)
    other:send("GET /good HTTP/1.1\r\nHost: a\r\n\r\n")
    for _ = 1, 2 do
      check.equal(client.ask(port, "GET", "/body").status, 500)
      check.equal(client.ask(port, "GET", "/status").status, 500)
    end
    check.equal(client.connect(port):ask("GET", "/part"), nil)
    check.equal(assert(other:receive()).body, "one\ntwo\n")
    check.equal(client.ask(port, "GET", "/good").body, "one\ntwo\n")
  end)
end)

check.test("a response in parts is complete if the connection closes after it", function()
  process.with_server({
    handler = http.task(function(_, response)
      response:start(200, "text/plain")
      response:write("one\n")
      require("framewire.task").sleep(0.1)
      response:write("two\n")
      response:finish()
    end),
  }, function(port)
    for _, first in ipairs { "GET / HTTP/1.1\r\nConnection: close\r\n", "GET / HTTP/1.0\r\n" } do
      local connection = client.connect(port)
      connection:send(first .. "Host: a\r\n\r\n")
      check.equal(assert(connection:receive()).body, "one\ntwo\n")
      check.equal(connection:is_closed(), true)
      connection:close()
    end
  end)
end)

check.test("a task learns that its client has gone, even if this happened before the task first waited", function()
  process.in_task(function(one)
    local response
    local port = process.serve_on(one, http.task(function(_, given)
      response = given
      response:start(200, "text/plain")
      while response:write("x") do one:sleep(0.01) end
    end))
    local connection = client.connect(port)
    connection:send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    connection:close()
    one:sleep(0.5)
    check.equal(response.closed, true)
    check.equal(select(2, response:write("x")), "the client has gone")
  end)
end)

check.test("a stopping server answers a request that waited for a late response", function()
  process.in_task(function(one)
    local port, server
    port, server = process.serve_on(one, function(request, response)
      if request.path == "/second" then return response:text(200, "second") end
      local answer = response:later()
      one:after(0.05, function()
        answer:text(200, "first")
        server:stop(2, function() end)
      end)
    end)
    local connection = client.connect(port)
    connection:send("GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n")
    check.equal(assert(connection:receive()).body, "first")
    check.equal(assert(connection:receive()).body, "second")
    check.equal(connection:is_closed(), true)
  end)
end)

check.test("a file with the status 204 or 304 has no body", function()
  process.with_server({
    handler = function(request, response)
      local folder = sys.open_folder("luajit")
      local file = sys.open_beneath(folder, "serve.lua")
      ffi.C.close(folder)
      response:file(tonumber(request.path:sub(2)), file, 0, 4, "text/plain")
    end,
  }, function(port)
    for _, status in ipairs { 204, 304 } do
      local connection = client.connect(port)
      local answer = connection:ask("GET", "/" .. status)
      check.equal(answer.status, status)
      check.equal(answer.headers["content-length"], nil)
      check.equal(#assert(connection:ask("GET", "/200")).body, 4, "the next response")
      connection:close()
    end
  end)
end)

check.test("a response in parts with the status 204 or 304 has no body", function()
  process.with_server({
    handler = function(request, response)
      response:start(tonumber(request.path:sub(2)), "text/plain")
      response:write("body")
      response:finish()
    end,
  }, function(port)
    for _, status in ipairs { 204, 304 } do
      for _, version in ipairs { "1.1", "1.0\r\nConnection: keep-alive" } do
        local connection = client.connect(port)
        connection:send(("GET /%d HTTP/%s\r\nHost: a\r\n\r\n"):format(status, version))
        local answer = assert(connection:receive())
        check.equal(answer.status, status)
        check.equal(answer.headers["transfer-encoding"], nil)
        check.equal(assert(connection:ask("GET", "/200")).body, "body", "the next response")
        connection:close()
      end
    end
  end)
end)

check.test("a content type can contain tabs, but no other control characters", function()
  process.with_server({
    log = function() end,
    handler = function(request, response)
      response:send(200, "hello", "text/plain;" .. request:param("gap") .. "charset=utf-8")
    end,
  }, function(port)
    local answer = client.ask(port, "GET", "/?gap=%09")
    check.equal(answer.status, 200)
    check.equal(answer.headers["content-type"], "text/plain;\tcharset=utf-8")
    for _, byte in ipairs { "00", "08", "0a", "0d", "1f", "7f" } do
      check.equal(client.ask(port, "GET", "/?gap=%" .. byte).status, 500, byte)
    end
  end)
end)
