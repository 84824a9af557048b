-- Collects what happens to the emulator, such as resets, as items for the next event frame; docs/protocol.md describes
-- the items.

local limits = require "limits"

local pack = string.pack

local happenings = {
  RESET = "\2",
  LOCKSTEP_OVER = "\4",
  GAME = "\5",
  STATE = "\6",
  sent = 0, -- how many items were sent so far; a link that reconnects can compute from it how many it has missed
}

local items, count = {}, 0

-- Adds an item, unless it is equal to the last one.
function happenings.add(item)
  if count < limits.happenings and items[count] ~= item then
    count = count + 1
    items[count] = item
  end
end

-- The item for the end of a timeline.
function happenings.timeline_over(id, cancelled)
  return pack("<I1I4I1", 3, id, cancelled and 1 or 0)
end

-- Returns all items, joined, and their number, and removes them.
function happenings.take()
  if count == 0 then
    return "", 0
  end
  local joined, taken = table.concat(items), count
  items, count = {}, 0
  happenings.sent = happenings.sent + taken
  return joined, taken
end

return happenings
