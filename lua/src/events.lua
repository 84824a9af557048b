-- Sends events to the links, which are clients that send binary frames: at most one binary frame with events after each
-- frame of the game.

local connection = require "connection"
local emulator = require "emulator"
local frames = require "frames"
local eventqueue = require "eventqueue"

local events = {}

-- Sends events to those of `clients` that are links. `any_changed` is true if any of their watches has something to
-- report.
function events.send(clients, any_changed)
  local queued, count = eventqueue.take()
  if count == 0 and not any_changed then
    return
  end
  local frame = emulator.frame()
  for _, client in ipairs(clients) do
    local changes = client.changes
    client.changes = nil
    if client.socket and client.session and (changes or count > 0) then
      changes = changes or {}
      local items = table.concat(changes) .. queued
      connection.put(client, frames.encode_event(frame, #changes + count, items))
    end
  end
end

return events
