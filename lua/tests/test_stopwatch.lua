local harness = require "harness"
local test, eq = harness.test, harness.eq

local READY = { select = function() return 1 end }
local SILENT = { select = function() return 0 end }

-- Creates a stopwatch, with or without a clock. Also returns a function that sets the clock to a number of seconds. The
-- stopwatch's `gap` is the time that a wait is assumed to last when it ends early.
local function new(has_clock)
  local others = package.loaded.stopwatch
  package.loaded.stopwatch = nil
  local stopwatch = require "stopwatch"
  package.loaded.stopwatch = others
  local uptime = 1000
  -- Stands for /proc/uptime, which begins with the seconds since the system was started. The stopwatch reads 12 bytes.
  local file = {
    setvbuf = function() end,
    seek = function() end,
    read = function() return ("%.6f 0.00"):format(uptime):sub(1, 12) end,
  }
  local real_open = io.open
  io.open = function() return has_clock and file or nil end -- luacheck: ignore
  stopwatch.find_clock()
  io.open = real_open -- luacheck: ignore
  return stopwatch, function(seconds)
    uptime = 1000 + seconds
  end
end

local function near(found, wanted, what)
  if math.abs(found - wanted) > 1e-5 then
    error(("%s is %s, not about %s"):format(what, found, wanted), 2)
  end
end

-- Uses the stopwatch for `count` serving times, each with one wait that ends early. Each takes `length` seconds, of
-- which `busy` seconds are processor time.
local function serve(stopwatch, set, count, length, busy)
  for index = 1, count do
    set((index - 1) * length)
    stopwatch.begin_window()
    stopwatch.wait(READY)
    set(index * length)
    stopwatch.end_window(busy)
  end
end

test("a wait that runs to its end takes a millisecond", function()
  local ready, seconds = new(true).wait(SILENT)
  eq(ready, false)
  eq(seconds, 0.001)
end)

test("a wait that ends early is assumed to last as long as the gap", function()
  local stopwatch = new(true)
  local ready, seconds = stopwatch.wait(READY)
  eq(ready, true)
  eq(seconds, stopwatch.gap)
end)

test("the gap follows the measurements of the clock", function()
  local stopwatch, set = new(true)
  for _ = 1, 20 do
    serve(stopwatch, set, 16, 0.0007, 0.0005)
  end
  near(stopwatch.gap, 0.0002, "the gap")
end)

test("waits that run to their end do not change the gap", function()
  local stopwatch, set = new(true)
  for _ = 1, 20 do
    for index = 1, 16 do
      set((index - 1) * 0.0013)
      stopwatch.begin_window()
      stopwatch.wait(READY)
      stopwatch.wait(SILENT)
      set(index * 0.0013)
      stopwatch.end_window(0)
    end
  end
  near(stopwatch.gap, 0.0003, "the gap")
end)

test("the gap stays within its bounds, whatever the clock shows", function()
  local stopwatch, set = new(true)
  for _ = 1, 20 do
    serve(stopwatch, set, 16, 60, 0)
  end
  near(stopwatch.gap, 0.001, "the longest gap")
  for _ = 1, 20 do
    serve(stopwatch, set, 16, -60, 0)
  end
  near(stopwatch.gap, 0.00001, "the shortest gap")
end)

test("without a clock, the gap does not change", function()
  local stopwatch, set = new(false)
  local gap = stopwatch.gap
  serve(stopwatch, set, 100, 0.0002, 0)
  eq(stopwatch.gap, gap)
end)

test("a wait outside of the serving time does not change the gap", function()
  local stopwatch, set = new(true)
  local ready, passed = stopwatch.wait_uncounted(SILENT)
  eq(ready, false)
  near(passed, 0.001, "a wait")
  serve(stopwatch, set, 640, 0.0001, 0)
  local gap = stopwatch.gap
  for _ = 1, 1000 do
    eq(stopwatch.wait_uncounted(READY), true)
  end
  near(stopwatch.gap, gap, "the estimate")
  serve(stopwatch, set, 640, 0.0001, 0)
  near(stopwatch.gap, gap, "the estimate")
end)

test("laps are measured by the clock or, without a clock, computed from the time spent", function()
  local stopwatch, set = new(true)
  set(5)
  local lap = stopwatch.lap()
  set(5.5)
  near(lap(0), 0.5, "a lap")
  near(lap(7), 0, "the next")
  lap = new(false).lap()
  near(lap(0.25), 0.25, "a lap without a clock")
  near(lap(1), 0.75, "the next")
end)
