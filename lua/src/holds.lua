-- A *hold* keeps keys down for a number of frames. Time is counted in ticks, the frames that this script has seen,
-- because the emulator's own counter starts again at a reset. Unlike the ticks of ticks.lua, these ticks do not
-- continue while a frame waits in lockstep. Each key has a queue of holds, so that the game sees a separate press for
-- every hold. A key belongs to one hold or one key timeline at a time.

local limits = require "limits"
local refusal = require "refusal"

-- Creates the holds. `press` and `release` are functions that press and release a mask of keys.
local function new(press, release)
  local holds = { tick = 0, waiting = 0 } -- the current tick, and how many holds wait
  local owner = {} -- by key: the hold that keeps it down, or the timeline that plays it
  local free_at = {} -- by key: the first tick at which it may be pressed again
  local queues = {} -- by key: the holds that wait for it, in order; a hold of several keys is in several queues
  for key = 0, 9 do
    free_at[key] = 0
    queues[key] = { first = 1, last = 0 }
  end

  local function begin(hold)
    for key = 0, 9 do
      if hold.keys & 1 << key ~= 0 then
        owner[key] = hold
      end
    end
    hold.stop = holds.tick + hold.frames + 2 -- + 2: holds last as long as in mGBA-http
    press(hold.keys)
  end

  -- Whether a waiting hold can begin: all its keys are free, and it is the first in their queues.
  local function is_next(hold)
    for key = 0, 9 do
      if hold.keys & 1 << key ~= 0 then
        local queue = queues[key]
        if owner[key] or free_at[key] > holds.tick or queue[queue.first] ~= hold then
          return false
        end
      end
    end
    return true
  end

  local function leave_queues(hold)
    for key = 0, 9 do
      if hold.keys & 1 << key ~= 0 then
        local queue = queues[key]
        queue[queue.first] = nil
        queue.first = queue.first + 1
      end
    end
    holds.waiting = holds.waiting - 1
  end

  local function begin_waiting()
    for key = 0, 9 do
      local queue = queues[key]
      local hold = queue[queue.first]
      if hold and is_next(hold) then
        leave_queues(hold)
        begin(hold)
      end
    end
  end

  -- The keys that belong to a hold or a timeline.
  function holds.owned(holder)
    local keys = 0
    for key = 0, 9 do
      if owner[key] == holder then
        keys = keys | 1 << key
      end
    end
    return keys
  end

  -- Gives keys to a timeline, and takes them away from running holds. Returns the keys that these holds kept down.
  function holds.take(keys, timeline)
    local kept = 0
    for key = 0, 9 do
      if keys & 1 << key ~= 0 then
        kept = kept | (owner[key] and 1 << key or 0)
        owner[key] = timeline
      end
    end
    return kept
  end

  -- Ends a hold or a timeline: releases its keys, which can be pressed again from the next frame on.
  function holds.finish(holder)
    local keys = holds.owned(holder)
    holds.let_go(keys, 0)
    if keys ~= 0 then
      release(keys)
    end
  end

  -- Holds `keys`. If earlier holds or a timeline use some of them, the new hold waits until these have ended.
  function holds.hold(keys, frames)
    if holds.waiting >= limits.waiting_holds then
      refusal.refuse(refusal.BUSY, "%d holds are already waiting for their keys, which is the limit; try again after "
        .. "one has begun", holds.waiting)
    end
    local hold = { keys = keys, frames = frames }
    for key = 0, 9 do
      if keys & 1 << key ~= 0 then
        local queue = queues[key]
        queue.last = queue.last + 1
        queue[queue.last] = hold
      end
    end
    holds.waiting = holds.waiting + 1
    if is_next(hold) then
      leave_queues(hold)
      begin(hold)
    end
  end

  -- Takes `keys` away from running holds and timelines, for example when a client sets the keys directly. Waiting holds
  -- keep waiting. `up` are the keys that are released in this frame. No hold may press them, or the keys that were
  -- taken away, before the next frame: otherwise the game would not see the release.
  function holds.let_go(keys, up)
    for key = 0, 9 do
      local owned = keys & 1 << key ~= 0 and owner[key]
      if owned then
        owner[key] = nil
      end
      if owned or up & 1 << key ~= 0 then
        free_at[key] = holds.tick + 1
      end
    end
  end

  -- Called after each frame.
  function holds.advance()
    local tick = holds.tick + 1
    holds.tick = tick
    for key = 0, 9 do
      local holder = owner[key]
      if holder and holder.stop == tick then -- a timeline has no `stop`
        holds.finish(holder)
      end
    end
    if holds.waiting > 0 then
      begin_waiting()
    end
  end

  -- Ends all holds, including those that wait. Returns whether there were any.
  function holds.cancel()
    local any = holds.waiting > 0
    holds.waiting = 0
    for key = 0, 9 do
      queues[key] = { first = 1, last = 0 }
      if owner[key] then
        any = true
        holds.finish(owner[key])
      end
    end
    return any
  end

  -- The keys that belong to any hold or timeline.
  function holds.down()
    local keys = 0
    for key in pairs(owner) do
      keys = keys | 1 << key
    end
    return keys
  end

  return holds
end

return { new = new }
