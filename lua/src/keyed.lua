-- Replies by the keys that callers chose, for repetitions that outlive a session: a bridge that was killed and started
-- again, a client that never heard the answer. The oldest are forgotten first.

local limits = require "limits"

local pack, sub = string.pack, string.sub

local keyed = {}

local replies, batches = {}, {} -- by key: the reply, and the bytes of what was asked for
local order = {} -- the keys in the order they were done, from `first` to `last`
local first, last = 1, 0
local bytes = 0

-- The reply that was given to a batch under a key, as the one to request `id`; nil if the key is not known, and true with
-- it if the key was another batch's.
function keyed.recall(key, batch, id)
  local reply = replies[key]
  if reply and batches[key] ~= batch then
    return nil, true
  end
  return reply and sub(reply, 1, 5) .. pack("<I4", id) .. sub(reply, 10)
end

-- Keeps the reply to a batch of a key that is not kept.
function keyed.remember(key, batch, reply)
  last = last + 1
  order[last] = key
  replies[key], batches[key] = reply, batch
  bytes = bytes + #reply + #batch
  while last - first >= limits.keyed_replies or bytes > limits.reply_bytes and first < last do
    local oldest = order[first]
    order[first] = nil
    first = first + 1
    bytes = bytes - #replies[oldest] - #batches[oldest]
    replies[oldest], batches[oldest] = nil, nil
  end
end

return keyed
