-- A connection's *turn*: the script reads from it, performs its requests and sends replies. A connection begins with
-- text messages. After the message `framewire.hello`, it is the connection of a *link*, which is Framewire's own client
-- (in `framewire serve`, for example), and carries binary frames.

local connection = require "connection"
local emulator = require "emulator"
local frames = require "frames"
local eventqueue = require "eventqueue"
local inbox = require "inbox"
local limits = require "limits"
local lockstep = require "lockstep"
local log = require "log"
local messages = require "messages"
local readahead = require "readahead"
local refusal = require "refusal"
local sessions = require "sessions"
local throttle = require "throttle"
local ticks = require "ticks"
local version = require "version"

local byte, find, sub, unpack = string.byte, string.find, string.sub, string.unpack
local clock = os.clock
local put, answer_message, answer_request = connection.put, messages.answer, sessions.answer
local next_message, next_frame = inbox.next_message, inbox.next_frame
local REQUEST, KEYED_REQUEST, CANCEL, PING = frames.REQUEST, frames.KEYED_REQUEST, frames.CANCEL, frames.PING
local TRACE = frames.TRACE
local REQUESTS, SECONDS = limits.turn.requests, limits.turn.seconds
local END = inbox.END

-- After mGBA was paused, a link's requests wait until nothing more has arrived for `QUIET` ticks, but for at most
-- `LONGEST` ticks. They do not wait if fewer than `FEW` bytes have arrived: the system stores at least this many unread
-- bytes for a connection, so the link has sent no more than that. As soon as there are `MANY` bytes, they do not wait
-- any longer.
local FEW, QUIET, LONGEST, MANY = 32 * 1024, 2, 10, limits.inbox // 2
local LINGER = 2 * ticks.per_second -- ticks in which a dismissed client can still read the reason

-- Identifies this run of the script. A script that is loaded again has forgotten everything, and has another number.
local boot = string.format("%016x", math.random(0) ~ os.time() << 32)

local turn = {}

-- Stops serving a client, but keeps its connection open for a while, so that the client can read the reason.
function turn.dismiss(self, reason)
  if self.binary then
    put(self, frames.encode_goodbye(reason))
  end
  if self.session then
    self.session.connection = nil
    self.session = nil
    log.info("a link is disconnected: %s", reason)
  end
  self.dismissed = ticks.now
  self.inbox = inbox.new()
  self.queue, self.queue_first, self.queue_last, self.deferred, self.waiting = {}, 1, 0, {}, nil
end

-- Answers the message `framewire.hello`, and makes the connection binary. A link that does not support this protocol
-- closes its connection after the welcome, and reports which script to load.
local function greet(self, text)
  local protocol, name = text:match("^framewire%.hello,(%d+),(%x+)$")
  if not protocol or tonumber(protocol) < 1 or #name ~= 16 then
    log.warn("%q is not a hello; send framewire.hello,%d,SESSION, where SESSION is 16 hexadecimal digits",
      refusal.sentence(text), version.protocol)
    put(self, messages.ERROR .. END)
    return
  end
  local session, known = sessions.named(name:lower())
  if session.connection then
    turn.dismiss(session.connection, "another connection continues this session")
  end
  session.connection, self.session, self.binary = self, session, true
  local fields = { "framewire.welcome", version.protocol, version.script, boot, known and 1 or 0, emulator.frame(),
    eventqueue.sent }
  put(self, table.concat(fields, ",") .. END)
  log.info("a link connected%s", known and " again" or "")
end

-- Whether a connection may continue: its first message must begin with a known key, such as `core.step`. The reason is
-- that any web page can make a browser connect to this machine. The browser then sends the head of an HTTP request or a
-- TLS hello. The bytes that it sends can contain messages for this script, chosen by the page, but cannot begin with
-- one.
local function is_client(self)
  local bytes = inbox.beginning(self.inbox)
  -- `known` is nil if too few bytes have arrived to decide.
  local known, is_message = messages.begins_known(bytes)
  if known then
    self.fresh = false
  elseif is_message then
    log.warn("a client is turned away: its first message has no known key, %q", refusal.sentence(sub(bytes, 1, 80)))
    put(self, messages.ERROR .. END)
    turn.dismiss(self, "unknown first message")
  elseif known == false then
    log.warn("a client is turned away: it began with %q, which is not a message; HTTP and HTTPS are served by `framewire "
      .. "serve`, not by this script", refusal.sentence(sub(bytes, 1, 80)))
    connection.close(self, "its first bytes are not a message")
  end
  return known == true
end

local function do_messages(self, deadline)
  if self.fresh and not is_client(self) then
    return self.dismissed ~= nil
  end
  local box, done = self.inbox, 0
  repeat
    local text, too_long = self.waiting, false
    if text then
      self.waiting = nil
    else
      text, too_long = next_message(box)
    end
    if too_long or not text and box.size > limits.message then
      log.warn("a client is turned away: its message is longer than %d bytes", limits.message)
      put(self, messages.ERROR .. END)
      turn.dismiss(self, "message too long")
      return true
    end
    if not text then
      break
    end
    if find(text, "framewire.hello", 1, true) == 1 then
      greet(self, text)
      return true
    end
    local reply = answer_message(text)
    if not reply then
      -- It moves too many bytes for this frame (throttle.lua), so it is performed later.
      self.waiting = text
      break
    end
    done = done + 1
    put(self, reply .. END)
  until done >= REQUESTS or self.unsent >= limits.full_outbox or clock() > deadline
  return done > 0
end

-- Decodes the binary frames that have arrived. Returns false if one is malformed.
local function read_frames(self)
  local box = self.inbox
  while self.queue_last - self.queue_first + 1 < limits.queue do
    local at, stop = next_frame(box)
    if not at then
      return at == nil -- false means that the length of the frame is not allowed
    end
    local data = box.data
    local kind = byte(data, at)
    if kind == REQUEST or kind == KEYED_REQUEST then
      local request = frames.decode_request(data, at + 1, stop, kind == KEYED_REQUEST)
      if not request then
        return false
      end
      if self.traced == request.id then
        request.trace = self.trace
      end
      self.traced, self.trace = nil, nil
      self.queue_last = self.queue_last + 1
      self.queue[self.queue_last] = request
    elseif kind == TRACE then
      self.traced, self.trace = frames.decode_trace(data, at + 1, stop)
      if not self.traced then
        return false
      end
    elseif kind == CANCEL and stop - at == 5 then
      self.cancelled = self.cancelled or {}
      local id = unpack("<I4", data, at + 1)
      self.cancelled[id] = true
      sessions.cancel(self.session, id)
    elseif kind == PING and stop - at == 5 then
      self.pinged = true
      put(self, frames.encode_pong(unpack("<I4", data, at + 1), emulator.frame()))
    else
      return false
    end
  end
  return true
end

-- Whether a link's next request may be performed. An `advance` gets its reply when its frames have run; until then,
-- later requests wait. Sends late replies when they are final, but only on the connection of the request: after a
-- reconnection, the link repeats the request.
local function is_free(self)
  local session = self.session
  sessions.finish(session)
  local all = session.late
  if all then
    session.late = nil
    for _, late in ipairs(all) do
      if not late.final then
        session.late = session.late or {}
        table.insert(session.late, late)
      elseif late.connection == self then
        put(self, late.reply)
      end
    end
  end
  return lockstep.ahead(session) == 0
end

-- Performs a request, which reads or writes `request.moved` bytes of memory, and sends its reply. A late reply is not
-- sent here, but by `is_free`.
local function answer(self, request)
  local session = self.session
  local reply = throttle.run(request.moved, answer_request, session, request)
  if session.late or not reply then
    return
  elseif type(reply) == "string" then
    put(self, reply)
    return
  end
  for _, part in ipairs(reply) do
    put(self, part)
  end
end

-- Whether a request has to wait: either bytes are read ahead for it, or throttle.lua does not admit it now.
local function has_to_wait(request)
  if request.ahead then
    return true
  elseif lockstep.on then
    return false
  elseif throttle.admits(request.moved) then
    return request.moved > limits.frame_bytes and readahead.begin(request)
  end
  readahead.begin(request)
  return true
end

-- Puts off a request that has to wait, so that later requests do not have to wait for it. A request that changes
-- something is never put off. Returns whether it was put off.
local function defer(self, request)
  if request.change or #self.deferred >= limits.deferred then
    return false
  end
  table.insert(self.deferred, request)
  return true
end

local function drop_cancelled(list, cancelled)
  for index = #list, 1, -1 do
    if cancelled[list[index].id] then
      table.remove(list, index)
    end
  end
end

-- Reads ahead for a request until `deadline`. Returns true if there is nothing more to read ahead.
local function read_ahead(request, deadline)
  while request.ahead do
    if readahead.go_on(request) then
      return true
    elseif clock() > deadline then
      return false
    end
  end
  return true
end

-- Continues with the requests that were put off: takes the first that may be performed now, and performs it or reads
-- ahead for it. Returns whether there was one.
local function do_deferred(self, deadline)
  local deferred = self.deferred
  if self.cancelled then
    drop_cancelled(deferred, self.cancelled)
  end
  if lockstep.ahead(self.session) > 0 then
    return false
  end
  for index, request in ipairs(deferred) do
    local admitted = throttle.admits(request.moved)
    if admitted and read_ahead(request, deadline) and throttle.admits(request.moved) then
      answer(self, table.remove(deferred, index))
    end
    if admitted then
      return true
    end
  end
  return false
end

-- If one more reply of `size` bytes would not fit into the same slice, sends the waiting replies now. Without this,
-- only the first slice of the replies to many requests would be sent before the script sleeps again (connection.lua).
-- Returns false if the connection is closed.
local function flush_full(self, size)
  if self.unsent + size > limits.send_slice then
    connection.flush(self)
  end
  return self.socket ~= nil
end

local function do_requests(self, deadline)
  if not read_frames(self) then
    log.warn("a link sent bytes that are not a frame of protocol %d", version.protocol)
    turn.dismiss(self, "malformed frame")
    return true
  end
  local queue, done = self.queue, 0
  if self.session.late then
    if not is_free(self) then
      return false
    end
    done = 1
  end
  -- Not counted in `done`, so that a request from the queue is performed even if reading ahead has used all of the time.
  local deferred = do_deferred(self, deadline)
  while self.queue_first <= self.queue_last do
    local full = done >= REQUESTS or self.unsent >= limits.full_outbox or done > 0 and clock() > deadline
    if full or not is_free(self) then
      return deferred or done > 0
    end
    local request = queue[self.queue_first]
    local cancelled = self.cancelled and self.cancelled[request.id]
    if not cancelled then
      if not has_to_wait(request) then
        local before = self.unsent
        answer(self, request)
        if not flush_full(self, self.unsent - before) then
          return true
        end
      elseif not defer(self, request) then
        return deferred or done > 0
      end
    end
    queue[self.queue_first] = nil
    self.queue_first = self.queue_first + 1
    done = done + 1
  end
  self.queue_first, self.queue_last, self.cancelled = 1, 0, nil
  return deferred or done > 0
end

-- Whether there is enough to do without reading. For a link, only a full queue is enough, because a cancel may have
-- arrived.
local function has_enough(self)
  if self.binary then
    return self.queue_last - self.queue_first + 1 >= limits.queue
  end
  return self.inbox.may_have_message or self.waiting ~= nil
end

-- Reads what has arrived. `readable` is true if it is known that there is something to read.
local function read(self, readable)
  if self.ended or not readable and (has_enough(self) or self.socket:select(0) == 0) then
    return
  end
  connection.receive(self)
  for _ = 1, limits.turn.reads do
    -- The last read did not return as much as it could, so there was nothing more.
    if self.read_size == limits.small_read or self.ended or connection.has_backlog(self) or self.socket:select(0) == 0 then
      return
    end
    connection.receive(self)
  end
end

-- Called for a link after mGBA was paused. Its requests then wait until the script has read everything that the link
-- has sent in the meantime, even if that is much: a cancel comes after the request that it withdraws.
function turn.catch_up(self)
  self.resumed = self.resumed or { since = ticks.now, till = ticks.now, size = self.inbox.size }
end

-- Reads for a link whose requests wait after a pause. A link that has sent much can send the rest only when there is
-- room again, so this may take several frames. Sets `resumed` to nil when the requests do not have to wait any more.
local function read_after_pause(self)
  local resumed, box = self.resumed, self.inbox
  for _ = 1, limits.turn.reads do
    if self.ended or box.size >= MANY or self.socket:select(0) == 0 then
      break
    end
    connection.receive(self)
  end
  if box.size > resumed.size then
    resumed.size, resumed.till = box.size, math.min(ticks.now + QUIET, resumed.since + LONGEST)
  end
  if self.ended or box.size < FEW or box.size >= MANY or ticks.now >= resumed.till then
    self.resumed = nil
  end
end

local function has_requests(self)
  return self.inbox.size > 0 or self.queue_first <= self.queue_last or self.deferred[1] ~= nil or self.session.late ~= nil
end

-- Whether an ended connection can be closed. A text client's messages are all performed first.
local function is_over(self)
  return self.binary or self.dismissed or not self.inbox.may_have_message and not self.waiting
end

-- Gives a connection its turn. `readable` is true if it is known that there is something to read; `now` is the
-- processor time. Returns whether a request was performed; also true if the connection became binary or was dismissed.
function turn.take(self, readable, now)
  local done = false
  if self.dismissed then
    connection.drain(self)
    if ticks.now - self.dismissed > LINGER then
      connection.close(self, "dismissed")
      return false
    end
  elseif self.unsent < limits.full_outbox or self.ended then
    if self.resumed then
      read_after_pause(self)
    else
      read(self, readable)
    end
    if self.binary then
      done = not self.resumed and has_requests(self) and do_requests(self, now + SECONDS)
    elseif self.inbox.size > 0 or self.waiting then
      done = do_messages(self, now + SECONDS)
    end
  end
  if self.unsent > 0 and self.socket then
    connection.flush(self)
  end
  if self.ended and self.socket and is_over(self) then
    connection.close(self, "by the other end")
  end
  if done then
    self.active = ticks.now
  end
  return done
end

return turn
