-- Performs requests.

local emulator = require "emulator"
local frames = require "frames"
local limits = require "limits"
local lockstep = require "lockstep"
local log = require "log"
local operations = require "operations"
local readahead = require "readahead"
local refusal = require "refusal"

local attempt, encode, encode_refusal = operations.attempt, frames.encode, frames.encode_refusal

local MAX_RESULTS = limits.frame - 1024
local TOO_LARGE = encode_refusal(refusal.TOO_LARGE, "the reply would be larger than 24 MiB; ask for less at once")

local requests = {}

-- The reply frame to a request that is refused as a whole.
function requests.refused(id, status, text)
  return frames.encode_reply(id, emulator.frame(), 1, encode_refusal(status, text))
end

-- Refusals of operations that were not begun: they may succeed a moment later.
local NOT_BEGUN = {
  [refusal.BAD_ARGUMENT] = true,
  [refusal.UNSUPPORTED] = true,
  [refusal.NO_GAME] = true,
  [refusal.BUSY] = true,
  [refusal.NOT_FOUND] = true,
}

local NOT_DONE = encode_refusal(refusal.NOT_DONE, "not done: a later operation of this batch is refused")

-- Loads another game, so the memory for the following operations is known only then.
local LOADS = { load_file = true, load_rom = true }

-- Whether the memory exists that the operation at `place` in a request uses; if not, also a status and what is wrong.
local function check(request, place)
  local op = request[place]
  if not op.check or not emu then
    return true
  end
  local fine, problem = pcall(op.check, request[place + 1], request[place + 2], request[place + 3])
  if fine then
    return true
  elseif type(problem) == "table" then
    return false, problem.status, problem.text
  end
  return false, refusal.FAILED, "mGBA refused: " .. refusal.sentence(problem)
end

-- Refuses a whole request for the operation at `index`. Returns what `check_all` returns then.
local function refuse_all(request, index, status, problem)
  log.debug("%s: %s", request[5 * index - 4].name, problem)
  return nil, NOT_DONE:rep(index - 1) .. encode_refusal(status, problem), index
end

-- Checks all operations before any is performed: their places, and their memory as far as it is known. Returns up to which
-- of them the memory is known, or nil, the reply frame's results and how many they are.
local function check_all(request)
  for index = 1, request.count - 1 do
    local op = request[5 * index - 4]
    if op.is_last then
      return refuse_all(request, index, refusal.BAD_ARGUMENT, "`" .. op.name .. "` must be the last operation of its "
        .. "batch on a stock mGBA; send the operations after it in another batch")
    end
  end
  if request.unchecked then
    return request.count
  end
  for index = 1, request.count do
    local fine, status, problem = check(request, 5 * index - 4)
    if not fine then
      return refuse_all(request, index, status, problem)
    elseif LOADS[request[5 * index - 4].name] then
      return index
    end
  end
  return request.count
end

-- Performs the operation at `place` in a request.
local function perform_one(request, place, client, checked)
  local op = request[place]
  if not checked then
    local fine, status, problem = check(request, place)
    if not fine then
      return false, status, problem
    end
  end
  return attempt(op, client, request[place + 1], request[place + 2], request[place + 3], request[place + 4])
end

-- Performs a request's operations in order, up to the first that fails, for a client's connection. Returns the reply frame,
-- and whether anything may have changed. If bytes were read ahead for the request, the reply is a list of its parts, because
-- joining them would take long.
function requests.perform(request, client)
  local results, count, size = {}, 0, 0
  local changed = false
  lockstep.ask()
  local known, refused, refused_count = check_all(request)
  if not known then
    return frames.encode_reply(request.id, emulator.frame(), refused_count, refused), false
  end
  for index = 1, request.count do
    local place = 5 * index - 4
    local op = request[place]
    local pieces, length = readahead.parts(request, place)
    local done, result, problem = true, nil, nil
    if not pieces then
      done, result, problem = perform_one(request, place, client, index <= known)
      length = 0
    end
    local encoded
    if op.change and (done or not NOT_BEGUN[result]) then
      changed = true
    end
    if request.trace then
      log.debug("request %s: %s %s", request.trace, op.name, done and "done" or problem)
    elseif not done then
      log.debug("%s: %s", op.name, problem)
    end
    if pieces then
      encoded = frames.encode_bytes_head(length)
    elseif done then
      encoded = encode[op.result](result)
    else
      encoded = encode_refusal(result, problem)
    end
    if size + #encoded + length > MAX_RESULTS then
      done, encoded, pieces, length = false, TOO_LARGE, nil, 0
    end
    count, size = index, size + #encoded + length
    results[#results + 1] = encoded
    if pieces then
      table.move(pieces, 1, #pieces, #results + 1, results)
    end
    if not done then
      break
    end
  end
  local frame = emulator.frame() + lockstep.ahead(client and client.session) & 0xFFFFFFFF
  local head = frames.encode_reply_head(request.id, frame, count, size)
  if request.ahead then
    table.insert(results, 1, head)
    return results, changed
  end
  return head .. table.concat(results), changed
end

return requests
