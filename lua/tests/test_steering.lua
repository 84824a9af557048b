local harness = require "harness"
local steering = require "steering"
local test, eq = harness.test, harness.eq

-- Simulates an emulator that needs `cost` milliseconds per frame, and then waits until the next frame is due, unless it
-- is `fast`. `pace` is how many frames are due in a second, if not the normal number. Clients send requests all the
-- time. Serving them takes `error` times as long as the script has planned. Runs for some seconds. Returns the number
-- of frames in each second, and the budget at the end of each second.
local function run(self, seconds, emulator)
  local time, next_frame, frames, budgets = 0, 0, {}, {}
  local period = 1000 / (emulator.pace or steering.NORMAL_RATE) -- milliseconds from one due frame to the next
  for second = 1, seconds do
    local count, served = 0, 0
    while time < second * 1000 do
      local allowance = steering.allowance(self)
      time = time + emulator.cost + (emulator.error or 1) * allowance
      if not emulator.fast then
        next_frame = math.max(next_frame + period, time - 50) -- catches up, as mGBA does to refill its sound buffer
        time = math.max(time, next_frame)
      end
      count, served = count + 1, served + allowance
    end
    -- The last argument: how many milliseconds of each frame were idle, as the script measures it (without `error`).
    steering.steer(self, count, 1000 / count - emulator.cost - served / count)
    frames[second], budgets[second] = count, self.budget
  end
  return frames, budgets
end

-- Returns the state of the steering at the moment when clients begin to send requests. `busy` is the processor time
-- per frame, in milliseconds, that mGBA itself uses.
local function opened(busy)
  local self = steering.new()
  steering.open(self, busy)
  return self
end

-- The lowest average number of frames per second, over any five seconds.
local function slowest(frames)
  local lowest = math.huge
  for first = 1, #frames - 4 do
    local sum = 0
    for second = first, first + 4 do
      sum = sum + frames[second]
    end
    lowest = math.min(lowest, sum / 5)
  end
  return lowest
end

local function at_least(found, wanted, what)
  if found < wanted then
    error(("%s is %s, not at least %s"):format(what, found, wanted), 2)
  end
end

test("with a game that needs little time, clients get the largest budget", function()
  local self = opened(1)
  at_least(self.budget, 10, "the first budget")
  local frames, budgets = run(self, 30, { cost = 1 })
  eq(budgets[30], steering.MAX_BUDGET)
  at_least(slowest(frames), 59, "the rate")
end)

test("a game that needs much time keeps its rate, and clients get the rest", function()
  local self = opened(9)
  eq(self.budget, 0)
  local frames, budgets = run(self, 60, { cost = 9 })
  at_least(slowest(frames), 59, "the rate")
  local sum = 0
  for second = 11, 60 do
    sum = sum + budgets[second]
  end
  at_least(sum / 50, 5, "the budget (7.7 ms are left)")
end)

test("if the script measures its time wrongly, missing frames correct the budget", function()
  for _, error in ipairs { 0.5, 1.5, 2 } do
    local frames = run(opened(5), 60, { cost = 5, error = error })
    at_least(slowest({ table.unpack(frames, 6) }), 58.5, "the rate at an error of " .. error)
  end
end)

test("a game that begins to need more time gets it within seconds", function()
  local self = opened(1)
  run(self, 10, { cost = 1 })
  local frames = run(self, 30, { cost = 13 })
  at_least(slowest({ table.unpack(frames, 4) }), 59, "the rate from the fourth second on")
end)

test("a machine that is too slow for full speed loses few additional frames", function()
  local frames = run(opened(20), 60, { cost = 20 })
  at_least(slowest(frames), 49, "the rate (50 without clients)")
end)

test("slow motion is not mistaken for a slow machine", function()
  local _, budgets = run(opened(1), 30, { cost = 1, pace = 30 })
  at_least(budgets[30], 10, "the budget")
end)

test("in slow motion, clients get their time even if mGBA was busy when they came", function()
  local _, budgets = run(opened(20), 30, { cost = 1, pace = 30 })
  at_least(budgets[30], 10, "the budget")
end)

test("if mGBA was busy only in the first second, the budget recovers within seconds", function()
  local self = opened(13)
  eq(self.budget, 0)
  local frames, budgets = run(self, 10, { cost = 1 })
  at_least(budgets[4], 8, "the budget after four seconds")
  at_least(slowest(frames), 59, "the rate")
end)

test("after slow motion, the game gets back to full speed", function()
  local self = opened(1)
  run(self, 20, { cost = 8, pace = 30 })
  local frames = run(self, 30, { cost = 8 })
  at_least(slowest({ table.unpack(frames, 6) }), 59, "the rate")
end)

test("fast-forward is not slowed down", function()
  for cost = 1, 8 do
    local self = opened(cost)
    run(self, 20, { cost = cost })
    local frames = run(self, 20, { cost = cost, fast = true })
    at_least(slowest({ table.unpack(frames, 10) }), 0.99 * 1000 / cost, "the rate at " .. cost .. " ms a frame")
    eq(steering.allowance(self), 0)
    local _, budgets = run(self, 10, { cost = cost })
    at_least(budgets[10], 3, "the budget after fast-forward")
  end
end)

test("catching up after a stop is not mistaken for fast-forward", function()
  local self = opened(1)
  run(self, 5, { cost = 1 })
  steering.steer(self, 20, 1)
  steering.steer(self, 64, 1)
  eq(self.fast, false)
end)

test("if the rate is low for other reasons, clients lose little time", function()
  math.randomseed(1)
  local self = opened(1)
  local sum = 0
  for _ = 1, 100 do
    steering.steer(self, math.random(57, 60), 16.7 - 1.5 - self.budget)
    sum = sum + self.budget
  end
  at_least(sum / 100, 6, "the budget")
end)

test("the budget always stays within its bounds", function()
  math.randomseed(1)
  local self = opened(3)
  for _ = 1, 100000 do
    steering.steer(self, math.random(3) == 1 and math.random(0, 2000) or math.random(55, 62), math.random(0, 16))
    at_least(self.budget, 0, "the budget")
    at_least(steering.MAX_BUDGET, self.budget, "the bound")
  end
end)
