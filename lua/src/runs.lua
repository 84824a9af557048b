-- Runs: the operation `run` waits, step by step, until a condition holds or a number of frames has passed. Each step
-- can play keys, as a timeline. The embedded core has the same rules; docs/protocol.md describes the bytes.

local code = require "code"
local emulator = require "emulator"
local game = require "game"
local limits = require "limits"
local lockstep = require "lockstep"
local refusal = require "refusal"
local ticks = require "ticks"
local timelines = require "timelines"

local pack, unpack = string.pack, string.unpack
local refuse, BAD_ARGUMENT, BUSY = refusal.refuse, refusal.BAD_ARGUMENT, refusal.BUSY

local FRAMES, CONDITION, TIMED_OUT, STOP = 0, 1, 2, 3 -- why a step ended
local GOES_ON = 1 -- a flag of a step: after a time-out of this step, the run continues
-- The same text as in crates/protocol/src/run.rs.
local OTHER_GAME = "another game was loaded during the run, and in it the same keys and addresses mean something else"
local NOBODY = "nobody waited for the end of the run any more"
local GONE = 10 * ticks.per_second -- a run ends when its link has had no connection for this many frames

local runs = {}

local active = {} -- the runs that wait for frames, in the order in which they began

-- Decodes the next item of a run's bytes.
local function take(self, format)
  local fine, value, next_at = pcall(unpack, format, self.bytes, self.at)
  if not fine then
    refuse(BAD_ARGUMENT, "steps: the bytes end too early")
  end
  self.at = next_at
  return value
end

local function take_conditions(self, place)
  local count = take(self, "<I1")
  if count > limits.conditions then
    refuse(BAD_ARGUMENT, "%s: %d conditions; at most %d are accepted", place, count, limits.conditions)
  end
  local conditions = {}
  for index = 1, count do
    conditions[index] = code.compile(take(self, "<s2"), ("%s[%d]"):format(place, index - 1))
  end
  return conditions
end

local function take_step(self, index)
  local place = ("steps[%d]"):format(index)
  local frames, flags = take(self, "<I4"), take(self, "<I1")
  if flags ~= 0 and flags ~= GOES_ON then
    refuse(BAD_ARGUMENT, "%s.flags is %d; use 0 or %d", place, flags, GOES_ON)
  end
  local step = { frames = frames, goes_on = flags == GOES_ON, keys = take(self, "<s4") }
  step.until_any = take_conditions(self, place .. ".until")
  if step.frames == 0 then
    refuse(BAD_ARGUMENT, "%s.frames is 0; use 1 to %d", place, limits.run_frames)
  elseif step.keys ~= "" then
    timelines.check(step.keys)
  end
  return step
end

local function decode(bytes)
  local self = { bytes = bytes, at = 1 }
  local run = { stop = take_conditions(self, "stop"), steps = {} }
  local count, frames = take(self, "<I2"), 0
  if count < 1 or count > limits.run_steps then
    refuse(BAD_ARGUMENT, "steps: %d of them; use 1 to %d", count, limits.run_steps)
  end
  for index = 1, count do
    run.steps[index] = take_step(self, index - 1)
    frames = frames + run.steps[index].frames
  end
  if self.at ~= #bytes + 1 then
    refuse(BAD_ARGUMENT, "steps: %d bytes too many", #bytes + 1 - self.at)
  elseif frames > limits.run_frames then
    refuse(BAD_ARGUMENT, "the steps take up to %d frames; at most %d are accepted", frames, limits.run_frames)
  end
  return run
end

-- Raises a refusal if these bytes are not a run, or if a condition reads from a constant address where there is no
-- memory.
runs.check = decode

-- The index of the first condition that holds, counted from 0; nil if no condition holds.
local function first(conditions, frame)
  for index = 1, #conditions do
    local value = conditions[index](frame)
    if value and value ~= 0 then
      return index - 1
    end
  end
end

-- Why the current step ends now, and the index of the condition that ends it; nil if the step continues.
local function find_end(run)
  local step, frame = run.steps[run.index], emulator.frame()
  local index = first(run.stop, frame)
  if index then
    return STOP, index
  end
  index = first(step.until_any, frame)
  if index then
    return CONDITION, index
  elseif run.frames < step.frames then
    return nil
  end
  return #step.until_any > 0 and TIMED_OUT or FRAMES, 0
end

-- Adds the end of the current step to the result. Returns whether the run is over.
local function end_step(run, why, index)
  run.ends[#run.ends + 1] = pack("<I1I1I4I4", why, index, run.frames, emulator.frame())
  local goes_on = run.steps[run.index].goes_on
  run.index, run.frames = run.index + 1, 0
  return why == STOP or why == TIMED_OUT and not goes_on or run.index > #run.steps
end

-- Begins the current step. If it ends immediately, begins the next one, and so on. Returns whether the run is over.
local function begin_steps(run)
  while true do
    local why, index = find_end(run)
    if not why then
      local keys = run.steps[run.index].keys
      run.timeline = keys ~= "" and emulator.timelines.play(keys) or nil
      return false
    elseif end_step(run, why, index) then
      return true
    end
  end
end

-- Decodes and begins a run for a link's session. Returns the run or, if it is over without a frame, its result.
function runs.begin(bytes, session)
  if #active >= limits.runs then
    refuse(BUSY, "%d runs are under way, which is the limit; wait for the end of one", #active)
  end
  local run = decode(bytes)
  run.session, run.index, run.frames, run.ends, run.frames_alone = session, 1, 0, {}, 0
  -- Whether frames run in lockstep because of this run.
  run.drives = lockstep.on
  run.games = game.games
  return begin_steps(run) and table.concat(run.ends) or run
end

-- Keeps a run that waits for frames. At its end, `finish` is called with the values that `operations.attempt` returns:
-- true and the result; or false, a status and the reason.
function runs.wait(run, finish)
  run.finish = finish
  active[#active + 1] = run
  lockstep.driven = lockstep.driven + (run.drives and 1 or 0)
end

local function release(run)
  if run.timeline then
    emulator.timelines.cancel(run.timeline)
    run.timeline = nil
  end
end

-- Ends the run at `index` in `active`. If there is a problem, the run has failed.
local function stop(index, problem)
  local run = table.remove(active, index)
  lockstep.driven = lockstep.driven - (run.drives and 1 or 0)
  release(run)
  if problem then
    -- The status is always FAILED, even if the problem is a refusal with another status. After such a refusal, a
    -- repeat of the request would be performed; but frames have run, and must not run again.
    run.finish(false, refusal.FAILED, problem)
  else
    run.finish(true, table.concat(run.ends))
  end
end

-- Ends a run because no client waits for it any more.
function runs.cancel(run)
  for index = #active, 1, -1 do
    if active[index] == run then
      stop(index, NOBODY)
    end
  end
end

-- Called after each frame, before this script changes anything. Finds the steps that end with this frame.
function runs.after_frame()
  if not emu then
    return
  end
  for index = 1, #active do
    local run = active[index]
    run.frames = run.frames + 1
    -- For how many frames the session has had no connection.
    run.frames_alone = run.session.connection and 0 or run.frames_alone + 1
    if run.games == game.games then
      run.why, run.condition = find_end(run)
    else
      run.problem = OTHER_GAME
    end
  end
end

-- Ends the current step of a run and begins the next one. Returns whether the run continues.
local function go_on(run)
  local why, condition = run.why, run.condition
  run.why = nil
  release(run)
  if end_step(run, why, condition) then
    return false
  end
  local fine, is_over = pcall(begin_steps, run)
  if not fine then
    local _, problem = refusal.of(is_over)
    run.problem = problem
  end
  return fine and not is_over
end

-- Called after timelines and holds were advanced. Continues the runs in which a step has ended, and cancels the runs
-- whose link has been gone for too long. Returns whether a run ended, other than by being cancelled.
function runs.settle()
  local index, ended = 1, false
  while active[index] do
    local run = active[index]
    if run.frames_alone >= GONE then
      stop(index, NOBODY)
    elseif run.problem or run.why and not go_on(run) then
      stop(index, run.problem)
      ended = true
    else
      index = index + 1
    end
  end
  return ended
end

return runs
