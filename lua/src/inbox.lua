-- The bytes of a connection that have arrived but have not been used yet. They are joined only when a message is
-- complete, so the cost of a large message depends on its size and not on the number of its pieces.

local limits = require "limits"

local find, sub, unpack, concat = string.find, string.sub, string.unpack, table.concat

local END = "<|END|>" -- of a text message

local inbox = {}

function inbox.new()
  return {
    data = "", -- the oldest unused bytes, from index `at` on
    at = 1,
    pieces = {}, -- the bytes that arrived after `data`
    count = 0, -- how many pieces there are
    tail = nil, -- the end of these pieces, with fewer bytes than the end marker
    size = 0, -- how many bytes are not used yet, in total
    needed = 4, -- for binary frames: how many bytes must be here before the next frame can be complete
    may_have_message = false, -- for text messages: whether the inbox may hold a whole message
  }
end

-- Adds bytes that have arrived.
function inbox.push(box, chunk)
  if box.size == 0 then
    box.data, box.at, box.size = chunk, 1, #chunk
    box.may_have_message = find(chunk, END, 1, true) ~= nil
    return
  end
  box.size = box.size + #chunk
  -- The end marker may begin in the old bytes and end in the new ones. `seam` is the part around the border between
  -- them.
  local pieces, count = box.pieces, box.count
  local tail = box.tail
  if count == 0 then
    tail = sub(box.data, math.max(box.at, #box.data - #END + 2))
  end
  local seam = tail .. sub(chunk, 1, #END - 1)
  box.may_have_message = box.may_have_message or find(chunk, END, 1, true) ~= nil or find(seam, END, 1, true) ~= nil
  box.tail = sub(#chunk < #END and tail .. chunk or chunk, 1 - #END)
  -- To avoid many small strings, each piece is joined with the pieces before it that are not larger.
  while count > 0 and #chunk < limits.large_read and #pieces[count] <= #chunk do
    chunk = pieces[count] .. chunk
    pieces[count] = nil
    count = count - 1
  end
  pieces[count + 1] = chunk
  box.count = count + 1
end

local function join(box)
  box.data = sub(box.data, box.at) .. concat(box.pieces, "", 1, box.count)
  box.at, box.pieces, box.count = 1, {}, 0
end

-- The first bytes of a connection from which nothing has been taken yet: all bytes that have arrived, or at least
-- enough to recognise the protocol.
function inbox.beginning(box)
  if box.count > 0 and #box.data <= limits.small_read then
    join(box)
  end
  return sub(box.data, 1, limits.small_read + 1)
end

-- Returns the next complete text message, or nil. The second result is true if the message is too long.
function inbox.next_message(box)
  if not box.may_have_message then
    return nil
  end
  local first, last = find(box.data, END, box.at, true)
  if not first and box.count > 0 then
    join(box)
    first, last = find(box.data, END, 1, true)
  end
  if not first then
    box.may_have_message = false
    return nil
  end
  local start = find(box.data, "%S", box.at)
  box.size = box.size - (last + 1 - box.at)
  box.at = last + 1
  box.may_have_message = box.size > 0
  if first - start > limits.message then
    return nil, true
  end
  return sub(box.data, start, first - 1)
end

-- Returns two positions in `box.data`: where the content of the next complete binary frame begins, after the length
-- field, and the position after its end. Returns nil if the frame is not complete yet, and false if its length is not
-- allowed.
function inbox.next_frame(box)
  if box.size < box.needed then
    return nil
  end
  if #box.data - box.at + 1 < 4 then
    join(box)
  end
  local length, start = unpack("<I4", box.data, box.at)
  if length == 0 or length > limits.frame then
    return false
  end
  if box.size < 4 + length then
    box.needed = 4 + length
    return nil
  end
  if #box.data - box.at + 1 < 4 + length then
    join(box)
    start = 5
  end
  box.needed = 4
  box.size = box.size - 4 - length
  box.at = start + length
  return start, start + length
end

inbox.END = END

return inbox
