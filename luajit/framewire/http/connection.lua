--- One client's connection: receives bytes, finds requests, calls the handler, sends responses.
--
-- An idle connection has no buffers. All connections receive bytes into one input buffer of the server, and requests
-- are served from there. All responses to requests that were received with one call are sent with one call. Only an
-- incomplete request, or the part of a response that the system does not accept yet, moves to a buffer of the
-- connection's own.
--
-- A connection serves one request at a time, so the responses come in the same order as the requests.

local bit = require "bit"
local ffi = require "ffi"
local intake = require "framewire.http.intake"
local poller = require "framewire.poller"
local requests = require "framewire.http.request"
local responses = require "framewire.http.response"
local socket = require "framewire.socket"
local sys = require "framewire.sys"

local band, net = bit.band, sys.net
local READ, WRITE = poller.READ, poller.WRITE
local SEND_FLAGS = sys.send_flags

-- When this many bytes of responses have been written, they are sent, even if more requests are waiting.
local FLUSH_AT = 262144
-- An output buffer that has grown larger than this is replaced by a small one.
local MAX_KEPT_OUTPUT = 1048576
-- The most bytes of a file that are sent before other connections are served.
local FILE_TURN = 1048576
-- Seconds for which a client may continue to send after the last response, before the connection is closed. During this
-- time, the client can read the response.
local LINGER = 2

local Connection = {}
Connection.__index = Connection

-- Enters a phase and sets its time-out. The phases are idle (also before the first request), head, body, handler, write
-- and linger.
local function enter(self, phase, seconds)
  self.phase = phase
  self.deadline = self.server.loop.now + seconds
end

Connection.enter = enter

-- Enters the phase write, in which the client has to read. Called again when the client has read something, to extend
-- the time-out. With HTTPS, this phase has no time-out here, because the TLS stream to the client takes bytes from this
-- connection only in large parts. The TLS stream has a time-out of its own: it sees each byte that the client receives.
local function enter_write(self)
  if self.peer then return enter(self, "write", math.huge) end
  -- The time-out has several parts. At the end of each, `expire` checks whether the client reads.
  enter(self, "write", self.server.limits.write_timeout / sys.STALL_CHECKS)
  self.progress, self.queued = self.server.loop.now, nil
end

-- Changes the events for which the loop watches the connection.
local function set_interest(self, interest)
  if self.interest ~= interest then
    self.interest = interest
    self.server.loop:change(self.fd, interest)
  end
end

local function drop_input(self)
  if self.input then
    self.server.pool:give(self.input)
    self.input = nil
  end
end

local function drop_file(self)
  if self.file then
    ffi.C.close(self.file.fd)
    self.file = nil
  end
end

--- Closes the connection at once.
function Connection:close()
  local fd, server = self.fd, self.server
  if fd < 0 then return end
  server.loop:forget(fd)
  sys.close(fd)
  self.fd = -1
  drop_input(self)
  if self.unsent then
    server.pool:give(self.unsent)
    self.unsent = nil
  end
  drop_file(self)
  local late = self.promised
  if late then
    self.late, self.promised = nil, nil
    late.closed, late.started, late.streaming = true, true, false
  end
  server:on_closed(fd)
end

-- Sends as much of the open file as the system accepts, up to FILE_TURN bytes. Returns false if the connection had to
-- be closed.
local function push_file(self)
  local file, turn = self.file, FILE_TURN
  while file.left > 0 and turn > 0 do
    local sent = sys.sendfile(self.fd, file.fd, file.offset, math.min(file.left, turn))
    if sent > 0 then
      file.offset, file.left, turn = file.offset + sent, file.left - sent, turn - sent
    elseif sent < 0 and sys.is_temporary() then
      return true
    else
      -- Zero means that the file has become shorter. Then, or after an error, the response cannot have the length that
      -- its head says.
      self:close()
      return false
    end
  end
  if file.left == 0 then drop_file(self) end
  return true
end

-- Sends a buffer's bytes and empties it. Bytes that the system does not accept are kept for later.
local function flush(self, out)
  local length = out.stop
  out.stop = 0 -- nothing is written to the buffer before this function has used its bytes
  if length == 0 or self.fd < 0 then return end
  local sent = 0
  if not self.unsent then
    local flags = self.file and SEND_FLAGS + (sys.MSG_MORE or 0) or SEND_FLAGS
    sent = tonumber(net.send(self.fd, out.data, length, flags))
    if sent < 0 then
      if not sys.is_temporary() then return self:close() end
      sent = 0
    end
  end
  if sent < length then
    local unsent = self.unsent or self.server.pool:take()
    self.unsent = unsent
    unsent:compact()
    unsent:append_bytes(out.data + sent, length - sent)
    if unsent:length() > self.server.limits.max_unsent then return self:close() end
  end
  if self.file and not self.unsent then push_file(self) end
end

-- After an upgrade: passes the socket to the other protocol, together with the bytes that have already arrived for it.
local function hand_over(self)
  local fd, server, rest = self.fd, self.server, self.rest or ""
  if self.input then rest = self.input:text() end
  server.loop:forget(fd)
  self.fd = -1
  drop_input(self)
  server:on_closed(fd)
  self.on_upgrade(socket.wrap(fd), rest)
end

-- If bytes or a file still have to be sent, waits until the client can receive more; then `push` sends the rest.
-- Returns whether something still has to be sent.
local function wait_for_reader(self)
  if not (self.unsent or self.file) then return false end
  enter_write(self)
  set_interest(self, WRITE)
  return true
end

-- Ends the connection when everything has been sent. `more` is true if the client has sent bytes that were not served.
local function wind_up(self, more)
  if wait_for_reader(self) then return end -- `push` calls this function again
  if self.closing == "upgrade" then return hand_over(self) end
  drop_input(self)
  if self.closing == "linger" or more and self.closing ~= "abort" then
    -- If the socket were closed now, the unread bytes would make the system reset the connection, and the client would
    -- lose the response.
    net.shutdown(self.fd, sys.SHUT_WR)
    self.lingering = true
    enter(self, "linger", LINGER)
    set_interest(self, READ)
  else
    self:close()
  end
end

-- Calls the handler for one request.
local function answer(self, head, body)
  local server = self.server
  local request, response = server.request, server.response
  local before = server.out.stop
  requests.fill(request, self, head, body)
  responses.fill(response, self, head, head.keep_alive)
  -- The handler may call `Server:stop`, which closes idle connections.
  self.phase = "handler"
  local ok, message = pcall(server.handler, request, response)
  self.phase = "idle"
  if ok and response.done then return end
  if ok and response.late then
    server.request = requests.new() -- a late handler can still use the old object
    if not response.late.done and self.fd >= 0 then
      self.late = response.late
      enter(self, "handler", server.limits.handler_timeout)
    end
    return
  end
  if ok then message = "it returned without an answer; call response:text, or response:later first" end
  server.log("the handler failed on " .. head.method .. " " .. head.path .. ": " .. tostring(message))
  if response.streaming or response.late then
    -- Part of the response may have been sent, or `later` has passed it to other code. So only closing the connection
    -- can show the failure.
    self.closing = "abort"
    if response.late then response.late.started, response.late.closed = true, true end
    return
  end
  -- The 500 replaces the handler's own response, with the file and the upgrade that would have followed it.
  server.out.stop = before
  drop_file(self)
  self.closing = nil
  if response.upgraded then response.upgraded:close() end
  responses.fill(response, self, head, false)
  response:text(500, "the handler failed; the server's log has the reason\n")
end

local resume

-- Called after requests in `input` were served. Keeps the remaining input for later, sets the time-out of the next
-- phase, and waits for the next event. With `sends_file`, the remaining input may contain complete requests, which had
-- to wait for a file.
local function settle(self, input, sends_file)
  local server = self.server
  local rest = input.stop - input.start
  if self.fd < 0 then
    -- `close` has given the connection's own buffer back to the pool, so another connection may use it now.
    if input == server.input then input:clear() end
    return
  end
  -- A late response that was started with "Connection: close" ends the connection when it is complete.
  if self.closing and not self.late then
    if self.closing == "upgrade" and rest > 0 and input == server.input then
      self.rest = ffi.string(input.data + input.start, rest)
    end
    if input == server.input then input:clear() end
    return wind_up(self, rest > 0)
  end
  if rest == 0 and not self.head then
    input:clear()
    drop_input(self)
  else
    local by = input.start
    if input == server.input then
      local own = server.pool:take()
      own:append_bytes(input.data + by, rest)
      input:clear()
      self.input, input = own, own
    elseif by > 0 then
      ffi.C.memmove(input.data, input.data + by, rest)
      input.start, input.stop = 0, rest
    end
    if self.decoder then self.decoder:shift(by) end
    input:reserve(4096)
  end
  if wait_for_reader(self) then return end
  if self.late then return end
  if sends_file and rest > 0 then return resume(self) end
  if rest == 0 and not self.head then
    if server.stopping then return self:close() end
    enter(self, "idle", server.limits.idle_timeout)
  elseif not self.head and self.phase ~= "head" then
    enter(self, "head", server.limits.header_timeout)
  end
  set_interest(self, READ)
end

-- Serves the first request in a buffer. Returns whether the next one can be served.
local function serve_one(self, input, out)
  local head, body = self.head or intake.head(self, input), ""
  if not head then return false end
  if head.length ~= 0 then
    body = intake.body(self, input, head)
    if not body then return false end
  end
  answer(self, head, body)
  if out.stop > FLUSH_AT then flush(self, out) end
  return not (self.fd < 0 or input.start == input.stop or self.closing or self.late or self.unsent or self.file)
end

--- Serves every complete request in a buffer.
---@param input table the server's buffer or the connection's own
function Connection:serve(input)
  local out = self.server.out
  -- The first request is served outside of the loop, because LuaJIT compiles a loop separately from the code around it.
  if serve_one(self, input, out) then
    repeat until not serve_one(self, input, out)
  end
  local sends_file = self.file ~= nil
  flush(self, out)
  if out.size > MAX_KEPT_OUTPUT then self.server:renew("out") end
  settle(self, input, sends_file)
end

local function receive(self)
  local server = self.server
  if self.late or self.unsent or self.file or self.resuming then
    -- The connection is busy. More requests can wait in the system's buffer.
    return set_interest(self, band(self.interest, WRITE))
  end
  local input = self.lingering and server.input or self.input or server.input
  local got = tonumber(net.recv(self.fd, input.data + input.stop, input.size - input.stop, 0))
  if got > 0 then
    if self.lingering then return end
    input.stop = input.stop + got
    return self:serve(input)
  end
  if got < 0 and sys.is_temporary() then return end
  self:close()
end

-- Continues with the next request, after the response that delayed it has been sent.
function resume(self)
  if self.closing then return wind_up(self, self.input ~= nil) end
  local limits = self.server.limits
  -- A part of the next request's body may have arrived already.
  if self.head then enter(self, "body", limits.body_timeout) else enter(self, "idle", limits.idle_timeout) end
  if not self.input then
    if self.server.stopping then return self:close() end
    return set_interest(self, READ)
  end
  -- The next request is served later from the loop: this code can run inside another connection's handler.
  set_interest(self, 0)
  self.resuming = true
  self.server.loop:after(0, function()
    self.resuming = false
    -- After a time-out, the connection is about to end.
    if self.fd >= 0 and not self.closing then self:serve(self.input) end
  end)
end

-- Continues sending. When everything has been sent, the next request is served.
local function push(self)
  local unsent = self.unsent
  if unsent then
    local sent = tonumber(net.send(self.fd, unsent.data + unsent.start, unsent:length(), SEND_FLAGS))
    if sent < 0 then
      if not sys.is_temporary() then self:close() end
      return
    end
    unsent.start = unsent.start + sent
    enter_write(self)
    if unsent:length() > 0 then return end
    self.server.pool:give(unsent)
    self.unsent = nil
  end
  if self.file then
    enter_write(self)
    if not push_file(self) or self.file then return end
  end
  if self.late then
    enter(self, "handler", self.server.limits.handler_timeout)
    return set_interest(self, READ)
  end
  resume(self)
end

--- Called by the loop.
function Connection:on_ready(readable, writable, broken)
  -- A client may send a request on a unix socket, and then close the socket at once. So while this connection receives,
  -- it is not closed here: `receive` finds the end of the stream after the last byte.
  if broken and not (readable and self.interest == READ) then return self:close() end
  if writable then push(self) end
  if readable and self.fd >= 0 then receive(self) end
end

--- Sends the responses written so far.
function Connection:flush()
  flush(self, self.server.out)
end

--- Sends a part of a late response.
---@param out table buffer
function Connection:send_late(out)
  flush(self, out)
  if self.fd < 0 then return end
  if self.unsent then
    -- If bytes were waiting already, the time-out is not extended here, but by `push`, when the client has read some.
    if self.phase ~= "write" then enter_write(self) end
    set_interest(self, WRITE)
  else
    enter(self, "handler", self.server.limits.handler_timeout)
  end
end

--- Sends the end of a late response.
---@param out table buffer
function Connection:finish_late(out)
  local is_held = self.late ~= nil
  self.late, self.promised = nil, nil
  flush(self, out)
  if out.size > MAX_KEPT_OUTPUT then self.server:renew("late_out") end
  -- If the response ends before its handler has returned, `settle` does the rest, after the handler.
  if self.fd < 0 or not is_held then return end
  if not wait_for_reader(self) then resume(self) end
end

--- Called by the server when the deadline has passed.
function Connection:expire()
  local phase = self.phase
  if phase == "head" or phase == "body" then
    intake.refuse(self, 408, "the request did not arrive in time")
    flush(self, self.server.out)
    if self.fd >= 0 then
      wind_up(self, true)
      -- If bytes of the 408 wait to be sent, the connection ends unless the client reads some of them in this time.
      if self.phase == "write" then enter(self, "linger", LINGER) end
    end
  elseif phase == "handler" and not self.promised.started then
    self.promised.keep_alive = false
    self.promised:text(503, "the handler did not answer in time\n")
  elseif phase ~= "write" or sys.is_stalled(self, self.server.loop.now, self.server.limits.write_timeout) then
    self:close()
  else
    enter(self, "write", self.server.limits.write_timeout / sys.STALL_CHECKS)
  end
end

local M = {}

--- Creates the connection of an accepted descriptor.
---@param server table
---@param fd integer
---@return table connection
function M.new(server, fd)
  return setmetatable({
    server = server,
    fd = fd,
    interest = READ,
    phase = "idle",
    deadline = server.loop.now + server.limits.header_timeout,
    --- How many bytes of an incomplete head have been searched for its end.
    scanned = 0,
    --- Whether an empty line before the request was skipped.
    skipped = false,
    --- Whether all responses were sent and the server waits until the client closes its side.
    lingering = false,
    --- Whether a timer will serve the delayed input.
    resuming = false,
    --- For HTTPS: the socket with the client's address. `fd` is then one end of a pair of unix sockets.
    peer = nil,
    -- Fields that are set when needed:
    -- `input`: the buffer with an incomplete request; `unsent`: the buffer with bytes to send later;
    -- `file`: the file to send; `head` and `decoder`: the head and the decoder of a body that is not complete;
    -- `progress`: in the phase write, when the client last received bytes; `queued`: how many bytes the system held at
    -- the last check in this phase;
    -- `promised`: a response that `later` has returned and that is not complete; `late`: the same, but only after the
    -- handler has returned;
    -- `closing`: "close", "linger" or "abort" if the connection is about to end, and "upgrade" if its socket is about
    -- to be passed to `on_upgrade`, together with the bytes in `rest`.
  }, Connection)
end

return M
