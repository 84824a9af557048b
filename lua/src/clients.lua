-- Those who are connected, and their turns.

local connection = require "connection"
local limits = require "limits"
local log = require "log"
local refusal = require "refusal"
local ticks = require "ticks"
local turn = require "turn"

local clock = os.clock

local RECENT = 4 -- ticks: who asked in these is looked at all the time, others each millisecond

local clients = {
  all = {}, -- in the order they were accepted, closed ones until they are swept up
  request_tick = -math.huge, -- of the last request
}

local closed_before = 0 -- connections that were closed before the last sweep
local first_turn = 0 -- who begins, so that the last are not always the same
local hot -- the connection whose request was done last

-- Makes room by closing the connection that has been silent for longest, if that is long.
local function evict()
  local idlest
  for _, each in ipairs(clients.all) do
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

-- Takes in who has connected, if there is room.
function clients.add(socket)
  if #clients.all < limits.connections or evict() then
    table.insert(clients.all, connection.new(socket))
  else
    connection.shut(socket)
    log.warn("a client is turned away, %d are connected", #clients.all)
  end
end

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

-- A turn that can break nothing but its own connection.
function clients.take_turn(each, readable, now)
  local fine, done = pcall(turn.take, each, readable, now)
  if not fine then
    log.error("%s", refusal.sentence(done))
    connection.close(each, "an error in this script")
    return false
  end
  if done then
    hot, clients.request_tick = each, ticks.now
  end
  return done
end

-- Gives connections their turn until processor time `stop`, all of them or those that asked lately. True if a request
-- was done.
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

-- The connection that is the likeliest to ask next.
function clients.hottest()
  if hot and hot.socket then
    return hot
  end
  hot = nil
  for _, each in ipairs(clients.all) do
    if each.socket and (not hot or each.active > hot.active) then
      hot = each
    end
  end
  return hot
end

-- Closes the links whose heartbeat has stopped: nothing else tells of a network that lets nothing through any more. To be
-- called once a second. Seconds are counted, not measured, as in a pause of mGBA nobody could be heard.
function clients.close_silent()
  for _, each in ipairs(clients.all) do
    each.silent = each.silent + 1
    if each.pinged and each.silent > limits.silent_seconds then
      connection.close(each, "nothing was heard for " .. limits.silent_seconds .. " s")
    end
  end
end

-- Closes all of them, who are told why.
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
