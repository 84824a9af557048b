-- Lockstep: each frame waits until a client asks for it. mGBA's Lua cannot run frames; it can only keep mGBA from running the
-- next one. So the script counts the frames that clients have asked for, and stays in its frame callback while none is left.

local happenings = require "happenings"
local log = require "log"

local lockstep = {
  on = false,
  driven = 0, -- how many runs need frames; while there are any, no frame waits
  LONGEST = 60, -- seconds that a frame waits at most: otherwise a busy client could freeze mGBA's window
  GONE = 1, -- lockstep ends when the link that began it has had no connection for this many seconds
  SILENT = 1.75, -- the same if the link has a connection with a heartbeat, but no byte has arrived on it
}

local MOST = 0.25 -- at most this many seconds between two checks count as silence

local timeout = 0 -- seconds
local owner -- the session of the link that began it
local unheard = 0 -- seconds that a frame has waited without a byte from the owner
local wanted, done = 0, 0 -- frames that were asked for, and those of them that were run
local goals = {} -- by session: how many `frames` it asked for last, and the value of `wanted` at the `last` of them
local cut = {} -- by session: how many frames it asked for and how many were run, if lockstep ended before the last of them
local now, asked = 0, 0 -- seconds that this frame has waited until now, and until a client asked last
local any = false -- whether a client has asked since the last check

-- Begins lockstep for a link's session, or changes its time-out.
function lockstep.begin(session, seconds)
  lockstep.on, owner, unheard, timeout, asked = true, session, 0, seconds, now
end

-- Ends lockstep. mGBA then runs the remaining frames at its own speed.
function lockstep.stop()
  for session, goal in pairs(goals) do
    if goal.last > done then
      cut[session] = { run = math.max(0, goal.frames - (goal.last - done)), asked = goal.frames }
    end
  end
  lockstep.on, owner, wanted, done, goals = false, nil, 0, 0, {}
end

-- Notes that a client has asked for something. Messages that links send by themselves, such as pings, do not count.
function lockstep.ask()
  any = true
end

-- Adds frames that a session asks for. Returns how many are still to run in total.
function lockstep.advance(session, frames)
  wanted = wanted + frames
  goals[session] = { last = wanted, frames = frames }
  return wanted - done
end

-- How many of the frames that a session has asked for are still to run. Its next requests wait for them.
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

-- If lockstep ended before the last frame that a session had asked for: how many of its frames were run, and how many it had
-- asked for. Otherwise nil. A second call returns nil.
function lockstep.take_cut(session)
  local found = cut[session]
  if not found then
    return nil
  end
  cut[session] = nil
  return found.run, found.asked
end

-- Whether the link that began lockstep is gone. The last check was `passed` seconds ago.
local function is_abandoned(passed)
  local connection = owner.connection
  if connection and (connection.heard or not connection.pinged) then
    connection.heard, unheard = false, 0
    return false
  end
  unheard = unheard + math.min(passed, MOST) -- a longer time means that mGBA or the machine paused, not the link
  return unheard >= (connection and lockstep.SILENT or lockstep.GONE)
end

local function finish(reason)
  lockstep.stop()
  happenings.add(happenings.LOCKSTEP_OVER)
  log.warn("lockstep is over: %s; a frame has waited for %.1f s", reason, now)
  return false
end

-- Whether the next frame has to wait longer. The last call was `passed` seconds ago.
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

-- Notes that a frame runs now.
function lockstep.run()
  now, asked, any = 0, 0, false
  if wanted > done then
    done = done + 1
  end
end

return lockstep
