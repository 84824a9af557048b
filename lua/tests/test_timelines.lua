local harness = require "harness"
local keyboard = require "keyboard"
local limits = require "limits"
local refusal = require "refusal"
local test, eq = harness.test, harness.eq
local steps = keyboard.steps

for _, row in ipairs(harness.vectors "timelines.tsv") do
  local name, what, masks = table.unpack(row)
  test("timelines.tsv: " .. name, function()
    eq(keyboard.play(what), masks)
  end)
end

-- The timelines that have ended since the last call.
local function over(it)
  local list = table.concat(it.over, ", ")
  it.over = {}
  return list
end

test("the end of each timeline is reported once, with its cause", function()
  local it = keyboard.new()
  eq(it.timelines.play(steps "0:1,2:0"), 1)
  eq(it.timelines.play(steps "0:2,9:0"), 2)
  eq(it.timelines.play(steps "0:4,9:0"), 3)
  eq(it.timelines.play(steps "0:24,9:0"), 4)
  it.step(1)
  eq(over(it), "")
  it.step(1)
  eq(over(it), "1")
  eq(it.timelines.cancel(2), true)
  eq(it.timelines.cancel(2), false)
  eq(over(it), "2 cancelled")
  -- A client sets the keys of timeline 4 directly, one after the other.
  it.timelines.let_go(8, 0)
  eq(over(it), "", "it still has a key")
  it.timelines.let_go(16, 0)
  eq(over(it), "4 cancelled")
  eq(it.timelines.cancel(0), true)
  eq(over(it), "3 cancelled")
  eq(it.timelines.cancel(0), false)
  it.step(20)
  eq(over(it), "")
end)

test("cancelling 0 also ends holds, and returns true if there were any", function()
  local it = keyboard.new()
  it.holds.hold(1, 5)
  eq(it.timelines.cancel(0), true)
  eq(it.timelines.cancel(0), false)
  eq(it.mask, 0)
  it.timelines.play(steps "0:1,5:0")
  it.holds.hold(1, 5)
  eq(it.timelines.cancel(0), true)
  eq(it.step(10), "0000000000", "the waiting hold is gone")
end)

test("keys of another timeline are refused, and the refusal has that timeline's number", function()
  local it = keyboard.new()
  it.timelines.play(steps "0:1,5:0")
  it.timelines.play(steps "0:20,6:0")
  local problem = harness.refusal(it.timelines.play, steps "0:5,5:0")
  eq(problem.status, refusal.BAD_ARGUMENT)
  eq(problem.text, "timeline 1 plays A; cancel it first, or wait for its end")
  eq(harness.refusal(it.timelines.play, steps "9:20,10:0").text:match "^[^;]+", "timeline 2 plays Select, Right")
  eq(it.mask, 21, "the keys are unchanged")
  -- The hexadecimal masks of six frames: 15 four times, then 14, then 0.
  eq(it.step(6), ("15"):rep(4) .. "140")
end)

test("steps that are not a valid timeline are refused with the reason", function()
  local it = keyboard.new()
  local long = ("\0"):rep(6 * (limits.steps + 1))
  for bytes, says in pairs {
    [""] = "empty", ["1234567"] = "7 bytes", [steps "0:1"] = "last", [steps "0:1,0:0"] = "must rise",
    [steps "3:1,2:0"] = "offset 2 after 3", [steps "0:1024,1:0"] = "keys 1024 at offset 0", [steps "0:0"] = "no key",
    [long] = "65537 steps",
  } do
    local problem = harness.refusal(it.timelines.play, bytes)
    eq(problem.status, refusal.BAD_ARGUMENT)
    eq(problem.text:find(says, 1, true) ~= nil, true, problem.text)
  end
  eq(it.timelines.play(steps "0:1,1:0"), 1, "a refused timeline gets no number")
end)

test("the longest timeline presses its keys in exactly the right frames", function()
  math.randomseed(4)
  local it = keyboard.new()
  local bytes, expected, offset = {}, {}, 0
  for index = 1, limits.steps do
    local mask = index < limits.steps and math.random(0, 3) or 0
    bytes[index] = string.pack("<I4I2", offset, mask)
    local length = math.random(3)
    expected[index] = ("%x"):format(mask):rep(length)
    offset = offset + length
  end
  it.timelines.play(table.concat(bytes))
  local played = ("%x"):format(it.mask) .. it.step(offset - 1)
  eq(played == table.concat(expected), true, "the masks")
  eq(table.concat(it.over, ","), "1")
end)

test("the ends of the last timelines are remembered", function()
  local it = keyboard.new()
  local function how(id)
    return table.concat(it.timelines.describe(id), " ")
  end
  it.timelines.play(steps "0:1,2:0")
  it.timelines.play(steps "0:2,9:0")
  it.step(1)
  eq(how(1) .. ", " .. how(2), "playing, playing")
  it.step(4)
  it.timelines.cancel(2)
  eq(how(1) .. ", " .. how(2), "over 2, cancelled 5")
  eq(harness.refusal(it.timelines.describe, 3).text:match "^[^:]+", "timeline 3 is not known")
  for _ = 1, limits.ended_timelines - 1 do
    it.timelines.play(steps "0:1,1:0")
    it.timelines.cancel(0)
  end
  eq(harness.refusal(it.timelines.describe, 1).status, refusal.BAD_ARGUMENT)
  eq(how(2), "cancelled 5")
end)
