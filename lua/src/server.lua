-- What happens in each frame: events are sent, every client gets a turn, and then, while clients keep asking, the frame's
-- budget is spent on them.

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

local LINGER = ticks.per_second -- after a request the budget is spent for this long on waiting for the next one
local LEAST_SECONDS = 0.002 -- of a frame that clients get even if frames are missing

local server = {
  address = nil, -- where to listen: set before `start`
  port = nil,
}

local steer = steering.new()
local second, second_tick -- when a second of the clock began
local undisturbed = false -- whether mGBA, not a client, decided when each frame of this second ran
local left_at = 0 -- processor time at which the last frame was left
local mgba_time, mgba_ticks = 0, 0 -- processor time that mGBA used in this second, and in how many frames
local script_time = 0 -- processor time that this script used in the same frames
local last_second = math.huge -- milliseconds of processor time that mGBA used per frame in the last second
local mgba_busy = 0 -- the smaller of the last two such values, since one may be temporary, such as opening a game

-- Counts frames by the clock's seconds. A longer second is ignored: mGBA was paused.
local function count_frames()
  local now = os.time()
  if now == second then
    return
  end
  if second == now - 1 and undisturbed then
    local frames = ticks.now - second_tick
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

-- `ended` is whether a run ended in this frame. Its client has waited, and may now ask for the next run.
local function serve(now, ended)
  listener.accept_all()
  local open = ticks.now - clients.request_tick < LINGER
  if ended then
    clients.request_tick = ticks.now
  end
  clients.serve(true, now + math.max(LEAST_SECONDS, steering.allowance(steer) / 1000))
  local asking = ticks.now - clients.request_tick < LINGER or clients.with_long_reply() ~= nil
  if asking and not lockstep.on then
    if not open then
      steering.open(steer, mgba_busy)
    end
    script_time = script_time + window.serve(steering.allowance(steer) / 1000 - (clock() - now))
  end
  if lockstep.on then
    undisturbed = false
    window.keep_waiting(count_frames)
  end
end

-- Runs in each frame.
function server.frame()
  local now = clock()
  ticks.now = ticks.now + 1
  mgba_time, mgba_ticks = mgba_time + now - left_at, mgba_ticks + 1
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
  left_at = clock()
end

function server.start()
  stopwatch.find_clock()
  left_at = clock()
  listener.listen(server.address, server.port)
end

-- Closes everything and releases the keys that are held.
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
