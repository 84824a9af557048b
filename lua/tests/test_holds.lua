local harness = require "harness"
local keyboard = require "keyboard"
local limits = require "limits"
local refusal = require "refusal"
local test, eq = harness.test, harness.eq

for _, row in ipairs(harness.vectors "holds.tsv") do
  local name, steps, masks = table.unpack(row)
  test("holds.tsv: " .. name, function()
    eq(keyboard.play(steps), masks)
  end)
end

-- As in mGBA-http, a hold keeps its keys down for two frames more than its number says.

test("a hold does not release a key that a client has set directly", function()
  local it = keyboard.new()
  it.holds.hold(3, 2)
  it.holds.let_go(1, 0)
  eq(it.step(4), "3331")
end)

test("after a client has cleared a long hold directly, the next hold begins with the next frame", function()
  local it = keyboard.new()
  it.holds.hold(1, 6000)
  it.step(2)
  it.holds.let_go(1, 0)
  it.mask = 0
  it.holds.hold(1, 1)
  eq(it.mask, 0, "not in the same frame, or the game would see a single long press")
  eq(it.step(5), "11100")
end)

test("too many waiting holds are refused as busy", function()
  local it = keyboard.new()
  for _ = 1, limits.waiting_holds + 1 do
    it.holds.hold(1, 0)
  end
  eq(harness.refusal(it.holds.hold, 1, 0).status, refusal.BUSY)
  it.holds.let_go(1, 0)
end)

test("ten thousand taps are ten thousand presses", function()
  local it = keyboard.new()
  for _ = 1, 10000 do
    it.holds.hold(4, 1)
  end
  it.step(10000 * 4)
  eq(#it.presses, 10000)
  eq(it.mask, 0)
  eq(it.holds.down(), 0)
end)

test("a long hold whose keys were cleared leaves nothing in memory", function()
  local it = keyboard.new()
  local function play(count)
    for _ = 1, count do
      it.holds.hold(1, 1000000)
      it.holds.let_go(1, 1)
      it.holds.advance()
    end
    collectgarbage()
    return collectgarbage "count"
  end
  local before = play(100)
  eq(play(10000) - before < 1000, true) -- 254 KiB for the presses that the keyboard records
end)
