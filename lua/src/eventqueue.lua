-- Collects events, such as resets, for the next binary frame of the kind *event*. That frame has one item for each
-- event; docs/protocol.md describes the items.

local limits = require "limits"

local pack = string.pack

local eventqueue = {
  -- Items that have no body.
  RESET = "\2",
  LOCKSTEP_OVER = "\4",
  GAME = "\5",
  STATE = "\6",
  sent = 0, -- how many items have been sent so far; from this, a link that reconnects can compute how many it missed
}

local items, count = {}, 0

-- Adds an item, unless it is equal to the last one or the queue is full.
function eventqueue.add(item)
  if count < limits.queued_events and items[count] ~= item then
    count = count + 1
    items[count] = item
  end
end

-- The item for the end of a timeline.
function eventqueue.timeline_over(id, cancelled)
  return pack("<I1I4I1", 3, id, cancelled and 1 or 0)
end

-- Returns all items, joined, and their number, and removes them.
function eventqueue.take()
  if count == 0 then
    return "", 0
  end
  local joined, taken = table.concat(items), count
  items, count = {}, 0
  eventqueue.sent = eventqueue.sent + taken
  return joined, taken
end

return eventqueue
