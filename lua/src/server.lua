-- What the script does in each frame: it sends events, and gives every client a turn. For a while after each request,
-- it also waits for more requests and answers them, until the frame's *serving time* is over. steering.lua computes
-- this time.

local clients = require "clients"
local emulator = require "emulator"
local events = require "events"
local frozen = require "frozen"
local game = require "game"
local listener = require "listener"
local lockstep = require "lockstep"
local memory = require "memory"
local runs = require "runs"
local sessions = require "sessions"
local steering = require "steering"
local stopwatch = require "stopwatch"
local ticks = require "ticks"
local watches = require "watches"
local window = require "window"

local clock = os.clock

-- For this many ticks after a request, the script uses the whole serving time to wait for the next request.
local LINGER = ticks.per_second
-- If the clock has advanced by this many seconds between two frames, mGBA was paused. The clock counts whole seconds,
-- so more than one second has passed then. Normal frames never take that long.
local PAUSE = 2
local LEAST_SECONDS = 0.002 -- clients get this much of each frame even if too few frames run (steering.lua)

local server = {
  address = nil, -- where to listen: set before `start`
  port = nil,
}

local steer = steering.new()
local second, second_tick -- the current second of the clock, and the tick at which it began
local undisturbed = false -- whether mGBA, and not a client, decided when each frame of this second ran
-- The processor time and the second of the clock at the end of the last frame callback.
local left_at, left_second = 0, nil
-- How much processor time mGBA used in this second, and the number of frames in which it used that time.
local mgba_time, mgba_ticks = 0, 0
-- Seconds in which the script waited for requests and answered them, in the same frames.
local script_time = 0
-- Milliseconds of processor time that mGBA used per frame in the last second.
local last_second = math.huge
-- The smaller of the last two such values. One of them may be exceptional, for example because a game was loaded.
local mgba_busy = 0

-- At the end of each second of the clock, adjusts the serving time (the budget of steering.lua) to the number of frames
-- that ran in it, unless mGBA was paused or lockstep was on. Also does what has to be done once a second: closes silent
-- links, and checks whether another game was loaded.
local function count_frames()
  local now = os.time()
  if now == second then
    return
  end
  if second == now - 1 and undisturbed then
    local frames = ticks.now - second_tick
    -- The last argument: how many milliseconds of each frame neither mGBA nor the script used.
    steering.steer(steer, frames, 1000 / frames - 1000 * (mgba_time + script_time) / mgba_ticks)
  end
  if mgba_ticks > 0 then
    local this_second = 1000 * mgba_time / mgba_ticks
    last_second, mgba_busy = this_second, math.min(this_second, last_second)
  end
  mgba_time, script_time, mgba_ticks = 0, 0, 0
  second, second_tick, undisturbed = now, ticks.now, not lockstep.on
  clients.close_silent()
  game.check()
end

-- Serves all clients. If a run (runs.lua) has `ended` in this frame, its client will probably send the next request
-- now, so the script waits for it.
local function serve(now, ended)
  listener.accept_all()
  local was_asking = ticks.now - clients.request_tick < LINGER
  if ended then
    clients.request_tick = ticks.now
  end
  clients.serve(true, now + math.max(LEAST_SECONDS, steering.allowance(steer) / 1000))
  local asking = ticks.now - clients.request_tick < LINGER or clients.with_long_reply() ~= nil
  if asking and not lockstep.on then
    if not was_asking then
      steering.open(steer, mgba_busy)
    end
    script_time = script_time + window.serve(steering.allowance(steer) / 1000 - (clock() - now))
  end
  if lockstep.on then
    undisturbed = false
    window.keep_waiting(count_frames)
  end
end

-- The frame callback, which mGBA calls after each frame.
function server.frame()
  local now = clock()
  ticks.now = ticks.now + 1
  mgba_time, mgba_ticks = mgba_time + now - left_at, mgba_ticks + 1
  if os.time() - left_second >= PAUSE then
    clients.catch_up()
  end
  memory.forget()
  game.advance()
  local any_changed = watches.after_frame()
  runs.after_frame()
  frozen.keep()
  emulator.advance()
  local ended = runs.settle()
  sessions.finish_all()
  events.send(clients.all, any_changed)
  count_frames()
  listener.retry(server.address, server.port)
  if listener.socket then
    serve(now, ended)
  end
  watches.before_frame()
  left_at, left_second = clock(), os.time()
end

function server.start()
  stopwatch.find_clock()
  left_at, left_second = clock(), os.time()
  listener.listen(server.address, server.port)
end

-- Closes everything, and releases the keys that are held.
function server.stop(reason)
  local down = emulator.holds.down()
  if emu and down ~= 0 then
    emu:clearKeys(down)
  end
  lockstep.stop()
  clients.close_all(reason)
  listener.close()
end

return server
