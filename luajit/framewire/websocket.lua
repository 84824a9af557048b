--- WebSockets as in RFC 6455, for servers and clients.
--
--   http.serve {
--     port = 8080,
--     handler = http.routes {
--       ["GET /echo"] = function(request, response)
--         websocket.accept(request, response, {
--           on_message = function(ws, data, is_text) ws:send(data, is_text) end,
--         })
--       end,
--     },
--   }
--
--   local ws = assert(websocket.connect("ws://127.0.0.1:8080/echo"))
--   ws:send("hello")
--   print(ws:receive(5))
--
-- With the callback `on_message`, a WebSocket runs on a loop. Without it, `receive` waits for messages: it blocks,
-- except in a task, where the loop continues. Pings are answered automatically; without callbacks, only while `receive`
-- waits.

local ffi = require "ffi"
local buffer = require "framewire.buffer"
local handshake = require "framewire.websocket.handshake"
local has_word = require "framewire.http.has_word"
local protocols = require "framewire.websocket.protocol"
local check_settings = require "framewire.settings"
local socket = require "framewire.socket"
local streams = require "framewire.stream"
local tasks = require "framewire.task"
local time = require "framewire.time"
local trim = require "framewire.http.trim"
local urls = require "framewire.http.url"

local bytes_of = ffi.typeof("uint8_t[?]")
local TEXT, BINARY, CLOSE, PING, PONG =
  protocols.TEXT, protocols.BINARY, protocols.CLOSE, protocols.PING, protocols.PONG
local BUSY = tasks.BUSY
-- A task receives at most this many times in a row before it lets the loop do other work.
local TURN = 16
-- An output buffer that has grown larger than this is replaced by a small one.
local MAX_KEPT_OUTPUT = 1048576
-- The longest reply to a client's handshake, in bytes.
local MAX_HEAD = 16384

local out = buffer.new(4096)

local WebSocket = {}
WebSocket.__index = WebSocket

-- Whether the WebSocket has its connection. A WebSocket that `accept` has returned may not have it yet.
local function has_opened(self) return self.stream ~= nil or self.socket ~= nil end

local note_end

-- Without callbacks: sends the frames of the backlog.
local function send_backlog(self)
  local ok, message = true, nil
  while ok and self.backlog[1] do
    local frame = table.remove(self.backlog, 1)
    self.waiting = self.waiting - #frame
    ok, message = self.socket:write(frame, self.timeout)
  end
  return ok, message
end

-- Without callbacks: ends the WebSocket and drops the backlog. Closes the socket first: if `on_close` fails, `call`
-- sends a closing frame, which must not follow a frame that was sent only in part.
local function break_off(self, reason)
  self.backlog, self.waiting = {}, 0
  self.socket:close()
  note_end(self, 1006, reason)
end

-- Sends one frame. Results as for a stream's `write`.
local function send_frame(self, opcode, source, length)
  if not has_opened(self) then return nil, "the WebSocket is not open yet; send in on_open or later" end
  out:clear()
  self.protocol:frame(out, opcode, source, length)
  if self.stream then
    local more, message = self.stream:write_bytes(out.data, out.stop)
    if out.size > MAX_KEPT_OUTPUT then out = buffer.new(4096) end
    return more, message
  end
  -- If a task waits in the middle of sending a frame, another task's frame must be sent after it.
  local backlog = self.backlog
  -- One frame of any size may wait, because the same frame would be accepted if nothing was being sent.
  if self.waiting > 0 and self.waiting + out.stop > self.max_unsent then
    break_off(self, "too much unsent") -- this also ends the wait of the task that sends
    return nil, "too much unsent"
  end
  backlog[#backlog + 1] = out:text()
  self.waiting = self.waiting + out.stop
  if out.size > MAX_KEPT_OUTPUT then out = buffer.new(4096) end
  if self.is_writing then return true end
  self.is_writing = true
  local returned, ok, message = pcall(send_backlog, self)
  self.is_writing = false
  if not returned or message == "timeout" then
    -- After a time-out, or if the task was cancelled, a part of the frame may have been sent. No frame can follow it.
    break_off(self, returned and message or "sending was cancelled")
  end
  if not returned then error(ok, 0) end
  return ok, message
end

local function send_close(self, code, reason)
  if self.close_sent then return end
  self.close_sent = true
  local payload = ""
  if code and code ~= 1005 then payload = string.char(math.floor(code / 256), code % 256) .. (reason or "") end
  return send_frame(self, CLOSE, payload, #payload)
end

-- Closes the connection after `close_timeout`.
local function close_later(self)
  local loop = self.loop or self.server.loop
  loop:after(self.close_timeout, function() (self.stream or self.socket):close() end)
end

-- Calls a callback, if there is one. An error in it closes this WebSocket, but does not stop the loop.
local function call(self, callback, ...)
  if not callback then return end
  local ok, message = pcall(callback, self, ...)
  if ok then return end
  local owner = self.server or self.loop
  local log = owner and owner.log or function(line) io.stderr:write(line, "\n") end
  log("a callback of a WebSocket failed: " .. tostring(message))
  send_close(self, 1011)
  if self.loop and self.stream and not self.stopping then
    self.stopping = true
    close_later(self)
  end
end

-- Records that the WebSocket has ended, and calls `on_close`, once. The code 1006 means: without a closing frame.
function note_end(self, code, reason)
  if self.ended then return end
  self.ended, self.code, self.reason = true, code, reason
  if self.timer then self.timer:cancel() end
  -- With callbacks, the server counts the WebSocket until its connection is closed.
  if self.server and not self.stream then self.server:release(self) end
  call(self, self.on_close, code, reason)
end

-- Closes the underlying connection, after both closing frames or after an error.
local function end_connection(self)
  if not self.stream then
    if not self.is_client then self.socket:finish() end
    return self.socket:close()
  end
  if self.is_client then return close_later(self) end
  -- The server closes its side of the connection when everything has been sent, and then waits until the client closes
  -- the other side.
  self.stream.on_finish = function() close_later(self) end
  self.stream:finish()
end

-- The protocol calls the methods of this object. It is not the WebSocket itself, because the WebSocket's own method
-- `ping` sends a ping.
local Owner = {}
Owner.__index = Owner

function Owner:message(data, is_text)
  local ws = self.ws
  if ws.on_message then
    -- After this side's closing frame, messages are dropped until the other side's closing frame.
    if not ws.close_sent then call(ws, ws.on_message, data, is_text) end
    return
  end
  local inbox = ws.inbox
  inbox.last = inbox.last + 1
  inbox[inbox.last] = { data, is_text }
end

function Owner:ping(data)
  if not self.ws.close_sent then send_frame(self.ws, PONG, data, #data) end
end

function Owner:pong(data)
  call(self.ws, self.ws.on_pong, data)
end

function Owner:closed(code, reason)
  send_close(self.ws, code)
  note_end(self.ws, code, reason)
  end_connection(self.ws)
end

function Owner:failed(code, reason)
  send_close(self.ws, code, reason)
  note_end(self.ws, code, reason)
  end_connection(self.ws)
end

--- Sends a message.
---@param data string
---@param is_text? boolean false: binary; otherwise a text, which must be UTF-8
---@return boolean|nil more on a loop, false if the other side reads slowly: wait for `on_drain`; nil if sending failed
---@return string? message
function WebSocket:send(data, is_text)
  if type(data) ~= "string" then return nil, "a WebSocket sends strings, not values of type " .. type(data) end
  if self.close_sent or self.ended then return nil, "closed" end
  return send_frame(self, is_text == false and BINARY or TEXT, data, #data)
end

--- Sends a ping.
---@param data? string up to 125 bytes, which the pong repeats
---@return boolean|nil ok
---@return string? message
function WebSocket:ping(data)
  data = data or ""
  if #data > protocols.CONTROL then return nil, "a ping has up to 125 bytes" end
  if self.close_sent or self.ended then return nil, "closed" end
  return send_frame(self, PING, data, #data)
end

-- Handles received bytes that are a string. Copies them first, because the protocol changes bytes in place.
local function feed_text(self, text)
  if text == "" then return end
  local bytes = bytes_of(#text)
  ffi.copy(bytes, text, #text)
  self.protocol:feed(bytes, #text)
end

-- Waits for bytes and handles them.
local function read_more(self, deadline)
  local left = deadline and math.max(0, deadline - time.monotonic())
  -- `read` neither looks at the time nor lets the loop continue if bytes are available.
  self.turn = self.turn + 1
  if self.turn > TURN then
    self.turn = 1
    if left == 0 then return nil, "timeout" end
    if tasks.current() then tasks.sleep(0) end
  end
  local data, message = self.socket:read(65536, left or 1e9)
  if data then
    feed_text(self, data)
    return true
  end
  if message == "timeout" or message == BUSY then return nil, message end
  note_end(self, 1006, message)
  self.socket:close()
  return nil, message
end

--- Waits for the next message. Only for WebSockets without callbacks.
---@param timeout? number seconds; forever if left out
---@return string|nil data
---@return boolean|string is_text or a message: "timeout"; "closed"; or that another task waits for this socket
---@return integer? code the code of the closing frame; 1006 if there was none
---@return string? reason
function WebSocket:receive(timeout)
  if self.on_message then return nil, "this WebSocket has callbacks; on_message gets its messages" end
  local inbox = self.inbox
  local deadline = timeout and time.monotonic() + timeout
  self.turn = 0
  while true do
    if inbox.first <= inbox.last then
      local message = inbox[inbox.first]
      inbox[inbox.first] = nil
      inbox.first = inbox.first + 1
      return message[1], message[2]
    end
    if self.ended then return nil, "closed", self.code, self.reason end
    local ok, message = read_more(self, deadline)
    if not ok and (message == "timeout" or message == BUSY) then return nil, message end
  end
end

--- Sends a closing frame, and closes the connection after the other side's closing frame or after `close_timeout`. With
--- callbacks, this function returns at once; without them, it waits.
---@param code? integer 1000 by default
---@param reason? string UTF-8 of up to 123 bytes
---@return true|nil ok
---@return string? message
function WebSocket:close(code, reason)
  code = code or 1000
  if type(code) ~= "number" or not protocols.is_code(code) or code % 1 ~= 0 then
    return nil, ("%s is not a closing code; use 1000, or 3000 to 4999"):format(tostring(code))
  end
  if reason and #reason > protocols.CONTROL - 2 then return nil, "a closing reason has up to 123 bytes" end
  if self.close_sent or self.ended then return true end
  if not has_opened(self) then
    -- The connection is then closed after the response.
    note_end(self, 1006, "closed before it was open")
    return true
  end
  send_close(self, code, reason)
  if self.stream then
    close_later(self)
    return true
  end
  local deadline = time.monotonic() + self.close_timeout
  while not self.ended do
    local ok, message = read_more(self, deadline)
    -- Another task waits in `receive`, and gets the closing frame.
    if message == BUSY then tasks.sleep(0.01) end
    if not ok and message ~= BUSY or time.monotonic() >= deadline then
      note_end(self, 1006, "the other side did not close")
      break
    end
  end
  self.socket:close()
  return true
end

--- Called when the server stops. Sends the closing frame in a task: without callbacks, sending waits if the client does
--- not read. Closes the connection if the client does not answer in time.
function WebSocket:go_away()
  self.server.loop:spawn(send_close, self, 1001, "the server stops")
  close_later(self)
end

--- How many bytes wait to be sent. Always 0 without callbacks.
---@return integer
function WebSocket:pending()
  return self.stream and self.stream:pending() or 0
end

local settings = {
  on_open = "function", on_message = "function", on_pong = "function", on_drain = "function", on_close = "function",
  protocols = "table", headers = "table", max_message = "number", max_unsent = "number", stall_timeout = "number",
  close_timeout = "number", ping_interval = "number", timeout = "number", loop = "table", tls = "table",
}

local function check_options(options)
  local ok, message = check_settings("a WebSocket", options, settings)
  if not ok then return nil, message end
  for name, value in pairs(options.headers or {}) do
    if type(name) ~= "string" or type(value) ~= "string" and type(value) ~= "number" then
      return nil, ("the names and values of headers must be strings, not %s = %s")
        :format(tostring(name), tostring(value))
    end
  end
  local interval = options.ping_interval
  if interval and (interval <= 0 or interval ~= interval) then
    return nil, ("ping_interval is %s; use more than 0"):format(interval)
  end
  return true
end

local function new(options, is_client)
  local self = setmetatable({
    is_client = is_client,
    --- The subprotocol that both sides agreed on, or nil.
    subprotocol = nil,
    --- Whether this side's closing frame has been sent. Whether the WebSocket has ended, and then the code and the
    --- reason.
    close_sent = false,
    ended = false,
    code = nil,
    reason = nil,
    --- With callbacks: a stream on a loop. Without callbacks: a socket, the messages for `receive` (`inbox`), and the
    --- frames to send (`backlog`).
    stream = nil,
    loop = nil,
    socket = nil,
    inbox = { first = 1, last = 0 },
    backlog = {},
    is_writing = false,
    --- The number of bytes in the backlog.
    waiting = 0,
    --- How many times the running `receive` has received without a pause.
    turn = 0,
    -- There must be room to answer the largest message with a message of the same size.
    max_unsent = options.max_unsent or math.max(16777216, 2 * (options.max_message or 16777216)),
    --- Whether a callback has failed.
    stopping = false,
    timeout = options.timeout or 30,
    close_timeout = options.close_timeout or 5,
    --- Whether bytes have arrived since the last ping.
    heard = true,
    on_message = options.on_message,
    on_pong = options.on_pong,
    on_close = options.on_close,
    on_drain = options.on_drain,
  }, WebSocket)
  self.protocol = protocols.new(setmetatable({ ws = self }, Owner), is_client, options.max_message or 16777216)
  return self
end

-- Sends pings at regular intervals. Closes the connection if nothing arrives between two pings.
local function keep_alive(self, interval)
  self.timer = self.loop:every(interval, function()
    if not self.heard then
      note_end(self, 1006, "no answer to a ping")
      return self.stream:close()
    end
    self.heard = false
    self:ping()
  end)
end

-- Makes a WebSocket with callbacks run on a loop.
local function start(self, loop, connected, rest, options)
  self.loop = loop
  local stream, message = streams.new(loop, connected, {
    max_unsent = self.max_unsent,
    stall_timeout = options.stall_timeout,
    on_bytes = function(_, data, length)
      self.heard = true
      self.protocol:feed(data, length)
    end,
    on_end = function(stream)
      note_end(self, 1006, "closed without a closing frame")
      stream:finish()
    end,
    on_drain = function() call(self, self.on_drain) end,
    on_close = function(_, reason)
      note_end(self, 1006, reason or "closed without a closing frame")
      if self.server then self.server:release(self) end
    end,
  })
  if not stream then return nil, message end
  self.stream = stream
  if options.ping_interval then keep_alive(self, options.ping_interval) end
  call(self, options.on_open)
  feed_text(self, rest)
  return true
end

-- If a request does not open a WebSocket, returns the status and the text of the error response.
local function refusal(request)
  local headers = request.headers
  if request.method ~= "GET" or request.version < 1.1 then return 400, "a WebSocket is opened by GET with HTTP/1.1" end
  if not has_word(headers.upgrade, "websocket") or not has_word(headers.connection, "upgrade") then
    return 426, "this is a WebSocket; send Upgrade: websocket and Connection: Upgrade"
  end
  if headers["sec-websocket-version"] ~= "13" then return 426, "this server supports only version 13 of WebSockets" end
  if not handshake.is_key(headers["sec-websocket-key"]) then
    return 400, "Sec-WebSocket-Key must be 16 bytes in base64"
  end
end

-- Returns the first of the offered subprotocols that is known, or nil.
local function choose(offered, known)
  for one in (offered or ""):gmatch("[^,%s]+") do
    for _, other in ipairs(known or {}) do
      if one == other then return one end
    end
  end
  return nil
end

local M = {}

--- Answers a request by opening a WebSocket. With `on_message`, the WebSocket runs on the server's loop, even after the
-- handler has returned. Without it, call this function in a task (`http.task`); it returns when the WebSocket is open,
-- and the WebSocket closes when the handler returns. Raises an error for a wrong option, and without `on_message`
-- outside of a task.
---@param request table
---@param response table
---@param options? table callbacks, each with the WebSocket as first argument: `on_open(ws)`, `on_message(ws, data,
--- is_text)`, `on_close(ws, code, reason)`, `on_drain(ws)`, `on_pong(ws, data)`; `protocols`: list of subprotocols that
--- the server accepts (`ws.subprotocol` is the first of them in the client's list); `max_message` (16777216
--- bytes); `max_unsent` (twice `max_message`, and at least 16777216) and `stall_timeout` (a number) as for streams;
--- `ping_interval`: with `on_message`, seconds between pings; if nothing arrives between two pings, the connection is
--- closed; `close_timeout` (5 s) to wait for the closing frame; `timeout` (30 s) to open and to send, without callbacks
---@return table|nil ws nil if no WebSocket was opened; a request that does not ask for one is answered with an error
---@return string? message
function M.accept(request, response, options)
  options = options or {}
  local ok, message = check_options(options)
  if not ok then error(message, 2) end
  local task = tasks.current()
  if not options.on_message and not task then
    error("websocket.accept needs on_message, or a handler made by http.task", 2)
  end
  local status, reason = refusal(request)
  if status then
    if status == 426 then
      response:header("Upgrade", "websocket")
      response:header("Sec-WebSocket-Version", "13")
    end
    response:text(status, reason .. "\n")
    return nil, reason
  end
  local self = new(options, false)
  local server = response.server
  self.server = server
  self.subprotocol = choose(request.headers["sec-websocket-protocol"], options.protocols)
  if self.subprotocol then response:header("Sec-WebSocket-Protocol", self.subprotocol) end
  response:header("Sec-WebSocket-Accept", handshake.accept(request.headers["sec-websocket-key"]))
  ok, message = response:upgrade("websocket", function(connected, rest)
    -- The handler has closed the WebSocket, or its task no longer waits.
    if self.ended then return connected:close() end
    server:hold(self)
    if options.on_message then
      local started, problem = start(self, server.loop, connected, rest, options)
      if not started then
        server.log("cannot open a WebSocket: " .. problem)
        note_end(self, 1006, problem)
        connected:close()
      end
    else
      self.socket = connected
      feed_text(self, rest)
      tasks.resume(task)
    end
  end)
  if not ok then return nil, message end
  response.upgraded = self -- `http.task` closes it
  if options.on_message then return self end
  local deadline = time.monotonic() + self.timeout
  if not self.socket then
    repeat tasks.suspend(task, deadline - time.monotonic()) until self.socket or time.monotonic() >= deadline
  end
  if not self.socket then
    self.ended, self.code, self.reason = true, 1006, "timeout"
    return nil, "timeout"
  end
  return self
end

-- Sends the client's handshake and reads the reply. Returns the bytes that have arrived after the reply.
local function shake_hands(self, connected, authority, target, options)
  local key = handshake.key()
  local lines = {
    "GET " .. target .. " HTTP/1.1", "Host: " .. authority, "Upgrade: websocket", "Connection: Upgrade",
    "Sec-WebSocket-Key: " .. key, "Sec-WebSocket-Version: 13",
  }
  if options.protocols then lines[#lines + 1] = "Sec-WebSocket-Protocol: " .. table.concat(options.protocols, ", ") end
  for name, value in pairs(options.headers or {}) do
    if (name .. value):find("[\r\n]") then return nil, "the header '" .. name .. "' contains a line break" end
    lines[#lines + 1] = name .. ": " .. value
  end
  local deadline = time.monotonic() + self.timeout
  local ok, message = connected:write(table.concat(lines, "\r\n") .. "\r\n\r\n", self.timeout)
  if not ok then return nil, message end
  local text = ""
  while not text:find("\r\n\r\n", 1, true) do
    if #text > MAX_HEAD then return nil, "the server's reply is too long" end
    local data
    data, message = connected:read(65536, deadline - time.monotonic())
    if not data then return nil, message end
    text = text .. data
  end
  local head, rest = text:match("^(.-\r\n)\r\n(.*)$")
  local status = head:match("^HTTP/1%.1 (%d%d%d)")
  if status ~= "101" then return nil, "the server answered " .. (head:match("^[^\r]*")) end
  local headers = {}
  for name, value in head:gmatch("\r\n([^:\r\n]+):([^\r\n]*)") do headers[name:lower()] = trim(value) end
  if not has_word(headers.upgrade, "websocket") or not has_word(headers.connection, "upgrade")
    or headers["sec-websocket-accept"] ~= handshake.accept(key) then
    return nil, "the server's reply does not open a WebSocket"
  end
  if headers["sec-websocket-extensions"] then return nil, "the server uses an extension that was not offered" end
  self.subprotocol = headers["sec-websocket-protocol"]
  if self.subprotocol and choose(self.subprotocol, options.protocols) ~= self.subprotocol then
    return nil, "the server chose the subprotocol '" .. self.subprotocol .. "', which was not offered"
  end
  return rest
end

--- Connects to a WebSocket server. Blocks until the connection is open, except in a task, where the loop continues.
---@param url string "ws://host:port/path" or, with TLS, "wss://..."
---@param options? table as for `accept`, and: `loop`: the loop to use, necessary with `on_message`; `headers`: more
--- headers for the handshake; `timeout` (30 s each): to connect, for the handshake and, without callbacks, to send;
--- `tls`: the settings of tls.connect
---@return table|nil ws
---@return string? message
function M.connect(url, options)
  options = options or {}
  local ok, message = check_options(options)
  if not ok then return nil, message end
  if options.on_message and not options.loop then return nil, "a WebSocket with on_message needs a loop" end
  local place
  place, message = urls.parse(url, "ws", "wss")
  if not place then return nil, message end
  local self = new(options, true)
  local connected
  if place.scheme == "wss" then
    connected, message = require("framewire.tls").connect(place.host, place.port, options.tls, self.timeout)
  else
    connected, message = socket.connect(place.host, place.port, self.timeout)
  end
  if not connected then return nil, message end
  local rest
  rest, message = tasks.close_on_error(connected, shake_hands, self, connected, place.authority, place.target, options)
  if not rest then
    connected:close()
    return nil, ("cannot open %s: %s"):format(url, message)
  end
  if options.on_message then
    ok, message = start(self, options.loop, connected, rest, options)
    if not ok then
      connected:close()
      return nil, message
    end
  else
    self.socket = connected
    feed_text(self, rest)
  end
  return self
end

return M
