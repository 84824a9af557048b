-- The serving time of a frame: the script stays in the frame callback, blocked in select() most of the time, and
-- answers requests. Outside of lockstep, it uses only time in which mGBA would wait for the next frame anyway. In
-- lockstep, it stays there until a client asks for the next frame.

local clients = require "clients"
local connection = require "connection"
local listener = require "listener"
local lockstep = require "lockstep"
local steering = require "steering"
local stopwatch = require "stopwatch"
local ticks = require "ticks"

local clock = os.clock

local TURNS_SECONDS = steering.MAX_BUDGET / 1000 -- in lockstep, a round of turns takes at most this many seconds

local window = {}

local function open()
  return {
    spent = 0, -- seconds used so far; partly an estimate (stopwatch.lua)
    busy = 0, -- processor time in these seconds
    all_served_at = 0, -- the value of `spent` when all clients last had a turn
    slept = false, -- whether the script has slept (connection.lua), so that long replies could be sent
    done = false, -- whether a request was performed just now; then there may be another
  }
end

-- Unless a request was performed just now, calls `wait`, which waits up to a millisecond for the client that will most
-- likely send the next request. If that client has sent one, performs it. Then serves other clients for at most `left`
-- seconds.
local function wait_and_serve(self, wait, left)
  local target, ready, slept = clients.hottest(), false, false
  if not self.done then
    local socket = target and target.socket or listener.socket
    -- With a busy client, no wait lasts a whole millisecond. So a wait that began without data also counts as sleep.
    local sleeps = target and connection.has_long_reply(target) and socket:select(0) == 0
    local passed
    ready, passed = wait(socket)
    self.spent, left = self.spent + passed, left - passed
    slept = sleeps or not ready
  end
  local start = clock()
  if slept then
    self.slept = true
    clients.send_long_replies()
  end
  -- After a sleep, `send_long_replies` may already have read everything that had arrived. So it is not known whether
  -- there is more to read.
  self.done = ready and target and clients.take_turn(target, not slept, start)
  if not ready or not target or #clients.all > 1 then
    local all = not target or self.spent - self.all_served_at >= 0.001
    if all then
      self.all_served_at = self.spent
      listener.accept_all()
    end
    self.done = clients.serve(all, start + left) or self.done
  end
  local used = clock() - start
  self.spent, self.busy = self.spent + used, self.busy + used
end

-- If the script has a long reply to send and has not slept yet, sleeps for a moment and sends a part of the reply.
local function sleep_for_long_replies(self, wait)
  local target = not self.slept and clients.with_long_reply()
  if target then
    local _, passed = wait(target.socket)
    local start = clock()
    clients.send_long_replies()
    local used = clock() - start
    self.spent, self.busy = self.spent + passed + used, self.busy + used
  end
  self.slept = false
end

-- Serves clients for `length` seconds. Returns the seconds that it took.
function window.serve(length)
  local self = open()
  stopwatch.begin_window()
  while self.spent < length and not lockstep.on do
    wait_and_serve(self, stopwatch.wait, length - self.spent)
  end
  sleep_for_long_replies(self, stopwatch.wait)
  stopwatch.end_window(self.busy)
  return self.spent
end

-- Keeps the next frame waiting as long as lockstep requires, and serves clients. No frame runs in that time, so it
-- calls `each_tick` about as often as frames would run.
function window.keep_waiting(each_tick)
  -- `passed` is a function: it returns the seconds since its last call.
  local self, passed, waited = open(), stopwatch.lap(), 0
  sleep_for_long_replies(self, stopwatch.wait_uncounted)
  while lockstep.waits(passed(self.spent)) do
    wait_and_serve(self, stopwatch.wait_uncounted, TURNS_SECONDS)
    if self.spent - waited >= 1 / ticks.per_second then
      waited, ticks.now = self.spent, ticks.now + 1
      each_tick()
      sleep_for_long_replies(self, stopwatch.wait_uncounted)
    end
  end
  lockstep.run()
end

return window
