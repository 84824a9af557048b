-- Timelines: keys by frame, independent of the network. A timeline owns its keys as a hold does, and uses the holds' ticks.

local arguments = require "arguments"
local limits = require "limits"
local refusal = require "refusal"

local unpack = string.unpack
local refuse, BAD_ARGUMENT = refusal.refuse, refusal.BAD_ARGUMENT

local STEP = 6 -- bytes: an offset and a mask
local ALL_KEYS = 0x3FF

local function read_step(steps, at)
  return unpack("<I4I2", steps, at)
end

-- The keys that steps name. Raises a refusal if the steps are not a timeline.
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

-- Timelines that share the keys with `holds`. `press` and `release` move keys. `over` gets the id of each timeline that ends,
-- and whether it ended before its last step. `frame` returns the frame counter.
local function new(holds, press, release, over, frame)
  local timelines = {}
  local running = {} -- in the order they began
  local waiting = {} -- appended ones that have not begun, in the order of their first ticks; they own no keys yet
  local last_id = 0
  local ended, ended_order, ended_count = {}, {}, 0 -- id to how it ended, the ids in a ring, and how many there were

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

  local function finish(index, cancelled)
    local timeline = table.remove(running, index)
    holds.finish(timeline)
    remember(timeline.id, cancelled)
    over(timeline.id, cancelled)
  end

  local function when_next(timeline)
    timeline.due = timeline.start + read_step(timeline.steps, timeline.at)
  end

  -- Performs the step that is due, and prepares the next one. True if it was the last.
  local function step(timeline)
    local _, mask = read_step(timeline.steps, timeline.at)
    set(holds.owned(timeline), mask)
    timeline.at = timeline.at + STEP
    if timeline.at > #timeline.steps then
      return true
    end
    when_next(timeline)
    return false
  end

  local function check_free(other, owned, keys)
    local both = owned & keys
    if both ~= 0 then
      refuse(BAD_ARGUMENT, "timeline %d plays %s; cancel it first, or wait for its end", other.id,
        arguments.names(both, ", "))
    end
  end

  local function numbered(steps, keys, start)
    last_id = last_id + 1
    local timeline = { id = last_id, steps = steps, keys = keys, at = 1, start = start, due = nil }
    timeline.ends = start + read_step(steps, #steps - STEP + 1) -- the first tick after its last frame
    return timeline
  end

  -- Begins a timeline in the frame that comes.
  local function begin(timeline)
    set(holds.take(timeline.keys, timeline), 0)
    when_next(timeline)
    if timeline.due == holds.tick then
      step(timeline)
    end
    table.insert(running, timeline)
  end

  -- Plays steps, from offset 0, the next frame, on. Returns the timeline's id.
  function timelines.play(steps)
    local keys = keys_of(steps)
    for _, other in ipairs(running) do
      check_free(other, holds.owned(other), keys)
    end
    for _, other in ipairs(waiting) do
      check_free(other, other.keys, keys)
    end
    begin(numbered(steps, keys, holds.tick))
    return last_id
  end

  -- Plays steps after all timelines that play or wait. Returns the timeline's id, and the frames before its first.
  function timelines.append(steps)
    local keys, ends = keys_of(steps), nil
    for _, other in ipairs(running) do
      ends = math.max(ends or 0, other.ends)
    end
    for _, other in ipairs(waiting) do
      ends = math.max(ends or 0, other.ends)
    end
    if not ends then
      return { tostring(timelines.play(steps)), "0" }
    elseif #waiting >= limits.waiting_timelines then
      refuse(refusal.BUSY, "%d timelines wait already, which is the limit; append after one has begun", #waiting)
    end
    table.insert(waiting, numbered(steps, keys, ends))
    return { tostring(last_id), tostring(ends - holds.tick) }
  end

  -- Keys are set by hand; the arguments are those of `holds.let_go`. A timeline that is left without keys is over.
  function timelines.let_go(keys, up)
    holds.let_go(keys, up)
    for index = #running, 1, -1 do
      if holds.owned(running[index]) == 0 then
        finish(index, true)
      end
    end
  end

  -- Ends the timeline with an id, or with 0 all of them and all holds. Returns whether there was any.
  function timelines.cancel(id)
    local any = false
    for index = #running, 1, -1 do
      if id == 0 or running[index].id == id then
        any = true
        finish(index, true)
      end
    end
    for index = #waiting, 1, -1 do
      if id == 0 or waiting[index].id == id then
        any = true
        local timeline = table.remove(waiting, index)
        remember(timeline.id, true)
        over(timeline.id, true)
      end
    end
    return id == 0 and holds.cancel() or any
  end

  -- Whether the timeline with an id plays, or how and in which frame it ended.
  function timelines.describe(id)
    for _, each in ipairs { running, waiting } do
      for _, timeline in ipairs(each) do
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

  -- A frame was run, after `holds.frame`.
  function timelines.advance()
    for index = #running, 1, -1 do
      local timeline = running[index]
      if timeline.due == holds.tick and step(timeline) then
        finish(index, false)
      end
    end
    while waiting[1] and waiting[1].start <= holds.tick do
      begin(table.remove(waiting, 1))
    end
  end

  return timelines
end

return { new = new, check = keys_of }
