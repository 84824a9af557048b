--- A connection to a script in mGBA that uses mGBA-http's text protocol: the client sends `message<|END|>` and gets
-- `reply<|END|>`. If the connection is lost, the next message connects again.
--
-- The protocol has no request ids, so only one message is sent at a time. If its reply is late, the connection is
-- closed: otherwise, the late reply could be taken for the next message's reply. Other messages wait in a bounded
-- queue. The time in the queue counts towards a message's time-out. If the connection breaks after a message was sent,
-- the message is not sent again, because the script may already have performed it.

local socket = require "framewire.socket"
local time = require "framewire.time"

local monotonic = time.monotonic

local M = {}

local END, ERROR = "<|END|>", "<|ERROR|>"
-- The longest reply in bytes. A savestate as text, for example, has less than 2 MiB.
local REPLY_LIMIT = 8388608

--- Kinds of errors, for the callback of `ask`: there is no connection, or it broke; no reply came in time; too many
--- messages are waiting; the message contains the mark of a message's end.
M.UNREACHABLE, M.TIMEOUT, M.BUSY, M.BAD = "unreachable", "timeout", "busy", "bad"

local Link = {}
Link.__index = Link

local function disconnect(self)
  if self.socket then
    self.loop:forget(self.socket.fd)
    self.socket:close()
  end
  self.socket, self.ready, self.pieces, self.received, self.tail = nil, false, {}, 0, ""
end

-- Removes the oldest message and calls its callback.
local function settle(self, reply, kind, message)
  local first = table.remove(self.queue, 1)
  self.sending = nil
  first.timer:cancel()
  first.callback(reply, kind, message)
end

-- Calls the callbacks of all waiting messages with an error. Messages that the callbacks send are not among them.
local function fail_all(self, message)
  local waiting = self.queue
  self.queue, self.sending = {}, nil
  for _, entry in ipairs(waiting) do entry.timer:cancel() end
  for _, entry in ipairs(waiting) do entry.callback(nil, M.UNREACHABLE, message) end
end

local pump

-- Called when the connection is lost or cannot be made. After a loss, only the message that was already sent fails.
local function lose(self, message)
  local was_ready = self.ready
  disconnect(self)
  if #self.queue == 0 then return end
  if not was_ready then
    -- The connection could not be made, so all waiting messages fail.
    return fail_all(self, message)
  end
  if self.sending then settle(self, nil, M.UNREACHABLE, message) end
  pump(self)
end

-- Adds a piece of received data. If the reply is complete, returns it and the number of bytes that came after it. The
-- mark at its end can be split over several pieces. If the reply is not complete, returns nil.
local function take_reply(self, data)
  local pieces = self.pieces
  local window = self.tail .. data
  local first, last = window:find(END, 1, true)
  pieces[#pieces + 1] = data
  self.tail = window:sub(1 - #END)
  self.received = self.received + #data
  if not first then return nil end
  local rest = #window - last
  return table.concat(pieces):sub(1, -1 - rest - #END), rest
end

local function receive(self)
  while self.socket do
    local data, message = self.socket:receive()
    if not data then
      if message ~= "again" then
        lose(self, message == "closed" and "the emulator's script closed the connection" or message)
      end
      return
    end
    if not self.sending then return lose(self, "a reply came without a request") end
    local reply, rest = take_reply(self, data)
    if reply then
      self.pieces, self.received, self.tail = {}, 0, ""
      -- The connection is closed in two cases. First, if there are bytes after a reply: they belong to no message, so
      -- later replies could be wrong. Second, if the first reply is an error: after an unknown first message,
      -- Framewire's script ignores all further messages, and closes the connection later.
      local is_lost = rest > 0 or self.fresh and reply == ERROR
      self.fresh = false
      if is_lost then disconnect(self) end
      settle(self, reply)
      pump(self)
      if is_lost then return end
    elseif self.received > REPLY_LIMIT then
      return lose(self, "the reply is too long")
    end
  end
end

local function send(self)
  local sending = self.sending
  while sending.from <= #sending.data do
    local sent, message = self.socket:send(sending.data, sending.from)
    if not sent then
      if message == "again" then
        self.loop:change(self.socket.fd, self.loop.READ + self.loop.WRITE)
        return
      end
      return lose(self, message)
    end
    sending.from = sending.from + sent
  end
  self.loop:change(self.socket.fd, self.loop.READ)
end

local watch

-- Tries the next address of the host's name.
local function try_next(self, message)
  self.loop:forget(self.socket.fd)
  if not self.socket:try_next() then return lose(self, message) end
  watch(self)
end

local function on_ready(self, readable, writable)
  if not self.ready then
    if not (readable or writable) then return end
    local ok, message = self.socket:connected()
    if not ok then return try_next(self, message) end
    self.ready = true
    self.loop:change(self.socket.fd, self.loop.READ)
    return pump(self)
  end
  if writable and self.sending then send(self) end
  if readable and self.socket then receive(self) end
end

function watch(self)
  local ok, message = self.loop:watch(self.socket.fd, self.loop.READ + self.loop.WRITE, function(readable, writable)
    on_ready(self, readable, writable)
  end)
  if not ok then lose(self, message) end
end

local function connect(self)
  local started, message = socket.start_connect(self.host, self.port)
  if not started then return lose(self, message) end
  self.socket, self.fresh = started, true
  self.connecting_since = monotonic()
  watch(self)
end

-- Sends the oldest message, and connects first if necessary.
function pump(self)
  if self.sending or not self.queue[1] then return end
  if not self.socket then return connect(self) end
  if not self.ready then return end
  self.sending = { data = self.queue[1].message .. END, from = 1 }
  send(self)
end

-- Called when a message's time-out is over.
local function expire(self, entry)
  for place, other in ipairs(self.queue) do
    if other == entry then
      local is_under_way = place == 1 and self.sending ~= nil
      if is_under_way then
        disconnect(self)
        settle(self, nil, M.TIMEOUT, "no reply in time")
        return pump(self)
      end
      table.remove(self.queue, place)
      -- The message was not sent. If the link was connecting for most of the time, there is probably no script at the
      -- address. Otherwise, the message waited for earlier messages that got no reply.
      local is_stuck = self.socket and not self.ready and monotonic() - self.connecting_since > self.timeout * 0.9
      if is_stuck then disconnect(self) end
      entry.callback(nil, is_stuck and M.UNREACHABLE or M.TIMEOUT, "no reply in time")
      return pump(self)
    end
  end
end

--- Sends a message and later calls a function with the reply. If the message fails at once, the function is called
--- before `ask` returns.
---@param message string
---@param callback fun(reply: string|nil, kind: string|nil, message: string|nil) gets the reply; or nil, the kind of the
--- error (UNREACHABLE, TIMEOUT, BUSY or BAD) and its text
function Link:ask(message, callback)
  if message:find(END, 1, true) then return callback(nil, M.BAD, "the message must not contain " .. END) end
  if #self.queue >= self.limit then
    return callback(nil, M.BUSY, #self.queue .. " messages are waiting already; try again")
  end
  local entry = { message = message, callback = callback }
  entry.timer = self.loop:after(self.timeout, function() expire(self, entry) end)
  self.queue[#self.queue + 1] = entry
  pump(self)
end

--- Closes the connection. Waiting messages fail.
function Link:close()
  disconnect(self)
  fail_all(self, "the link was closed")
end

--- Creates a link. The first call of `ask` connects, and so does the first call after the connection was lost.
---@param loop table
---@param host string
---@param port integer
---@param options? table `timeout`: seconds to wait for a reply (3); `limit`: the most messages in the queue (64)
---@return table link
function M.new(loop, host, port, options)
  options = options or {}
  return setmetatable({
    loop = loop, host = host, port = port,
    timeout = options.timeout or 3, limit = options.limit or 64,
    --- Messages in order. The first may have been sent; then `sending` has its bytes.
    queue = {},
    sending = nil,
    socket = nil,
    --- When the link began to connect, and whether it is connected.
    connecting_since = 0,
    ready = false,
    --- Whether no reply has arrived on this connection yet.
    fresh = true,
    --- The received part of a reply, in pieces; its length; and its last bytes.
    pieces = {}, received = 0, tail = "",
  }, Link)
end

return M
