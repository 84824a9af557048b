-- Reports to links what happened: at most one event frame for each frame of the game.

local connection = require "connection"
local emulator = require "emulator"
local frames = require "frames"
local happenings = require "happenings"

local events = {}

-- Reports to the links among `clients`. `any_news` is whether some of them have news of their watches.
function events.tell(clients, any_news)
  local happened, count = happenings.take()
  if count == 0 and not any_news then
    return
  end
  local frame = emulator.frame()
  for _, client in ipairs(clients) do
    local news = client.news
    client.news = nil
    if client.socket and client.session and (news or count > 0) then
      news = news or {}
      local items = table.concat(news) .. happened
      connection.put(client, frames.encode_event(frame, #news + count, items))
    end
  end
end

return events
