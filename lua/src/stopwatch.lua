-- Measures the time spent serving clients. os.clock() is processor time: it stops while this script is blocked in select(). If
-- a wait in select() runs to its end, its length is known. If it ends early, its length is estimated: from the length of some
-- whole windows, if this machine has a clock for that.

local MILLISECOND = 0.001
local SHORTEST, LONGEST = MILLISECOND / 100, MILLISECOND
local WINDOWS = 16 -- for one estimate

local stopwatch = {
  gap = LONGEST / 2, -- seconds that a wait is assumed to last when it ends early; fixed if there is no clock
}

local windows, early, known, whole = 0, 0, 0, 0
local wall -- a clock that runs while this script is blocked, coarse but right on average; nil without one
local began

-- Finds a clock that Lua can read on this machine.
function stopwatch.find_clock()
  if package.config:sub(1, 1) == "\\" then
    wall = os.clock -- counts all time on Windows
    return
  end
  local file = io.open("/proc/uptime") -- Linux
  if file then
    file:setvbuf("no") -- or the same bytes would be read again
    wall = function()
      file:seek("set")
      return tonumber(file:read(12):match("^[%d.]+"))
    end
  end
end

-- Seconds by that clock, which cannot be set; nil without one.
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

-- Like `wait`, outside of windows: it does not count for an estimate.
function stopwatch.wait_aside(socket)
  local ready = socket:select(1) ~= 0
  return ready, ready and stopwatch.gap or MILLISECOND
end

-- Returns a function that returns the seconds since its last call; for the first call, since now. It uses the clock if there is
-- one. Otherwise it uses its argument, the time `spent` so far.
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

-- `busy` is the processor time of this window.
function stopwatch.end_window(busy)
  if not began then
    return
  end
  windows, known, whole = windows + 1, known + busy, whole + wall() - began
  if windows < WINDOWS then
    return
  end
  if early >= WINDOWS then
    local mean = (whole - known) / early
    stopwatch.gap = (stopwatch.gap + math.max(SHORTEST, math.min(LONGEST, mean))) / 2
  end
  windows, early, known, whole = 0, 0, 0, 0
end

return stopwatch
