-- How much of a frame clients get. This cannot be known beforehand, so it is found by feedback: once a second the frames that
-- were run are counted. The budget grows while no frame is missing and is cut when some are.
--
-- Pure: it reads no clock and calls nothing.

local steering = {
  NORMAL_RATE = 16777216 / 280896, -- frames a second of a Game Boy Advance and of a Game Boy
  MAX_BUDGET = 10, -- milliseconds of a frame's 16.7: mGBA's window must not wait for longer
}

local FAST_RATE = 70 -- frames in a second from which on it is fast-forward, not catching up
local TOLERANCE = 1.5 -- missing frames at which the budget is cut: the count of a second can be off by one anyway
local SPARE = 8 -- idle milliseconds in a frame: with this many, the budget is not the cause of missing frames
local RESERVE = 1.5 -- idle milliseconds in a frame that are left to mGBA
local SHARE = 1 / 4 -- of the idle time that the budget grows by in a second
local GROWTH = 0.5 -- milliseconds per second that it grows by at most, once it was cut
local SMALL_GROWTH, GROWTH_FACTOR = 0.1, 1.3 -- growth starts small after a cut, to prevent an overshoot
local MARGIN = 0.5 -- milliseconds that are cut in addition to the excess
local PROBE_SECONDS = 8 -- in one of this many seconds the budget is halved; the full budget could hide fast-forward

function steering.new()
  return {
    budget = 0, -- milliseconds a frame
    growth = nil, -- milliseconds per second that it may grow by; nil until it is cut
    missing = 0, -- frames missing
    seconds = 0, -- since it was opened
    fast = false, -- whether it is fast-forward
  }
end

-- Clients begin to ask. `busy` is the processor time per frame, in milliseconds, that everything else takes.
function steering.open(self, busy)
  self.budget = math.max(0, math.min(steering.MAX_BUDGET, 1000 / steering.NORMAL_RATE - 2 * busy - 3))
  self.growth, self.missing, self.seconds = nil, 0, 0
end

local function grow(self, idle)
  local step = SHARE * (idle - RESERVE)
  if self.growth then
    step = math.min(step, self.growth)
    self.growth = math.min(GROWTH, self.growth * GROWTH_FACTOR)
  end
  self.budget = math.max(0, math.min(steering.MAX_BUDGET, self.budget + step))
end

local function cut(self, frames)
  local missing = 1000 / math.max(frames, 1) - 1000 / steering.NORMAL_RATE -- milliseconds a frame
  self.budget = math.max(0, self.budget - 1.5 * missing - MARGIN)
  self.growth, self.missing = SMALL_GROWTH, 0
end

-- A second has passed in which `frames` were run. In each of them, for `idle` milliseconds neither clients nor mGBA used the
-- processor.
function steering.steer(self, frames, idle)
  self.seconds = self.seconds + 1
  self.fast = frames >= FAST_RATE
  if self.fast then
    self.budget, self.missing = 0, 0
    return
  end
  self.missing = math.max(0, self.missing + steering.NORMAL_RATE - frames)
  if self.missing > TOLERANCE and idle < SPARE then
    cut(self, frames)
    return
  elseif self.missing > TOLERANCE then
    self.missing = 0
  end
  grow(self, idle)
end

-- Milliseconds for clients in this frame.
function steering.allowance(self)
  if self.fast then
    return 0
  end
  return self.seconds % PROBE_SECONDS == PROBE_SECONDS - 1 and self.budget / 2 or self.budget
end

return steering
