local harness = require "harness"
local happenings = require "happenings"
local lockstep = require "lockstep"
local test, eq = harness.test, harness.eq

local function begin(seconds)
  happenings.take()
  lockstep.run()
  lockstep.begin(seconds)
end

test("a frame waits until it is asked for, and goes on waiting after those that were", function()
  begin(1)
  eq(lockstep.waits(0, false), true)
  local client, other = {}, {}
  eq(lockstep.advance(client, 2), 2)
  eq(lockstep.is_ahead(client), true)
  eq(lockstep.is_ahead(other), false)
  for _ = 1, 2 do
    eq(lockstep.waits(0, false), false)
    lockstep.run()
  end
  eq(lockstep.is_ahead(client), false)
  eq(lockstep.waits(0, false), true)
  lockstep.stop()
  eq(lockstep.waits(0, false), false)
end)

test("frames add up, and are forgotten with lockstep", function()
  begin(1)
  lockstep.advance({}, 3)
  eq(lockstep.advance({}, 4), 7)
  lockstep.stop()
  lockstep.begin(1)
  eq(lockstep.waits(0, false), true)
  lockstep.stop()
end)

test("it ends when nothing was asked for its time-out, and says so", function()
  begin(1)
  eq(lockstep.waits(0.9, false), true)
  eq(lockstep.waits(0.05, true), true)
  eq(lockstep.waits(0.9, false), true)
  eq(lockstep.on, true)
  eq(happenings.take(), "")
  eq(lockstep.waits(0.1, false), false)
  eq(lockstep.on, false)
  eq(happenings.take(), happenings.LOCKSTEP_OVER)
end)

test("a frame that ran begins the time-out anew", function()
  begin(1)
  for _ = 1, 10 do
    eq(lockstep.waits(0.9, false), true)
    lockstep.advance({}, 1)
    eq(lockstep.waits(0, true), false)
    lockstep.run()
  end
  lockstep.begin(0.5)
  eq(lockstep.waits(0.6, false), false)
  happenings.take()
end)

test("one frame does not wait for ever, however much is asked", function()
  begin(60)
  local waited = 0
  while lockstep.waits(0.5, true) do
    waited = waited + 0.5
    eq(waited < lockstep.LONGEST, true)
  end
  lockstep.run()
  eq(waited > lockstep.LONGEST - 1, true)
  eq(happenings.take(), happenings.LOCKSTEP_OVER)
end)
