-- One client's connection: receives and sends bytes, and does not know what they mean.
--
-- mGBA does not ignore SIGPIPE: a write to a connection that the other end has reset ends the whole emulator. So each write
-- comes right after a check that the connection has nothing to read; the end of a connection counts as something to read.
-- Nothing slow is between the check and the write: the bytes are ready before the check, and few, because mGBA copies them.
-- A reset alone is harmless: it is an error of the write. Only an end and a reset that both arrive within these few
-- microseconds are dangerous. After an end, no check finds a reset any more, so nothing is written then. If a client closes
-- its sending side, its messages are performed but get no reply.
--
-- On a busy machine another process may run within these microseconds, and that process may be the client. Right after the
-- script has slept this is unlikely, so most of a long reply is sent then.
--
-- If the check finds bytes, they are read into the inbox early. A client that sends faster than it is served would fill its
-- inbox more and more, so its replies are held back for a while.

local inbox = require "inbox"
local limits = require "limits"
local log = require "log"
local ticks = require "ticks"

local concat, sub = table.concat, string.sub

local AGAIN = C and C.SOCKERR.AGAIN or 1

local connection = {
  closed = 0, -- how many connections were closed so far
}

function connection.new(socket)
  return {
    socket = socket, -- nil once it is closed
    inbox = inbox.new(),
    read_size = limits.small_read, -- how much to read at once; grows while reads come back full
    outbox = {}, -- replies to be sent, from `outbox_first` to `outbox_last`
    outbox_first = 1,
    outbox_last = 0,
    taken = 0, -- bytes of the first of these replies that are in slices already
    slice = nil, -- the bytes to be sent next
    burst = 0, -- slices sent since the script slept last
    unsent = 0, -- bytes that wait to be sent in total, including those of the slice
    hold = limits.first_hold, -- bytes of replies to hold back while there is a backlog
    stuck_time = nil, -- since when nothing could be sent: the time of the clock here, and the tick below
    stuck_tick = nil,
    ended = false, -- the client sends no more and gets nothing more: its remaining requests are performed, then it is closed
    dismissed = nil, -- the tick since which it stays open only so that its client can read why it is closed
    active = ticks.now, -- the tick of the last request
    fresh = true, -- whether its first message still has to be checked for a known key

    waiting = nil, -- a text message that has to wait for another frame

    -- Only for a link, which sends binary frames:
    session = nil,
    binary = false,
    pinged = false, -- whether it has a heartbeat
    silent = 0, -- seconds since its last byte arrived
    heard = true, -- whether a byte has arrived since lockstep checked last
    queue = {}, -- requests that are decoded but not performed yet, from `queue_first` to `queue_last`
    queue_first = 1,
    queue_last = 0,
    deferred = {}, -- requests that have to wait for another frame
    cancelled = nil, -- ids of requests not to perform
    watches = {}, -- in the order they began
    is_watching = false, -- whether there may be watches
    changes = nil, -- the items of its watches for the next event frame
  }
end

-- Closes a socket of mGBA. mGBA's socket objects do not remember that they are closed: when Lua collects one, mGBA closes the
-- file descriptor again, which may then belong to another connection. Opening the socket again, at an address that no machine
-- has, makes the object forget the descriptor.
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

-- Adds bytes to send.
function connection.put(self, bytes)
  local last = self.outbox_last + 1
  self.outbox[last] = bytes
  self.outbox_last = last
  self.unsent = self.unsent + #bytes
end

-- Reads once. If the socket is ready but returns no bytes, the connection has ended; the socket's error is not reliable.
function connection.receive(self)
  local data = self.socket:recv(self.read_size)
  if data and #data > 0 then
    self.silent, self.heard = 0, true
    self.read_size = #data == self.read_size and limits.large_read or limits.small_read
    if not self.dismissed then
      inbox.push(self.inbox, data)
    end
    return
  end
  self.ended = true
end

-- Reads everything that has arrived. True if the connection is open and nothing is left to read; only then may bytes be
-- written.
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

-- Takes the next slice out of the outbox: a part of a long reply, or as many short replies as fit.
local function cut_slice(self)
  local outbox, first = self.outbox, self.outbox_first
  local reply, taken = outbox[first], self.taken
  if #reply - taken > limits.send_slice then
    self.taken = taken + limits.send_slice
    return sub(reply, taken + 1, self.taken)
  end
  if taken > 0 then
    reply = sub(reply, taken + 1)
    outbox[first] = reply
  end
  local stop, size = first, #reply
  while stop < self.outbox_last and size + #outbox[stop + 1] <= limits.send_slice do
    stop = stop + 1
    size = size + #outbox[stop]
  end
  local slice = stop == first and reply or concat(outbox, "", first, stop)
  self.taken, self.outbox_first = 0, stop + 1
  if stop == self.outbox_last then
    self.outbox, self.outbox_first, self.outbox_last = {}, 1, 0
  else
    for index = first, stop do
      outbox[index] = nil
    end
  end
  return slice
end

-- Sends the slice, right after the check that allows it. True if more can be sent immediately.
local function send_slice(self, slice)
  local socket = self.socket
  local count = socket:send(slice)
  local code = socket.error -- a failure may give any count, even 1
  if code == AGAIN then
    return false
  elseif code ~= 0 or count < 0 then
    connection.close(self, "lost")
    return false
  end
  self.stuck_time = nil
  self.unsent = self.unsent - count
  self.slice = count < #slice and sub(slice, count + 1) or nil
  return not self.slice and self.unsent > 0
end

-- Whether there is a backlog: then replies wait until there are more.
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

-- Closes a connection whose client has taken nothing for too long.
local function close_if_stuck(self)
  local now = os.time()
  if not self.stuck_time then
    self.stuck_time, self.stuck_tick = now, ticks.now
  end
  -- Ticks count as well: while mGBA is paused, it is not the client's fault.
  local too_long = now - self.stuck_time > limits.unread_seconds and ticks.now - self.stuck_tick > ticks.per_second
  if too_long or self.unsent > limits.outbox then
    connection.close(self, "it does not read its replies")
  end
end

-- Sends waiting bytes, as far as the client takes them now, up to this number of slices since the script slept last. True if
-- a slice was sent.
local function send(self, slices)
  if holds_back(self) then
    return false
  end
  local before = self.unsent
  while self.unsent > 0 and self.burst < slices do
    self.slice = self.slice or cut_slice(self)
    if not connection.drain(self) then
      break
    end
    self.burst = self.burst + 1
    if not send_slice(self, self.slice) then
      break
    end
  end
  local any = self.unsent < before
  if self.unsent == 0 then
    self.burst = 0
  elseif self.socket and self.burst < slices then
    close_if_stuck(self)
  end
  return any
end

-- Sends a short reply, and the beginning of a long one.
function connection.flush(self)
  send(self, limits.first_slices)
end

-- Sends more of a long reply, right after the script has slept.
function connection.flush_rested(self)
  self.burst = 0
  return send(self, limits.rested_slices)
end

-- Whether there is more to send than may be sent before the script sleeps.
function connection.has_long_reply(self)
  return self.unsent > 0 and self.burst >= limits.first_slices and not self.ended
end

return connection
