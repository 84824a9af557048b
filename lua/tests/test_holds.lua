local harness = require "harness"
local limits = require "limits"
local refusal = require "refusal"
local new = require "holds".new
local test, eq = harness.test, harness.eq

-- Holds and the mask of keys they make: `step(n)` runs n frames and gives the mask after each as a string of digits.
local function machine()
  local self = { mask = 0, presses = {} }
  self.holds = new(function(keys)
    self.mask = self.mask | keys
    table.insert(self.presses, keys)
  end, function(keys)
    self.mask = self.mask & ~keys
  end)
  function self.step(count)
    local masks = {}
    for index = 1, count do
      self.holds.advance()
      masks[index] = ("%x"):format(self.mask)
    end
    return table.concat(masks)
  end
  return self
end

-- The mask after each frame of a row's steps, as lengths of runs.
local function play(steps)
  local it = machine()
  local runs = {}
  for step in (steps .. "; "):gmatch "(.-); " do
    local name, first, second = step:match "^(%S+) (%d+) ?(%d*)$"
    first = math.tointeger(first)
    if name == "hold" then
      it.holds.hold(first, math.tointeger(second))
    elseif name == "press" then
      it.holds.let_go(first, 0)
      it.mask = it.mask | first
    elseif name == "let_go" then
      it.holds.let_go(first, it.mask & first)
      it.mask = it.mask & ~first
    else
      for _ = 1, first do
        it.holds.advance()
        local run = runs[#runs]
        if run and run.mask == it.mask then
          run.length = run.length + 1
        else
          table.insert(runs, { mask = it.mask, length = 1 })
        end
      end
    end
  end
  for index, run in ipairs(runs) do
    runs[index] = ("%d*%d"):format(run.mask, run.length)
  end
  return table.concat(runs, " ")
end

for _, row in ipairs(harness.vectors "holds.tsv") do
  local name, steps, masks = table.unpack(row)
  test("holds.tsv: " .. name, function()
    eq(play(steps), masks)
  end)
end

test("a key that was set by hand belongs to the hand", function()
  local it = machine()
  it.holds.hold(3, 2)
  it.holds.let_go(1, 0)
  eq(it.step(4), "3331")
end)

test("after a long hold was cleared by hand the next begins soon", function()
  local it = machine()
  it.holds.hold(1, 6000)
  it.step(2)
  it.holds.let_go(1, 0)
  it.mask = 0
  it.holds.hold(1, 1)
  eq(it.mask, 0, "not in the same frame, or the game would see one press")
  eq(it.step(5), "11100")
end)

test("too many that wait are refused as busy", function()
  local it = machine()
  for _ = 1, limits.waiting_holds + 1 do
    it.holds.hold(1, 0)
  end
  eq(harness.refusal(it.holds.hold, 1, 0).status, refusal.BUSY)
  it.holds.let_go(1, 0)
end)

test("ten thousand taps are ten thousand presses", function()
  local it = machine()
  for _ = 1, 10000 do
    it.holds.hold(4, 1)
  end
  it.step(10000 * 4)
  eq(#it.presses, 10000)
  eq(it.mask, 0)
  eq(it.holds.down(), 0)
end)
