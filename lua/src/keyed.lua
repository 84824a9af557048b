-- Remembers replies under the idempotency keys that callers choose. With its key, a caller can safely repeat a request
-- even after the session is lost. This helps a bridge that was killed and started again, and a client that never got
-- the reply.
--
-- A key is always remembered for its full time, `limits.keyed_seconds`. When there are too many keys, requests with new
-- keys are refused. When the replies become too large in total, the oldest replies are dropped but their keys are kept,
-- so that a repeat is refused and not performed again. The embedded core has the same rules.

local limits = require "limits"
local refusal = require "refusal"
local stopwatch = require "stopwatch"

local pack, sub, unpack = string.pack, string.sub, string.unpack

-- These texts are the same as in crates/protocol/src/error.rs.
local USED = "the key was used for another request; choose a new one"
local DROPPED = "it was done before, and its reply is not kept any more"
local FULL = "the emulator remembers as many keys as it can, each for 10 minutes; send the request again later, or without a "
  .. "key if it may be done twice"

-- The same text as in crates/emulator/src/embedded/perform.rs.
local UNDER_WAY = "the frames of the request with this key have not run yet; send it again when they have run"

local SMALL = 64 -- batches of at most this many bytes are kept as they are, larger ones as a hash
local MULTIPLIER = 0x9E3779B97F4A7C15

local keyed = {}

local digests, replies = {}, {} -- by key: the batch or its hash, and the reply
local count = 0 -- of the keys
local under_way = {} -- for each key whose reply is not final yet: its index in `order`
-- The keys in the order in which they expire, and the times from which their full time is counted; false in place of a
-- key that was moved to the end. The indices are `first` to `last`.
local order, times = {}, {}
local first, last = 1, 0
local whole = 1 -- the index in `order` of the first key whose reply was not dropped
local bytes = 0 -- of all replies that are kept

-- Used only without a monotonic clock.
local elapsed, seen = 0, os.time()

-- Returns a count of seconds that does not jump when the system's time is changed. Without a monotonic clock, only
-- changes to an earlier time are ignored.
local function seconds()
  local measured = stopwatch.seconds()
  if measured then
    return measured
  end
  local now = os.time()
  elapsed = elapsed + math.max(0, now - seen)
  seen = now
  return elapsed
end

-- Returns what is compared to find out whether two batches are equal: all bytes of a small batch, a hash of a large
-- one.
local function digest(batch)
  local length = #batch
  if length <= SMALL then
    return batch
  end
  local hash = length
  for at = 1, length - 31, 32 do
    local a, b, c, d = unpack("<i8i8i8i8", batch, at)
    hash = (hash ~ a) * MULTIPLIER
    hash = (hash ~ hash >> 32 ~ b) * MULTIPLIER
    hash = (hash ~ hash >> 32 ~ c) * MULTIPLIER
    hash = (hash ~ hash >> 32 ~ d) * MULTIPLIER
    hash = hash ~ hash >> 32
  end
  for at = length - 31, length - 7, 8 do
    hash = (hash ~ unpack("<i8", batch, at)) * MULTIPLIER
    hash = hash ~ hash >> 32
  end
  return pack("<i8i8", length, hash)
end

local function drop(key)
  bytes = bytes - #(replies[key] or "")
  replies[key] = nil
end

local function append(key, time)
  last = last + 1
  order[last], times[last] = key, time
end

-- Forgets the keys that were remembered for their full time. The full time of a key begins when its reply is final. So
-- a key whose reply is not final yet, such as the key of a run that has not ended, is kept.
local function expire(now)
  while first <= last and now - times[first] >= limits.keyed_seconds do
    local key = order[first]
    order[first], times[first] = nil, nil
    first = first + 1
    if key and under_way[key] then
      append(key, now)
      under_way[key] = last
    elseif key then
      drop(key)
      digests[key] = nil
      count = count - 1
    end
  end
  whole = math.max(whole, first)
end

-- Returns the remembered reply to a batch with this key, with `id` as the request's id; nil if the key is new. If the
-- batch cannot be performed with this key, returns nil, a status and a text.
function keyed.recall(key, batch, id)
  expire(seconds())
  local known = digests[key]
  if not known then
    if count >= limits.keyed_keys then
      return nil, refusal.BUSY, FULL
    end
    return nil
  end
  if known ~= digest(batch) then
    return nil, refusal.BAD_ARGUMENT, USED
  elseif under_way[key] then
    return nil, refusal.BUSY, UNDER_WAY
  end
  local reply = replies[key]
  if not reply then
    return nil, refusal.LOST, DROPPED
  end
  return sub(reply, 1, 5) .. pack("<I4", id) .. sub(reply, 10)
end

local function drop_oldest_replies()
  while bytes > limits.reply_bytes do
    if order[whole] then
      drop(order[whole])
    end
    whole = whole + 1
  end
end

-- Remembers the reply to a batch with a new key. If `is_under_way`, the reply is temporary until `replace` sets the
-- final one.
function keyed.remember(key, batch, reply, is_under_way)
  append(key, seconds())
  count = count + 1
  digests[key], replies[key], under_way[key] = digest(batch), reply, is_under_way and last or nil
  bytes = bytes + #reply
  drop_oldest_replies()
end

-- Replaces a temporary reply with the final one.
function keyed.replace(key, reply)
  local index = under_way[key]
  if index then
    order[index] = false
    append(key, seconds())
    under_way[key] = nil
  end
  if digests[key] then
    bytes = bytes + #reply - #(replies[key] or "")
    replies[key] = reply
    drop_oldest_replies()
  end
end

return keyed
