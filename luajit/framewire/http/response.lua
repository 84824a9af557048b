--- Responses. A handler calls one of `text`, `html`, `json`, `send`, `redirect`, `file`, `start` or `upgrade`. Or it
-- calls `later`, and then one of them on the object that `later` returned.

local ffi = require "ffi"
local cookie = require "framewire.http.cookie"
local encoder = require "framewire.json.encoder"
local sys = require "framewire.sys"

-- A file up to this size is sent together with the head.
local SMALL_FILE = 65536

-- The control characters that a header's value cannot contain: all but the tab.
local CONTROL = "[%z\1-\8\10-\31\127]"

-- Reason phrases of status codes.
local reasons = {
  [200] = "OK", [201] = "Created", [202] = "Accepted", [204] = "No Content", [206] = "Partial Content",
  [301] = "Moved Permanently", [302] = "Found", [303] = "See Other", [304] = "Not Modified",
  [307] = "Temporary Redirect", [308] = "Permanent Redirect",
  [400] = "Bad Request", [401] = "Unauthorized", [403] = "Forbidden", [404] = "Not Found",
  [405] = "Method Not Allowed", [406] = "Not Acceptable", [408] = "Request Timeout", [409] = "Conflict",
  [410] = "Gone", [411] = "Length Required", [412] = "Precondition Failed", [413] = "Content Too Large",
  [414] = "URI Too Long", [415] = "Unsupported Media Type", [416] = "Range Not Satisfiable",
  [417] = "Expectation Failed", [422] = "Unprocessable Content", [426] = "Upgrade Required",
  [429] = "Too Many Requests", [431] = "Request Header Fields Too Large",
  [500] = "Internal Server Error", [501] = "Not Implemented", [502] = "Bad Gateway",
  [503] = "Service Unavailable", [504] = "Gateway Timeout", [505] = "HTTP Version Not Supported",
}

local Response = {}
Response.__index = Response

-- Whether responses with this status have a body. If a response with one of the other statuses had a body, the client
-- would read it as the beginning of the next response.
local function has_body(status)
  return status >= 200 and status ~= 204 and status ~= 304
end

-- Creates the first lines of a head: status, date and content type. They are kept for each pair of status and content
-- type, but only until the date changes: for up to a second.
local function make_prefix(server, status, content_type)
  local reason = reasons[status] or "Unknown"
  local text = ("HTTP/1.1 %d %s\r\nDate: %s\r\n"):format(status, reason, server.date)
  if content_type then
    if content_type:find(CONTROL) then error("a control character in the content type", 3) end
    text = text .. "Content-Type: " .. content_type .. "\r\n"
  end
  local by_type = server.prefixes[status]
  if not by_type then
    by_type = {}
    server.prefixes[status] = by_type
  end
  by_type[content_type or false] = text
  return text
end

local function prefix_of(server, status, content_type)
  if server.loop.now >= server.date_due then server:refresh_date() end
  local by_type = server.prefixes[status]
  return by_type and by_type[content_type or false] or make_prefix(server, status, content_type)
end

-- Starts a response and returns the buffer for its bytes. A late response has a separate buffer: it can be sent while
-- another connection's responses are still in `out`.
local function begin(self)
  if self.started then
    return nil, self.closed and "the client has gone" or "this request has been answered already"
  end
  self.started = true
  if not self.is_late then return self.server.out end
  local out = self.server.late_out
  out:clear() -- a handler that failed may have left a part of its response there
  return out
end

local function end_head(self, out, keep_alive)
  if self.extra then
    out:append(self.extra)
    self.extra = nil
  end
  if not keep_alive or self.server.stopping then
    out:append("Connection: close\r\n\r\n")
    self.connection.closing = self.connection.closing or "close"
  elseif self.version < 1.1 then
    out:append("Connection: keep-alive\r\n\r\n")
  else
    out:append("\r\n")
  end
end

local function finish(self, out)
  self.done = true
  if self.is_late then self.connection:finish_late(out) end
  return true
end

-- A cache of up to LENGTHS "Content-Length" lines, by length. Without it, LuaJIT would compile the loop that writes the
-- digits as a separate trace, and could then not compile the serving of a whole request as one trace.
local LENGTHS = 1024
local length_lines, known_lengths = {}, 0

local function make_length_line(length)
  if known_lengths == LENGTHS then length_lines, known_lengths = {}, 0 end
  local line = ("Content-Length: %d\r\n"):format(length)
  length_lines[length] = line
  known_lengths = known_lengths + 1
  return line
end

local function length_line(length)
  return length_lines[length] or make_length_line(length)
end

--- Adds a header to the response. Call this before the method that sends the response. Raises an error if the name or
--- the value is malformed.
---@param name string
---@param value string
function Response:header(name, value)
  value = tostring(value)
  if not name:find("^[%w!#$%%&'*+%-.^_`|~]+$") or value:find(CONTROL) then
    error("malformed header '" .. name .. "'", 2)
  end
  self.extra = (self.extra or "") .. name .. ": " .. value .. "\r\n"
end

--- Adds a header that sets a cookie. Call this before the method that sends the response. Raises an error if cookies
--- cannot hold the name or the value.
---@param name string
---@param value string
---@param options? table `path`, `max_age`, `http_only`, `same_site` and others; see http/cookie.lua
function Response:cookie(name, value, options)
  local text, message = cookie.format(name, value, options)
  if not text then error(message, 2) end
  self:header("Set-Cookie", text)
end

--- Sends a body of any type.
---@param status integer such as 200
---@param body string
---@param content_type? string none if left out
---@return true|nil ok
---@return string? message
function Response:send(status, body, content_type)
  local out, message = begin(self)
  if not out then return nil, message end
  out:append(prefix_of(self.server, status, content_type))
  if has_body(status) then out:append(length_line(#body)) else body = "" end
  end_head(self, out, self.keep_alive)
  if not self.head_only then out:append(body) end
  return finish(self, out)
end

--- Sends plain text.
---@param status integer
---@param body string
---@return true|nil ok
---@return string? message
function Response:text(status, body)
  return self:send(status, body, "text/plain; charset=utf-8")
end

--- Sends HTML.
---@param status integer
---@param body string
---@return true|nil ok
---@return string? message
function Response:html(status, body)
  return self:send(status, body, "text/html; charset=utf-8")
end

--- Sends a value as JSON. Raises an error if JSON cannot represent the value.
---@param status integer
---@param value any see json.encode
---@return true|nil ok
---@return string? message
function Response:json(status, value)
  local bytes, message = encoder.encode_bytes(value)
  if not bytes then error(message, 2) end
  local out
  out, message = begin(self)
  if not out then return nil, message end
  local length = bytes.stop
  out:append(prefix_of(self.server, status, "application/json"))
  if has_body(status) then out:append(length_line(length)) else length = 0 end
  end_head(self, out, self.keep_alive)
  if not self.head_only then out:append_bytes(bytes.data, length) end
  return finish(self, out)
end

--- Redirects the client.
---@param status integer 301, 302, 303, 307 or 308
---@param location string
---@return true|nil ok
---@return string? message
function Response:redirect(status, location)
  self:header("Location", location)
  return self:send(status, "", nil)
end

--- Sends part of an open file, and closes the file afterwards.
---@param status integer
---@param fd integer
---@param offset integer first byte
---@param length integer
---@param content_type string
---@return true|nil ok
---@return string? message
function Response:file(status, fd, offset, length, content_type)
  local out, message = begin(self)
  if not out then
    ffi.C.close(fd)
    return nil, message
  end
  local connection = self.connection
  out:append(prefix_of(self.server, status, content_type))
  if has_body(status) then out:append(length_line(length)) else length = 0 end
  end_head(self, out, self.keep_alive)
  if self.head_only or length == 0 then
    ffi.C.close(fd)
  elseif length <= SMALL_FILE then
    out:reserve(length)
    local got = tonumber(sys.pread(fd, out.data + out.stop, length, offset))
    ffi.C.close(fd)
    -- The file has become shorter since its size was read, so the response cannot have the length that its head says.
    if got ~= length then connection.closing = "abort" end
    out.stop = out.stop + math.max(0, got)
  else
    connection.file = { fd = fd, offset = offset, left = length }
  end
  return finish(self, out)
end

--- Starts a response of unknown length; continue with `write` and `finish`. If the response has no body, `write` drops
--- its data: in responses to HEAD, and with the status 204 or 304.
---@param status integer
---@param content_type string
---@return true|nil ok
---@return string? message
function Response:start(status, content_type)
  local out, message = begin(self)
  if not out then return nil, message end
  out:append(prefix_of(self.server, status, content_type))
  local with_body = has_body(status)
  if not with_body then self.head_only = true end
  -- HTTP/1.0 has no chunks: there, the end of the connection ends the body.
  self.chunked = with_body and self.version >= 1.1
  if self.chunked then out:append("Transfer-Encoding: chunked\r\n") end
  end_head(self, out, self.keep_alive and (self.chunked or not with_body))
  self.streaming = true
  if self.is_late then self.connection:send_late(out) end
  return true
end

--- Sends a part of a started response.
---@param data string
---@return integer|nil unsent bytes that wait to be sent, because the client reads slowly; nil if the client has gone
--- or the response was not started
---@return string? message
function Response:write(data)
  if type(data) ~= "string" then error("a response writes strings, not a " .. type(data), 2) end
  if not self.streaming then
    return nil, self.closed and "the client has gone" or "start the answer first"
  end
  local out = self.is_late and self.server.late_out or self.server.out
  if #data > 0 and not self.head_only then
    if self.chunked then
      out:append(("%x\r\n"):format(#data))
      out:append(data)
      out:append("\r\n")
    else
      out:append(data)
    end
  end
  if self.is_late then self.connection:send_late(out) end
  if self.closed then return nil, "the client has gone" end
  local unsent = self.connection.unsent
  return unsent and unsent:length() or 0
end

--- Ends a started response.
---@return true|nil ok
---@return string? message
function Response:finish()
  if not self.streaming then
    return nil, self.closed and "the client has gone" or "start the answer first"
  end
  self.streaming = false
  local out = self.is_late and self.server.late_out or self.server.out
  if self.chunked and not self.head_only then out:append("0\r\n\r\n") end
  return finish(self, out)
end

--- Switches the connection to another protocol. Add headers for the response with `header`, before this call.
---@param protocol string for the header "Upgrade"
---@param on_upgrade fun(socket: table, rest: string) called when the response has been sent; it must close the socket
--- in the end; `rest` has the bytes that the client has already sent in the new protocol
---@return true|nil ok
---@return string? message
function Response:upgrade(protocol, on_upgrade)
  local out, message = begin(self)
  if not out then return nil, message end
  out:append("HTTP/1.1 101 Switching Protocols\r\nUpgrade: " .. protocol .. "\r\nConnection: Upgrade\r\n")
  out:append(self.extra or "")
  out:append("\r\n")
  self.extra = nil
  self.connection.closing = "upgrade"
  self.connection.on_upgrade = on_upgrade
  return finish(self, out)
end

--- Lets the handler return before it answers. The connection serves no other request until the answer is complete.
--- Raises an error if the request has been answered already.
---@return table response has the same methods, with which the handler answers later; its field `closed` is true when
--- the client has gone
function Response:later()
  if self.started or self.late then error("this request has been answered already", 2) end
  local late = setmetatable({
    server = self.server, connection = self.connection, keep_alive = self.keep_alive, version = self.version,
    head_only = self.head_only, extra = self.extra, is_late = true,
    started = false, done = false, closed = false, streaming = false,
  }, Response)
  self.late = late
  self.connection.promised = late -- so the response learns if the client goes before the handler has returned
  self.extra = nil
  -- A late response has its own buffer, so the responses before it must be sent first.
  self.connection:flush()
  self.started = true
  return late
end

local M = {}

--- Creates the response object that a server uses for all requests.
---@param server table
---@return table response
function M.new(server)
  return setmetatable({
    server = server, connection = nil, keep_alive = true, version = 1.1, head_only = false, extra = nil,
    is_late = false, late = nil, started = false, done = false, closed = false, streaming = false, chunked = false,
  }, Response)
end

--- Prepares the response object for a request.
---@param response table
---@param connection table
---@param head table
---@param keep_alive boolean
function M.fill(response, connection, head, keep_alive)
  response.connection = connection
  response.keep_alive = keep_alive
  response.version = head.version
  response.head_only = head.method == "HEAD"
  response.extra = nil
  response.late = nil
  response.started = false
  response.done = false
  response.streaming = false
  response.upgraded = nil
end

return M
