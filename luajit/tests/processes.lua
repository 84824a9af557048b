--- Tests of signals and worker processes.

local check = require "tests.support.check"
local ffi = require "ffi"
local files = require "framewire.files"
local http = require "framewire.http"
local loops = require "framewire.loop"
local process = require "tests.support.process"
local signal = require "framewire.signal"
local socket = require "framewire.socket"
local streams = require "framewire.stream"
local sys = require "framewire.sys"
local thread = require "framewire.thread"
local time = require "framewire.time"
local worker = require "framewire.worker"

check.test("a signal reaches the loop's callback", function()
  local received = process.shared_words()
  process.run_with(function()
    local loop = assert(loops.new())
    local seen = {}
    assert(loop:on_signal({ "USR1", "TERM" }, function(name)
      seen[#seen + 1] = name
      received[0] = #seen
      if name == "TERM" then loop:stop() end
    end))
    loop:after(0, function() signal.send(ffi.C.getpid(), "USR1") end)
    assert(loop:run())
    assert(seen[1] == "USR1" and seen[#seen] == "TERM")
  end, function(child)
    -- Until the process has registered its callback, TERM would end the process, and `run_with` would report this.
    check.eventually(5, function() return received[0] > 0 end, "the process receives USR1")
    child:signal("TERM")
  end, true)
end)

check.test("a signal reaches all callbacks that are registered for it", function()
  process.run_with(function()
    local loop = assert(loops.new())
    local calls = {}
    local function register(label, names)
      return loop:on_signal(names, function(name) calls[#calls + 1] = label .. " " .. name end)
    end
    assert(register("first", { "USR1" }))
    assert(register("second", { "USR1", "USR2" }))
    assert(not register("refused", { "USR1", "KILL" }))
    assert(register("third", { "USR2", "USR2", "USR1" }))
    for _, name in ipairs { "USR1", "USR2" } do
      assert(signal.send(ffi.C.getpid(), name))
      loop:after(0.05, function() loop:stop() end)
      assert(loop:run())
    end
    check.equal(table.concat(calls, ", "), "first USR1, second USR1, third USR1, second USR2, third USR2")
    loop:close()
    assert(not register("closed", { "USR1" }))
  end, function() end, true) -- the process ends by itself
end)

check.test("signals that cannot be waited for are refused", function()
  for _, name in ipairs { "STOP", "KILL", "SEGV", "nothing" } do
    local _, message = signal.open { name }
    check.contains(message, "cannot wait for the signal '" .. name .. "'")
  end
end)

check.test("every other signal is received", function()
  process.run_with(function()
    local count = 0
    for name in pairs(signal.numbers) do
      local signals = signal.open { name }
      if signals then
        assert(signal.send(ffi.C.getpid(), name))
        local got = signals:read()
        if got ~= name then error(name .. " was received as " .. tostring(got)) end
        signals:close()
        count = count + 1
      end
    end
    assert(count >= 19, "too few signals: " .. count)
  end, function() end, true)
end)

check.test("a process reports how it ended", function()
  check.equal(worker.start(function() end):wait(5), 0)
  check.equal(worker.start(function() os.exit(7) end):wait(5), 7)
  local slow = worker.start(function() time.sleep(60) end)
  check.equal(select(2, slow:wait(0.05)), "timeout")
  slow:signal("KILL")
  check.equal(select(2, slow:wait(5)), "KILL")
end)

check.test("a program that was started with CHLD ignored gets the exit codes of its processes", function()
  process.run_with(function()
    ffi.C.signal(sys.SIGCHLD, ffi.cast("void *", 1))
    check.equal(worker.start(function() os.exit(7) end):wait(5), 7)
  end, function() end, true)
end)

check.test("a group starts a dead worker again, and stops all workers together", function()
  -- [1] and [2] count the starts of the two workers; [3] and [4] are 1 after they have stopped cleanly.
  local starts = process.shared_words()
  process.run_with(function()
    io.stderr:setvbuf("no")
    assert(worker.group(2, function(index)
      starts[index] = starts[index] + 1
      if index == 1 and starts[1] == 1 then ffi.C._exit(3) end
      local loop = assert(loops.new())
      assert(loop:on_signal({ "TERM" }, function() loop:stop() end))
      assert(loop:run())
      starts[index + 2] = 1
    end))
  end, function()
    check.eventually(5, function() return starts[1] == 2 and starts[2] == 1 end, "worker 1 has been started again")
  end)
  check.equal(starts[3], 1, "worker 1 stopped cleanly")
  check.equal(starts[4], 1, "worker 2 stopped cleanly")
end)

-- Fails if this process blocks TERM, or has a child.
local function check_released()
  local pid = ffi.C.getpid()
  local blocked = process.output(("grep SigBlk /proc/%d/status"):format(pid)):match("%x+%s*$")
  check.equal(math.floor(tonumber(blocked, 16) / 0x4000) % 2, 0, "TERM is blocked")
  -- The shell and grep are children too, but they end at once.
  local pids = process.output(("grep -l 'PPid:\t%d$' /proc/[0-9]*/status 2>/dev/null"):format(pid))
  for other in pids:gmatch("/proc/(%d+)/") do
    assert(not files.exists("/proc/" .. other), "the process " .. other .. " still runs")
  end
end

check.test("a group whose ready or on_stop fails stops its workers and releases its signals", function()
  for _, name in ipairs { "ready", "on_stop" } do
    process.run_with(function()
      local before = process.descriptors()
      local ok, message = pcall(worker.group, 2, function()
        local loop = assert(loops.new())
        assert(loop:on_signal({ "TERM" }, function() loop:stop() end))
        assert(loop:run())
      end, {
        ready = function() assert(signal.send(ffi.C.getpid(), "TERM")) end,
        [name] = function() error("a mistake in " .. name, 0) end,
      })
      check.equal(ok, false)
      check.equal(message, "a mistake in " .. name)
      check.equal(process.descriptors(), before, "open descriptors")
      check_released()
    end, function() end, true)
  end
end)

check.test("a server whose on_listen or on_start fails releases its port and its signals", function()
  for _, name in ipairs { "on_listen", "on_start" } do
    process.run_with(function()
      local before = process.descriptors()
      local options = {
        port = process.free_port(), handler = function() end, [name] = function() error("a mistake", 0) end,
      }
      local ok, message = pcall(http.serve, options)
      check.equal(ok, false)
      check.equal(message, "a mistake")
      check.equal(process.descriptors(), before, "open descriptors")
      check_released()
    end, function() end, true)
  end
end)

check.test("a group leaves the exit codes of other processes to the program", function()
  local started = process.shared_words()
  process.run_with(function()
    io.stderr:setvbuf("no")
    local other
    local function start_other() other = assert(worker.start(function() os.exit(7) end)) end
    assert(worker.group(1, function()
      started[0] = started[0] + 1
      -- The group looks for ended processes each time that this worker ends.
      if started[0] < 3 then return end
      local loop = assert(loops.new())
      assert(loop:on_signal({ "TERM" }, function() loop:stop() end))
      assert(loop:run())
    end, { ready = start_other }))
    check.equal(other:wait(5), 7)
  end, function()
    check.eventually(10, function() return started[0] == 3 end, "the worker has been started three times")
  end)
end)

check.test("pinning moves a process to a core, and refuses a core that does not exist", function()
  local child = worker.start(function()
    assert(worker.pin(0))
    for _, core in ipairs { 1000, 5000 } do
      local ok, message = worker.pin(core)
      assert(not ok and message == "pin: Invalid argument", message)
    end
  end)
  check.equal(child:wait(5), 0)
  assert(worker.cores() >= 1)
end)

check.test("TERM ends a program that has replaced a process with a loop", function()
  local child = assert(worker.start(function()
    assert(assert(loops.new()):on_signal({ "TERM" }, function() end))
    assert(not worker.become { "/no/such/program" })
    assert(worker.become { "sleep", "20" })
  end))
  check.eventually(5, function()
    return process.output(("cat /proc/%d/comm"):format(child.pid)) == "sleep\n"
  end, "the program runs")
  -- The bit 0x1000 stands for SIGPIPE, which a loop ignores.
  local ignored = process.output(("grep SigIgn /proc/%d/status"):format(child.pid)):match("%x+%s*$")
  check.equal(math.floor(tonumber(ignored, 16) / 0x1000) % 2, 0, "SIGPIPE is ignored")
  child:signal("TERM")
  check.equal(select(2, child:wait(5)), "TERM")
end)

check.test("what a process has printed is kept when another program replaces it", function()
  local path = process.folder()
  local output = path .. "/output"
  local child = worker.start(function()
    assert(io.output(output))
    io.write "before"
    assert(worker.become { "true" })
  end)
  check.equal(child:wait(5), 0)
  check.equal(assert(io.open(output)):read("*a"), "before")
  process.remove_folder(path)
end)

check.test("a worker that was started in a task does not run the loop of the parent", function()
  process.in_task(function(loop)
    local rounds = process.shared_words()
    local listener = assert(socket.listen())
    loop:after(0.05, function() rounds[0] = rounds[0] + 1 end)
    local child = assert(worker.start(function()
      local client = assert(socket.connect("127.0.0.1", select(2, listener:name()), 5))
      -- The timer of the parent is due during this wait.
      assert(select(2, client:read(1, 0.3)) == "timeout")
      local slept, message = pcall(loop.sleep, loop, 0.1)
      assert(not slept and message:find("only a task can sleep", 1, true), message)
    end))
    loop:sleep(0.4)
    check.equal(child:wait(5), 0)
    check.equal(rounds[0], 1, "how many processes ran the timer")
    listener:close()
  end)
end)

check.test("a worker can close sockets, streams and loops that its parent still uses", function()
  process.in_task(function(loop)
    local listener = assert(socket.listen())
    local one, other = process.pair()
    local received, signalled = nil, false
    local stream = assert(streams.new(loop, one, { on_data = function(_, data) received = data end }))
    assert(loop:on_signal({ "WINCH" }, function() signalled = true end))
    local accepting = loop:spawn(function() return assert(listener:accept(5)) end)
    local child = assert(worker.start(function()
      listener:close()
      stream:close()
      loop:close()
    end))
    check.equal(child:wait(5), 0)
    local client = assert(socket.connect("127.0.0.1", select(2, listener:name()), 5))
    assert(other:write("hello", 5))
    assert(signal.send(ffi.C.getpid(), "WINCH"))
    local ok, accepted = accepting:join(10)
    check.equal(ok, true, "the task got the connection")
    for _ = 1, 500 do
      if received and signalled then break end
      loop:sleep(0.01)
    end
    check.equal(received, "hello")
    check.equal(signalled, true, "the signal arrived")
    for _, open in ipairs { client, accepted, other, listener, stream } do open:close() end
  end)
end)

check.test("a task of a worker can wait for a socket for which a task of the parent waits", function()
  process.in_task(function(loop)
    local listener = assert(socket.listen())
    local accepting = loop:spawn(function() return listener:accept(5) end)
    local child = assert(worker.start(function()
      process.in_task(function() check.equal(select(2, listener:accept(0.01)), "timeout") end)
    end))
    check.equal(child:wait(5), 0)
    listener:close()
    check.equal(select(3, accepting:join(5)), "closed")
  end)
end)

check.test("what a worker has written is not lost at its end, and its parent's bytes are written once", function()
  local folder = process.folder()
  local mine = assert(io.open(folder .. "/parent", "a"))
  mine:write("parent\n")
  check.equal(worker.start(function() os.exit(0) end):wait(5), 0)
  check.equal(worker.start(function() assert(io.open(folder .. "/child", "a")):write("child\n") end):wait(5), 0)
  mine:close()
  local output = process.output(("cat '%s/parent' '%s/child'"):format(folder, folder))
  process.remove_folder(folder)
  check.equal(output, "parent\nchild\n")
end)

check.test("a worker starts although a thread waits for input", function()
  local folder = process.folder()
  local path = folder .. "/pipe"
  assert(os.execute(("mkfifo '%s'"):format(path)) == 0)
  -- If `worker.start` waited for the thread, this process would hang: it closes the thread's input only afterwards.
  process.run_with(function()
    local reader = assert(thread.start(function(name) return io.open(name):read("*a") end, path))
    local input = assert(io.open(path, "w")) -- waits until the thread has opened the pipe
    time.sleep(0.1)
    assert(worker.start(function() end):wait(5) == 0)
    input:write("done")
    input:close()
    assert(select(2, reader:join()) == "done")
  end, function() end, true)
  process.remove_folder(folder)
end)

check.test("TERM ends a worker although a loop of its parent waits for TERM", function()
  local loop = assert(loops.new())
  assert(loop:on_signal({ "TERM" }, function() end))
  local child = assert(worker.start(function() time.sleep(60) end))
  child:signal("TERM")
  local _, reason = child:wait(5)
  child:signal("KILL")
  loop:close()
  check.equal(reason, "TERM")
end)
