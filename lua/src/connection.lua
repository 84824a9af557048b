-- One client's connection: receives and sends bytes, but does not interpret them.
--
-- mGBA does not ignore SIGPIPE: a write to a connection that the other end has closed and then reset terminates the
-- whole emulator. So the script checks right before each write that there is nothing to read; the end of a connection
-- counts as something to read. Nothing slow happens between the check and the write: the bytes are prepared before the
-- check, and there are few of them, because mGBA copies them. A reset without a preceding end is harmless: the write
-- just fails. The danger is that the end and the reset both arrive within the few microseconds between the check and
-- the write. Once a connection has ended, the check cannot detect a reset any more, so the script writes nothing to it.
-- If a client closes only its sending side, its messages are therefore performed, but get no reply.
--
-- On a busy machine, the system may run another process in these microseconds, perhaps the client itself. This is
-- unlikely right after the script has *slept*, that is, after it was blocked in select(). So most of a long reply is
-- sent then.
--
-- If the check finds bytes, they are read into the inbox before the script needs them. The inbox of a client that sends
-- faster than it is served would become larger with each check. So the replies to such a client are held back and sent
-- together, which needs fewer checks.

local inbox = require "inbox"
local limits = require "limits"
local log = require "log"
local refusal = require "refusal"
local ticks = require "ticks"

local concat, sub = table.concat, string.sub

local AGAIN = C and C.SOCKERR.AGAIN or 1

local connection = {
  closed = 0, -- how many connections have been closed so far
}

function connection.new(socket)
  return {
    socket = socket, -- nil once it is closed
    inbox = inbox.new(),
    -- How much to read at once. It is larger after a read that returned as much as it could.
    read_size = limits.small_read,
    outbox = {}, -- replies to send, from index `outbox_first` to `outbox_last`
    outbox_first = 1,
    outbox_last = 0,
    taken = 0, -- how many bytes of the first reply in the outbox were already put into slices
    slice = nil, -- the bytes to send next
    burst = 0, -- how many slices were sent since the script last slept, or since nothing was left to send
    unsent = 0, -- how many bytes wait to be sent in total, including those of the slice
    hold = limits.first_hold, -- while there is a backlog of requests, replies wait until they have this many bytes
    stuck_time = nil, -- the time on the clock since which nothing could be sent; nil if something could be sent
    stuck_tick = nil, -- the tick at that time
    -- Whether the client has closed its sending side. It then gets no more bytes, its remaining messages are performed,
    -- and the connection is closed.
    ended = false,
    -- The tick at which the script stopped serving the client; nil if it still serves it. The connection then stays
    -- open for a while, so that the client can read the reason.
    dismissed = nil,
    active = ticks.now, -- the tick of the last request
    -- Whether its first message still has to be checked (turn.lua): it must begin with a known key, such as
    -- `core.step`.
    fresh = true,

    waiting = nil, -- a text message that has to wait for a later frame

    -- Only for a link, which sends binary frames:
    session = nil,
    binary = false,
    pinged = false, -- whether it has sent a ping; if so, it is closed when it is silent for too long
    silent = 0, -- seconds since its last byte arrived
    heard = true, -- whether a byte has arrived since the last check by lockstep.lua
    queue = {}, -- requests that were decoded but not performed yet, from index `queue_first` to `queue_last`
    queue_first = 1,
    queue_last = 0,
    deferred = {}, -- requests that have to wait for a later frame
    cancelled = nil, -- the ids of cancelled requests: id to true
    traced = nil, -- the id in the last trace frame; nil after the next request has arrived
    trace = nil, -- the name of the request with that id in logs
    -- A table while the link's requests wait after a pause of mGBA (turn.lua), otherwise nil. `since` is the tick at
    -- which the wait began, `till` is the tick at which it ends if nothing more arrives, and `size` is the size of the
    -- inbox after the last read.
    resumed = nil,
    watches = {}, -- in the order in which they began
    is_watching = false, -- whether it is in the list of connections with watches (watches.lua)
    changes = nil, -- the items of its watches for the next event frame
  }
end

-- Closes a socket of mGBA. mGBA's socket objects do not remember that they are closed: when Lua collects one, mGBA
-- closes the file descriptor again, which may then belong to another connection. Opening the socket again, with an
-- address that no machine has, makes the object forget the descriptor.
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

-- Calls a function with a connection, and returns its result. If it raises an error, closes only this connection, and
-- returns false.
function connection.call_guarded(run, self, ...)
  local fine, result = pcall(run, self, ...)
  if not fine then
    log.error("%s", refusal.sentence(result))
    connection.close(self, "an error in this script")
    return false
  end
  return result
end

-- Adds bytes to the outbox.
function connection.put(self, bytes)
  local last = self.outbox_last + 1
  self.outbox[last] = bytes
  self.outbox_last = last
  self.unsent = self.unsent + #bytes
end

-- Reads once. If the socket is ready but returns no bytes, the connection has ended; the socket's error is not
-- reliable.
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

-- Reads everything that has arrived. Returns true if the connection is open and there is nothing more to read; only
-- then may bytes be written.
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

-- Sends the slice. The caller must have called `drain` right before. Returns whether more can be sent immediately.
local function send_slice(self, slice)
  local socket = self.socket
  local count = socket:send(slice)
  local code = socket.error -- if `send` fails, the count can be anything, even 1
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

-- Whether the inbox is so full that requests are performed before more is read. It must also hold a whole message or
-- frame; otherwise there would be nothing to perform.
function connection.has_backlog(self)
  local box = self.inbox
  return box.size >= limits.read_ahead and (self.binary and box.size >= box.needed or not self.binary and box.may_have_message)
end

-- Whether the waiting replies are held back, because there is a backlog of requests. When they have `hold` bytes, they
-- are sent, and `hold` doubles.
local function holds_back(self)
  if not connection.has_backlog(self) then
    self.hold = limits.first_hold
    return false
  end
  if self.unsent < self.hold then
    return true
  end
  self.hold = math.min(2 * self.hold, limits.full_outbox)
  return false
end

-- Closes a connection if its client has read nothing for too long, or if too many bytes wait to be sent.
local function close_if_stuck(self)
  local now = os.time()
  if not self.stuck_time then
    self.stuck_time, self.stuck_tick = now, ticks.now
  end
  -- Ticks must have passed as well: time in which mGBA was paused does not count.
  local too_long = now - self.stuck_time > limits.unread_seconds and ticks.now - self.stuck_tick > ticks.per_second
  if too_long or self.unsent > limits.outbox then
    connection.close(self, "it does not read its replies")
  end
end

-- Sends waiting bytes until the socket accepts no more, or until `slices` slices were sent since the script last slept.
-- Returns whether anything was sent.
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

-- Sends a short reply, or the beginning of a long one.
function connection.flush(self)
  send(self, limits.first_slices)
end

-- Sends more of a long reply, right after the script has slept.
function connection.flush_rested(self)
  self.burst = 0
  return send(self, limits.rested_slices)
end

-- Whether there is more to send than the script may send before it sleeps again.
function connection.has_long_reply(self)
  return self.unsent > 0 and self.burst >= limits.first_slices and not self.ended
end

return connection
