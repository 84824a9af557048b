-- The connected clients. They are served one after the other, each for a short *turn* (turn.lua).

local connection = require "connection"
local limits = require "limits"
local log = require "log"
local ticks = require "ticks"
local turn = require "turn"

local clock = os.clock
local call_guarded = connection.call_guarded

-- During the serving time of a frame (window.lua), clients that have sent a request within this many ticks are checked
-- continuously, others once per millisecond.
local RECENT = 4

local clients = {
  all = {}, -- in the order in which they were accepted; closed ones stay until `sweep` removes them
  request_tick = -math.huge, -- the tick of the last request
}

local closed_before = 0 -- connections closed before the last sweep
local ended_tick -- the tick of the last check for connections that have ended
local first_turn = 0 -- decides after which connection the turns begin; it changes, so that no connection is always last
local hot -- the connection whose request was performed last

-- Removes the connections that are closed.
local function sweep()
  if connection.closed == closed_before then
    return
  end
  closed_before = connection.closed
  local kept = 0
  for index = 1, #clients.all do
    local each = clients.all[index]
    clients.all[index] = nil
    if each.socket then
      kept = kept + 1
      clients.all[kept] = each
    end
  end
end

-- Gives a connection its turn. An error closes only this connection. Returns whether a request was performed.
function clients.take_turn(each, readable, now)
  local done = call_guarded(turn.take, each, readable, now)
  if done then
    hot, clients.request_tick = each, ticks.now
  end
  return done
end

-- Gives a turn to every connection with something to read. The end of a connection counts as something to read, so this
-- also closes connections that have ended.
local function close_ended()
  for _, each in ipairs(clients.all) do
    if each.socket and each.socket:select(0) ~= 0 then
      clients.take_turn(each, true, clock())
    end
  end
  sweep()
end

-- Closes the connection whose last request was longest ago, if that was more than a minute ago.
local function evict()
  local idlest
  for _, each in ipairs(clients.all) do
    if not idlest or each.active < idlest.active then
      idlest = each
    end
  end
  if ticks.now - idlest.active > 60 * ticks.per_second then
    connection.close(idlest, "silent, and others need its place")
    sweep()
  end
end

-- Whether there is room for one more connection. If necessary, tries to make room. Checks all connections at most once
-- per frame, because that takes time.
local function has_room()
  if #clients.all < limits.connections then
    return true
  end
  sweep()
  if #clients.all == limits.connections and ended_tick ~= ticks.now then
    ended_tick = ticks.now
    close_ended()
  end
  if #clients.all == limits.connections then
    evict()
  end
  return #clients.all < limits.connections
end

-- Adds a client that has connected. If there is no room, closes its socket.
function clients.add(socket)
  if has_room() then
    table.insert(clients.all, connection.new(socket))
  else
    connection.shut(socket)
    log.warn("a client is turned away, %d are connected", #clients.all)
  end
end

-- Gives connections their turns: all of them, or only those with a recent request. Stops when the processor time
-- reaches `stop`. Returns whether a request was performed.
function clients.serve(all, stop)
  local count, any = #clients.all, false
  for step = 1, count do
    local each = clients.all[(first_turn + step) % count + 1]
    if each.socket and (all or ticks.now - each.active < RECENT) then
      local now = clock()
      if now > stop then
        first_turn = first_turn + step - 1
        return any
      end
      any = clients.take_turn(each, false, now) or any
    end
  end
  first_turn = first_turn + 1
  sweep()
  return any
end

-- Returns a connection that has more bytes to send than the script may send before it sleeps again (connection.lua); or
-- nil.
function clients.with_long_reply()
  for _, each in ipairs(clients.all) do
    if each.socket and connection.has_long_reply(each) then
      return each
    end
  end
  return nil
end

-- Called right after the script has slept. Sends parts of long replies, to at most `limits.rested_replies` clients. The
-- next call continues with the clients after them.
function clients.send_long_replies()
  local count, sent = #clients.all, 0
  for step = 1, count do
    local each = clients.all[(first_turn + step) % count + 1]
    if each.socket and connection.has_long_reply(each) and call_guarded(connection.flush_rested, each) then
      sent = sent + 1
      if sent == limits.rested_replies then
        first_turn = first_turn + step
        return
      end
    end
  end
end

-- Returns the connection that will most likely send the next request; or nil.
function clients.hottest()
  if hot and hot.socket and not hot.ended then
    return hot
  end
  hot = nil
  for _, each in ipairs(clients.all) do
    if each.socket and not each.ended and (not hot or each.active > hot.active) then
      hot = each
    end
  end
  return hot
end

-- Called once a second. Closes links that have sent a ping, and then nothing for more than `limits.silent_seconds`,
-- because a failed network gives no other sign. Counts its calls instead of reading a clock: while mGBA is paused,
-- nothing is read, and that time must not count as silence.
function clients.close_silent()
  for _, each in ipairs(clients.all) do
    each.silent = each.silent + 1
    if each.pinged and each.silent > limits.silent_seconds then
      connection.close(each, "nothing was heard for " .. limits.silent_seconds .. " s")
    end
  end
end

-- Called after mGBA was paused.
function clients.catch_up()
  for _, each in ipairs(clients.all) do
    if each.binary then
      turn.catch_up(each)
    end
  end
end

-- Sends the reason to all links, and closes all connections.
function clients.close_all(reason)
  for _, each in ipairs(clients.all) do
    if each.socket then
      turn.dismiss(each, reason)
      pcall(connection.flush, each)
      connection.close(each, reason)
    end
  end
  clients.all = {}
end

return clients
