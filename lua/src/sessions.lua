-- A session outlives its connections. It remembers the replies to requests that changed something, until the link
-- confirms that it has received them. If such a request is repeated after a broken connection, it gets the same reply
-- again and is not performed again. Requests that only read are not remembered: a repeat reads again.
--
-- If there are too many replies, or they become too large in total, the oldest are dropped, and a repeat of their
-- requests gets an error.

local connection = require "connection"
local emulator = require "emulator"
local frames = require "frames"
local keyed = require "keyed"
local limits = require "limits"
local lockstep = require "lockstep"
local refusal = require "refusal"
local requests = require "requests"
local runs = require "runs"

local CUT = "lockstep ended after %d of %d frames; the others run at mGBA's own speed"

local sessions = {}

local unfinished = {} -- a set of the sessions with a late reply that is not final yet
local uses = 0 -- how many times any session was used: found by its name, or asked for a reply

local function use(session)
  uses = uses + 1
  session.used = uses
end

-- Creates a session.
function sessions.new()
  return {
    replies = {}, -- by id: the reply, or false if it was dropped
    -- The ids in the order in which their requests were performed, at the indices `first` to `last`.
    order = {},
    first = 1,
    last = 0,
    kept = 1, -- the index in `order` of the first id whose reply was not dropped
    bytes = 0, -- of all replies that are kept
    answered = nil, -- the link has received the replies to all requests before this id; they are forgotten
    dropped = nil, -- the highest id whose reply was forgotten because there were too many
    connection = nil,
    -- A list of late replies: replies to requests with an `advance`, which are sent when its frames have run. Each has
    -- the `advance` (`goal`), and the id, the key and the connection of its request. Nil if there are no late replies.
    late = nil,
    running = {}, -- by id: the request, if it waits for the end of a run
    used = 0, -- the value of `uses` at its last use, to find the session that was used longest ago
  }
end

-- Whether id `a` comes before `b`, where ids wrap at 2^32.
local function before(a, b)
  local distance = b - a & 0xFFFFFFFF
  return distance > 0 and distance < 0x80000000
end

-- Forgets the reply to the request that was performed longest ago.
local function forget_first(session)
  local id = session.order[session.first]
  session.bytes = session.bytes - #(session.replies[id] or "")
  session.replies[id] = nil
  session.order[session.first] = nil
  session.first = session.first + 1
  return id
end

local function forget(session, answered)
  if session.answered and not before(session.answered, answered) then
    return
  end
  session.answered = answered
  if session.dropped and before(session.dropped, answered) then
    session.dropped = nil
  end
  while session.first <= session.last and before(session.order[session.first], answered) do
    forget_first(session)
  end
end

local function remember(session, id, reply)
  local order, replies = session.order, session.replies
  -- The link confirms replies only in the order of the ids. So while a long run has no reply, the replies to later
  -- requests stay here, although the link has received them.
  if session.last - session.first + 1 >= limits.replies then
    local oldest = forget_first(session)
    if not session.dropped or before(session.dropped, oldest) then
      session.dropped = oldest
    end
  end
  session.last = session.last + 1
  order[session.last] = id
  replies[id] = reply
  session.bytes = session.bytes + #reply
  session.kept = math.max(session.kept, session.first)
  while session.bytes > limits.reply_bytes and session.kept < session.last do
    local oldest = order[session.kept]
    session.bytes = session.bytes - #(replies[oldest] or "")
    replies[oldest] = false
    session.kept = session.kept + 1
  end
end

-- If the frames of the request's `advance` still have to run, adds the reply to the late ones. Returns whether it is
-- late.
local function note_late(session, request, reply)
  local goal = requests.advances(request) and lockstep.goal(session)
  if not goal then
    return false
  end
  session.late = session.late or {}
  table.insert(session.late, {
    goal = goal, id = request.id, reply = reply, key = request.key, connection = session.connection,
  })
  unfinished[session] = true
  return true
end

-- Returns the function that a request calls with its reply when its last run is over.
local function finisher(session, request)
  return function(reply)
    session.running[request.id] = nil
    local is_late = note_late(session, request, reply)
    if request.key and not is_late then
      keyed.replace(request.key, reply)
    end
    remember(session, request.id, reply)
    if not is_late and session.connection then
      connection.put(session.connection, reply)
    end
  end
end

-- Ends the run of a request, if it has one, because nobody waits for the request any more. A request with a key
-- continues, because its caller may repeat it.
function sessions.cancel(session, id)
  local request = session.running[id]
  if request and request.run and not request.key then
    runs.cancel(request.run)
  end
end

-- Returns the reply to a request. If the session remembers the request, does not perform it again. Returns nil if the
-- reply comes at the end of a run. If the session has late replies after this call, the returned reply is one of them
-- and must not be sent yet.
function sessions.answer(session, request)
  use(session)
  forget(session, request.answered)
  if not request.change then
    return (requests.perform(request, session.connection))
  end
  local id = request.id
  if session.running[id] then
    return nil
  end
  local reply = session.replies[id]
  if reply then
    return reply
  end
  if reply == false or before(id, session.answered) or session.dropped and not before(session.dropped, id) then
    return requests.refused(id, refusal.LOST, "it was done before, and its reply is not kept any more")
  end
  local key = request.key
  local status, text
  if key then
    reply, status, text = keyed.recall(key, request.batch, id)
  end
  if status then
    reply = requests.refused(id, status, text)
  elseif not reply then
    local changed
    request.finish = finisher(session, request)
    reply, changed = requests.perform(request, session.connection)
    if not reply then
      session.running[id] = request
      if key then
        keyed.remember(key, request.batch, "", true)
      end
      return nil
    end
    local is_late = note_late(session, request, reply)
    if key and changed then
      keyed.remember(key, request.batch, reply, is_late)
    end
  end
  remember(session, id, reply)
  return reply
end

-- Makes a late reply final.
local function finish(session, late)
  local goal = late.goal
  local reply
  -- If lockstep has ended too early, `goal.run` is how many of the frames have run; otherwise it is nil.
  if goal.run then
    reply = frames.with_refusal(late.reply, emulator.frame(), refusal.FAILED, CUT:format(goal.run, goal.frames))
  else
    reply = frames.at_frame(late.reply, emulator.frame())
  end
  local predicted = session.replies[late.id]
  if predicted then
    session.bytes = session.bytes + #reply - #predicted
    session.replies[late.id] = reply
  end
  if late.key then
    keyed.replace(late.key, reply)
  end
  late.reply, late.final = reply, true
end

-- Makes the late replies of a session final if their frames have run, or if lockstep has ended too early.
function sessions.finish(session)
  if not unfinished[session] then
    return
  end
  unfinished[session] = nil
  for _, late in ipairs(session.late) do
    if not late.final and lockstep.is_over(late.goal) then
      finish(session, late)
    end
    if not late.final then
      unfinished[session] = true
    end
  end
end

-- Called after each frame. Finishes late replies, including those of sessions whose link is gone.
function sessions.finish_all()
  for session in pairs(unfinished) do
    sessions.finish(session)
  end
end

local known = {} -- sessions by name
local count = 0 -- how many sessions `known` has

local function forget_oldest()
  local oldest
  for name, session in pairs(known) do
    if not session.connection and (not oldest or session.used < known[oldest].used) then
      oldest = name
    end
  end
  if oldest then
    known[oldest] = nil
    count = count - 1
  end
end

-- Returns the session with this name, and whether it was known. Creates it if necessary.
function sessions.named(name)
  local session = known[name]
  local is_known = session ~= nil
  if not is_known then
    if count >= limits.sessions then
      forget_oldest()
    end
    session = sessions.new()
    known[name] = session
    count = count + 1
  end
  use(session)
  return session, is_known
end

return sessions
