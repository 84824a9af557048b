--- Tests of TCP sockets.

local check = require "tests.support.check"
local poller = require "framewire.poller"
local process = require "tests.support.process"
local socket = require "framewire.socket"

local function exchange(host)
  local listener = assert(socket.listen { host = host, port = 0 })
  local address, port = listener:name()
  process.run_with(function()
    assert(listener:wait(poller.READ, 5))
    local client = assert(listener:accept())
    assert(client:peer() == address)
    while true do
      local data = client:read(65536, 5)
      if not data then break end
      assert(client:write(data, 5))
    end
  end, function()
    local client = assert(socket.connect(host, port, 2))
    local sent = ("0123456789"):rep(100)
    assert(client:write(sent, 2))
    local got = ""
    while #got < #sent do got = got .. assert(client:read(100, 2)) end
    check.equal(got, sent)
    client:close()
  end, true) -- the server ends by itself
end

check.test("IPv4 carries bytes both ways", function() exchange("127.0.0.1") end)
check.test("IPv6 carries bytes both ways", function() exchange("::1") end)
check.test("names are resolved", function() exchange("localhost") end)

check.test("failures say what failed", function()
  local _, message = socket.connect("127.0.0.1", process.free_port(), 1)
  check.contains(message, "refused")
  _, message = socket.connect("no-such-host.invalid", 80, 1)
  check.contains(message, "cannot find 'no-such-host.invalid'")
  local listener = assert(socket.listen { port = 0 })
  _, message = socket.listen { port = select(2, listener:name()) }
  check.contains(message, "in use")
  _, message = listener:accept()
  check.equal(message, "again")
  _, message = listener:set("no_such_option", 1)
  check.contains(message, "no_such_option")
  check.equal(listener:set("keepalive", true), true)
  listener:close()
  listener:close()
end)

check.test("a wait ends after its time-out", function()
  local listener = assert(socket.listen { port = 0 })
  -- On a busy machine, the wait can take longer.
  check.eventually(5, function()
    local seconds = process.timed(function()
      local _, message = listener:wait(poller.READ, 0.05)
      check.equal(message, "timeout")
    end)
    assert(seconds >= 0.05, "seconds of the wait: " .. seconds)
    return seconds < 1
  end, "the wait ended in time")
  listener:close()
end)

check.test("accept continues to wait if another process has accepted the connection", function()
  local sys = require "framewire.sys"
  local listener = assert(socket.listen())
  local accept, calls = sys.accept, 0
  -- The second call is the one after the wait.
  function sys.accept(fd)
    calls = calls + 1
    if calls ~= 2 then return accept(fd) end
    require("ffi").errno(sys.EAGAIN)
    return -1
  end
  local child = assert(require("framewire.worker").start(function()
    require("framewire.time").sleep(0.1)
    assert(socket.connect("127.0.0.1", select(2, listener:name()), 5))
    require("framewire.time").sleep(60)
  end))
  local ok, server, message = pcall(listener.accept, listener, 5)
  sys.accept = accept
  child:signal("KILL")
  child:wait()
  assert(ok, server)
  assert(server, message):close()
  listener:close()
end)

check.test("several listeners can share a port", function()
  local first = assert(socket.listen { port = 0, reuse_port = true })
  local _, port = first:name()
  local second = assert(socket.listen { port = port, reuse_port = true })
  first:close()
  second:close()
end)

-- Listens on another address of this machine, with a full queue, so new connections get no answer. Returns a function
-- that ends this.
local function silent_listener(port)
  local listener = assert(socket.listen { host = "127.0.0.2", port = port, backlog = 1 })
  -- On a busy machine, a connection can take long although the queue has room. So three in a row must get no answer.
  local waiting, unanswered = {}, 0
  repeat
    local one = assert(socket.start_connect("127.0.0.2", port))
    waiting[#waiting + 1] = one
    unanswered = one:wait(poller.WRITE, 0.05) and 0 or unanswered + 1
    assert(#waiting < 100, "the queue of the listener does not become full")
  until unanswered == 3
  return function()
    for _, one in ipairs(waiting) do one:close() end
    listener:close()
  end
end

check.test("if an address does not answer, the next one is tried", function()
  local listener = assert(socket.listen { port = 0 })
  local _, port = listener:name()
  local close = silent_listener(port)
  -- On a busy machine, connecting can take longer than the test allows, or even time out.
  check.eventually(5, function()
    local client, problem
    local seconds = process.timed(function()
      client, problem = socket.connect({ "127.0.0.2", "127.0.0.1" }, port, 1)
      if client then
        check.equal(client:peer(), "127.0.0.1")
        client:close()
      else
        check.contains(problem, "timeout")
      end
    end)
    assert(seconds >= 0.4, "the first address should get half of the time: " .. seconds)
    return client and seconds < 0.9
  end, "the first address got half of the time")
  local _, message = socket.connect({ "127.0.0.2", "127.0.0.2" }, port, 0.2)
  check.contains(message, "cannot connect to 127.0.0.2, 127.0.0.2")
  check.contains(message, "timeout")
  close()
  listener:close()
end)

check.test("try_next continues with the next address", function()
  local listener = assert(socket.listen { port = 0 })
  local _, port = listener:name()
  local close = silent_listener(port)
  local client = assert(socket.start_connect({ "127.0.0.2", "no-such-host.invalid", "127.0.0.1" }, port))
  check.equal(client:wait(poller.WRITE, 0.05), nil)
  assert(client:try_next())
  assert(client:wait(poller.WRITE, 1))
  assert(client:connected())
  check.equal(client:peer(), "127.0.0.1")
  check.equal(select(2, client:try_next()), "no address is left")
  check.contains(select(2, listener:try_next()), "start_connect")
  close()
end)

check.test("ports are checked, because the system would use another number without an error", function()
  for _, port in ipairs { -1, 65536, 99999, 1.5, 0 / 0 } do
    check.contains(select(2, socket.connect("127.0.0.1", port)), "is not a port")
    check.contains(select(2, socket.listen { port = port }), "is not a port")
  end
end)
