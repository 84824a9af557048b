-- Limits how much memory requests may *move* (read or write) in a frame. A request that moves megabytes needs more time
-- than a frame has. It cannot be split, because all operations of a batch belong to the same frame. So all requests of
-- a frame together may move `limits.frame_bytes`; further requests wait for the next frame.
--
-- A *large request* by itself moves more than that. It is performed in one piece, but large requests get only a small
-- share of all processor time. When they have used it up, the next one waits. It waits at most `large_wait`: if a
-- request changes something, all later requests of its connection have to wait for it.

local limits = require "limits"
local lockstep = require "lockstep"
local stopwatch = require "stopwatch"
local ticks = require "ticks"

local clock = os.clock

-- Seconds. The credit never falls below the negative of this, so that it recovers within `large_wait`.
local DEBT = limits.large_wait * limits.large_share

local throttle = {}

local frame, moved = 0, 0 -- the tick of the current frame, and how many bytes were moved in it
local credit = limits.large_seconds -- seconds of processor time that large requests may take now
local counted = 0 -- when the credit was last updated, in seconds

-- Adds what the credit has gained since its last update. Without a clock, the time is computed from the ticks.
local function count_credit()
  local now = stopwatch.seconds() or ticks.now / ticks.per_second
  credit = math.min(limits.large_seconds, credit + limits.large_share * (now - counted))
  counted = now
end

-- Whether a request that moves this number of bytes may be performed now. In lockstep, frames wait for requests, so
-- there is no limit.
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
