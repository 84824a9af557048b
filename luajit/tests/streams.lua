--- Tests of buffered streams and of tasks.

local check = require "tests.support.check"
local client = require "tests.support.client"
local http = require "framewire.http"
local loops = require "framewire.loop"
local poller = require "framewire.poller"
local process = require "tests.support.process"
local resolve = require "framewire.resolve"
local socket = require "framewire.socket"
local streams = require "framewire.stream"
local tasks = require "framewire.task"
local time = require "framewire.time"

local function new_loop(name)
  local lines = {}
  local loop = assert(loops.new { poller = name, log = function(line) lines[#lines + 1] = line end })
  loop:after(20, function() error("the test takes too long; " .. table.concat(lines, "\n")) end)
  return loop, lines
end

local pair = process.pair

for _, name in ipairs { "epoll", "poll" } do
  check.test(name .. ": an echo server sends everything back with little memory", function()
    local loop = new_loop(name)
    local listener = assert(socket.listen { port = 0 })
    local _, port = listener:name()
    local most = 0
    local server = assert(streams.serve(loop, listener, {
      high_water = 100000, low_water = 10000,
      on_data = function(stream, data)
        if stream:write(data) == false then stream:pause() end
        most = math.max(most, stream:pending())
      end,
      on_drain = function(stream) stream:resume() end,
    }))
    local total, sent, got, ended = 20000000, 0, 0, false
    local part = ("0123456789abcdef"):rep(4096)
    local side = assert(streams.new(loop, assert(socket.connect("127.0.0.1", port, 1)), {
      on_data = function(_, data) got = got + #data end,
      on_end = function(stream)
        ended = true
        stream:close()
        loop:stop()
      end,
    }))
    local function send()
      while sent < total do
        sent = sent + #part
        if not side:write(part) then return end
      end
      side:finish()
    end
    side.on_drain = send
    send()
    assert(loop:run())
    check.equal(got, sent)
    check.equal(ended, true)
    assert(most < 300000, "unsent: " .. most)
    server.stop()
    loop:close()
  end)

  check.test(name .. ": a reader that stalls is disconnected, and does not delay others", function()
    -- On a busy machine, some ticks are late.
    check.eventually(10, function()
      local loop = new_loop(name)
      local one, other = pair()
      other:set("receive_buffer", 4096)
      local reason, is_full
      local stream = assert(streams.new(loop, one, {
        stall_timeout = 0.2,
        on_close = function(_, why)
          reason = why
          loop:stop()
        end,
      }))
      for _ = 1, 100 do is_full = stream:write(("x"):rep(100000)) == false or is_full end
      check.equal(is_full, true)
      local ticks = 0
      loop:every(0.01, function() ticks = ticks + 1 end)
      assert(loop:run())
      check.equal(reason, "stalled")
      check.equal(select(2, stream:write("x")), "closed")
      other:close()
      loop:close()
      return ticks >= 3
    end, "there were three ticks until the reader was disconnected")
  end)

  check.test(name .. ": a slow reader is not disconnected", function()
    -- The reader needs a second in total. On a busy machine, it can pause for longer than `stall_timeout`.
    check.eventually(15, function()
      local loop = new_loop(name)
      local one, other = pair()
      one:set("send_buffer", 65536)
      other:set("receive_buffer", 65536)
      local reason = "none"
      local stream = assert(streams.new(loop, one, {
        stall_timeout = 0.5,
        on_close = function(_, why)
          reason = why
          loop:stop()
        end,
      }))
      local wanted, got = 2000000, 0
      stream:write(("x"):rep(wanted))
      stream:finish()
      local timer
      timer = loop:every(0.01, function()
        local data, message = other:receive(20000)
        if data then
          got = got + #data
        elseif message == "closed" then
          timer:cancel()
          other:close()
        end
      end)
      assert(loop:run())
      loop:close()
      if reason == "stalled" then
        other:close()
        return false
      end
      check.equal(reason, nil)
      check.equal(got, wanted)
      return true
    end, "a slow reader stayed connected")
  end)
end

check.test("a slow reader is not disconnected, even if the system's buffer is large", function()
  -- On a busy machine, the reader can pause for longer than `stall_timeout`.
  check.eventually(15, function()
    local wanted, got, reason = 8000000, 0, nil
    process.in_task(function(loop)
      local one, other = process.pair()
      local stream = assert(streams.new(loop, one, {
        stall_timeout = 0.5,
        on_close = function(_, why) reason = why end,
      }))
      stream:write(("x"):rep(wanted))
      stream:finish()
      got = process.read_slowly(loop, other, 1.5)
      other:close()
    end)
    return got == wanted and not reason
  end, "a slow reader got everything")
end)

check.test("the stream of a writer that ignores the limit is closed", function()
  local loop = new_loop()
  local one, other = pair()
  local reason
  local stream = assert(streams.new(loop, one, { max_unsent = 1000000, on_close = function(_, why) reason = why end }))
  local ok, message
  for _ = 1, 1000 do
    ok, message = stream:write(("x"):rep(100000))
    if ok == nil then break end
  end
  check.equal(message, "too much unsent")
  check.equal(reason, "too much unsent")
  check.equal(select(2, stream:write("x")), "closed")
  stream:close()
  stream:finish()
  stream:pause()
  stream:resume()
  other:close()
  loop:close()
end)

check.test("each side can finish first, and a stream whose connection breaks is closed with a reason", function()
  local loop = new_loop()
  local one, other = pair()
  local log = {}
  local function note(text) return function(_, value) log[#log + 1] = text .. ":" .. tostring(value) end end
  local closed = 0
  local function note_close(text)
    local add = note(text)
    return function(...)
      add(...)
      closed = closed + 1
      -- Nothing may happen after both streams have closed.
      if closed == 2 then loop:after(0.1, function() loop:stop() end) end
    end
  end
  local first = assert(streams.new(loop, one, { on_data = note "first", on_close = note_close "first closed" }))
  local second
  second = assert(streams.new(loop, other, {
    on_data = note "second",
    on_end = function()
      second:write("late")
      second:finish()
    end,
    on_close = note_close "second closed",
  }))
  first:write("hello")
  first:finish()
  check.equal(select(2, first:write("more")), "finished")
  local limit = loop:after(5, function() loop:stop() end)
  assert(loop:run())
  limit:cancel()
  table.sort(log)
  check.equal(table.concat(log, " "), "first closed:nil first:late second closed:nil second:hello")

  one, other = pair()
  local reason
  first = assert(streams.new(loop, one, {
    on_close = function(_, why)
      reason = why or "none"
      loop:stop()
    end,
  }))
  assert(other:write("unread", 1))
  first:pause()
  assert(first:write("x"))
  other:close() -- it has unread bytes, so the system resets the connection
  loop:after(0.05, function() first:write("y") end)
  assert(loop:run())
  assert(reason ~= "none", "the reason is missing")
  loop:close()
end)

check.test("a paused stream keeps what the other side sent before it closed", function()
  local loop = new_loop()
  local one, other = pair()
  local got, rounds = "", 0
  local stream = assert(streams.new(loop, one, { on_data = function(_, data) got = got .. data end }))
  stream.on_close = function() loop:stop() end
  stream:pause()
  stream:finish()
  assert(other:write("kept", 1))
  other:close()
  local wait = loop.poller.wait
  loop.poller.wait = function(...)
    rounds = rounds + 1
    return wait(...)
  end
  loop:after(0.1, function() stream:resume() end)
  assert(loop:run())
  check.equal(got, "kept")
  assert(rounds < 20, "the loop does not sleep: " .. rounds .. " rounds")
  loop:close()
end)

check.test("streams refuse unknown options and wrong values", function()
  local loop = new_loop()
  local one, other = pair()
  for option, part in pairs {
    [{ on_dat = print }] = "no option 'on_dat'", [{ on_data = 1 }] = "must be a function",
    [{ high_water = "x" }] = "high_water is x", [{ low_water = -1 }] = "low_water is -1",
    [{ max_unsent = 0 / 0 }] = "max_unsent is", [{ stall_timeout = true }] = "stall_timeout is true",
    [{ [1] = 2 }] = "no option '1'",
  } do
    check.contains(select(2, streams.new(loop, one, option)), part)
    check.contains(select(2, streams.serve(loop, one, option)), part)
  end
  check.contains(select(2, streams.new(loop, one, { on_open = print })), "stream.serve only")
  local stream = assert(streams.new(loop, one, { stall_timeout = false }))
  for _, value in ipairs { 1, {}, true } do check.contains(select(2, stream:write(value)), "writes strings") end
  check.contains(select(2, streams.new(loop, one)), "epoll_ctl", "a socket that is watched already")
  stream:close()
  other:close()
  loop:close()
end)

-- Runs ten tasks that talk to ten others. Returns the seconds that they take.
local function run_tasks()
  local loop, lines = new_loop()
  local listener = assert(socket.listen { port = 0 })
  local _, port = listener:name()
  local order = {}
  loop:spawn(function()
    for _ = 1, 10 do
      local connection = assert(listener:accept(5))
      loop:spawn(function()
        while true do
          local data = connection:read(100, 5)
          if not data then break end
          loop:sleep(0.02)
          assert(connection:write(data:upper(), 5))
        end
        connection:close()
      end)
    end
  end)
  local all = {}
  for i = 1, 10 do
    all[i] = loop:spawn(function(number)
      local connection = assert(socket.connect("127.0.0.1", port, 5))
      for round = 1, 3 do
        assert(connection:write("ping " .. number .. round, 5))
        check.equal(connection:read(100, 5), "PING " .. number .. round)
      end
      connection:close()
      order[#order + 1] = number
      return number, nil, "done"
    end, i)
  end
  local seconds = process.timed(function()
    loop:spawn(function()
      for i = 1, 10 do
        local ok, number, hole, text = all[i]:join()
        assert(ok == true and number == i and hole == nil and text == "done", "result of task " .. i)
      end
      loop:stop()
    end)
    assert(loop:run())
  end)
  check.equal(#order, 10)
  check.equal(table.concat(lines), "")
  check.equal(all[1].done, true)
  check.equal(select(4, all[1]:join()), "done", "join outside of a task")
  listener:close()
  loop:close()
  return seconds
end

check.test("tasks read, write, connect, accept and sleep without blocking each other", function()
  -- If the tasks ran one after the other, they would always take longer. A busy machine delays them only sometimes.
  check.eventually(5, function() return run_tasks() < 0.5 end, "the tasks ran at the same time")
end)

check.test("a task that is cancelled after its wait ended does not end a newer wait for the socket", function()
  local loop, lines = new_loop()
  local one, other = pair()
  local results = {}
  local writer
  loop:spawn(function()
    assert(tasks.current():wait(one.fd, poller.READ))
    check.equal(one:read(10), "x")
    loop:spawn(function()
      results.reader = one:read(10, 5)
      loop:stop()
    end)
    -- The socket was ready for both tasks at once, so the writer no longer waits for it, but has not continued yet.
    writer:cancel("enough")
    loop:after(0.02, function() assert(other:write("y", 1)) end)
  end)
  writer = loop:spawn(function()
    results.ok, results.message = pcall(function() return tasks.current():wait(one.fd, poller.WRITE) end)
  end)
  assert(other:write("x", 1))
  assert(loop:run())
  check.equal(results.reader, "y")
  check.equal(results.ok, false)
  check.equal(results.message, "enough")
  check.equal(table.concat(lines), "")
  one:close()
  other:close()
  loop:close()
end)

check.test("waits in tasks end after the time-out, or when the socket is closed", function()
  local loop, lines = new_loop()
  local one, other = pair()
  loop:spawn(function()
    -- On a busy machine, the wait can take longer.
    check.eventually(5, function()
      local seconds = process.timed(function() check.equal(select(2, one:read(10, 0.05)), "timeout") end)
      assert(seconds >= 0.05, seconds)
      return seconds < 1
    end, "the wait ended in time")
    check.equal(select(2, one:read(10, 0)), "timeout")
    loop:spawn(function()
      check.equal(select(2, other:read(10, 9)), "another task waits for this socket")
    end)
    loop:after(0.02, function() other:close() end)
    check.equal(one:read(10, 9), nil)
    loop:stop()
  end)
  loop:spawn(function() check.equal(select(2, other:read(10, 9)), "closed") end)
  assert(loop:run())
  check.equal(table.concat(lines), "")
  one:close()
  loop:close()
end)

check.test("one task reads from a socket while another writes to it", function()
  local loop, lines = new_loop()
  local one, other = pair()
  local written
  loop:spawn(function()
    assert(one:write(("x"):rep(20000000), 5))
    written = true
  end)
  loop:spawn(function()
    check.equal(one:read(10, 5), "hello")
    check.equal(written, nil, "everything was written before anything was read")
    local got = 0
    while got < 20000000 do got = got + #assert(other:read(65536, 5)) end
    loop:sleep(0.01)
    check.equal(written, true)
    loop:stop()
  end)
  loop:spawn(function()
    loop:sleep(0.02)
    assert(other:write("hello", 5))
  end)
  assert(loop:run())
  check.equal(table.concat(lines), "")
  loop:close()
end)

check.test("a task that fails is reported with its place, and the loop continues", function()
  local loop, lines = new_loop()
  local failing = loop:spawn(function()
    loop:sleep(0.01)
    local function deep() error("as asked") end
    deep()
  end)
  local at_once = loop:spawn(function() error({}) end)
  check.equal(at_once.done, true)
  loop:spawn(function()
    -- Join only after both errors were logged: an error that `join` returns first is not logged.
    while #lines < 2 do loop:sleep(0.01) end
    local ok, message = failing:join()
    check.equal(ok, false)
    check.contains(message, "as asked")
    loop:stop()
  end)
  assert(loop:run())
  check.equal(#lines, 2)
  check.contains(lines[2], "as asked")
  check.contains(lines[2], "streams.lua:")
  check.contains(lines[2], "stack traceback")
  check.contains(lines[2], "deep")

  local joined = loop:spawn(function()
    loop:sleep(0.01)
    error("expected")
  end)
  local ok, message
  loop:spawn(function()
    ok, message = joined:join()
    loop:stop()
  end)
  assert(loop:run())
  check.equal(ok, false)
  check.contains(message, "expected")
  check.equal(#lines, 2, "an error that join returns is not logged")
  loop:close()
end)

check.test("tasks are cancelled, suspended and woken", function()
  local loop, lines = new_loop()
  local one, other = pair()
  local cleaned
  local reading = loop:spawn(function()
    local ok, message = pcall(one.read, one, 10, 9)
    check.equal(ok, false)
    check.equal(message, "enough")
    cleaned = true
    return "cleaned"
  end)
  local sleeping = loop:spawn(function() loop:sleep(100) end)
  local suspended = loop:spawn(function()
    local me = tasks.current()
    check.equal(select(2, me:suspend(0.01)), "timeout")
    local a, b, c = me:suspend(5)
    assert(a == 1 and b == nil and c == 3)
    me:wake("early")
    check.equal(me:suspend(), "early")
    return "woken"
  end)
  local patient = loop:spawn(function() return select(2, suspended:join(5)) end)
  loop:spawn(function()
    patient:wake("stray")
    check.equal(select(2, sleeping:join(0.02)), "timeout")
    reading:cancel("enough")
    sleeping:cancel()
    sleeping:cancel()
    suspended:wake(1, nil, 3)
    suspended:wake("lost")
    check.equal(select(2, reading:join(1)), "cleaned")
    local ok, message = sleeping:join(1)
    check.equal(ok, false)
    check.contains(message, "cancelled")
    check.equal(select(2, suspended:join(1)), "woken")
    check.equal(select(2, patient:join(1)), "woken", "a stray wake does not end a join")
    check.contains(select(2, tasks.current():join()), "itself")
    suspended:wake()
    suspended:cancel()
    check.equal(pcall(suspended.suspend, suspended), false)
    loop:stop()
  end)
  check.contains(select(2, sleeping:join()), "only another task")
  assert(loop:run())
  check.equal(cleaned, true)
  -- No task waits for the socket any more, so it can be used again.
  assert(other:write("x", 1))
  check.equal(one:read(10, 1), "x")
  check.equal(table.concat(lines, "\n"):find("streams.lua", 1, true), nil, table.concat(lines, "\n"))
  check.equal(pcall(loop.sleep, loop, 1), false, "sleeping outside of a task")
  check.equal(tasks.current(), nil)
  loop:close()
end)

check.test("an early wake is kept for the next suspend and does not hold up a join", function()
  local loop = new_loop()
  loop:spawn(function()
    local me = tasks.current()
    me:wake("early")
    loop:sleep(0.01)
    local child = loop:spawn(function() loop:sleep(0.05) end)
    local began = time.monotonic()
    assert(child:join(5))
    assert(time.monotonic() - began < 2, "the join took too long")
    check.equal(me:suspend(1), "early")
    loop:stop()
  end)
  assert(loop:run())
  loop:close()
end)

check.test("a wake before or during a look-up of a name is kept for the next suspend", function()
  local loop = new_loop()
  loop:spawn(function()
    local me = tasks.current()
    me:wake("early")
    assert(#assert(resolve.addresses("localhost")) > 0)
    check.equal(me:suspend(1), "early")
    loop:spawn(function() me:wake("during") end)
    assert(#assert(resolve.addresses("localhost")) > 0)
    check.equal(me:suspend(1), "during")
    loop:stop()
  end)
  assert(loop:run())
  loop:close()
end)

check.test("many waits use few timers", function()
  local loop = new_loop()
  local one, other = pair()
  loop:spawn(function()
    while one:read(100, 30) do assert(one:write("y", 30)) end
  end)
  loop:spawn(function()
    for _ = 1, 5000 do
      assert(other:write("x", 30))
      assert(other:read(100, 30))
    end
    assert(#loop.timers.heap < 20, #loop.timers.heap .. " timers")
    loop:stop()
  end)
  assert(loop:run())
  one:close()
  other:close()
  loop:close()
end)

check.test("a timer that restarts itself does not block the loop", function()
  -- On a busy machine, there is time for only a few rounds in some of the attempts.
  check.eventually(5, function()
    local loop = new_loop()
    local one, other = pair()
    local count = 0
    local function again()
      count = count + 1
      loop:after(0, again)
    end
    again()
    loop:watch(one.fd, loop.READ, function() loop:stop() end)
    loop:after(0.02, function() other:write("x", 1) end)
    assert(loop:run())
    loop:close()
    one:close()
    other:close()
    return count > 100
  end, "a timer without a delay fired more than a hundred times in 0.02 s")
end)

check.test("handlers of a web server can be tasks", function()
  local loop
  process.with_server({
    log = function() end,
    on_start = function(running) loop = running end,
    handler = http.routes {
      ["GET /sleep/:ms"] = http.task(function(request, response)
        loop:sleep(tonumber(request.params.ms) / 1000)
        response:text(200, "slept " .. request.path)
      end),
      ["GET /fail"] = http.task(function()
        loop:sleep(0.01)
        error("as asked")
      end),
      ["GET /silent"] = http.task(function() loop:sleep(0.01) end),
      ["GET /at-once"] = http.task(function(_, response) response:text(200, "at once") end),
      ["GET /half"] = http.task(function(_, response)
        response:start(200, "text/plain")
        response:write("half")
        error("as asked")
      end),
    },
  }, function(port)
    local all = {}
    -- If the handlers ran one after the other, they would always take longer. A busy machine delays them only
    -- sometimes.
    check.eventually(10, function()
      return process.timed(function()
        for i = 1, 20 do
          if all[i] then all[i]:close() end
          all[i] = client.connect(port)
          -- From 101 to 109 ms, and from 1010 to 1020 ms.
          all[i]:send("GET /sleep/10" .. i .. " HTTP/1.1\r\nHost: x\r\n\r\n")
        end
        for i = 1, 20 do check.equal(assert(all[i]:receive()).body, "slept /sleep/10" .. i) end
      end) < 1.9
    end, "the handlers ran at the same time")
    for i = 1, 3 do
      check.equal(all[i]:ask("GET", "/at-once").body, "at once")
      check.equal(all[i]:ask("GET", "/fail").status, 500)
      check.equal(all[i]:ask("GET", "/silent").status, 500)
      check.equal(all[i]:ask("HEAD", "/at-once").status, 200)
    end
    all[1]:send("GET /half HTTP/1.1\r\nHost: x\r\n\r\n")
    check.equal(all[1]:receive(), nil, "an incomplete answer is an error")
  end)
end)
