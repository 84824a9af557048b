local harness = require "harness"
local steering = require "steering"
local test, eq = harness.test, harness.eq

-- An emulator that takes `cost` milliseconds for a frame and waits for the next frame's time, unless `fast`. Clients ask
-- all the time; `error` is how many times longer than thought they are served. Runs some seconds and gives the frames of
-- each, and the budget at the end of each.
local function run(self, seconds, emulator)
  local time, next_frame, frames, budgets = 0, 0, {}, {}
  local pace = 1000 / (emulator.pace or steering.NORMAL_RATE)
  for second = 1, seconds do
    local count, served = 0, 0
    while time < second * 1000 do
      local allowance = steering.allowance(self)
      time = time + emulator.cost + (emulator.error or 1) * allowance
      if not emulator.fast then
        next_frame = math.max(next_frame + pace, time - 50) -- catches up a little, as sound does
        time = math.max(time, next_frame)
      end
      count, served = count + 1, served + allowance
    end
    steering.steer(self, count, 1000 / count - emulator.cost - served / count)
    frames[second], budgets[second] = count, self.budget
  end
  return frames, budgets
end

local function opened(busy)
  local self = steering.new()
  steering.open(self, busy)
  return self
end

-- The lowest rate over any five seconds.
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

test("a light game gives clients the most there is", function()
  local self = opened(1)
  at_least(self.budget, 10, "the first budget")
  local frames, budgets = run(self, 30, { cost = 1 })
  eq(budgets[30], steering.MAX_BUDGET)
  at_least(slowest(frames), 59, "the rate")
end)

test("a heavy game keeps its rate, and clients get what is left", function()
  local self = opened(9)
  eq(self.budget, 0)
  local frames, budgets = run(self, 60, { cost = 9 })
  at_least(slowest(frames), 59, "the rate")
  local sum = 0
  for second = 11, 60 do
    sum = sum + budgets[second]
  end
  at_least(sum / 50, 5, "the budget, of 7.7 that are left")
end)

test("time that is estimated wrongly is found out by the frames it costs", function()
  for _, error in ipairs { 0.5, 1.5, 2 } do
    local frames = run(opened(5), 60, { cost = 5, error = error })
    at_least(slowest({ table.unpack(frames, 6) }), 58.5, "the rate at an error of " .. error)
  end
end)

test("a game that becomes heavy gets its time back in seconds", function()
  local self = opened(1)
  run(self, 10, { cost = 1 })
  local frames = run(self, 30, { cost = 13 })
  at_least(slowest({ table.unpack(frames, 4) }), 59, "the rate from the fourth second on")
end)

test("a machine too slow for full speed loses little more", function()
  local frames = run(opened(20), 60, { cost = 20 })
  at_least(slowest(frames), 49, "the rate, of 50 without clients")
end)

test("slow motion is not taken for a slow machine", function()
  local _, budgets = run(opened(1), 30, { cost = 1, pace = 30 })
  at_least(budgets[30], 10, "the budget")
end)

test("slow motion that was busy when clients came gives them their time all the same", function()
  local _, budgets = run(opened(20), 30, { cost = 1, pace = 30 })
  at_least(budgets[30], 10, "the budget")
end)

test("a first second that was busy for once is made up for in seconds", function()
  local self = opened(13)
  eq(self.budget, 0)
  local frames, budgets = run(self, 10, { cost = 1 })
  at_least(budgets[4], 8, "the budget after four seconds")
  at_least(slowest(frames), 59, "the rate")
end)

test("after slow motion full speed is wanted again", function()
  local self = opened(1)
  run(self, 20, { cost = 8, pace = 30 })
  local frames = run(self, 30, { cost = 8 })
  at_least(slowest({ table.unpack(frames, 6) }), 59, "the rate")
end)

test("fast-forward is left alone", function()
  for cost = 1, 8 do
    local self = opened(cost)
    run(self, 20, { cost = cost })
    local frames = run(self, 20, { cost = cost, fast = true })
    at_least(slowest({ table.unpack(frames, 10) }), 0.99 * 1000 / cost, "the rate at " .. cost .. " ms a frame")
    eq(steering.allowance(self), 0)
    local _, budgets = run(self, 10, { cost = cost })
    at_least(budgets[10], 3, "the budget when it is over")
  end
end)

test("catching up after a stop is not fast-forward", function()
  local self = opened(1)
  run(self, 5, { cost = 1 })
  steering.steer(self, 20, 1)
  steering.steer(self, 64, 1)
  eq(self.fast, false)
end)

test("a rate that is low for other reasons costs clients little", function()
  math.randomseed(1)
  local self = opened(1)
  local sum = 0
  for _ = 1, 100 do
    steering.steer(self, math.random(57, 60), 16.7 - 1.5 - self.budget)
    sum = sum + self.budget
  end
  at_least(sum / 100, 6, "the budget")
end)

test("the budget never leaves its bounds", function()
  math.randomseed(1)
  local self = opened(3)
  for _ = 1, 100000 do
    steering.steer(self, math.random(3) == 1 and math.random(0, 2000) or math.random(55, 62), math.random(0, 16))
    at_least(self.budget, 0, "the budget")
    at_least(steering.MAX_BUDGET, self.budget, "the bound")
  end
end)
