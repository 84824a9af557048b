--- An HTTP client for tests. It can send any bytes, and parses responses.

local socket = require "framewire.socket"

local Client = {}
Client.__index = Client

local TIMEOUT = 5

--- Sends bytes. It is not an error if the server does not accept all of them.
function Client:send(data)
  self.socket:write(data, TIMEOUT)
end

-- Appends received bytes to `self.data`. Returns nil and the reason if nothing arrives.
local function more(self, timeout)
  local data, message = self.socket:read(65536, timeout or TIMEOUT)
  if not data then return nil, message end
  self.data = self.data .. data
  return true
end

-- Removes the first `count` bytes from `self.data`, and returns them.
local function take(self, count)
  local part = self.data:sub(1, count)
  self.data = self.data:sub(count + 1)
  return part
end

-- Like `take`, but first waits until there are this many bytes. Returns nil and the reason if they do not arrive.
local function need(self, count)
  local parts, length = { self.data }, #self.data
  while length < count do
    local data, message = self.socket:read(65536, TIMEOUT)
    if not data then return nil, message end
    parts[#parts + 1] = data
    length = length + #data
  end
  self.data = table.concat(parts)
  return take(self, count)
end

local function take_line(self)
  while true do
    local stop = self.data:find("\r\n", 1, true)
    if stop then
      local line = take(self, stop - 1)
      take(self, 2)
      return line
    end
    local ok, message = more(self)
    if not ok then return nil, message end
  end
end

local function read_chunks(self)
  local parts = {}
  while true do
    local line, message = take_line(self)
    if not line then return nil, message end
    local size = tonumber(line, 16)
    if size == 0 then
      take_line(self)
      return table.concat(parts)
    end
    parts[#parts + 1] = need(self, size)
    take_line(self)
  end
end

--- Reads one answer.
---@param options? table `head_only`: the answer has no body, whatever its headers say
---@return table|nil answer `status`, `reason`, `headers`, `body`
---@return string? message "closed", "timeout", a system error, or which part of the answer is malformed
function Client:receive(options)
  local line, message = take_line(self)
  if not line then return nil, message end
  local status, reason = line:match("^HTTP/1%.1 (%d%d%d) (.*)$")
  if not status then return nil, "not an answer: " .. line end
  local answer = { status = tonumber(status), reason = reason, headers = {}, body = "" }
  while true do
    line, message = take_line(self)
    if not line then return nil, message end
    if line == "" then break end
    local name, value = line:match("^([^:]+): (.*)$")
    if not name then return nil, "not a header: " .. line end
    answer.headers[name:lower()] = value
  end
  if options and options.head_only or answer.status < 200 or answer.status == 204 or answer.status == 304 then
    return answer
  end
  local length = answer.headers["content-length"]
  if length then
    answer.body, message = need(self, tonumber(length))
  elseif answer.headers["transfer-encoding"] then
    answer.body, message = read_chunks(self)
  else
    while more(self) do end
    answer.body = take(self, #self.data)
  end
  if not answer.body then return nil, message end
  return answer
end

--- Sends a request and reads its answer.
---@param method string
---@param target string
---@param headers? table<string, string>
---@param body? string
---@return table|nil answer
---@return string? message
function Client:ask(method, target, headers, body)
  local lines = { method .. " " .. target .. " HTTP/1.1" }
  if not (headers and headers.Host) then lines[2] = "Host: localhost" end
  for name, value in pairs(headers or {}) do lines[#lines + 1] = name .. ": " .. value end
  if body then lines[#lines + 1] = "Content-Length: " .. #body end
  self:send(table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or ""))
  return self:receive { head_only = method == "HEAD" }
end

--- Waits for the server to close the connection.
---@param timeout? number how many seconds to wait after the last byte; 5 by default
---@return boolean closed
---@return string rest the bytes that arrived before that
function Client:is_closed(timeout)
  local ok, message = true, nil
  while ok do ok, message = more(self, timeout) end
  return message ~= "timeout", self.data
end

function Client:close()
  self.socket:close()
end

local M = {}

--- Connects to a server on this machine.
---@param port integer
---@return table client
function M.connect(port)
  local connected = assert(socket.connect("127.0.0.1", port, TIMEOUT))
  return setmetatable({ socket = connected, data = "" }, Client)
end

--- Sends one request on a new connection.
---@return table answer
function M.ask(port, method, target, headers, body)
  local client = M.connect(port)
  local answer = assert(client:ask(method, target, headers, body))
  client:close()
  return answer
end

return M
