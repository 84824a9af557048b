-- Decides how many milliseconds of each frame clients get: the *budget*. The right value cannot be known beforehand, so
-- it is found by feedback: once a second, the frames that have run are counted. While no frame is missing, the budget
-- grows; if some are missing, and mGBA has little idle time, it is cut.
--
-- This part reads no clock and calls no other part.

local steering = {
  NORMAL_RATE = 16777216 / 280896, -- frames per second of a Game Boy Advance and of a Game Boy
  MAX_BUDGET = 10, -- milliseconds of the 16.7 in a frame; mGBA's window must not wait longer than 10
}

local FAST_RATE = 70 -- from this many frames per second on, this is fast-forward; fewer could be mGBA catching up
-- With more missing frames than this, the budget is cut. The number of frames in a second can always be off by one.
local TOLERANCE = 1.5
-- Idle milliseconds in a frame. With at least this many, the budget is not the reason for missing frames.
local SPARE = 8
local RESERVE = 1.5 -- idle milliseconds in a frame that are left to mGBA
local SHARE = 1 / 4 -- the share of the idle time by which the budget grows in a second
local GROWTH = 0.5 -- once the budget has been cut, it grows by at most this many milliseconds in a second
-- The limit on the growth right after a cut, and the factor by which this limit rises each second, up to `GROWTH`. The
-- limit starts small, to prevent an overshoot.
local SMALL_GROWTH, GROWTH_FACTOR = 0.1, 1.3
local MARGIN = 0.5 -- milliseconds that are cut in addition to 1.5 times the excess
-- Once in this many seconds, clients get only half of the budget for a second. If they always got all of it,
-- they could slow fast-forward down to normal speed, and the script would not see that mGBA is fast-forwarding.
local PROBE_SECONDS = 8

function steering.new()
  return {
    budget = 0, -- milliseconds per frame
    growth = nil, -- milliseconds by which it may grow in a second; nil until it is cut
    missing = 0, -- how many frames are missing, from this and earlier seconds
    seconds = 0, -- seconds since `open`
    fast = false, -- whether mGBA is fast-forwarding
  }
end

-- Called when clients begin to send requests; sets the first budget. `busy` is the processor time per frame, in
-- milliseconds, that mGBA itself uses. The first budget leaves mGBA twice this time, and 3 ms more.
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
  local excess = 1000 / math.max(frames, 1) - 1000 / steering.NORMAL_RATE -- by how many milliseconds frames were too long
  self.budget = math.max(0, self.budget - 1.5 * excess - MARGIN)
  self.growth, self.missing = SMALL_GROWTH, 0
end

-- Called once a second. `frames` is how many frames have run in this second. `idle` is how many milliseconds of each
-- frame were left over: mGBA did not work in them, and the script did not serve clients in them.
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

-- How many milliseconds clients get in this frame.
function steering.allowance(self)
  if self.fast then
    return 0
  end
  return self.seconds % PROBE_SECONDS == PROBE_SECONDS - 1 and self.budget / 2 or self.budget
end

return steering
