-- Lockstep: each frame waits until a client asks for it. mGBA's Lua cannot run frames, so they are owed, and the script
-- stays in its frame callback while none is.

local happenings = require "happenings"
local log = require "log"

local lockstep = {
  on = false,
  LONGEST = 60, -- seconds that a frame waits in all: mGBA's window must not hang for as long as somebody asks
}

local timeout = 0 -- seconds
local owed = 0 -- frames to run
local advancer -- who asked for them last
local now, asked = 0, 0 -- seconds that this frame has waited, and had when anything was asked last

-- Begins, or goes on with another time-out.
function lockstep.begin(seconds)
  lockstep.on, timeout, asked = true, seconds, now
end

function lockstep.stop()
  lockstep.on, owed, advancer = false, 0, nil
end

-- A client wants frames. Gives all that are owed.
function lockstep.advance(client, frames)
  owed, advancer = owed + frames, client
  return owed
end

-- Whether a client's next request waits until the frames that it asked for were run.
function lockstep.is_ahead(client)
  return owed > 0 and advancer == client
end

-- Whether the next frame may not be run yet. `passed` seconds have gone since the last call, and `any` says whether a
-- client asked for something in them.
function lockstep.waits(passed, any)
  if not lockstep.on or owed > 0 then
    return false
  end
  now = now + passed
  if any then
    asked = now
  end
  if now - asked < timeout and now < lockstep.LONGEST then
    return true
  end
  lockstep.stop()
  happenings.add(happenings.LOCKSTEP_OVER)
  log.warn("lockstep is over: a frame has waited for %.1f s", now)
  return false
end

-- The frame is run now.
function lockstep.run()
  now, asked = 0, 0
  owed = math.max(0, owed - 1)
end

return lockstep
