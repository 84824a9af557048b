--- The HTTP server of one loop: accepts connections, counts them, ends them after time-outs, and ends all of them
-- when it stops.

local buffer = require "framewire.buffer"
local cache = require "framewire.http.cache"
local connections = require "framewire.http.connection"
local poller = require "framewire.poller"
local requests = require "framewire.http.request"
local responses = require "framewire.http.response"
local sys = require "framewire.sys"
local time = require "framewire.time"

local net = sys.net

-- Seconds between two checks for time-outs.
local SWEEP = 0.1
-- The most connections to accept in a row, before the loop does other work.
local ACCEPT_TURN = 64
-- Descriptors reserved for files and everything else.
local SPARE_DESCRIPTORS = 64

local OVERLOADED = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 21\r\nConnection: close\r\n\r\n"
  .. "too many connections\n"

--- The settings in `limits`, with their defaults. Sizes in bytes, times in seconds.
local defaults = {
  max_target = 8192,
  max_head = 16384,
  max_headers = 100,
  max_body = 1048576,
  --- Bytes that may wait to be sent to a client. With more, the server disconnects the client, even if it reads fast.
  --- A larger response must be a file or be sent in parts: call `later` and `start`, and then `write` whenever few
  --- bytes are unsent.
  max_unsent = 67108864,
  max_connections = 16384,
  --- From the first byte of a head to its last; also from the start of the connection to the first byte.
  header_timeout = 10,
  --- From the end of a head to the end of its body.
  body_timeout = 30,
  --- Between requests.
  idle_timeout = 60,
  --- While the client reads no byte of the response.
  write_timeout = 30,
  --- From `response:later()` to the response, and between the parts of a response.
  handler_timeout = 60,
}

local Server = {}
Server.__index = Server

--- Updates the date that new heads contain.
function Server:refresh_date()
  -- The monotonic clock is read first: if there is a pause between the two calls, the next update is early, not late.
  local now, wall = time.monotonic(), time.wall()
  self.date = time.http_date(wall)
  self.date_due = now + 1 - wall % 1
  self.prefixes = {} -- by status and content type: the first lines of heads, which contain the date (response.lua)
end

--- Replaces an empty output buffer that grew for one large response.
---@param name string "out" or "late_out"
function Server:renew(name)
  self[name] = buffer.new(65536)
end

--- Counts an upgraded connection until `release`.
---@param upgraded table has a method `go_away`, which the server calls when it stops
function Server:hold(upgraded)
  if self.upgraded[upgraded] then return end
  self.upgraded[upgraded] = true
  self.upgraded_count = self.upgraded_count + 1
end

--- Stops counting an upgraded connection. A second call does nothing.
---@param upgraded table
function Server:release(upgraded)
  if not self.upgraded[upgraded] then return end
  self.upgraded[upgraded] = nil
  self.upgraded_count = self.upgraded_count - 1
end

-- If the server is stopping and everything has been sent to all clients, ends it. With HTTPS, that includes the bytes
-- that still have to pass through the clients' TLS streams. Returns whether the server has ended.
local function finish_stop(self)
  if not self.stopping or self.count > 0 or next(self.relays) then return false end
  self.sweeper:cancel()
  if self.cut then self.cut:cancel() end
  local on_stopped = self.on_stopped
  self.on_stopped = nil
  if on_stopped then on_stopped() end
  return true
end

--- For HTTPS: counts the stream to a client, until `release_relay`. A stopping server waits for it, until `end_relay`.
---@param stream table
function Server:relay(stream)
  self.relays[stream] = true
  self.relay_count = self.relay_count + 1
end

--- Called when everything has been sent through a client's stream. A second call does nothing.
---@param stream table
function Server:end_relay(stream)
  self.relays[stream] = nil
  finish_stop(self)
end

--- Called once, when a client's stream has closed.
---@param stream table
function Server:release_relay(stream)
  self.relay_count = self.relay_count - 1
  self:end_relay(stream)
end

--- Called by a connection that has closed.
function Server:on_closed(fd)
  self.connections[fd] = nil
  self.count = self.count - 1
  finish_stop(self)
end

--- Serves an accepted connection, if there are not too many already.
---@param fd integer
---@param peer? table for HTTPS: the socket with the client's address, because `fd` is one end of a pair of unix sockets
---@return boolean adopted if false, the connection was closed
function Server:adopt(fd, peer)
  -- The stream of an HTTPS client can stay open for longer than its connection or WebSocket.
  if math.max(self.count + self.upgraded_count, self.relay_count) >= self.limits.max_connections then
    net.send(fd, OVERLOADED, #OVERLOADED, sys.send_flags)
    sys.close(fd)
    return false
  end
  local connection = connections.new(self, fd)
  connection.peer = peer
  local ok, message = self.loop:watch(fd, poller.READ, connection)
  if not ok then
    self.log(message)
    sys.close(fd)
    return false
  end
  self.connections[fd] = connection
  self.count = self.count + 1
  if fd > self.highest then self.highest = fd end
  return true
end

local function accept_all(self)
  for _ = 1, ACCEPT_TURN do
    local fd = sys.accept(self.listener.fd)
    if fd >= 0 then
      self:adopt(fd)
    else
      local number = sys.errno()
      if sys.pause_accepting(self.loop, self.listener, number) then
        self.log("cannot accept connections: " .. sys.strerror(number))
      end
      if number ~= sys.ECONNABORTED and number ~= sys.EINTR then return end
    end
  end
end

local function sweep(self)
  local now, all = self.loop.now, self.connections
  for fd = 0, self.highest do
    local connection = all[fd]
    if connection and connection.deadline <= now then connection:expire() end
  end
end

--- Begins to stop: accepts no more connections, closes idle ones, and lets the others get their response.
---@param grace number seconds after which all connections are closed
---@param on_stopped function called when the last connection has closed; upgraded connections count only with HTTPS,
--- where their last bytes still have to pass through the loop
function Server:stop(grace, on_stopped)
  if self.stopping then return end
  self.stopping = true
  self.on_stopped = on_stopped
  if self.listener then
    self.loop:forget(self.listener.fd)
    self.listener:close()
  end
  if self.on_stop then self.on_stop() end -- with HTTPS, secure.lua closes its own listener here
  for upgraded in pairs(self.upgraded) do upgraded:go_away() end
  for fd = 0, self.highest do
    local connection = self.connections[fd]
    -- A connection that is resuming has received its next request, or a part of it, and serves it in the loop's next
    -- round.
    if connection and connection.phase == "idle" and not connection.resuming then connection:close() end
  end
  if finish_stop(self) then return end
  self.cut = self.loop:after(grace, function()
    for fd = 0, self.highest do
      local connection = self.connections[fd]
      if connection then connection:close() end
    end
    for stream in pairs(self.relays) do stream:close() end -- this removes the stream, which `pairs` allows
  end)
end

local M = {}

--- How many descriptors there can be for connections.
---@return integer
function M.room()
  return sys.descriptor_limit() - SPARE_DESCRIPTORS
end

--- Checks the option `limits`, and fills in the defaults.
---@param given? table
---@return table|nil limits
---@return string? message
function M.read_limits(given)
  if given ~= nil and type(given) ~= "table" then return nil, "limits must be a table, not a " .. type(given) end
  local limits = {}
  for name, value in pairs(given or {}) do
    if defaults[name] == nil then return nil, "unknown limit '" .. tostring(name) .. "'" end
    if type(value) ~= "number" or value < 0 or value ~= value then
      return nil, ("the limit %s is %s; use a number of at least 0"):format(name, tostring(value))
    end
    limits[name] = value
  end
  for name, value in pairs(defaults) do limits[name] = limits[name] or value end
  if limits.max_head > 32768 then return nil, ("max_head is %s; use at most 32768"):format(limits.max_head) end
  limits.max_connections = math.min(limits.max_connections, math.max(1, M.room()))
  return limits
end

--- Starts a server on a loop.
---@param loop table
---@param listener table|nil socket from `socket.listen`; without one, pass accepted connections to `adopt`
---@param options table `handler`; `limits`: values that replace the defaults above; `log`: a function that gets each
--- line of the log, which goes to standard error by default
---@return table|nil server
---@return string? message
function M.new(loop, listener, options)
  local limits, message = M.read_limits(options.limits)
  if not limits then return nil, message end
  local self = setmetatable({
    loop = loop,
    listener = listener,
    handler = options.handler,
    limits = limits,
    log = options.log or function(line) io.stderr:write(line, "\n") end,
    --- Open connections by descriptor. `count` is their number, `highest` the highest descriptor so far.
    connections = {},
    --- The objects of upgraded connections, such as WebSockets, and their number.
    upgraded = {},
    upgraded_count = 0,
    --- For HTTPS: the streams of clients to which not everything has been sent; and the number of open streams.
    relays = {},
    relay_count = 0,
    count = 0,
    highest = 0,
    --- Buffers that all connections share: for received bytes, for responses, and for late responses.
    input = buffer.new(65536),
    out = buffer.new(65536),
    late_out = buffer.new(4096),
    --- Small buffers for incomplete requests, and for responses that are not completely sent.
    pool = buffer.pool(8192, 64),
    --- Parsed heads, by all of their bytes, and by the bytes of their header lines.
    cache = cache.new(),
    fields = cache.new(),
    request = requests.new(),
    --- Used instead of the head of a request that could not be parsed.
    refused_head = { method = "", version = 1.1 },
    stopping = false,
  }, Server)
  self.response = responses.new(self)
  self:refresh_date()
  if listener then
    local ok
    ok, message = loop:watch(listener.fd, poller.READ, function() accept_all(self) end)
    if not ok then return nil, message end
  end
  self.sweeper = loop:every(SWEEP, function() sweep(self) end)
  return self
end

return M
