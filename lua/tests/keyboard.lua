-- A fake keyboard, with holds and timelines that press its keys.

local holds = require "holds"
local timelines = require "timelines"

local keyboard = {}

-- Creates a keyboard. `mask` is the keys that are down; `presses` are all presses and `over` the timelines that have
-- ended, in order. `frame` is how many frames have run.
function keyboard.new()
  local self = { mask = 0, presses = {}, over = {}, frame = 0 }
  local function press(keys)
    self.mask = self.mask | keys
    table.insert(self.presses, keys)
  end
  local function release(keys)
    self.mask = self.mask & ~keys
  end
  self.holds = holds.new(press, release)
  self.timelines = timelines.new(self.holds, press, release, function(id, cancelled)
    table.insert(self.over, id .. (cancelled and " cancelled" or ""))
  end, function()
    return self.frame
  end)

  -- Runs a frame.
  function self.advance()
    self.frame = self.frame + 1
    self.holds.advance()
    self.timelines.advance()
  end

  -- Runs this many frames. Returns the mask after each frame, in hexadecimal, joined without a separator.
  function self.step(count)
    local masks = {}
    for index = 1, count do
      self.advance()
      masks[index] = ("%x"):format(self.mask)
    end
    return table.concat(masks)
  end

  return self
end

-- Encodes steps that are written as offsets and masks of keys, such as `0:1,2:0`.
function keyboard.steps(text)
  local bytes = {}
  for offset, keys in text:gmatch "(%d+):(%d+)" do
    table.insert(bytes, string.pack("<I4I2", offset, keys))
  end
  return table.concat(bytes)
end

-- The steps that a row of test vectors can have, other than `play`, `append` and `run`. In a `press` or a `let_go`, a
-- client presses or releases keys directly.
local ACTIONS = {
  hold = function(it, keys, frames) it.holds.hold(keys, frames) end,
  press = function(it, keys)
    it.timelines.let_go(keys, 0)
    it.mask = it.mask | keys
  end,
  let_go = function(it, keys)
    it.timelines.let_go(keys, it.mask & keys)
    it.mask = it.mask & ~keys
  end,
  cancel = function(it, id) it.timelines.cancel(id) end,
}

-- Performs the steps of a row of test vectors. Returns the masks after the frames, as `MASK*FRAMES` for each series of
-- frames with the same mask, separated by spaces.
function keyboard.play(row)
  local it = keyboard.new()
  local runs = {}
  for step in (row .. "; "):gmatch "(.-); " do
    local name, rest = step:match "^(%S+) (.*)$"
    local first, second = rest:match "^(%d+) ?(%d*)$"
    if name == "play" then
      it.timelines.play(keyboard.steps(rest))
    elseif name == "append" then
      it.timelines.append(keyboard.steps(rest))
    elseif name == "run" then
      for _ = 1, first do
        it.advance()
        local run = runs[#runs]
        if run and run.mask == it.mask then
          run.length = run.length + 1
        else
          table.insert(runs, { mask = it.mask, length = 1 })
        end
      end
    else
      ACTIONS[name](it, math.tointeger(first), math.tointeger(second))
    end
  end
  for index, run in ipairs(runs) do
    runs[index] = ("%d*%d"):format(run.mask, run.length)
  end
  return table.concat(runs, " ")
end

return keyboard
