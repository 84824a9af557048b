--- Timers: a heap ordered by time, without threads or signals. A loop has one heap, which shows how long the loop can
-- sleep.

local floor, max = math.floor, math.max

-- The shortest interval, in seconds. With an interval too small for the precision of numbers, `run` would never end.
local SHORTEST = 1e-6

local Timers = {}
Timers.__index = Timers

local Timer = {}
Timer.__index = Timer

--- Stops a timer: its callback is not called again. A timer that has already been stopped can be stopped again.
function Timer:cancel()
  self.callback = nil
end

local function swap(heap, a, b)
  heap[a], heap[b] = heap[b], heap[a]
end

local function rise(heap, place)
  while place > 1 do
    local parent = floor(place / 2)
    if heap[parent].at <= heap[place].at then return end
    swap(heap, parent, place)
    place = parent
  end
end

local function sink(heap, place)
  local count = #heap
  while true do
    local child = place * 2
    if child > count then return end
    if child < count and heap[child + 1].at < heap[child].at then child = child + 1 end
    if heap[place].at <= heap[child].at then return end
    swap(heap, place, child)
    place = child
  end
end

local function push(heap, timer)
  heap[#heap + 1] = timer
  rise(heap, #heap)
end

local function pop(heap)
  local first, last = heap[1], #heap
  heap[1] = heap[last]
  heap[last] = nil
  sink(heap, 1)
  return first
end

--- Adds a timer.
---@param at number monotonic time of the first call
---@param callback function called without arguments
---@param interval? number seconds between further calls; none by default
---@return table timer with a method `cancel`
function Timers:add(at, callback, interval)
  if type(at) ~= "number" or at ~= at then error("a timer needs a time, not '" .. tostring(at) .. "'", 3) end
  if type(callback) ~= "function" then error("a timer calls a function, not a " .. type(callback), 3) end
  if interval and (interval <= 0 or interval ~= interval) then
    error(("a timer cannot fire every %s seconds"):format(interval), 3)
  end
  local timer = setmetatable({ at = at, callback = callback, interval = interval }, Timer)
  push(self.heap, timer)
  return timer
end

--- The time of the next timer.
---@return number|nil at monotonic time; nil without timers
function Timers:next()
  local heap = self.heap
  while heap[1] and not heap[1].callback do pop(heap) end
  return heap[1] and heap[1].at
end

--- Runs all timers that are due. If several intervals of a timer have passed, it runs only once.
---@param now number monotonic time
function Timers:run(now)
  local heap = self.heap
  while heap[1] and heap[1].at <= now do
    local timer = pop(heap)
    local callback = timer.callback
    if callback then
      if timer.interval then
        timer.at = now + max(timer.interval, SHORTEST)
        push(heap, timer)
      else
        timer.callback = nil
      end
      callback()
    end
  end
end

local M = {}

--- Creates an empty set of timers.
---@return table timers
function M.new()
  return setmetatable({ heap = {} }, Timers)
end

return M
