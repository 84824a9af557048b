local fake = require "fake"
local harness = require "harness"
local limits = require "limits"
local log = require "log"
local test, eq = harness.test, harness.eq

local LINES = 20 -- the limit per second in these tests

-- Calls `run` with a function that sets the clock. Returns the lines on the console.
local function lines_of(level, run)
  local real_time, real_limit, now = os.time, limits.log_lines, 4000000000
  limits.log_lines = LINES
  os.time = function() return now end -- luacheck: ignore
  console = fake.console()
  log.set_level(level)
  local fine, problem = pcall(run, function(seconds)
    now = 4000000000 + seconds
  end)
  os.time, limits.log_lines = real_time, real_limit -- luacheck: ignore
  log.set_level("none")
  assert(fine, problem)
  return console.lines
end

test("a line begins with the name of the script", function()
  lines_of("info", function(at)
    at(1)
    log.info("the first line of a new second may be about the second before it")
    console = fake.console()
    log.info("%d of %s", 1, "a kind")
  end)
  eq(console.lines[1], "Framewire: 1 of a kind")
end)

test("lines below the level are not shown", function()
  local lines = lines_of("warn", function(at)
    at(10)
    log.debug("debug")
    log.info("info")
    log.warn("warn")
    log.error("error")
  end)
  eq(table.concat(lines, ", "), "Framewire: warn, Framewire: error")
  eq(#lines_of("none", function() log.error("error") end), 0)
end)

test("an unknown level changes nothing", function()
  local lines = lines_of("warn", function(at)
    at(20)
    eq(log.set_level("loud"), false)
    log.info("info")
    log.warn("warn")
  end)
  eq(#lines, 1)
end)

test("more lines than a console can take are counted, not shown", function()
  local lines = lines_of("info", function(at)
    at(30)
    for number = 1, LINES + 5 do
      log.info("line %d", number)
    end
    eq(#console.lines, LINES)
    at(31)
    log.info("next")
  end)
  eq(#lines, LINES + 2)
  eq(lines[#lines - 1], "Framewire: 5 more lines in one second are not shown")
  eq(lines[#lines], "Framewire: next")
end)
