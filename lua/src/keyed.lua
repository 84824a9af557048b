-- Replies by the keys that callers chose, for repetitions that outlive a session: a bridge that was killed and started
-- again, a client that never heard the answer. The oldest are forgotten first.

local limits = require "limits"

local pack, sub = string.pack, string.sub

local keyed = {}

local replies = {} -- by key
local order = {} -- the keys in the order they were done, from `first` to `last`
local first, last = 1, 0
local bytes = 0

-- The reply that was given under a key, as the one to request `id`; nil if none is known.
function keyed.recall(key, id)
  local reply = replies[key]
  return reply and sub(reply, 1, 5) .. pack("<I4", id) .. sub(reply, 10)
end

-- Keeps the reply to a request of a key that is not kept.
function keyed.remember(key, reply)
  last = last + 1
  order[last] = key
  replies[key] = reply
  bytes = bytes + #reply
  while last - first >= limits.keyed_replies or bytes > limits.reply_bytes and first < last do
    local oldest = order[first]
    order[first] = nil
    first = first + 1
    bytes = bytes - #replies[oldest]
    replies[oldest] = nil
  end
end

return keyed
