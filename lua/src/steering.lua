-- How much of a frame clients get. There is no telling beforehand: it is found by feedback. Once a second the frames
-- that were run are counted, and the budget grows while none are missing and is cut when some are.
--
-- Pure: it reads no clock and calls nothing.

local steering = {
  NORMAL_RATE = 16777216 / 280896, -- frames a second of a Game Boy Advance and of a Game Boy
  MAX_BUDGET = 10, -- milliseconds of a frame's 16.7: mGBA's window must not wait for longer
}

local FAST_RATE = 70 -- frames in a second from which on it is fast-forward, not catching up
local TOLERANCE = 1.5 -- frames behind at which the budget is cut: the count of a second is one off anyway
local SPARE = 8 -- milliseconds idle in a frame: with so many the budget is not to blame for missing frames
local RESERVE = 1.5 -- milliseconds idle in a frame that are left to mGBA
local SHARE = 1 / 4 -- of the idle time that the budget grows by in a second
local GROWTH = 0.5 -- milliseconds a second that it grows by at most, once it was cut
local SMALL_GROWTH, SWELL = 0.1, 1.3 -- after a cut it begins small, so as not to overshoot where it ended
local MARGIN = 0.5 -- milliseconds that are cut off beyond what was too much
local BREATH = 8 -- in one of so many seconds the budget is halved, or else fast-forward could not be seen

function steering.new()
  return {
    budget = 0, -- milliseconds a frame
    growth = nil, -- milliseconds a second that it may grow by; nil until it is cut
    behind = 0, -- frames missing
    seconds = 0, -- since it was opened
    fast = false, -- whether it is fast-forward
  }
end

-- Clients begin to ask. `busy` is the milliseconds of processor time a frame that go to everything else.
function steering.open(self, busy)
  self.budget = math.max(0, math.min(steering.MAX_BUDGET, 1000 / steering.NORMAL_RATE - 2 * busy - 3))
  self.growth, self.behind, self.seconds = nil, 0, 0
end

local function grow(self, idle)
  local step = SHARE * (idle - RESERVE)
  if self.growth then
    step = math.min(step, self.growth)
    self.growth = math.min(GROWTH, self.growth * SWELL)
  end
  self.budget = math.max(0, math.min(steering.MAX_BUDGET, self.budget + step))
end

local function cut(self, frames)
  local missing = 1000 / math.max(frames, 1) - 1000 / steering.NORMAL_RATE -- milliseconds a frame
  self.budget = math.max(0, self.budget - 1.5 * missing - MARGIN)
  self.growth, self.behind = SMALL_GROWTH, 0
end

-- A second has passed in which `frames` were run. In each of them `idle` milliseconds were spent neither on clients nor
-- on the processor.
function steering.steer(self, frames, idle)
  self.seconds = self.seconds + 1
  self.fast = frames >= FAST_RATE
  if self.fast then
    self.budget, self.behind = 0, 0
    return
  end
  self.behind = math.max(0, self.behind + steering.NORMAL_RATE - frames)
  if self.behind > TOLERANCE and idle < SPARE then
    cut(self, frames)
    return
  elseif self.behind > TOLERANCE then
    self.behind = 0
  end
  grow(self, idle)
end

-- Milliseconds for clients in this frame.
function steering.allowance(self)
  if self.fast then
    return 0
  end
  return self.seconds % BREATH == BREATH - 1 and self.budget / 2 or self.budget
end

return steering
