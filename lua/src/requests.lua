-- Doing what a request asks for.

local emulator = require "emulator"
local frames = require "frames"
local limits = require "limits"
local log = require "log"
local operations = require "operations"
local refusal = require "refusal"

local attempt, encode, encode_refusal = operations.attempt, frames.encode, frames.encode_refusal

local MAX_RESULTS = limits.frame - 1024
local TOO_LARGE = encode_refusal(refusal.TOO_LARGE, "the reply would be larger than 24 MiB; ask for less at once")

local requests = {}

-- The reply frame to a request that is refused as a whole.
function requests.refused(id, status, text)
  return frames.encode_reply(id, emulator.frame(), 1, encode_refusal(status, text))
end

-- Refusals that say nothing of the request itself: the same may be done a moment later.
local PASSING = { [refusal.BUSY] = true, [refusal.NO_GAME] = true }

-- Does a request's operations in order, up to the first that fails. Gives the reply frame, and whether nothing was done for
-- a reason that passes.
function requests.perform(request)
  local results, size = {}, 0
  local passing = false
  for index = 1, request.count do
    local place = 4 * index - 3
    local op = request[place]
    local done, result, problem = attempt(op, request[place + 1], request[place + 2], request[place + 3])
    local encoded
    if done then
      encoded = encode[op.result](result)
    else
      log.debug("%s: %s", op.name, problem)
      encoded = encode_refusal(result, problem)
      passing = index == 1 and PASSING[result] == true
    end
    if size + #encoded > MAX_RESULTS then
      done, encoded = false, TOO_LARGE
    end
    size = size + #encoded
    results[index] = encoded
    if not done then
      break
    end
  end
  return frames.encode_reply(request.id, emulator.frame(), #results, table.concat(results)), passing
end

return requests
