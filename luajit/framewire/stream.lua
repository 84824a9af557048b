--- Buffered streams on a loop. Writing never blocks: bytes that the system does not accept yet wait in a buffer. If
-- this buffer is full, `write` returns false, so that a program can stop reading until the other side has caught up.
--
--   streams.serve(loop, listener, {
--     on_data = function(stream, data)
--       if not stream:write(data:upper()) then stream:pause() end
--     end,
--     on_drain = function(stream) stream:resume() end,
--   })
--
-- Writes in `on_data`, `on_bytes` or `on_end` are collected, and sent together after the received bytes were handled.

local bit = require "bit"
local ffi = require "ffi"
local buffer = require "framewire.buffer"
local poller = require "framewire.poller"
local sys = require "framewire.sys"

local READ, WRITE = poller.READ, poller.WRITE
-- The most bytes to receive with one call, and the most calls in a row before the loop serves other descriptors.
local CHUNK, TURN = 65536, 4
-- The most connections to accept in a row.
local ACCEPT_TURN = 64

local chunk = ffi.new("uint8_t[?]", CHUNK)
local pool = buffer.pool(16384, 64)

local Stream = {}
Stream.__index = Stream

-- Sets the events for which the loop watches the stream's descriptor.
local function update_interest(self)
  if self.fd < 0 or self.detached then return end
  local interest = 0
  if self.starved then interest = WRITE elseif not (self.paused or self.ended) then interest = READ end
  if self.unsent:length() > 0 then interest = bit.bor(interest, self.blocked or WRITE) end
  if interest ~= self.interest then
    self.interest = interest
    self.loop:change(self.fd, interest)
  end
end

local function end_with(self, reason)
  if self.fd < 0 then return end
  self.loop:forget(self.fd)
  self.fd = -1
  if self.timer then self.timer:cancel() end
  self.socket:close()
  pool:give(self.unsent)
  self.unsent = buffer.new(1)
  if self.on_close then self:on_close(reason) end
end

-- Closes the stream if the other side stalls for `stall_timeout` seconds: if bytes wait and it receives none or, after
-- `finish`, if it neither receives nor sends any. The timer runs while bytes wait, and after `finish`.
local function watch_progress(self)
  local timeout = self.stall_timeout
  if self.timer or not timeout then return end
  local part = timeout / sys.STALL_CHECKS
  local function check()
    self.timer = nil
    if self.fd < 0 or self.unsent:length() == 0 and not self.finishing then return end
    local now = self.loop.now
    if sys.is_stalled(self, now, timeout) then return end_with(self, "stalled") end
    self.timer = self.loop:after(math.min(self.progress + timeout - now, part), check)
  end
  self.progress, self.queued = self.loop.now, nil
  self.timer = self.loop:after(part, check)
end

-- Sends as many bytes as the system accepts.
local function flush(self)
  local unsent = self.unsent
  self.blocked = nil
  while unsent:length() > 0 do
    local sent, message, interest = self.socket:send_bytes(unsent.data + unsent.start, unsent:length())
    if not sent then
      if message ~= "again" then return end_with(self, message) end
      self.blocked = interest or WRITE
      break
    end
    self.progress = self.loop.now
    unsent.start = unsent.start + sent
  end
  local left = unsent:length()
  if left == 0 then
    unsent:clear()
    if unsent.size > pool.size then self.unsent = pool:take() end
    if self.finishing == "wanted" then
      self.finishing = "done"
      self.socket:finish()
      if self.ended then return end_with(self) end
      watch_progress(self)
      if self.on_finish then self:on_finish() end -- for http/secure.lua and websocket.lua
    end
  else
    watch_progress(self)
  end
  update_interest(self)
  if self.full and left <= self.low_water then
    self.full = false
    if self.on_drain then self:on_drain() end
  end
end

--- Sends bytes, now or when the other side is ready for them.
---@param data string
---@return boolean|nil more true: continue; false: the bytes were accepted, but the buffer is now full, so wait for
--- `on_drain`; nil: the bytes were not accepted
---@return string? message "closed"; "finished"; "too much unsent" (this call has closed the stream); or a message about
--- the type of `data`
function Stream:write(data)
  if type(data) ~= "string" then return nil, "a stream writes strings, not values of type " .. type(data) end
  return self:write_bytes(data, #data)
end

--- Sends bytes from C memory, as `write` does.
---@param source ffi.cdata*|string uint8_t *; pass a string itself, because a pointer would not keep the string alive
---@param length integer
---@return boolean|nil more
---@return string? message
function Stream:write_bytes(source, length)
  if self.fd < 0 then return nil, "closed" end
  if self.finishing then return nil, "finished" end
  local unsent = self.unsent
  local before = unsent:length()
  if before + length > self.max_unsent then
    end_with(self, "too much unsent")
    return nil, "too much unsent"
  end
  unsent:compact()
  if before == 0 then self.progress = self.loop.now end
  if type(source) == "string" then unsent:append(source) else unsent:append_bytes(source, length) end
  if not self.corked and not self.blocked then
    flush(self)
    if self.fd < 0 then return nil, "closed" end
  end
  if self.unsent:length() > self.high_water then self.full = true end
  return not self.full
end

--- How many bytes wait to be sent.
---@return integer
function Stream:pending()
  return self.unsent:length()
end

--- Stops receiving. The system's buffer fills, and then the other side has to wait.
function Stream:pause()
  self.paused = true
  update_interest(self)
end

--- Continues to receive.
function Stream:resume()
  self.paused = false
  if self.detached then
    self.detached, self.interest = false, READ
    local ok, message = self.loop:watch(self.fd, READ, self)
    if not ok then return end_with(self, message) end
  end
  update_interest(self)
  if self.socket.buffered and self.fd >= 0 then self:receive_later() end
end

--- Sends the remaining bytes and then the end of the stream. The stream closes when the other side has finished too.
function Stream:finish()
  if self.fd < 0 or self.finishing then return end
  self.finishing = "wanted"
  if not self.corked then flush(self) end
end

--- Closes the stream at once. Unsent bytes are lost.
function Stream:close()
  end_with(self)
end

--- Writes everything that this stream receives to `target`, at the speed of `target`. Calls `finish` on `target` when
--- this stream ends.
---@param target table stream
function Stream:pipe(target)
  self.on_data = function(_, data)
    if target:write(data) == false then self:pause() end
  end
  self.on_end = function() target:finish() end
  target.on_drain = function() self:resume() end
end

local function receive(self)
  self.starved = false
  for _ = 1, TURN do
    if self.paused or self.ended or self.fd < 0 then return end
    local got, message, interest = self.socket:receive_into(chunk, CHUNK)
    if got then
      if self.finishing then self.progress = self.loop.now end
      if self.on_bytes then
        self:on_bytes(chunk, got)
      elseif self.on_data then
        self:on_data(ffi.string(chunk, got))
      end
      if got < CHUNK and not self.socket.buffered then return end
    elseif message == "again" then
      self.starved = interest == WRITE
      return
    elseif message == "closed" then
      self.ended = true
      if self.on_end then self:on_end() else self:finish() end
      if self.finishing == "done" then end_with(self) end
      return
    else
      return end_with(self, message)
    end
  end
  -- TLS may have decrypted more bytes already, for which the descriptor does not become readable.
  if self.socket.buffered then self:receive_later() end
end

local function serve(self)
  self.corked = true
  receive(self)
  self.corked = false
  if self.fd >= 0 then flush(self) end
end

--- Receives in the loop's next round, even if the descriptor is not readable.
function Stream:receive_later()
  self.loop:after(0, function()
    if self.fd >= 0 then serve(self) end
  end)
end

--- Called by the loop.
function Stream:on_ready(readable, writable, broken)
  if writable or self.blocked == READ then
    flush(self)
    if self.fd < 0 then return end
  end
  if readable or self.starved then serve(self) end
  if not broken or self.fd < 0 then return end
  if self.ended then return end_with(self, "the other side has gone") end
  if self.paused then
    -- The system would report the broken connection again and again. `resume` watches the descriptor again and receives
    -- the remaining bytes.
    self.detached = true
    self.loop:forget(self.fd)
  end
end

local defaults = {
  --- With more unsent bytes than this, `write` returns false.
  high_water = 262144,
  --- After that, `on_drain` is called when there are only this many left.
  low_water = 65536,
  --- With more than this, the stream is closed, because the program ignores the result of `write`. So this is also the
  --- longest single write.
  max_unsent = 16777216,
  --- The stream is closed if bytes wait and the other side receives none for this many seconds or, after `finish`,
  --- neither receives nor sends any; false: no limit.
  stall_timeout = 30,
}

local callbacks = { on_data = true, on_bytes = true, on_end = true, on_drain = true, on_close = true, on_open = true }

local function read_options(options)
  local settings = {}
  for name, value in pairs(options or {}) do
    if defaults[name] == nil and not callbacks[name] then
      return nil, ("a stream has no option '%s'"):format(tostring(name))
    end
    if callbacks[name] then
      if type(value) ~= "function" then return nil, name .. " must be a function" end
    elseif type(value) ~= "number" or value < 0 or value ~= value then
      if name ~= "stall_timeout" or value ~= false then
        return nil, ("%s is %s; use a number of at least 0"):format(name, tostring(value))
      end
    end
    settings[name] = value
  end
  for name, value in pairs(defaults) do
    if settings[name] == nil then settings[name] = value end
  end
  if settings.low_water > settings.high_water then settings.low_water = settings.high_water end
  return settings
end

local M = {}

-- Creates a stream with the settings from `read_options`.
local function start(loop, socket, settings)
  local self = setmetatable({
    loop = loop,
    socket = socket,
    fd = socket.fd,
    interest = READ,
    unsent = pool:take(),
    high_water = settings.high_water,
    low_water = settings.low_water,
    max_unsent = settings.max_unsent,
    stall_timeout = settings.stall_timeout,
    --- Whether `write` has returned false, so `on_drain` must be called later.
    full = false,
    --- The event after which the socket can send more: WRITE or, with TLS, READ. nil if it can send now.
    blocked = nil,
    --- Whether the socket must become writable before it can receive (only with TLS).
    starved = false,
    --- Whether writes are collected because a callback is running.
    corked = false,
    paused = false,
    --- Whether the loop does not watch the socket, because the connection is broken and the stream is paused.
    detached = false,
    --- Whether the other side has finished.
    ended = false,
    --- nil; "wanted" after `finish`; "done" when the end of the stream has been sent.
    finishing = nil,
    --- When the other side last received bytes or, after `finish`, sent some.
    progress = loop.now,
    --- How many bytes the system held when the timer last checked whether the other side receives.
    queued = nil,
    timer = nil,
    on_data = settings.on_data,
    on_bytes = settings.on_bytes,
    on_end = settings.on_end,
    on_drain = settings.on_drain,
    on_close = settings.on_close,
  }, Stream)
  local ok, message = loop:watch(socket.fd, READ, self)
  if not ok then return nil, message end
  if socket.buffered then self:receive_later() end
  return self
end

--- Creates a stream from a connected socket. From then on, use only the stream and not the socket.
---@param loop table
---@param socket table
---@param options? table callbacks, each with the stream as first argument: `on_data(stream, data)`, or instead
--- `on_bytes(stream, bytes, length)`, which gets a uint8_t * that is valid only during the call; `on_end`: the other
--- side has finished (by default, the stream then finishes too); `on_drain`: after a `write` that returned false, the
--- buffer has emptied to `low_water`; `on_close(stream, reason)`: the stream is closed. The reason is nil if the
--- program or both sides ended the stream, otherwise "stalled", "too much unsent" or an error. Limits: `high_water`
--- (262144 bytes), `low_water` (65536), `max_unsent` (16777216), `stall_timeout` (30 s; false: no limit)
---@return table|nil stream
---@return string? message
function M.new(loop, socket, options)
  local settings, message = read_options(options)
  if not settings then return nil, message end
  if settings.on_open then return nil, "on_open is an option of stream.serve only; the new stream is open already" end
  return start(loop, socket, settings)
end

--- Accepts connections and creates a stream for each.
---@param loop table
---@param listener table socket from `socket.listen`
---@param options table as for `new`; and `on_open(stream)`, called first
---@return table|nil server has a method `stop()`, after which no more connections are accepted
---@return string? message
function M.serve(loop, listener, options)
  local settings, message = read_options(options)
  if not settings then return nil, message end
  local server = { stopped = false }
  local function accept()
    for _ = 1, ACCEPT_TURN do
      local socket, problem, number = listener:accept()
      if socket then
        local stream = start(loop, socket, settings)
        if not stream then socket:close() elseif settings.on_open then settings.on_open(stream) end
      else
        sys.pause_accepting(loop, listener, number)
        if problem == "again" or number ~= sys.ECONNABORTED then return end
      end
      if server.stopped then return end
    end
  end
  local ok
  ok, message = loop:watch(listener.fd, READ, accept)
  if not ok then return nil, message end
  function server.stop()
    if server.stopped then return end
    server.stopped = true
    loop:forget(listener.fd)
    listener:close()
  end
  return server
end

return M
