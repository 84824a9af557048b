--- Tests of the HTTP server: many connections, two workers, and memory use.

local check = require "tests.support.check"
local client = require "tests.support.client"
local http = require "framewire.http"
local process = require "tests.support.process"
local socket = require "framewire.socket"

local function hello(_, response) response:text(200, "hello") end

-- The resident memory of a process in KiB.
local function memory_of(pid)
  local file = io.open("/proc/" .. pid .. "/statm")
  if not file then return nil end
  local _, resident = file:read("*n", "*n")
  file:close()
  return resident * 4
end

for _, name in ipairs { "epoll", "poll" } do
  check.test(name .. ": a thousand idle connections do not slow down another one, and can be used again", function()
    process.with_server({ handler = hello, poller = name }, function(port)
      local idle = {}
      for i = 1, 1000 do
        idle[i] = client.connect(port)
        check.equal(idle[i]:ask("GET", "/").body, "hello")
      end
      local other = client.connect(port)
      -- If idle connections slowed down the other one, every round would be slow. A busy machine slows down only some
      -- rounds.
      check.eventually(30, function()
        return process.timed(function()
          for _ = 1, 1000 do check.equal(other:ask("GET", "/").body, "hello") end
        end) < 3
      end, "1,000 requests took less than 3 s")
      for i = 1, 1000 do
        check.equal(idle[i]:ask("GET", "/").body, "hello")
        idle[i]:close()
      end
      other:close()
    end)
  end)
end

check.test("a thousand connections at the same time are all served", function()
  process.with_server({ handler = hello }, function(port)
    local all = {}
    for i = 1, 1000 do all[i] = client.connect(port) end
    for i = 1, 1000 do all[i]:send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") end
    for i = 1, 1000 do
      check.equal(assert(all[i]:receive()).body, "hello")
      all[i]:close()
    end
  end)
end)

check.test("two workers share the port and both serve", function()
  local ffi = require "ffi"
  process.with_server({
    workers = 2,
    handler = function(_, response) response:text(200, tostring(ffi.C.getpid())) end,
  }, function(port)
    local seen, count = {}, 0
    check.eventually(5, function()
      local pid = client.ask(port, "GET", "/").body
      if not seen[pid] then
        seen[pid] = true
        count = count + 1
      end
      return count == 2
    end, "both workers have answered")
    -- A worker that is killed is started again, and the port stays open.
    for pid in pairs(seen) do require("framewire.signal").send(tonumber(pid), "KILL") end
    check.eventually(5, function()
      local connection = client.connect(port)
      local answer = connection:ask("GET", "/")
      connection:close()
      return answer and not seen[answer.body]
    end, "a new worker answers")
  end)
end)

check.test("two workers that stop refuse new clients while they complete a request", function()
  -- [0] is 1 when a worker has received the request, and [1] when it may answer.
  local words = process.shared_words()
  local port, loop = process.free_port(), nil
  process.run_with(function()
    assert(http.serve {
      port = port,
      workers = 2,
      grace = 4,
      on_start = function(running) loop = running end,
      handler = function(_, response)
        local answer = response:later()
        words[0] = 1
        loop:every(0.01, function()
          if words[1] == 1 and not answer.done then answer:text(200, "complete") end
        end)
      end,
    })
  end, function(server)
    process.wait_for_port(port)
    local connection = client.connect(port)
    connection:send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    check.eventually(5, function() return words[0] == 1 end, "a worker has received the request")
    server:signal("TERM")
    check.eventually(2, function()
      local other = socket.connect("127.0.0.1", port, 1)
      if other then other:close() end
      return not other
    end, "new clients are refused")
    words[1] = 1
    check.equal(assert(connection:receive()).body, "complete")
    connection:close()
  end, true)
end)

check.test("memory does not grow with the number of requests", function()
  process.with_server({
    handler = function(request, response)
      if request.path ~= "/settled" then return response:text(200, request.path) end
      -- Collect garbage first, because garbage is not a leak.
      collectgarbage()
      collectgarbage()
      response:text(200, tostring(require("ffi").C.getpid()))
    end,
  }, function(port)
    local connection = client.connect(port)
    local function settled() return memory_of(tonumber(connection:ask("GET", "/settled").body)) end
    local function load(rounds)
      for round = 1, rounds do
        local requests = {}
        for i = 1, 50 do requests[i] = ("GET /%d/%d HTTP/1.1\r\nHost: a\r\n\r\n"):format(round, i) end
        connection:send(table.concat(requests))
        for _ = 1, 50 do assert(connection:receive()) end
      end
    end
    load(800)
    -- Repeat the measurement if memory has grown: the allocator may take a large piece of memory once, but with a leak,
    -- memory grows every time.
    local sizes = { settled() }
    repeat
      load(800)
      sizes[#sizes + 1] = settled()
      local grown = sizes[#sizes] - sizes[#sizes - 1]
    until grown < 1024 or #sizes == 5
    assert(sizes[#sizes] - sizes[#sizes - 1] < 1024, "grew to " .. table.concat(sizes, ", ") .. " KiB")
    connection:close()
  end)
end)
