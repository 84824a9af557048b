local harness = require "harness"
local eventqueue = require "eventqueue"
local lockstep = require "lockstep"
local test, eq = harness.test, harness.eq

-- Creates a session with a connection. `heard` is whether a byte has arrived since lockstep's last check, and `pinged`
-- whether the link has sent a ping. Each `lockstep.waits(SECONDS)` is a check, this many seconds after the last one.
local function session()
  return { connection = { heard = true, pinged = false } }
end

local function begin(seconds, owner)
  eventqueue.take()
  lockstep.stop()
  lockstep.run()
  lockstep.begin(owner or session(), seconds)
end

test("a frame waits until a client asks for it, and after the requested frames the next one waits again", function()
  begin(1)
  eq(lockstep.waits(0), true)
  local client, other = session(), session()
  eq(lockstep.advance(client, 2), 2)
  eq(lockstep.ahead(client), 2)
  eq(lockstep.ahead(other), 0)
  eq(lockstep.advance(other, 1), 3)
  for left = 1, -1, -1 do
    eq(lockstep.waits(0), false)
    lockstep.run()
    eq(lockstep.ahead(client), math.max(left, 0))
    eq(lockstep.ahead(other), left + 1)
  end
  eq(lockstep.waits(0), true)
  lockstep.stop()
  eq(lockstep.waits(0), false)
end)

test("requested frames add up, and are forgotten when lockstep ends", function()
  begin(1)
  lockstep.advance(session(), 3)
  eq(lockstep.advance(session(), 4), 7)
  lockstep.stop()
  lockstep.begin(session(), 1)
  eq(lockstep.waits(0), true)
  lockstep.stop()
end)

test("lockstep ends with an event if there is no request within its time-out", function()
  begin(1)
  eq(lockstep.waits(0.9), true)
  lockstep.ask()
  eq(lockstep.waits(0.05), true)
  eq(lockstep.waits(0.9), true)
  eq(lockstep.on, true)
  eq(eventqueue.take(), "")
  eq(lockstep.waits(0.1), false)
  eq(lockstep.on, false)
  eq(eventqueue.take(), eventqueue.LOCKSTEP_OVER)
end)

test("the time-out starts again with each frame that runs", function()
  begin(1)
  for _ = 1, 10 do
    eq(lockstep.waits(0.9), true)
    lockstep.advance(session(), 1)
    lockstep.ask()
    eq(lockstep.waits(0), false)
    lockstep.run()
  end
  lockstep.begin(session(), 0.5)
  eq(lockstep.waits(0.6), false)
  eventqueue.take()
end)

test("no frame waits forever, however many requests come", function()
  begin(60)
  local waited = 0
  lockstep.ask()
  while lockstep.waits(0.5) do
    lockstep.ask()
    waited = waited + 0.5
    eq(waited < lockstep.LONGEST, true)
  end
  lockstep.run()
  eq(waited > lockstep.LONGEST - 1, true)
  eq(eventqueue.take(), eventqueue.LOCKSTEP_OVER)
end)

-- How many seconds a frame waits if lockstep checks ten times a second.
local function wait()
  local waited = 0
  while lockstep.waits(0.1) do
    waited = waited + 0.1
  end
  lockstep.run()
  eq(eventqueue.take(), eventqueue.LOCKSTEP_OVER)
  return waited
end

test("lockstep ends within two seconds if the link that began it has lost its connection", function()
  local owner = session()
  begin(60, owner)
  eq(lockstep.waits(5), true)
  owner.connection = nil
  local waited = wait()
  eq(waited > 0.7 and waited < 1.1, true, waited)
end)

test("lockstep ends within two seconds if the link that began it has stopped sending pings", function()
  local owner = session()
  begin(60, owner)
  owner.connection.pinged = true
  eq(lockstep.waits(5), true)
  local waited = wait()
  eq(waited > 1.5 and waited < 2, true, waited)
end)

test("one long pause of the machine does not count as silence of a link", function()
  local owner = session()
  begin(60, owner)
  owner.connection.pinged = true
  eq(lockstep.waits(0.1), true)
  eq(lockstep.waits(5), true)
  lockstep.stop()
end)

test("if lockstep ends early, each `advance` that is not complete gets the number of its frames that have run", function()
  begin(60)
  local first, second, third = session(), session(), session()
  lockstep.advance(first, 2)
  local done = lockstep.goal(first)
  lockstep.advance(second, 4)
  local cut = lockstep.goal(second)
  lockstep.advance(third, 9)
  local unbegun = lockstep.goal(third)
  for _ = 1, 3 do
    lockstep.run()
  end
  eq(lockstep.ahead(first), 0)
  lockstep.stop()
  eq(done.run, nil)
  eq(cut.run, 1)
  eq(cut.frames, 4)
  eq(unbegun.run, 0)
  for _, goal in ipairs { done, cut, unbegun } do
    eq(lockstep.is_over(goal), true)
  end
end)

test("lockstep continues if the link that began it connects again", function()
  local owner = session()
  begin(60, owner)
  for _ = 1, 5 do
    owner.connection = nil
    eq(lockstep.waits(0.8), true)
    owner.connection = { heard = true, pinged = true }
    eq(lockstep.waits(0.1), true)
  end
  lockstep.stop()
end)
