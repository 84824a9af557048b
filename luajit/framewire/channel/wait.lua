--- Waits for the other side of a channel: polls briefly, then sleeps in the kernel.
--
-- Before a side sleeps, it sets its sleep word in shared memory, makes both processes pass a memory barrier, and checks
-- once more. The other side publishes first and then reads that word. So either the first side sees what was published,
-- or the other side sees the word and wakes it. The side that does not sleep needs no barrier of its own.

local ffi = require "ffi"
local shm = require "framewire.shm"
local sys = require "framewire.sys"
local time = require "framewire.time"

local C = ffi.C

local M = {}

-- Longest sleep before checking whether the other process is still running, in seconds.
local CHECK_INTERVAL = 0.05
-- Longest sleep if barriers do not reach other processes. It is short because a side that misses a wake-up sleeps this
-- long. Whether the other process is still running is checked only every `CHECK_INTERVAL`, as above.
local LONGEST_SLEEP_WITHOUT_BARRIERS = 0.001
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

--- Checks repeatedly until something is ready or the time is over.
---@param is_ready function
---@param argument any passed to `is_ready`
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
---@param word ffi.cdata* this side's sleep word
---@param is_ready function
---@param damage function returns a message if the other side has written impossible values
---@param argument any passed to both functions
---@param timeout? number seconds; forever if left out
---@return true|nil ok
---@return string? message "timeout", "closed", "the other side has ended without closing" or how the channel is damaged
function M.sleep(endpoint, word, is_ready, damage, argument, timeout)
  local block = endpoint.block
  local longest_sleep = block.barriers and CHECK_INTERVAL or LONGEST_SLEEP_WITHOUT_BARRIERS
  local deadline = time.deadline(timeout)
  local next_check = 0
  while true do
    local now = time.monotonic()
    -- Check this before any access to the memory: part of the memory may be missing by now.
    local problem = block:damage()
    if problem then return nil, problem end
    if block:peer_closed() then
      problem = "closed"
    elseif now >= next_check then
      next_check = now + CHECK_INTERVAL
      problem = damage(argument)
      if not problem and not block:peer_lives() then problem = "the other side has ended without closing" end
    end
    -- Messages that were published before the channel ended are still delivered.
    if is_ready(argument) then return true end
    if problem then return nil, problem end
    local rest = deadline - now
    if rest <= 0 then return nil, "timeout" end
    word[0] = 1
    -- SYNC POINT (sleep): pairs with sender.lua's `commit` and receiver.lua's `publish`, which publish and then read
    -- the word, and with `close` in channel.lua, which marks the channel as closed and then wakes this side.
    if block.barriers then sys.barrier() end
    if not is_ready(argument) and not block:peer_closed() then
      shm.wait(ffi.cast("void *", word), 1, math.min(rest, longest_sleep))
      problem = block:damage()
      if problem then return nil, problem end
    end
    word[0] = 0
  end
end

--- Waits until something is ready: polls, then sleeps. Results as for `sleep`.
function M.wait(endpoint, word, is_ready, damage, argument, timeout)
  local spin_seconds = endpoint.spin
  if timeout and timeout < spin_seconds then spin_seconds = timeout end
  if M.spin(is_ready, argument, spin_seconds) then return true end
  return M.sleep(endpoint, word, is_ready, damage, argument, timeout and timeout - spin_seconds)
end

--- Wakes the other side, if it sleeps on this word.
function M.wake(word)
  word[0] = 0
  shm.wake(ffi.cast("void *", word))
end

return M
