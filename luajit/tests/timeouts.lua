--- Tests of the HTTP server with slow and silent clients, and with too many clients.

local check = require "tests.support.check"
local client = require "tests.support.client"
local http = require "framewire.http"
local process = require "tests.support.process"
local time = require "framewire.time"

-- The server of this process.
local running

local function handler(request, response)
  if request.path == "/count" then return response:text(200, tostring(running.count)) end
  if request.path == "/never" then return response:later() end
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
  local socket = require "framewire.socket"
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
  local socket = require "framewire.socket"
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
