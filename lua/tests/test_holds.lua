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

test("a hold of n frames is let go in frame n + 2, as mGBA-http does it", function()
  local it = machine()
  it.holds.hold(1, 15)
  eq(it.mask, 1, "at once")
  eq(it.step(18), ("1"):rep(16) .. "00")
end)

test("a hold of no frames is seen", function()
  local it = machine()
  it.holds.hold(1, 0)
  eq(it.step(3), "100")
end)

test("each hold of a key is a press of its own", function()
  local it = machine()
  for _ = 1, 3 do
    it.holds.hold(1, 1)
  end
  eq(it.step(13), "1101110111000")
end)

test("keys that are free do not wait", function()
  local it = machine()
  it.holds.hold(1, 10)
  it.holds.hold(2, 1)
  eq(it.mask, 3)
end)

test("several keys at once wait for the last of them", function()
  local it = machine()
  it.holds.hold(1, 1)
  it.holds.hold(3, 1)
  it.holds.hold(2, 1) -- came later, so it does not overtake
  eq(it.step(12), "110333022200")
end)

test("a key that was set by hand belongs to the hand", function()
  local it = machine()
  it.holds.hold(3, 2)
  it.holds.let_go(1)
  eq(it.step(4), "3331")
end)

test("after a long hold was cleared by hand the next begins soon", function()
  local it = machine()
  it.holds.hold(1, 6000)
  it.step(2)
  it.holds.let_go(1)
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
  it.holds.let_go(1)
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
