-- Measures how much of the serving time (see window.lua) is used. Except on Windows, os.clock() measures processor
-- time, so it stands still while this script is blocked in select(). If a wait in select() runs to its end, its length
-- is known. If it ends early, its length is estimated. If this machine has a suitable clock, the estimate is computed
-- from the total length of several serving times.
--
-- `begin_window` and `end_window` are called at the beginning and the end of each serving time, except in lockstep.

local MILLISECOND = 0.001
local SHORTEST, LONGEST = MILLISECOND / 100, MILLISECOND -- the limits of `stopwatch.gap`
-- An estimate needs this many serving times, and this many waits that ended early.
local SAMPLES = 16

local stopwatch = {
  gap = LONGEST / 2, -- seconds that a wait is assumed to last when it ends early; fixed if there is no clock
}

-- The number of serving times; the number of waits that ended early; the seconds of work, and of waits that ran to
-- their end; and all seconds by the clock. After every SAMPLES serving times, these are set to 0 again.
local servings, early, known, whole = 0, 0, 0, 0
-- A clock that also runs while this script is blocked; coarse, but right on average. Nil if there is no such clock.
local wall
local began -- the time on this clock at which the serving time began

-- Finds a clock that Lua can read on this machine.
function stopwatch.find_clock()
  if package.config:sub(1, 1) == "\\" then
    wall = os.clock -- on Windows, it measures all time
    return
  end
  local file = io.open("/proc/uptime") -- Linux
  if file then
    file:setvbuf("no") -- with a buffer, the same bytes would be read again
    wall = function()
      file:seek("set")
      return tonumber(file:read(12):match("^[%d.]+"))
    end
  end
end

-- The seconds on the clock that `find_clock` has found, which is monotonic; nil if there is no such clock.
function stopwatch.seconds()
  return wall and wall()
end

-- Waits up to a millisecond until a socket has something to read. Returns whether it has, and the seconds that passed.
function stopwatch.wait(socket)
  if socket:select(1) == 0 then
    known = known + MILLISECOND
    return false, MILLISECOND
  end
  early = early + 1
  return true, stopwatch.gap
end

-- Like `wait`, but not counted in the estimate. It is used in lockstep, where the serving time is not measured.
function stopwatch.wait_uncounted(socket)
  local ready = socket:select(1) ~= 0
  return ready, ready and stopwatch.gap or MILLISECOND
end

-- Returns a function that returns the seconds since its last call. Its first call returns the seconds since the call of
-- `lap`. The function uses the clock if there is one, and otherwise its argument: the seconds `spent` so far.
function stopwatch.lap()
  local before = wall and wall() or 0
  return function(spent)
    local now = wall and wall() or spent
    local passed = now - before
    before = now
    return passed
  end
end

function stopwatch.begin_window()
  began = wall and wall()
end

-- `busy` is the processor time that was used in this serving time.
function stopwatch.end_window(busy)
  if not began then
    return
  end
  servings, known, whole = servings + 1, known + busy, whole + wall() - began
  if servings < SAMPLES then
    return
  end
  if early >= SAMPLES then
    local mean = (whole - known) / early
    stopwatch.gap = (stopwatch.gap + math.max(SHORTEST, math.min(LONGEST, mean))) / 2
  end
  servings, early, known, whole = 0, 0, 0, 0
end

return stopwatch
