-- Performs the requests of links, which are clients that send binary frames. A request has a batch of operations. The
-- table of a request has five elements for each operation (frames.lua), so `place`, the position of an operation in it,
-- is 1, 6, 11, and so on.

local emulator = require "emulator"
local frames = require "frames"
local limits = require "limits"
local lockstep = require "lockstep"
local log = require "log"
local operations = require "operations"
local readahead = require "readahead"
local refusal = require "refusal"
local runs = require "runs"

local attempt, encode, encode_refusal = operations.attempt, frames.encode, frames.encode_refusal
local RUN, ADVANCE = operations.by_name.run, operations.by_name.advance

local MAX_RESULTS = limits.frame - 1024 -- bytes; the rest is more than enough for the head of the reply
local TOO_LARGE = encode_refusal(refusal.TOO_LARGE, "the reply would be larger than 24 MiB; ask for less at once")

local requests = {}

-- Encodes the reply to a request that is refused as a whole.
function requests.refused(id, status, text)
  return frames.encode_reply(id, emulator.frame(), 1, encode_refusal(status, text))
end

-- The statuses of operations that were refused before they changed anything. A repeat may succeed later.
local NOT_BEGUN = {
  [refusal.BAD_ARGUMENT] = true,
  [refusal.UNSUPPORTED] = true,
  [refusal.NO_GAME] = true,
  [refusal.BUSY] = true,
  [refusal.NOT_FOUND] = true,
}

local NOT_DONE = encode_refusal(refusal.NOT_DONE, "not done: a later operation of this batch is refused")

-- Operations that load another game. Which memory the operations after them can use is known only after the load.
local LOADS = { load_file = true, load_rom = true }
-- Operations that may compile many expressions, both in their check and when they are performed. A batch often has
-- several of them with the same argument, and one check is enough for all. A single operation needs no check: it
-- refuses its argument itself.
local COMPILED = { run = true, evaluate = true }

-- Whether the operation at `place` uses memory that exists, and has expressions that can be compiled. If not, also
-- returns a status and the reason.
local function check(request, place)
  local op = request[place]
  if not op.check or not emu then
    return true
  end
  local fine, problem = pcall(op.check, table.unpack(request, place + 1, place + 4))
  if fine then
    return true
  end
  return false, refusal.of(problem)
end

-- Refuses a whole request because of its operation number `index`. Returns what `check_all` returns for a refused
-- request.
local function refuse_all(request, index, status, problem)
  log.debug("%s: %s", request[5 * index - 4].name, problem)
  return nil, NOT_DONE:rep(index - 1) .. encode_refusal(status, problem), index
end

-- Checks all operations before any is performed: their order, the memory that they use, and their expressions.
-- Operations after one that loads a game cannot be checked yet. Returns the number of the last operation that needs no
-- further check. For a refused request, returns nil, the results for the reply, and their number.
local function check_all(request)
  for index = 1, request.count - 1 do
    if request[5 * index - 4] == ADVANCE then
      return refuse_all(request, index, refusal.BAD_ARGUMENT, "`advance` must be the last operation of its batch on a "
        .. "stock mGBA; send the operations after it in another batch")
    end
  end
  if request.unchecked then
    return request.count
  end
  local seen = {} -- arguments of `run` and `evaluate` that were checked, each with its operation
  for index = 1, request.count do
    local place = 5 * index - 4
    local op, argument = request[place], request[place + 1]
    local compiled = COMPILED[op.name]
    if not (compiled and (request.count == 1 or seen[argument] == op)) then
      local fine, status, problem = check(request, place)
      if not fine then
        return refuse_all(request, index, status, problem)
      end
    end
    if LOADS[op.name] then
      return index
    elseif compiled then
      seen[argument] = op
    end
  end
  return request.count
end

-- Performs the operation at `place`. If it was not `checked`, checks its memory first. Returns what
-- `operations.attempt` returns.
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

-- Whether a request ends with `advance`. Then its reply comes when its frames have run.
function requests.advances(request)
  return request[5 * request.count - 4] == ADVANCE
end

-- Adds the outcome of an operation to the results of its request. If `done`, the outcome is `result`, or `pieces` with
-- `length` bytes in total. Otherwise `result` is a status, and `problem` says what was wrong. After an operation that
-- was not done, no further operation of the request is performed.
local function add(request, progress, op, done, result, problem, pieces, length)
  local encoded
  if op.change and (done or not NOT_BEGUN[result]) then
    progress.changed = true
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
  length = length or 0
  if progress.size + #encoded + length > MAX_RESULTS then
    done, encoded, pieces, length = false, TOO_LARGE, nil, 0
  end
  local results = progress.results
  progress.count, progress.size = progress.count + 1, progress.size + #encoded + length
  results[#results + 1] = encoded
  if pieces then
    table.move(pieces, 1, #pieces, #results + 1, results)
  end
  if not done then
    request.count = progress.count
  end
end

-- Performs the remaining operations of a request. Returns what `requests.perform` returns.
local function go_on(request, client, progress)
  while progress.count < request.count do
    local place = 5 * progress.count + 1
    local op = request[place]
    local pieces, length = readahead.parts(request, place)
    local done, result, problem = true, nil, nil
    if not pieces then
      done, result, problem = perform_one(request, place, client, progress.count < progress.known)
    end
    if op == RUN and type(result) == "table" then
      request.run = result
      local session = client.session
      runs.wait(result, function(...)
        request.run = nil
        -- The connection may be another one by now. If there is none, operations get a substitute.
        local now = session.connection or { session = session, watches = {} }
        add(request, progress, op, ...)
        local reply, changed = go_on(request, now, progress)
        if reply then
          request.finish(reply, changed)
        end
      end)
      return nil
    end
    add(request, progress, op, done, result, problem, pieces, length)
  end
  local frame = emulator.frame()
  if requests.advances(request) then
    frame = frame + lockstep.ahead(client and client.session) & 0xFFFFFFFF
  end
  local head = frames.encode_reply_head(request.id, frame, progress.count, progress.size)
  if request.ahead then
    table.insert(progress.results, 1, head)
    return progress.results, progress.changed
  end
  return head .. table.concat(progress.results), progress.changed
end

-- Performs a request's operations in order, up to the first that fails. Returns the reply frame, and whether the
-- request may have changed anything. If bytes were read ahead for the request, the reply is a list of parts, because
-- joining them would take too long. If an operation `run` has to wait for frames, returns nil, and calls
-- `request.finish` with both values later.
function requests.perform(request, client)
  lockstep.ask()
  local known, refused, refused_count = check_all(request)
  if not known then
    return frames.encode_reply(request.id, emulator.frame(), refused_count, refused), false
  end
  return go_on(request, client, { results = {}, count = 0, size = 0, changed = false, known = known })
end

return requests
