-- Stays in the frame callback, blocked in select() most of the time, and answers requests: for the time that is left of a
-- frame, in which mGBA would wait for the next one anyway, or in lockstep until a client asks for the next one.

local clients = require "clients"
local connection = require "connection"
local listener = require "listener"
local lockstep = require "lockstep"
local steering = require "steering"
local stopwatch = require "stopwatch"
local ticks = require "ticks"

local clock = os.clock

local TURNS_SECONDS = steering.MAX_BUDGET / 1000 -- for the turns of all clients in lockstep

local window = {}

local function open()
  return {
    spent = 0, -- seconds, as far as they are known
    busy = 0, -- seconds of processor time in these
    looked_around = 0, -- `spent` when all clients had their turn
    rested = false, -- whether it has slept
    done = false, -- whether a request was performed just now, so that there may be more
  }
end

-- Waits up to a millisecond, by `wait`, for the client that will most likely ask, and performs its request. `rest` is the time
-- for all clients in seconds.
local function look(self, wait, rest)
  local target, ready, slept = clients.hottest(), false, false
  if not self.done then
    local socket = target and target.socket or listener.socket
    -- A client that asks all the time never lets a wait run to its end. A wait that had to wait was a sleep as well.
    local sleeps = target and connection.has_long_reply(target) and socket:select(0) == 0
    local passed
    ready, passed = wait(socket)
    self.spent, rest = self.spent + passed, rest - passed
    slept = sleeps or not ready
  end
  local start = clock()
  if slept then
    self.rested = true
    clients.send_long_replies()
  end
  -- Sending has read what had arrived, so the connection is not known to have more.
  self.done = ready and target and clients.take_turn(target, not slept, start)
  if not ready or not target or #clients.all > 1 then
    local all = not target or self.spent - self.looked_around >= 0.001
    if all then
      self.looked_around = self.spent
      listener.accept_all()
    end
    self.done = clients.serve(all, start + rest) or self.done
  end
  local used = clock() - start
  self.spent, self.busy = self.spent + used, self.busy + used
end

-- Sleeps for a moment if there is a long reply to send and no time was left to sleep.
local function rest_for_long_replies(self, wait)
  local target = not self.rested and clients.with_long_reply()
  if target then
    local _, passed = wait(target.socket)
    local start = clock()
    clients.send_long_replies()
    local used = clock() - start
    self.spent, self.busy = self.spent + passed + used, self.busy + used
  end
  self.rested = false
end

-- Serves for `length` seconds. Returns the seconds that it took.
function window.serve(length)
  local self = open()
  stopwatch.begin_window()
  while self.spent < length and not lockstep.on do
    look(self, stopwatch.wait, length - self.spent)
  end
  rest_for_long_replies(self, stopwatch.wait)
  stopwatch.end_window(self.busy)
  return self.spent
end

-- Keeps the next frame waiting as long as lockstep requires. It calls `each_second` now and then, as happens between frames.
function window.keep_waiting(each_second)
  local self, passed, waited = open(), stopwatch.lap(), 0
  rest_for_long_replies(self, stopwatch.wait_aside)
  while lockstep.waits(passed(self.spent)) do
    look(self, stopwatch.wait_aside, TURNS_SECONDS)
    if self.spent - waited >= 1 / ticks.per_second then
      waited, ticks.now = self.spent, ticks.now + 1
      each_second()
      rest_for_long_replies(self, stopwatch.wait_aside)
    end
  end
  lockstep.run()
end

return window
