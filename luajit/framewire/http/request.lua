--- A handler's view of a request.
--
--   request.method    "GET"
--   request.path      "/a%20b", as it was sent, without the query
--   request.query     "x=1&y=2" or nil
--   request.headers   by name in lower case; values of the same name are joined by ", ", those of Cookie by "; ". Do
--                     not write to this table, because requests with equal headers share it.
--   request.params    values of the parameters in the route's path, by name; nil if the path has none
--   request.body      the whole body; "" if there is none
--   request.version   1.1 or 1.0
--
-- After the handler has returned, the server reuses the object for the next request, unless the handler called
-- `response:later()`. Keep the values of fields, not the object.

local cookie = require "framewire.http.cookie"
local form = require "framewire.http.form"
local json = require "framewire.json"
local socket = require "framewire.socket"
local url = require "framewire.http.url"

local Request = {}
Request.__index = Request

--- The value of a name in the query, decoded. If the name occurs several times, the first.
---@param name string
---@return string|nil
function Request:param(name)
  return url.param(self.query, name)
end

--- The body, read as JSON.
---@return any value nil if it is not JSON
---@return string? message with line and column
function Request:json()
  return json.decode(self.body)
end

--- The body, read as a form.
---@param limits? table `max_fields` (1000), `max_part_head` (8192 bytes)
---@return table|nil form with `get(name)`, `all(name)`, `field(name)` and the list `fields`; see http/form.lua
---@return string? message
---@return integer? status for the error response
function Request:form(limits)
  return form.parse(self.headers["content-type"], self.body, limits)
end

--- The value of a cookie, as it was sent.
---@param name string
---@return string|nil
function Request:cookie(name)
  return cookie.parse(self.headers.cookie)[name]
end

--- The client's address. If the server listens on a unix socket: the path of the client's socket, which is usually
--- empty, and 0.
---@return string|nil address nil if the connection has ended
---@return integer|string port, or the message
function Request:peer()
  local connection = self.connection
  -- With HTTPS, `connection.peer` is the client's TLS socket, and `fd` is one end of a pair of unix sockets.
  if connection.peer then return connection.peer:peer() end
  return socket.wrap(connection.fd):peer()
end

local M = {}

--- Creates a request object for `fill`.
---@return table request
function M.new()
  return setmetatable({
    method = "", path = "", query = nil, params = nil, headers = nil, body = "", version = 1.1, connection = nil,
  }, Request)
end

--- Fills the object with the next request.
---@param request table
---@param connection table
---@param head table from the parser
---@param body string
function M.fill(request, connection, head, body)
  request.method = head.method
  request.path = head.path
  request.query = head.query
  request.params = nil
  request.headers = head.headers
  request.version = head.version
  request.body = body
  request.connection = connection
end

return M
