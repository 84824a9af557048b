-- Lockstep: each frame waits until a client asks for it. mGBA's Lua cannot run frames; it can only keep mGBA from
-- running the next one. So the script counts the frames that clients have asked for. When all of them have run, it
-- stays in its frame callback until a client asks for more.

local eventqueue = require "eventqueue"
local log = require "log"

local lockstep = {
  on = false,
  driven = 0, -- number of unfinished runs (runs.lua) that began in lockstep; while there are any, frames do not wait
  LONGEST = 60, -- seconds that a frame waits at most: otherwise a busy client could freeze mGBA's window
  GONE = 1, -- lockstep ends when the link that began it has had no connection for this many seconds
  SILENT = 1.75, -- or when that link has sent pings, and then nothing for this many seconds
}

local LONGEST_GAP = 0.25 -- time between two checks counts as silence only up to this many seconds

local timeout = 0 -- seconds
local owner -- the session of the link that began lockstep
local unheard = 0 -- seconds that a frame has waited without a byte from the owner
local wanted, done = 0, 0 -- how many frames were asked for, and how many of them have run
-- By session: a list of its `advance`s. Each has these fields: `frames` is how many frames it asked for. `last` is the
-- value of `done` after the last of these frames. If lockstep ends earlier, `run` is how many of the frames have run.
local goals = {}
-- How many seconds the current frame has waited, and how many it had waited at the last request of a client.
local waited, asked = 0, 0
local has_asked = false -- whether a client has sent a request since the last check

-- Begins lockstep for a link's session, or changes its time-out: the seconds without a request after which it ends.
function lockstep.begin(session, seconds)
  lockstep.on, owner, unheard, timeout, asked = true, session, 0, seconds, waited
end

-- Ends lockstep. mGBA then runs at its own speed again.
function lockstep.stop()
  for _, list in pairs(goals) do
    for _, goal in ipairs(list) do
      if goal.last > done then
        goal.run = math.max(0, goal.frames - (goal.last - done))
      end
      goal.last = 0
    end
  end
  lockstep.on, owner, wanted, done, goals = false, nil, 0, 0, {}
end

-- Notes that a client has sent a request. Messages that links send by themselves, such as pings, do not count.
function lockstep.ask()
  has_asked = true
end

-- Adds frames that a session asks for. Returns how many frames have to run until the last of them.
function lockstep.advance(session, frames)
  wanted = wanted + frames
  goals[session] = goals[session] or {}
  table.insert(goals[session], { last = wanted, frames = frames })
  return wanted - done
end

-- The last `advance` of a session, as an entry of its list in `goals`; nil if it is over.
function lockstep.goal(session)
  local list = goals[session]
  local goal = list and list[#list]
  if goal and lockstep.is_over(goal) then
    for _, each in ipairs(list) do
      -- These are all over. They must stay so when lockstep ends, because `done` then starts again at 0.
      each.last = 0
    end
    goals[session] = nil
    return nil
  end
  return goal
end

-- Whether an `advance` is over: its frames have run, or lockstep has ended.
function lockstep.is_over(goal)
  return goal.last <= done
end

-- How many frames have to run until the last frame that a session has asked for. The session's next requests wait for
-- it.
function lockstep.ahead(session)
  local goal = lockstep.goal(session)
  return goal and goal.last - done or 0
end

-- Whether the link that began lockstep is gone. The last check was `passed` seconds ago.
local function is_abandoned(passed)
  local connection = owner.connection
  if connection and (connection.heard or not connection.pinged) then
    connection.heard, unheard = false, 0
    return false
  end
  unheard = unheard + math.min(passed, LONGEST_GAP) -- a longer time means that mGBA or the machine paused, not the link
  return unheard >= (connection and lockstep.SILENT or lockstep.GONE)
end

local function finish(reason)
  lockstep.stop()
  eventqueue.add(eventqueue.LOCKSTEP_OVER)
  log.warn("lockstep is over: %s; a frame has waited for %.1f s", reason, waited)
  return false
end

-- Whether the next frame has to wait longer. The last call was `passed` seconds ago.
function lockstep.waits(passed)
  if not lockstep.on or wanted > done or lockstep.driven > 0 then
    return false
  end
  waited = waited + passed
  if has_asked then
    asked, has_asked = waited, false
  end
  if is_abandoned(passed) then
    return finish("the link that began it is gone")
  elseif waited - asked >= timeout then
    return finish("no client sent a request within the time-out")
  elseif waited >= lockstep.LONGEST then
    return finish("no frame was asked for")
  end
  return true
end

-- Called when the current frame stops waiting and runs.
function lockstep.run()
  waited, asked, has_asked = 0, 0, false
  if wanted > done then
    done = done + 1
  end
end

return lockstep
