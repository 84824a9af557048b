--- Tests of the HTTP server with slow and silent clients, and with too many clients.

local check = require "tests.support.check"
local client = require "tests.support.client"
local http = require "framewire.http"
local process = require "tests.support.process"
local socket = require "framewire.socket"
local time = require "framewire.time"

-- The server of this process.
local running

local function handler(request, response)
  if request.path == "/count" then return response:text(200, tostring(running.count)) end
  if request.path == "/never" then return response:later() end
  if request.path == "/never-in-a-task" then return http.task(function(_, late) late:later() end)(request, response) end
  if request.path == "/big" then return response:text(200, ("x"):rep(33554432)) end
  response:text(200, "hello")
end

for _, name in ipairs { "epoll", "poll" } do
  -- Registers a test whose body gets the port of a server with these limits.
  local function test(what, limits, body)
    check.test(name .. ": " .. what, function()
      process.with_server({
        handler = handler,
        poller = name,
        limits = limits,
        grace = 1,
        log = function() end,
        on_start = function(_, server) running = server end,
      }, body)
    end)
  end

  test("a head that arrives too slowly gets a 408", { header_timeout = 0.3 }, function(port)
    -- Without the setting, the answer would take ten seconds each time. A busy machine delays only some answers.
    check.eventually(5, function()
      local slow = client.connect(port)
      local seconds = process.timed(function()
        slow:send("GET / HTTP/1.1\r\nHost: a\r\n")
        for _ = 1, 6 do
          time.sleep(0.1)
          slow:send("X: y\r\n")
        end
        check.equal(slow:receive().status, 408)
      end)
      check.equal(slow:is_closed(3), true)
      slow:close()
      return seconds < 1.5
    end, "the 408 came in time")
  end)

  test("two hundred slow clients do not delay another client", { header_timeout = 1 }, function(port)
    local slow = {}
    for i = 1, 200 do
      slow[i] = client.connect(port)
      slow[i]:send("GET / HTTP/1.1\r\nHost: a\r\nX: ")
    end
    check.equal(client.ask(port, "GET", "/").body, "hello")
    for i = 1, 200 do
      check.equal(slow[i]:receive().status, 408)
      slow[i]:close()
    end
    check.equal(client.ask(port, "GET", "/").body, "hello")
  end)

  test("a body that stops arriving gets a 408", { body_timeout = 0.3 }, function(port)
    for _, framing in ipairs { "Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n5\r\nab" } do
      local slow = client.connect(port)
      slow:send("POST / HTTP/1.1\r\nHost: a\r\n" .. framing)
      check.equal(slow:receive().status, 408)
      check.equal(slow:is_closed(3), true)
      slow:close()
    end
  end)

  test("an idle connection is closed without a response", { idle_timeout = 0.3, header_timeout = 0.3 }, function(port)
    local idle
    -- On a busy machine, the request can arrive after `header_timeout`.
    check.eventually(5, function()
      idle = client.connect(port)
      local answer = idle:ask("GET", "/")
      if answer then check.equal(answer.body, "hello") end
      return answer
    end, "the request is in time")
    local silent = client.connect(port)
    local closed, rest = idle:is_closed(2)
    check.equal(closed, true)
    check.equal(rest, "")
    closed, rest = silent:is_closed(2)
    check.equal(closed, true)
    check.equal(rest, "")
  end)

  test("a connection that is used stays open after the idle time-out", { idle_timeout = 1.5 }, function(port)
    -- If requests did not count, the fourth would always be too late. A busy machine delays only some requests.
    check.eventually(20, function()
      local connection = client.connect(port)
      local answer
      for _ = 1, 5 do
        answer = connection:ask("GET", "/")
        if not answer then break end
        check.equal(answer.body, "hello")
        time.sleep(0.5)
      end
      connection:close()
      return answer
    end, "a connection that was used stayed open")
  end)

  test("a client that does not read is disconnected", { write_timeout = 0.3 }, function(port)
    local connection = client.connect(port)
    connection:send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
    -- The only connection left is the one that asks.
    check.eventually(5, function() return client.ask(port, "GET", "/count").body == "1" end, "it is disconnected")
    check.equal(connection:receive(), nil, "the client gets only part of the answer")
    connection:close()
  end)

  test("a handler that never answers results in a 503", { handler_timeout = 0.3 }, function(port)
    local connection = client.connect(port)
    check.equal(connection:ask("GET", "/never").status, 503)
    connection:close()
    check.equal(client.ask(port, "GET", "/never-in-a-task").status, 503)
  end)

  test("a connection beyond the limit gets a 503", { max_connections = 3 }, function(port)
    local held = {}
    for i = 1, 3 do
      held[i] = client.connect(port)
      check.eventually(2, function()
        -- The connection with which `with_server` waited for the server may still count.
        local answer = held[i]:ask("GET", "/")
        if answer and answer.status == 200 then return true end
        held[i]:close()
        held[i] = client.connect(port)
        return false
      end, "connection " .. i .. " is served")
    end
    local extra = client.connect(port)
    check.equal(extra:receive().status, 503)
    check.equal(extra:is_closed(2), true)
    extra:close()
    held[1]:close()
    check.eventually(2, function()
      local another = client.connect(port)
      local answer = another:ask("GET", "/")
      another:close()
      return answer and answer.status == 200
    end, "there is room again")
  end)
end

check.test("unknown limits are refused, and the port stays free", function()
  local before = assert(socket.listen { port = 0 })
  local _, port = before:name()
  before:close()
  local ok, message = http.serve { port = port, handler = handler, limits = { max_boddy = 1 } }
  check.equal(ok, nil)
  check.contains(message, "max_boddy")
  assert(socket.listen { port = port }):close()
end)

check.test("wrong limits are refused, with one worker and with several", function()
  for _, workers in ipairs { 1, 2 } do
    for limits, part in pairs {
      [5] = "limits must be a table, not a number", [{ max_body = "1" }] = "the limit max_body is 1",
      [{ idle_timeout = -1 }] = "the limit idle_timeout is -1", [{ max_head = 0 / 0 }] = "the limit max_head is",
      [{ max_boddy = 1 }] = "unknown limit 'max_boddy'",
    } do
      local ok, message = http.serve { port = 0, workers = workers, handler = handler, limits = limits }
      check.equal(ok, nil, part)
      check.contains(message, part)
    end
  end
end)

check.test("an unknown poller is refused before workers start", function()
  local ok, message = http.serve { port = 0, workers = 2, handler = handler, poller = "magic" }
  check.equal(ok, nil)
  check.contains(message, "magic")
end)

check.test("if a worker gets no listener, the listeners of the others are closed", function()
  local listen, first = socket.listen, nil
  socket.listen = function(options)
    if first then return nil, "no descriptors are free" end
    first = assert(listen(options))
    return first
  end
  local called, ok, message = pcall(http.serve, { port = 0, workers = 2, handler = handler })
  socket.listen = listen
  assert(called, ok)
  check.equal(ok, nil)
  check.contains(message, "no descriptors are free")
  check.equal(first.fd, -1)
end)

-- Runs `body` as a task, with a server on the same loop. Passes the loop, the server, and a client that has sent a GET.
local function with_request(answer, limits, body)
  process.in_task(function(loop)
    local listener = assert(socket.listen())
    local server = assert(http.new(loop, listener, { handler = answer, limits = limits, log = function() end }))
    local connection = client.connect(select(2, listener:name()))
    connection:send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
    body(loop, server, connection)
    connection:close()
    listener:close()
  end)
end

check.test("a client that reads slowly, but all the time, gets the whole response", function()
  -- On a busy machine, the client can pause for longer than `write_timeout`.
  check.eventually(15, function()
    local got
    with_request(handler, { write_timeout = 0.5 }, function(loop, _, connection)
      got = process.read_slowly(loop, connection.socket, 1.5)
    end)
    return got > 33554432
  end, "a slow client got the whole response")
end)

check.test("a client that does not read is disconnected although the handler continues to write", function()
  local has_ended = false
  with_request(http.task(function(_, response)
    response:start(200, "text/event-stream")
    for _ = 1, 200 do response:write(("x"):rep(100000)) end
    while response:write("data: tick\n\n") do require("framewire.task").sleep(0.02) end
    has_ended = true
  end), { write_timeout = 0.3 }, function(loop, server)
    for _ = 1, 500 do
      if has_ended and server.count == 0 then break end
      loop:sleep(0.01)
    end
    check.equal(has_ended, true, "the handler has ended")
    check.equal(server.count, 0, "connections")
  end)
end)

check.test("the memory of a response in parts does not grow with the bytes that a slow client has received", function()
  local late
  with_request(function(_, response)
    assert(socket.wrap(response.connection.fd):set("send_buffer", 65536))
    late = response:later()
    late:start(200, "text/plain")
  end, {}, function(loop, _, connection)
    -- With a small buffer, the system does not accept all waiting bytes at once.
    assert(connection.socket:set("receive_buffer", 65536))
    while not late do loop:sleep(0.005) end
    local part, written, largest = ("x"):rep(262144), 0, 0
    while written < 33554432 do
      local unsent = assert(late:write(""))
      while unsent < 2097152 do
        unsent = assert(late:write(part))
        written = written + #part
      end
      largest = math.max(largest, late.connection.unsent.size)
      assert(connection.socket:read(1048576, 1))
    end
    assert(largest <= 8388608, ("the buffer had %d bytes"):format(largest))
  end)
end)

-- Like `with_request`, but the client also sends a part of a second request, and has read the first response when
-- `body` is called.
local function with_half_a_body(limits, body)
  with_request(function(request, response)
    -- With a small buffer, the system does not accept the whole response at once.
    assert(socket.wrap(response.connection.fd):set("send_buffer", 4096))
    response:text(200, request.method == "GET" and ("x"):rep(200000) or request.body)
  end, limits, function(loop, server, connection)
    connection:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
    check.equal(#connection:receive().body, 200000)
    body(loop, server, connection)
  end)
end

check.test("a body that stops arriving while the response before it is sent gets a 408", function()
  with_half_a_body({ body_timeout = 0.3 }, function(_, _, connection)
    check.equal(assert(connection:receive()).status, 408)
  end)
end)

check.test("a stopping server waits for a body that began to arrive while the response before it was sent", function()
  with_half_a_body({}, function(loop, server, connection)
    for _, one in pairs(server.connections) do
      while one.resuming do loop:sleep(0.005) end
    end
    server:stop(5, function() end)
    connection:send("67890")
    check.equal(assert(connection:receive()).body, "1234567890")
  end)
end)
