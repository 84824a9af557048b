--- Waits for the other side of a channel: polls briefly, then sleeps in the kernel.
--
-- A side that sleeps says so in a word, passes a barrier that reaches every process of the channel, and checks once
-- more. The other side publishes first and reads that word afterwards. So one of the two sees the other, and the side
-- that does not sleep needs no barrier of its own.

local ffi = require "ffi"
local shm = require "framewire.shm"
local sys = require "framewire.sys"
local time = require "framewire.time"

local C = ffi.C

local M = {}

-- Longest sleep before checking whether the other side lives, in seconds.
local LOOK = 0.05
-- The same if barriers do not reach other processes. It is short because it is also the cost of a missed wake-up.
local LOOK_WITHOUT_BARRIERS = 0.001
local clock = ffi.new("struct fw_timespec")

local function now_ns()
  C.clock_gettime(sys.CLOCK_MONOTONIC, clock)
  return clock.sec * 1000000000LL + clock.nsec
end

--- Waits for the time between two checks, about 50 ns. Checking more often would be slower, because it takes the cache
--- line away from the other side while that side still writes to it.
function M.pause()
  C.clock_gettime(sys.CLOCK_MONOTONIC, clock)
  C.clock_gettime(sys.CLOCK_MONOTONIC, clock)
end

--- Checks repeatedly for a while.
---@param is_ready function
---@param argument any handed to it
---@param seconds number
---@return boolean ready
function M.spin(is_ready, argument, seconds)
  if is_ready(argument) then return true end
  local deadline = now_ns() + ffi.cast("int64_t", seconds * 1e9)
  repeat
    if is_ready(argument) then return true end
    M.pause()
  until now_ns() >= deadline
  return false
end

--- Sleeps until something is ready.
---@param endpoint table
---@param word ffi.cdata* the word that says that this side sleeps
---@param is_ready function
---@param damage function what the other side cannot have written, if there is any of it
---@param argument any handed to both
---@param timeout? number seconds; forever if left out
---@return true|nil ok
---@return string? message "timeout", "closed", "the other side has ended without closing" or how the channel is damaged
function M.sleep(endpoint, word, is_ready, damage, argument, timeout)
  local block = endpoint.block
  local look = block.barriers and LOOK or LOOK_WITHOUT_BARRIERS
  local deadline = time.deadline(timeout)
  local next_look = 0
  while true do
    local now = time.monotonic()
    -- This comes before any access to the memory, a part of which may be missing by now.
    local problem = block:damage()
    if problem then return nil, problem end
    if block:peer_closed() then
      problem = "closed"
    elseif now >= next_look then
      next_look = now + LOOK
      problem = damage(argument)
      if not problem and not block:peer_lives() then problem = "the other side has ended without closing" end
    end
    -- Messages that were published before the end still count.
    if is_ready(argument) then return true end
    if problem then return nil, problem end
    local rest = deadline - now
    if rest <= 0 then return nil, "timeout" end
    word[0] = 1
    -- SYNC POINT (sleep): pairs with publishing before reading the word, in `commit` and the receiver's `publish`.
    if block.barriers then sys.barrier() end
    if not is_ready(argument) and not block:peer_closed() then
      shm.wait(ffi.cast("void *", word), 1, math.min(rest, look))
      problem = block:damage()
      if problem then return nil, problem end
    end
    word[0] = 0
  end
end

--- Waits until something is ready: polls, then sleeps. Results as for `sleep`.
function M.wait(endpoint, word, is_ready, damage, argument, timeout)
  local spins = endpoint.spin
  if timeout and timeout < spins then spins = timeout end
  if M.spin(is_ready, argument, spins) then return true end
  return M.sleep(endpoint, word, is_ready, damage, argument, timeout and timeout - spins)
end

--- Wakes the other side, whose word says that it sleeps.
function M.wake(word)
  word[0] = 0
  shm.wake(ffi.cast("void *", word))
end

return M
