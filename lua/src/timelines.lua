-- Key timelines: plans of which keys are down in which frames. The script itself performs them, so the network cannot
-- delay them. A timeline owns its keys as a hold does, and uses the ticks of `holds`.

local arguments = require "arguments"
local limits = require "limits"
local refusal = require "refusal"

local unpack = string.unpack
local refuse, BAD_ARGUMENT = refusal.refuse, refusal.BAD_ARGUMENT

local STEP = 6 -- bytes of a step: an offset, and a mask of the keys that are down from then on
local ALL_KEYS = 0x3FF

local function read_step(steps, at)
  return unpack("<I4I2", steps, at)
end

-- Returns all keys that occur in the steps. Raises a refusal if the steps are not a valid timeline.
local function keys_of(steps)
  if #steps % STEP ~= 0 then
    refuse(BAD_ARGUMENT, "`steps` has %d bytes; a step has %d", #steps, STEP)
  elseif #steps > STEP * limits.steps then
    refuse(BAD_ARGUMENT, "`steps` has %d steps; at most %d are accepted", #steps // STEP, limits.steps)
  elseif steps == "" then
    refuse(BAD_ARGUMENT, "`steps` is empty")
  end
  local all, mask, before = 0, 0, -1
  for at = 1, #steps, STEP do
    local offset
    offset, mask = read_step(steps, at)
    if mask > ALL_KEYS then
      refuse(BAD_ARGUMENT, "`steps` holds keys %d at offset %d; a mask from 0 to %d is accepted", mask, offset, ALL_KEYS)
    elseif offset <= before then
      refuse(BAD_ARGUMENT, "`steps` has offset %d after %d; offsets must rise", offset, before)
    end
    all, before = all | mask, offset
  end
  if mask ~= 0 then
    refuse(BAD_ARGUMENT, "the last of `steps` must release all keys")
  elseif all == 0 then
    refuse(BAD_ARGUMENT, "`steps` names no key")
  end
  return all
end

-- Creates timelines that share the keys with `holds`. `press` and `release` are functions that press and release a mask
-- of keys. `over` is called with the id of each timeline that ends, and whether it ended before its last step. `frame`
-- returns the frame counter.
local function new(holds, press, release, over, frame)
  local timelines = {}
  local running = {} -- in the order in which they began
  -- Timelines that were appended and have not begun, in the order of their first ticks. They own no keys yet.
  local waiting = {}
  local both_lists = { running, waiting }
  local last_id = 0
  -- By id, how a timeline ended; these ids in a ring buffer; and how many timelines have ended.
  local ended, ended_order, ended_count = {}, {}, 0

  -- Presses those of `keys` that are in `mask`, and releases the others.
  local function set(keys, mask)
    if keys & mask ~= 0 then
      press(keys & mask)
    end
    if keys & ~mask ~= 0 then
      release(keys & ~mask)
    end
  end

  local function remember(id, cancelled)
    local place = ended_count % limits.ended_timelines
    if ended_order[place] then
      ended[ended_order[place]] = nil
    end
    ended[id], ended_order[place], ended_count = (cancelled and "cancelled " or "over ") .. frame(), id, ended_count + 1
  end

  local function finish(list, index, cancelled)
    local timeline = table.remove(list, index)
    holds.finish(timeline)
    remember(timeline.id, cancelled)
    over(timeline.id, cancelled)
  end

  -- Computes the tick of the next step.
  local function schedule_next(timeline)
    timeline.due = timeline.start + read_step(timeline.steps, timeline.at)
  end

  -- Performs the step that is due. Returns true if it was the last step; otherwise schedules the next one.
  local function step(timeline)
    local _, mask = read_step(timeline.steps, timeline.at)
    set(holds.owned(timeline), mask)
    timeline.at = timeline.at + STEP
    if timeline.at > #timeline.steps then
      return true
    end
    schedule_next(timeline)
    return false
  end

  local function check_free(other, owned, keys)
    local both = owned & keys
    if both ~= 0 then
      refuse(BAD_ARGUMENT, "timeline %d plays %s; cancel it first, or wait for its end", other.id,
        arguments.names(both, ", "))
    end
  end

  local function create(steps, keys, start)
    last_id = last_id + 1
    local timeline = { id = last_id, steps = steps, keys = keys, at = 1, start = start, due = nil }
    timeline.ends = start + read_step(steps, #steps - STEP + 1) -- the first tick after its last frame
    return timeline
  end

  -- Begins a timeline with the next frame.
  local function begin(timeline)
    set(holds.take(timeline.keys, timeline), 0)
    schedule_next(timeline)
    if timeline.due == holds.tick then
      step(timeline)
    end
    table.insert(running, timeline)
  end

  -- Plays steps; the next frame has offset 0. Returns the timeline's id.
  function timelines.play(steps)
    local keys = keys_of(steps)
    for _, other in ipairs(running) do
      check_free(other, holds.owned(other), keys)
    end
    for _, other in ipairs(waiting) do
      check_free(other, other.keys, keys)
    end
    begin(create(steps, keys, holds.tick))
    return last_id
  end

  -- Plays steps after the end of all timelines that play or wait. Returns the timeline's id, and the number of frames
  -- before its first frame.
  function timelines.append(steps)
    local keys, ends = keys_of(steps), nil
    for _, list in ipairs(both_lists) do
      for _, other in ipairs(list) do
        ends = math.max(ends or 0, other.ends)
      end
    end
    if not ends then
      return { tostring(timelines.play(steps)), "0" }
    elseif #waiting >= limits.waiting_timelines then
      refuse(refusal.BUSY, "%d timelines are already waiting, which is the limit; append after one has begun", #waiting)
    end
    table.insert(waiting, create(steps, keys, ends))
    return { tostring(last_id), tostring(ends - holds.tick) }
  end

  -- Called when a client sets keys directly, with the arguments of `holds.let_go`. A timeline that has lost all its
  -- keys is over.
  function timelines.let_go(keys, up)
    holds.let_go(keys, up)
    for index = #running, 1, -1 do
      if holds.owned(running[index]) == 0 then
        finish(running, index, true)
      end
    end
  end

  -- Ends the timeline with this id, or, if the id is 0, all timelines and all holds. Returns whether there were any.
  function timelines.cancel(id)
    local any = false
    for _, list in ipairs(both_lists) do
      for index = #list, 1, -1 do
        if id == 0 or list[index].id == id then
          any = true
          finish(list, index, true)
        end
      end
    end
    return id == 0 and holds.cancel() or any
  end

  -- Returns the state of the timeline with this id: "playing" if it plays or waits; otherwise how it ended, and the
  -- frame counter at that time. Raises a refusal if the timeline is not known.
  function timelines.describe(id)
    for _, list in ipairs(both_lists) do
      for _, timeline in ipairs(list) do
        if timeline.id == id then
          return { "playing" }
        end
      end
    end
    local how, at = (ended[id] or ""):match("^(%a+) (%d+)$")
    if not how then
      refuse(BAD_ARGUMENT, "timeline %d is not known: none had this number, or it ended too long ago", id)
    end
    return { how, at }
  end

  -- Called after each frame, after `holds.advance`.
  function timelines.advance()
    for index = #running, 1, -1 do
      local timeline = running[index]
      if timeline.due == holds.tick and step(timeline) then
        finish(running, index, false)
      end
    end
    while waiting[1] and waiting[1].start <= holds.tick do
      begin(table.remove(waiting, 1))
    end
  end

  return timelines
end

return { new = new, check = keys_of }
