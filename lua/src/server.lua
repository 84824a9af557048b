-- Listening, and what is done in each frame: first everybody has a turn, then, while clients keep asking, the frame's
-- budget is spent on them, blocked in select() most of the time. It is time in which mGBA would wait for the next frame.

local connection = require "connection"
local emulator = require "emulator"
local limits = require "limits"
local log = require "log"
local refusal = require "refusal"
local steering = require "steering"
local stopwatch = require "stopwatch"
local ticks = require "ticks"
local turn = require "turn"
local version = require "version"

local clock = os.clock

local LINGER = ticks.per_second -- after a request the budget is spent for so long on waiting for the next one
local RECENT = 4 -- ticks: who asked in these is looked at all the time, others each millisecond
local FRAME_SECONDS = steering.MAX_BUDGET / 1000

local server = {
  address = nil, -- where to listen: set before `start`
  port = nil,
}

local listener -- the listening socket; nil while there is none
local retry_tick -- when to try again to listen; nil at first
local connections = {} -- in the order they were accepted, closed ones until they are swept up
local closed_before = 0 -- connections that were closed before the last sweep
local first_turn = 0 -- who begins, so that the last are not always the same
local hot -- the connection whose request was done last
local request_tick = -LINGER -- of the last request
local steer = steering.new()
local second, second_tick -- when a second of the clock was seen to begin
local left_at = 0 -- processor time at which the last frame was left
local outside, outside_ticks = 0, 0 -- processor time spent outside of this script, in how many frames
local inside = 0 -- time spent in it, in the same frames
local last_second = math.huge -- milliseconds of processor time a frame spent outside, in the last second
local busy_outside = 0 -- the less of that of the last two, as one may be a passing effort, such as opening a game

---- Listening ---------------------------------------------------------------------------------------------------------

local function try_to_listen()
  local candidate = socket.tcp()._s -- the bare socket: its wrapper would be polled by a callback of its own
  local code = candidate:open(server.address, server.port)
  if code == 0 then
    code = candidate:listen(limits.backlog)
  end
  if code == 0 then
    listener = candidate
    return
  end
  connection.shut(candidate)
  return socket.ERRORS[code] or "error " .. code
end

local function listen()
  local problem = try_to_listen()
  if not problem then
    log.info("version %s, listening on %s:%d", version.script, server.address, server.port)
  elseif not retry_tick then
    log.error("cannot listen on %s:%d: %s. Most often another mGBA has the port, or another script in this one, such as "
      .. "mGBA-http's. Close that, or choose another port before this script is loaded: `framewire = {port = %d}` in Lua, "
      .. "or FRAMEWIRE_SCRIPT_PORT=%d in mGBA's environment. Trying again every second.",
      server.address, server.port, problem, server.port + 1, server.port + 1)
  end
  retry_tick = ticks.now + ticks.per_second
end

-- Makes room by closing the connection that has been silent for longest, if that is long.
local function evict()
  local idlest
  for _, each in ipairs(connections) do
    if each.socket and (not idlest or each.active < idlest.active) then
      idlest = each
    end
  end
  local evicted = idlest and ticks.now - idlest.active > 60 * ticks.per_second
  if evicted then
    connection.close(idlest, "silent, and others need its place")
  end
  return evicted
end

-- Accepts one client; false if none is waiting.
local function accept()
  local client = listener:accept()
  if client.error ~= 0 then
    return false
  end
  if #connections < limits.connections or evict() then
    table.insert(connections, connection.new(client))
  else
    connection.shut(client)
    log.warn("a client is turned away, %d are connected", #connections)
  end
  return true
end

local function accept_all()
  while listener:select(0) ~= 0 and accept() do
  end
end

-- Without a client that waits, accepting leaves a known error behind.
function connection.settle_errors()
  accept_all()
  accept()
end

---- Serving -----------------------------------------------------------------------------------------------------------

local function sweep()
  if connection.closed == closed_before then
    return
  end
  closed_before = connection.closed
  local kept = 0
  for index = 1, #connections do
    local each = connections[index]
    connections[index] = nil
    if each.socket then
      kept = kept + 1
      connections[kept] = each
    end
  end
end

-- A turn that can break nothing but its own connection.
local function take_turn(each, readable, now)
  local fine, done = pcall(turn.take, each, readable, now)
  if not fine then
    log.error("%s", refusal.sentence(done))
    connection.close(each, "an error in this script")
    return false
  end
  if done then
    hot, request_tick = each, ticks.now
  end
  return done
end

-- Gives connections their turn until processor time `stop`, all of them or those that asked lately. True if a request
-- was done.
local function serve(all, stop)
  local count, any = #connections, false
  for step = 1, count do
    local each = connections[(first_turn + step) % count + 1]
    if each.socket and (all or ticks.now - each.active < RECENT) then
      local now = clock()
      if now > stop then
        first_turn = first_turn + step - 1
        return any
      end
      any = take_turn(each, false, now) or any
    end
  end
  first_turn = first_turn + 1
  sweep()
  return any
end

-- The connection that is the likeliest to ask next.
local function hottest()
  if hot and hot.socket then
    return hot
  end
  hot = nil
  for _, each in ipairs(connections) do
    if each.socket and (not hot or each.active > hot.active) then
      hot = each
    end
  end
  return hot
end

-- Goes on serving for so many seconds.
local function serve_window(length)
  local spent, busy, looked_around = 0, 0, 0
  local done = false -- whether there may be more to do without waiting
  stopwatch.begin_window()
  while spent < length do
    local target, ready = hottest(), false
    if not done then
      local passed
      ready, passed = stopwatch.wait(target and target.socket or listener)
      spent = spent + passed
    end
    local start = clock()
    done = ready and target and take_turn(target, true, start)
    if not ready or not target or #connections > 1 then
      local all = not target or spent - looked_around >= 0.001
      if all then
        looked_around = spent
        accept_all()
      end
      done = serve(all, start + length - spent) or done
    end
    local used = clock() - start
    spent, busy = spent + used, busy + used
  end
  stopwatch.end_window(busy)
  inside = inside + spent
end

-- Closes the links whose heartbeat has stopped: nothing else tells of a network that lets nothing through any more. To be
-- called once a second. Seconds are counted, not measured, as in a pause of mGBA nobody could be heard.
local function close_silent()
  for _, each in ipairs(connections) do
    each.silent = each.silent + 1
    if each.pinged and each.silent > limits.silent_seconds then
      connection.close(each, "nothing was heard for " .. limits.silent_seconds .. " s")
    end
  end
end

-- Counts frames by the clock's seconds. One that is longer, as mGBA was paused, tells nothing.
local function count_frames()
  local now = os.time()
  if now == second then
    return
  end
  if second == now - 1 then
    local frames = ticks.now - second_tick
    steering.steer(steer, frames, 1000 / frames - 1000 * (outside + inside) / outside_ticks)
  end
  local this_second = 1000 * outside / outside_ticks
  last_second, busy_outside = this_second, math.min(this_second, last_second)
  outside, inside, outside_ticks = 0, 0, 0
  second, second_tick = now, ticks.now
  close_silent()
end

-- What is done in each frame.
function server.frame()
  local now = clock()
  ticks.now = ticks.now + 1
  outside, outside_ticks = outside + now - left_at, outside_ticks + 1
  emulator.holds.advance()
  count_frames()
  if listener then
    accept_all()
  elseif ticks.now >= retry_tick then
    listen()
  end
  if listener then
    local open = ticks.now - request_tick < LINGER
    serve(true, now + FRAME_SECONDS)
    if ticks.now - request_tick < LINGER then
      if not open then
        steering.open(steer, busy_outside)
      end
      serve_window(steering.allowance(steer) / 1000 - (clock() - now))
    end
  end
  left_at = clock()
end

function server.start()
  stopwatch.find_clock()
  left_at = clock()
  listen()
end

-- Closes everything and lets go of the keys that are held.
function server.stop(reason)
  local down = emulator.holds.down()
  if emu and down ~= 0 then
    emu:clearKeys(down)
  end
  for _, each in ipairs(connections) do
    if each.socket then
      turn.dismiss(each, reason)
      pcall(connection.flush, each)
      connection.close(each, reason)
    end
  end
  connections = {}
  if listener then
    connection.shut(listener)
    listener = nil
  end
end

return server
