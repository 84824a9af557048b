-- Encodes and decodes binary frames, which are messages and not frames of the game; docs/protocol.md describes them.

local limits = require "limits"
local operations = require "operations"
local refusal = require "refusal"

local byte, pack, sub, unpack = string.byte, string.pack, string.sub, string.unpack
local printable, by_code, moved_bytes = refusal.printable, operations.by_code, operations.moved_bytes

-- If this bit of a request's count is set, the request's addresses are not checked.
local UNCHECKED = 0x8000

local frames = {
  -- The kinds of binary frames.
  REQUEST = 1,
  REPLY = 2,
  CANCEL = 3,
  PING = 4,
  PONG = 5,
  GOODBYE = 6,
  KEYED_REQUEST = 7,
  EVENT = 8,
  TRACE = 9,
}

-- Encoders of results, by type. They write the status 0, a tag and the value.
frames.encode = {
  none = function() return "\0\0" end,
  bool = function(value) return value and "\0\2" or "\0\1" end,
  int = function(value) return pack("<I2i8", 0x0300, value) end,
  text = function(value) return pack("<I2s4", 0x0400, printable(value)) end,
  bytes = function(value) return pack("<I2s4", 0x0500, value) end,
  names = function(value)
    local items = { pack("<I2I2", 0x0600, #value) }
    for index, name in ipairs(value) do
      items[index + 1] = pack("<I1s4", 4, printable(name))
    end
    return table.concat(items)
  end,
}

-- Encodes the result of an operation that was refused.
function frames.encode_refusal(status, text)
  return pack("<I1s4", status, printable(text))
end

-- Encodes the part of a result of type `bytes` that precedes its `length` bytes.
function frames.encode_bytes_head(length)
  return pack("<I2I4", 0x0500, length)
end

-- Encodes the part of a reply frame that precedes its results. `count` is their number, `size` their encoded size.
function frames.encode_reply_head(id, frame, count, size)
  return pack("<I4I1I4I4I2", 11 + size, frames.REPLY, id, frame, count)
end

-- Encodes a reply frame. `results` are the encoded results, joined.
function frames.encode_reply(id, frame, count, results)
  return frames.encode_reply_head(id, frame, count, #results) .. results
end

-- Replaces the predicted frame in the reply to a batch that ends with `advance`: `frame` is the frame that was really
-- reached. If `advance` succeeded, its result is replaced too.
function frames.at_frame(reply, frame)
  local front, results = sub(reply, 1, 9), sub(reply, 14)
  -- The result of an `advance` that succeeded has 10 bytes: the status 0, the tag 3 and a number of 8 bytes.
  if sub(results, -10, -9) == "\0\3" then
    results = sub(results, 1, -9) .. pack("<i8", frame)
  end
  return front .. pack("<I4", frame) .. results
end

-- Like `at_frame`, but replaces the result of `advance` with a refusal.
function frames.with_refusal(reply, frame, status, text)
  local _, _, id, _, count, at = unpack("<I4I1I4I4I2", reply)
  local results = sub(reply, at)
  if sub(results, -10, -9) == "\0\3" then
    results = sub(results, 1, -11) .. frames.encode_refusal(status, text)
  end
  return frames.encode_reply(id, frame, count, results)
end

function frames.encode_pong(id, frame)
  return pack("<I4I1I4I4", 9, frames.PONG, id, frame)
end

function frames.encode_goodbye(reason)
  return pack("<I4I1s4", 5 + #reason, frames.GOODBYE, reason)
end

-- Encodes an event frame. `items` are the encoded items, joined.
function frames.encode_event(frame, count, items)
  return pack("<I4I1I4I2", 7 + #items, frames.EVENT, frame, count) .. items
end

-- Decodes a trace frame. Returns the id of the request that follows and the name of this request in logs; nil if they
-- cannot be decoded.
function frames.decode_trace(data, at, stop)
  if stop - at < 9 or stop - at > 8 + limits.trace then
    return nil
  end
  local id, length = unpack("<I4I4", data, at)
  if length ~= stop - at - 8 then
    return nil
  end
  return id, printable(sub(data, at + 8, stop - 1))
end

-- Decodes a request whose id is at `at` and which ends before `stop`; nil if that is impossible. The array part of the
-- returned table has five elements for each operation: the operation and up to four arguments.
function frames.decode_request(data, at, stop, is_keyed)
  if stop - at < 10 then
    return nil
  end
  local id, answered, key, count, next_at
  if is_keyed then
    local fine
    fine, id, answered, key, count, next_at = pcall(unpack, "<I4I4s1I2", data, at)
    if not fine or next_at > stop then
      return nil
    end
  else
    id, answered, count, next_at = unpack("<I4I4I2", data, at)
  end
  local unchecked = count & UNCHECKED ~= 0
  count = count & ~UNCHECKED
  -- `answered`: the client has received the replies to all requests before this id. `moved`: how many bytes of memory
  -- the operations read or write (`moved_bytes` in operations.lua).
  local request = { id = id, answered = answered, key = key, count = count, change = false, moved = 0,
    unchecked = unchecked }
  if key then
    request.batch = sub(data, next_at - 2, stop - 1)
  end
  if count > limits.ops then
    return nil
  end
  for place = 1, 5 * count, 5 do
    local op = next_at < stop and by_code[byte(data, next_at)]
    if not op then
      return nil
    end
    local fine, a, b, c, d, e = pcall(unpack, op.format, data, next_at + 1)
    if not fine then
      return nil
    end
    request[place] = op
    request.change = request.change or op.change
    if op.count == 0 then
      next_at = a
    elseif op.count == 1 then
      request[place + 1], next_at = a, b
    elseif op.count == 2 then
      request[place + 1], request[place + 2], next_at = a, b, c
    elseif op.count == 3 then
      request[place + 1], request[place + 2], request[place + 3], next_at = a, b, c, d
    else
      request[place + 1], request[place + 2], request[place + 3], request[place + 4], next_at = a, b, c, d, e
    end
    if next_at > stop then
      return nil
    end
    if op.moved_at then
      request.moved = request.moved + moved_bytes(op, request[place + 1], request[place + 2], request[place + 3])
    end
  end
  return next_at == stop and request or nil
end

return frames
