-- Lockstep: each frame waits until a client asks for it. mGBA's Lua cannot run frames. So the script counts the frames it owes,
-- and stays in its frame callback while it owes none.

local happenings = require "happenings"
local log = require "log"

local lockstep = {
  on = false,
  driven = 0, -- runs that need frames although frames wait
  LONGEST = 60, -- seconds that a frame waits at most: otherwise a busy client could freeze mGBA's window
  GONE = 1, -- seconds without a connection of the link that began it, after which it ends
  SILENT = 1.75, -- seconds without a byte on that connection although it has a heartbeat
}

local MOST = 0.25 -- seconds between two checks that count as silence

local timeout = 0 -- seconds
local owner -- the session of the link that began it
local unheard = 0 -- seconds that a frame has waited without a byte from the owner
local wanted, done = 0, 0 -- frames that were asked for, and those of them that were run
local goals = {} -- session to what it asked for last: how many `frames`, and the number of the `last` of them in `wanted`
local cut = {} -- session to how many frames were run of how many, if lockstep ended before the last of them
local now, asked = 0, 0 -- seconds that this frame has waited, and had waited when a client asked last
local any = false -- whether a client has asked since the last check

-- A link's session begins lockstep, or changes its time-out.
function lockstep.begin(session, seconds)
  lockstep.on, owner, unheard, timeout, asked = true, session, 0, seconds, now
end

-- Ends it. Frames that are still owed run when mGBA runs them.
function lockstep.stop()
  for session, goal in pairs(goals) do
    if goal.last > done then
      cut[session] = { run = math.max(0, goal.frames - (goal.last - done)), asked = goal.frames }
    end
  end
  lockstep.on, owner, wanted, done, goals = false, nil, 0, 0, {}
end

-- A client asks for something. What links do by themselves, such as a ping, does not count.
function lockstep.ask()
  any = true
end

-- A session wants frames. Returns how many are owed.
function lockstep.advance(session, frames)
  wanted = wanted + frames
  goals[session] = { last = wanted, frames = frames }
  return wanted - done
end

-- How many frames are still to run of those that a session has asked for; its next requests wait for them.
function lockstep.ahead(session)
  local goal = goals[session]
  if not goal then
    return 0
  elseif goal.last <= done then
    goals[session] = nil
    return 0
  end
  return goal.last - done
end

-- How many frames were run of how many that a session had asked for, if lockstep ended before the last of them; else nil.
-- The answer is given once.
function lockstep.take_cut(session)
  local found = cut[session]
  if not found then
    return nil
  end
  cut[session] = nil
  return found.run, found.asked
end

-- Whether the link that began it is gone, `passed` seconds after the last check.
local function is_abandoned(passed)
  local connection = owner.connection
  if connection and (connection.heard or not connection.pinged) then
    connection.heard, unheard = false, 0
    return false
  end
  unheard = unheard + math.min(passed, MOST) -- more is a pause of mGBA or of the machine, not of the link
  return unheard >= (connection and lockstep.SILENT or lockstep.GONE)
end

local function finish(reason)
  lockstep.stop()
  happenings.add(happenings.LOCKSTEP_OVER)
  log.warn("lockstep is over: %s; a frame has waited for %.1f s", reason, now)
  return false
end

-- Whether the next frame may not be run yet, `passed` seconds after the last call.
function lockstep.waits(passed)
  if not lockstep.on or wanted > done or lockstep.driven > 0 then
    return false
  end
  now = now + passed
  if any then
    asked, any = now, false
  end
  if is_abandoned(passed) then
    return finish("the link that began it is gone")
  elseif now - asked >= timeout then
    return finish("nothing was asked for its time-out")
  elseif now >= lockstep.LONGEST then
    return finish("no frame was asked for")
  end
  return true
end

-- The frame is run now.
function lockstep.run()
  now, asked, any = 0, 0, false
  if wanted > done then
    done = done + 1
  end
end

return lockstep
