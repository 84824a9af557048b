-- How much memory requests may move in a frame. A request that reads megabytes takes longer than a frame has time for.
-- It cannot be split, because all of a batch belongs to one moment. So each frame has room for a number of bytes, and
-- a request beyond them waits for the next frame. A request that is larger than this room is performed at once, but
-- the processor time for such requests is a small share of all time: they wait until the share has grown again. They
-- never wait longer than `large_wait`, because a change keeps its place, and all later requests of its connection wait
-- with it.

local limits = require "limits"
local lockstep = require "lockstep"
local stopwatch = require "stopwatch"
local ticks = require "ticks"

local clock = os.clock


local DEBT = limits.large_wait * limits.large_share -- seconds

local throttle = {}

local frame, moved = 0, 0 -- the bytes that were moved in this frame
local credit = limits.large_seconds -- seconds that large requests may take
local counted = 0 -- when that was counted, in seconds

-- Adds what has been gained since the last time. Frames are counted where there is no clock.
local function count_credit()
  local now = stopwatch.seconds() or ticks.now / ticks.per_second
  credit = math.min(limits.large_seconds, credit + limits.large_share * (now - counted))
  counted = now
end

-- Whether a request that moves this number of bytes may be performed now. In lockstep frames wait for requests, not the
-- other way round.
function throttle.admits(bytes)
  if bytes == 0 or lockstep.on then
    return true
  elseif bytes > limits.frame_bytes then
    count_credit()
    return credit > 0
  end
  return frame ~= ticks.now or moved + bytes <= limits.frame_bytes
end

-- Calls a function that moves this number of bytes, and counts them.
function throttle.run(bytes, perform, ...)
  if bytes == 0 or lockstep.on then
    return perform(...)
  end
  if frame ~= ticks.now then
    frame, moved = ticks.now, 0
  end
  moved = moved + bytes
  if bytes <= limits.frame_bytes then
    return perform(...)
  end
  local start = clock()
  local result = perform(...)
  count_credit()
  credit = math.max(-DEBT, credit - (clock() - start))
  return result
end

return throttle
