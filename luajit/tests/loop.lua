--- Tests of pollers, timers and the loop.

local check = require "tests.support.check"
local loops = require "framewire.loop"
local poller = require "framewire.poller"
local pollers = require "tests.support.pollers"
local process = require "tests.support.process"
local timer = require "framewire.timer"

local pair = process.pair

for _, name in ipairs { "epoll", "poll" } do
  check.test(name .. " reports ready descriptors and no others", function() pollers.check_poller(name) end)

  check.test(name .. " does not report a closed descriptor that was added twice", function()
    local source = assert(poller.new(name))
    local client, server = pair()
    assert(source:add(server.fd, poller.READ))
    source:add(server.fd, poller.READ)
    assert(source:remove(server.fd))
    check.equal(source:change(server.fd, poller.READ), nil, "changing a descriptor that is not watched")
    server:close()
    check.equal(source:wait(0), 0)
    client:close()
    source:close()
  end)

  check.test(name .. " reports a broken connection", function()
    local source = assert(poller.new(name))
    local client, server = pair()
    assert(source:add(server.fd, 0))
    server:finish()
    client:close()
    check.equal(source:wait(1000), 1)
    check.equal(select(4, source:ready(0)), true)
    server:close()
    source:close()
  end)

  check.test(name .. " allows callbacks to forget other descriptors", function()
    local loop = assert(loops.new { poller = name })
    -- All watched sockets are readable. The first callback makes the loop forget all of them.
    local called = pollers.watch_readable(loop)
    loop:after(0.05, function() loop:stop() end)
    assert(loop:run())
    check.equal(called(), 1)
    loop:close()
  end)
end

check.test("the error about an unknown poller names the known ones", function()
  local _, message = poller.new("select")
  check.contains(message, "epoll, poll")
end)

check.test("timers fire in order, repeat, and stop", function()
  local timers, order = timer.new(), {}
  local function note(text) return function() order[#order + 1] = text end end
  timers:add(3, note("c"))
  timers:add(1, note("a"))
  local every = timers:add(1.5, note("e"), 1)
  timers:add(2, note("b"))
  local never = timers:add(0.5, note("never"))
  never:cancel()
  check.equal(timers:next(), 1)
  timers:run(1)
  timers:run(2)
  every:cancel()
  timers:run(10)
  check.equal(table.concat(order), "aebc")
  check.equal(timers:next(), nil)
end)

check.test("a timer with an interval too small for the precision of numbers fires once a round", function()
  local timers, calls = timer.new(), 0
  timers:add(1000, function()
    calls = calls + 1
    assert(calls < 10, "the round does not end")
  end, 1e-14)
  timers:run(1000)
  check.equal(calls, 1)
end)

check.test("a hundred timers fire in order", function()
  local timers, last = timer.new(), 0
  for i = 1, 100 do
    local at = (i * 37) % 101
    timers:add(at, function()
      assert(at >= last)
      last = at
    end)
  end
  timers:run(200)
  check.equal(last, 100)
end)

check.test("work before a sleep does not delay a timer", function()
  local monotonic = require("framewire.time").monotonic
  -- On a busy machine, some timers are late.
  check.eventually(5, function()
    local loop = assert(loops.new())
    local start = monotonic()
    while monotonic() < start + 0.3 do end
    local began, late = monotonic(), nil
    loop:after(0.05, function()
      late = monotonic() - began
      loop:stop()
    end)
    assert(loop:run())
    loop:close()
    assert(late >= 0.05, "seconds until the timer: " .. late)
    return late < 0.3
  end, "the timer was in time")
end)

check.test("a task that was cancelled in join is not woken by the end of the other task", function()
  local loop = assert(loops.new())
  local monotonic = require("framewire.time").monotonic
  local other = loop:spawn(function() loop:sleep(0.05) end)
  local slept
  local waiting = loop:spawn(function()
    check.equal(pcall(other.join, other), false)
    local start = monotonic()
    loop:sleep(0.3)
    slept = monotonic() - start
    loop:stop()
  end)
  waiting:cancel()
  assert(loop:run())
  assert(slept >= 0.3, "seconds of the sleep: " .. slept)
  loop:close()
end)

check.test("a stop before run is not lost, and stops only one run", function()
  local loop = assert(loops.new())
  local rounds = 0
  loop:after(0, function()
    rounds = rounds + 1
    loop:stop()
  end)
  loop:stop()
  loop:stop()
  assert(loop:run())
  check.equal(rounds, 0, "rounds of the run that was stopped before it began")
  assert(loop:run())
  check.equal(rounds, 1, "rounds of the next run")
  loop:close()
end)

check.test("the loop sleeps until the next timer", function()
  -- On a busy machine, some ticks are late.
  check.eventually(5, function()
    local loop = assert(loops.new())
    local ticks = 0
    loop:every(0.01, function() ticks = ticks + 1 end)
    loop:after(0.105, function() loop:stop() end)
    assert(loop:run())
    loop:close()
    assert(ticks <= 10, "ticks: " .. ticks)
    return ticks >= 5
  end, "there were five ticks in a tenth of a second")
end)

for _, name in ipairs { "epoll", "poll" } do
  check.test(name .. ": an event of a closed descriptor does not reach a new one with the same number", function()
    local unix = require "framewire.unix"
    local loop = assert(loops.new { poller = name })
    local one, to_one = unix.pair()
    local old, to_old = unix.pair()
    local new, to_new
    local calls = 0
    assert(loop:watch(one.fd, loop.READ, function()
      one:receive()
      local number = old.fd
      loop:forget(number)
      old:close()
      new, to_new = unix.pair()
      check.equal(new.fd, number)
      assert(loop:watch(number, loop.READ, function()
        calls = calls + 1
        loop:forget(number)
      end))
    end))
    assert(loop:watch(old.fd, loop.READ, function() error("this descriptor was closed") end))
    to_one:send("x")
    to_old:close()
    loop:after(0.05, function()
      check.equal(calls, 0)
      to_new:send("x")
    end)
    loop:after(0.2, function() loop:stop() end)
    assert(loop:run())
    check.equal(calls, 1, "events of the new descriptor")
    for _, socket in ipairs { one, to_one, new, to_new } do socket:close() end
    loop:close()
  end)
end
