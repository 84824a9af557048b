-- One client's connection: bytes in and out, nothing of what they mean.
--
-- mGBA does not ignore SIGPIPE: a second write to a connection whose other end is gone ends the emulator with all that
-- is in it. So each write comes right after a look at the connection that found nothing to read, because the end of a
-- connection, too, is something to read. What else is found is read ahead into the inbox. From a client that sends faster
-- than it can be served that would be more and more, so its replies are held back for a while, and sent in fewer writes.

local inbox = require "inbox"
local limits = require "limits"
local log = require "log"
local ticks = require "ticks"

local concat, sub = table.concat, string.sub

local AGAIN, UNKNOWN = 1, -1
if C then
  AGAIN, UNKNOWN = C.SOCKERR.AGAIN, C.SOCKERR.UNKNOWN_ERROR
end

local connection = {
  closed = 0, -- how many were closed so far
  -- Set by the server: makes sure that the last error of this thread is a known one.
  settle_errors = function() end,
}

function connection.new(socket)
  return {
    socket = socket, -- nil once it is closed
    inbox = inbox.new(),
    read_size = limits.small_read, -- how much to read at once; grows while reads come back full
    outbox = {}, -- replies that were not begun to be sent
    outbox_count = 0,
    sending = nil, -- the string being sent, `sent` bytes of it gone
    sent = 0,
    unsent = 0, -- bytes in all that wait to be sent
    hold = limits.first_hold, -- bytes of replies to hold back while there is a backlog
    wrote = false, -- whether anything was ever sent
    stuck_time = nil, -- since when nothing could be sent, by the clock and by ticks
    stuck_tick = nil,
    ended = false, -- the client sends no more: do what has arrived, then close
    mute = false, -- and it cannot be told any more
    dismissed = nil, -- the tick from which on it is kept only for its client to read why
    active = ticks.now, -- the tick of the last request
    fresh = true, -- whether it is not known yet that its first message has a known key

    -- Of a link, which speaks frames:
    session = nil,
    binary = false,
    pinged = false, -- whether it has a heartbeat
    silent = 0, -- seconds in which nothing was heard of it
    queue = {}, -- requests decoded and not done yet, from `queue_first` to `queue_last`
    queue_first = 1,
    queue_last = 0,
    cancelled = nil, -- ids of requests not to be done
    watches = {}, -- in the order they began
    is_watching = false, -- whether it is known that there may be some
    news = nil, -- items of those for the next event frame
  }
end

-- Closes a socket of mGBA's. They do not know that they are closed: collected as garbage, one closes its file descriptor
-- again, which by then may be another connection's. Opened anew at an address that no machine has, it forgets it.
function connection.shut(socket)
  socket:close()
  socket:open("192.0.2.1", 1)
end

function connection.close(self, why)
  if not self.socket then
    return
  end
  connection.shut(self.socket)
  self.socket = nil
  connection.closed = connection.closed + 1
  if self.session then
    self.session.connection = nil
    log.info("a link disconnected (%s)", why)
  else
    log.debug("a client disconnected (%s)", why)
  end
end

-- Adds to what is to be sent.
function connection.put(self, bytes)
  local count = self.outbox_count + 1
  self.outbox[count] = bytes
  self.outbox_count = count
  self.unsent = self.unsent + #bytes
end

-- Reads once. What is ready but gives nothing is at its end; the error says nothing reliable about it.
function connection.receive(self)
  local socket = self.socket
  if not self.wrote then
    connection.settle_errors()
  end
  local data = socket:recv(self.read_size)
  if data and #data > 0 then
    self.silent = 0
    self.read_size = #data == self.read_size and limits.large_read or limits.small_read
    if not self.dismissed then
      inbox.push(self.inbox, data)
    end
    return
  end
  -- A client that sends its messages and then closes its sending side waits for the replies. One write is safe if it is
  -- the first, as there was nothing the other end could have answered by a reset, and if this was no reset.
  self.ended = true
  self.mute = self.wrote or socket.error == UNKNOWN
end

-- Reads all that has arrived. True if the other end is there and waits: only then may be written.
function connection.drain(self)
  for _ = 1, limits.turn.reads do
    if self.ended then
      return false
    end
    if self.socket:select(0) == 0 then
      return true
    end
    if self.inbox.size >= limits.inbox then
      connection.close(self, "it sends faster than it can be served")
      return false
    end
    connection.receive(self)
  end
  return false
end

-- Sends a slice of what waits. True if more could be sent at once.
local function send_slice(self)
  if not self.sending then
    local count = self.outbox_count
    self.sending = count == 1 and self.outbox[1] or concat(self.outbox, "", 1, count)
    self.outbox, self.outbox_count, self.sent = {}, 0, 0
  end
  local sending, socket = self.sending, self.socket
  local slice = sending
  if #sending > limits.send_slice then
    slice = sub(sending, self.sent + 1, self.sent + limits.send_slice)
  end
  local count = socket:send(slice)
  local code = socket.error -- a failure may give any count, even 1
  if code == AGAIN then
    return false
  elseif code ~= 0 or count < 0 then
    connection.close(self, "lost")
    return false
  end
  self.wrote = true
  self.stuck_time = nil
  self.unsent = self.unsent - count
  self.sent = self.sent + count
  if self.sent == #sending then
    self.sending = nil
  elseif #sending <= limits.send_slice then
    self.sending, self.sent = sub(sending, self.sent + 1), 0
  end
  return count == #slice and self.unsent > 0
end

-- Whether there is a backlog, for whose sake replies wait until there are more.
local function holds_back(self)
  if self.inbox.size < limits.read_ahead then
    self.hold = limits.first_hold
    return false
  end
  if self.unsent < self.hold then
    return true
  end
  self.hold = math.min(2 * self.hold, limits.full_outbox)
  return false
end

-- Sends what waits, as far as the client takes it now.
function connection.flush(self)
  if holds_back(self) then
    return
  end
  for _ = 1, limits.turn.slices do
    if self.unsent == 0 or not connection.drain(self) or not send_slice(self) then
      break
    end
  end
  if self.unsent == 0 or not self.socket then
    return
  end
  local now = os.time()
  if not self.stuck_time then
    self.stuck_time, self.stuck_tick = now, ticks.now
  end
  -- Ticks count too: while mGBA is paused it is not the client's fault.
  local too_long = now - self.stuck_time > limits.unread_seconds and ticks.now - self.stuck_tick > ticks.per_second
  if too_long or self.unsent > limits.outbox then
    connection.close(self, "it does not read its replies")
  end
end

-- Closes a connection whose client sends no more. The last replies go out in one write, as a second is not safe.
function connection.finish(self)
  if self.unsent > 0 and not self.mute then
    local front = self.sending and sub(self.sending, self.sent + 1) or ""
    self.socket:send(front .. concat(self.outbox, "", 1, self.outbox_count))
  end
  connection.close(self, "by the other end")
end

return connection
