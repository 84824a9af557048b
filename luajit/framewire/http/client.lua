--- An HTTP/1.1 client. It keeps connections open and reuses them.
--
--   local client = http.client()
--   local answer = assert(client:get("http://127.0.0.1:8080/items/42"))
--   print(answer.status, answer.headers["content-type"], answer.body)
--
-- A request blocks until the reply has arrived. While a request waits in a task of a loop, the loop continues.

local form = require "framewire.http.form"
local json = require "framewire.json"
local check_settings = require "framewire.settings"
local socket = require "framewire.socket"
local sys = require "framewire.sys"
local tasks = require "framewire.task"
local time = require "framewire.time"
local trim = require "framewire.http.trim"
local url = require "framewire.http.url"

local monotonic = time.monotonic

-- The longest head of a reply and the longest line of a chunked body, in bytes; and the largest number of replies that
-- are read for one request: interim replies (1xx), and the final one.
local MAX_HEAD, MAX_LINE, MAX_HEADS = 65536, 4096, 8
-- A task receives at most this many times in a row before it lets the loop do other work.
local TURN = 16

-- Methods of requests that can be repeated if a kept connection breaks before the reply.
local repeatable = { GET = true, HEAD = true, PUT = true, DELETE = true, OPTIONS = true }

local Answer = {}
Answer.__index = Answer

--- The body, read as JSON.
---@return any value nil if it is not JSON
---@return string? message
function Answer:json()
  return json.decode(self.body)
end

-- A *link* is one connection: a socket, and the bytes received last, `data`. The bytes from `at` on have not been read
-- yet. `owner` is the number of the process that connected.
local function has_rest(link)
  return link.at <= #link.data
end

local function more(link, deadline)
  -- `read` neither looks at the time nor lets the loop continue if bytes are available.
  if monotonic() >= deadline then return nil, "timeout" end
  link.turn = link.turn % TURN + 1
  if link.turn == TURN and tasks.current() then tasks.sleep(0) end
  local data, message = link.socket:read(65536, math.max(0, deadline - monotonic()))
  if not data then return nil, message end
  link.data = has_rest(link) and link.data:sub(link.at) .. data or data
  link.at = 1
  return true
end

-- Reads up to and including the string `stop`. Returns the bytes before it.
local function read_until(link, stop, limit, deadline)
  while true do
    local first, last = link.data:find(stop, link.at, true)
    if first then
      local text = link.data:sub(link.at, first - 1)
      link.at = last + 1
      return text
    end
    if #link.data - link.at >= limit then return nil, "the answer has a head or a line that is too long" end
    local ok, message = more(link, deadline)
    if not ok then return nil, message end
  end
end

-- Passes the next `count` bytes to the function `sink`. Without `count`, passes all bytes until the connection closes.
local function read_bytes(link, count, sink, deadline)
  local left = count or math.huge
  while left > 0 do
    if not has_rest(link) then
      local ok, message = more(link, deadline)
      if not ok then
        if not count and message == "closed" then return true end
        return nil, message == "closed" and "the connection closed in the middle of the answer" or message
      end
    end
    local data = link.data:sub(link.at, math.min(#link.data, link.at + left - 1))
    link.at = link.at + #data
    left = left - #data
    local ok, message = sink(data)
    if not ok then return nil, message end
  end
  return true
end

local function read_chunks(link, sink, deadline)
  while true do
    local line, message = read_until(link, "\r\n", MAX_LINE, deadline)
    if not line then return nil, message end
    local digits = line:match("^(%x+)[ \t]*$") or line:match("^(%x+)[ \t]*;")
    if not digits or #digits > 12 then return nil, "the answer has a malformed chunk size" end
    local size = tonumber(digits, 16)
    if size == 0 then break end
    local ok
    ok, message = read_bytes(link, size, sink, deadline)
    if not ok then return nil, message end
    line, message = read_until(link, "\r\n", 2, deadline)
    if line ~= "" then return nil, message or "the answer has a chunk that is longer than its size" end
  end
  for _ = 1, 100 do
    local line, message = read_until(link, "\r\n", MAX_LINE, deadline)
    if not line then return nil, message end
    if line == "" then return true end
  end
  return nil, "the answer has too many trailers"
end

-- Reads a status line and headers.
local function read_head(link, deadline)
  local text, message = read_until(link, "\r\n\r\n", MAX_HEAD, deadline)
  if not text then return nil, message end
  local version, status, reason = text:match("^HTTP/1%.([01]) (%d%d%d) ?([^\r\n]*)")
  if not version then return nil, "the answer does not begin with HTTP/1.1 and a status" end
  local headers, cookies = {}, {}
  local place = text:find("\r\n", 1, true)
  while place do
    local stop = text:find("\r\n", place + 2, true)
    local line = text:sub(place + 2, (stop or 0) - 1)
    local name, value = line:match("^([%w!#$%%&'*+%-.^_`|~]+):(.*)$")
    if not name or value:find("[%z\r\n]") then return nil, "the answer has a malformed header" end
    name, value = name:lower(), trim(value)
    if name == "set-cookie" then cookies[#cookies + 1] = value end
    if name == "content-length" and headers[name] and headers[name] ~= value then
      return nil, "the answer has two lengths"
    end
    headers[name] = headers[name] and name ~= "content-length" and headers[name] .. ", " .. value or value
    place = stop
  end
  local connection = (headers.connection or ""):lower()
  local keep = version == "1" and not connection:find("close", 1, true) or connection:find("keep-alive", 1, true) ~= nil
  return setmetatable({
    status = tonumber(status), reason = reason, headers = headers, cookies = cookies, body = "", keep = keep,
  }, Answer)
end

-- Whether a reply is a redirect that the client follows.
local function is_followed(answer, request)
  local status = answer.status
  local is_redirect = status == 301 or status == 302 or status == 303 or status == 307 or status == 308
  return is_redirect and answer.headers.location ~= nil and request.max_redirects > 0
end

-- Reads the reply to a request.
local function read_answer(link, request, deadline)
  local answer, message
  for _ = 1, MAX_HEADS do
    answer, message = read_head(link, deadline)
    if not answer then return nil, message end
    if answer.status >= 200 then break end
    if answer.status == 101 then return nil, "the server switches to another protocol" end
  end
  if answer.status < 200 then return nil, "the server sends too many interim answers" end
  link.answered = true
  local headers, parts, got = answer.headers, {}, 0
  local on_data = not is_followed(answer, request) and request.on_data
  local function sink(data)
    got = got + #data
    if got > request.max_body then return nil, ("the answer has more than %d bytes"):format(request.max_body) end
    if not on_data then
      parts[#parts + 1] = data
    elseif on_data(data, answer) == false then
      return nil, "stopped by on_data"
    end
    return true
  end
  local coding, length = headers["transfer-encoding"], headers["content-length"]
  local has_body = request.method ~= "HEAD" and answer.status ~= 204 and answer.status ~= 304
  local ok = true
  if has_body and coding then
    if coding:lower() ~= "chunked" then return nil, "the answer has the unknown transfer coding '" .. coding .. "'" end
    if length then answer.keep = false end
    ok, message = read_chunks(link, sink, deadline)
  elseif has_body and length then
    if not length:find("^%d+$") or #length > 15 then
      return nil, "the length '" .. length .. "' of the answer is malformed"
    end
    ok, message = read_bytes(link, tonumber(length), sink, deadline)
  elseif has_body then
    answer.keep = false
    ok, message = read_bytes(link, nil, sink, deadline)
  end
  if not ok then return nil, message end
  answer.body = table.concat(parts)
  -- Bytes after the reply belong to no request.
  if has_rest(link) then answer.keep = false end
  return answer
end

local Client = {}
Client.__index = Client

-- Whether this process has made the connection. A worker process gets copies of the connections of its parent, which
-- still uses them.
local function is_own(link)
  return link.owner == sys.process_id()
end

-- Closes a kept connection. If another process has made it, closes only the copy in this process: without `broken`, a
-- TLS socket would also report the end to the server.
local function drop(link)
  if not is_own(link) then link.socket.broken = true end
  link.socket:close()
end

-- Takes a kept connection that is still open.
local function take(self, key)
  local list = self.idle[key]
  local now = monotonic()
  while list and list[1] do
    local link = table.remove(list)
    if is_own(link) and link.since + self.idle_timeout > now then
      local _, message = link.socket:receive(1)
      -- With any result but "again", the server has closed the connection, or has sent bytes that belong to no request.
      if message == "again" then return link end
    end
    drop(link)
  end
  return nil
end

-- Closes the connections that have been kept for `idle_timeout`. In each list, the oldest is first.
local function close_old(self)
  local oldest = monotonic() - self.idle_timeout
  for key, list in pairs(self.idle) do
    while list[1] and list[1].since <= oldest do drop(table.remove(list, 1)) end
    if not list[1] then self.idle[key] = nil end
  end
end

local function give(self, key, link)
  close_old(self)
  local list = self.idle[key] or {}
  self.idle[key] = list
  if self.closed or #list >= self.max_idle then return link.socket:close() end
  link.since = monotonic()
  list[#list + 1] = link
end

local function connect(self, place, request, deadline)
  local seconds = math.max(0, math.min(self.connect_timeout, deadline - monotonic()))
  local connected, message
  if place.scheme == "https" then
    connected, message = require("framewire.tls").connect(place.host, place.port, self.tls, seconds)
  elseif request.unix then
    connected, message = require("framewire.unix").connect(request.unix, seconds)
  else
    connected, message = socket.connect(place.host, place.port, seconds)
  end
  if not connected then return nil, message end
  return {
    socket = connected, owner = sys.process_id(), data = "", at = 1, answered = false, since = 0, turn = 0,
  }
end

-- Returns the bytes of a request: its head, and its body if it has one. `place` is the URL, as `url.parse` returns it.
local function request_bytes(place, request)
  local names, lines = {}, { ("%s %s HTTP/1.1"):format(request.method, place.target) }
  for name, value in pairs(request.headers) do
    value = tostring(value)
    if type(name) ~= "string" or not name:find("^[%w!#$%%&'*+%-.^_`|~]+$") or value:find("[%z\r\n]") then
      return nil, ("the header '%s' is malformed"):format(tostring(name))
    end
    names[name:lower()] = true
    lines[#lines + 1] = name .. ": " .. value
  end
  if names["content-length"] or names["transfer-encoding"] then
    return nil, "the client writes Content-Length itself; leave it and Transfer-Encoding out"
  end
  if not names.host then table.insert(lines, 2, "Host: " .. place.authority) end
  if not names["user-agent"] then lines[#lines + 1] = "User-Agent: framewire" end
  if request.type and not names["content-type"] then lines[#lines + 1] = "Content-Type: " .. request.type end
  if request.body or request.method == "POST" or request.method == "PUT" or request.method == "PATCH" then
    lines[#lines + 1] = "Content-Length: " .. #(request.body or "")
  end
  return table.concat(lines, "\r\n") .. "\r\n\r\n" .. (request.body or "")
end

-- Sends the bytes of a request and reads the reply. Returns the reply or nil, a message, and whether all was sent.
local function talk(link, bytes, request, deadline)
  local ok, message = link.socket:write(bytes, math.max(0, deadline - monotonic()))
  -- A server that refuses a large body may send its reply and close the connection before it has read everything.
  if not ok and message == "timeout" then return nil, message, ok end
  local answer, problem = read_answer(link, request, deadline)
  return answer, ok and problem or message, ok
end

-- Sends one request and returns its reply. Does not follow redirects.
local function exchange(self, place, request, deadline)
  local bytes, message = request_bytes(place, request)
  if not bytes then return nil, message end
  local key = ("%s %s %d %s"):format(place.scheme, place.host, place.port, request.unix or "")
  local link = take(self, key)
  local is_kept = link ~= nil
  if not link then
    link, message = connect(self, place, request, deadline)
    if not link then return nil, message end
  end
  link.answered = false
  local answer, ok
  -- The task can be cancelled, and `on_data` can fail.
  answer, message, ok = tasks.close_on_error(link.socket, talk, link, bytes, request, deadline)
  if answer then
    if answer.keep and ok then give(self, key, link) else link.socket:close() end
    return answer
  end
  link.socket:close()
  if is_kept and repeatable[request.method] and not link.answered and not has_rest(link) and message ~= "timeout" then
    -- The server closed the kept connection while the request was being sent.
    return exchange(self, place, request, deadline)
  end
  return nil, message == "closed" and "the connection closed before the answer" or message
end

local known = {
  url = "string", method = "string", headers = "table", body = "string", json = "any", form = "table",
  timeout = "number", on_data = "function", max_body = "number", max_redirects = "number", unix = "string",
}

-- Checks the options of a request and fills in defaults.
local function read_request(self, options)
  local ok, message = check_settings("a request", options, known)
  if not ok then return nil, message end
  local body, kind = options.body, nil
  if options.json ~= nil then
    body, message = json.encode(options.json)
    if not body then return nil, message end
    kind = "application/json"
  elseif options.form then
    body, kind = form.encode_urlencoded(options.form), "application/x-www-form-urlencoded"
  end
  local method = options.method or (body and "POST" or "GET")
  if not method:find("^%u+$") then return nil, ("'%s' is not a method; use capital letters"):format(method) end
  local headers = {}
  for name, value in pairs(self.headers) do headers[name] = value end
  for name, value in pairs(options.headers or {}) do headers[name] = value end
  return {
    method = method, headers = headers, body = body, type = kind, on_data = options.on_data, unix = options.unix,
    max_body = options.max_body or self.max_body, max_redirects = options.max_redirects or self.max_redirects,
  }
end

-- Changes a request as a redirect requires. Returns the new URL, parsed and as a string, or nil and a message.
local function redirect(place, request, answer)
  local status = answer.status
  local target = url.resolve(place, (answer.headers.location:gsub("#.*", "")))
  local next_place, message = url.parse(target, "http", "https")
  if not next_place then return nil, message end
  if place.scheme == "https" and next_place.scheme == "http" then
    return nil, "the server redirects from https to http: " .. target
  end
  if status == 303 and request.method ~= "HEAD" or (status == 301 or status == 302) and request.method == "POST" then
    request.method, request.body, request.type = "GET", nil, nil
  end
  if next_place.host ~= place.host or next_place.port ~= place.port or next_place.scheme ~= place.scheme then
    for name in pairs(request.headers) do
      local lower = name:lower()
      -- These headers are meant for the first server only.
      if lower == "authorization" or lower == "cookie" or lower == "host" then request.headers[name] = nil end
    end
    request.unix = nil
  end
  return next_place, target
end

--- Sends a request and waits for its reply.
---@param options table|string a URL, or a table: `url`; `method` (GET, or POST with a body); `headers`; one of `body`
--- (a string), `json` (any value) and `form` (a table); `timeout` (30 s for the whole request, with its redirects, but
--- looking up the name of the server can take longer);
--- `on_data(part, answer)`: gets the body in parts, so the reply's `body` is empty; if it returns false, the request
--- ends with an error; `max_body` (16777216 bytes);
--- `max_redirects` (5; with 0, the redirect itself is the reply); `unix`: path of a unix socket to connect to
---@return table|nil reply also one with an error status; it has `status`, `reason`, `headers` (names in lower case),
--- `cookies` (the list of the values of "Set-Cookie"), `body`, `url` and the method `json()`
---@return string? message
function Client:request(options)
  if self.closed then return nil, "the client is closed" end
  if type(options) == "string" then options = { url = options } end
  if type(options) ~= "table" then return nil, "a request is a URL or a table with a url" end
  local request, message = read_request(self, options)
  if not request then return nil, message end
  local place
  local target = options.url
  place, message = url.parse(target, "http", "https")
  if not place then return nil, message end
  if request.unix and place.scheme == "https" then
    return nil, "unix needs an http URL; this client does not use TLS over a unix socket"
  end
  local deadline = monotonic() + (options.timeout or self.timeout)
  local redirects = 0
  while true do
    local answer
    answer, message = exchange(self, place, request, deadline)
    if not answer then return nil, ("%s %s: %s"):format(request.method, target, message) end
    if not is_followed(answer, request) then
      answer.url = target
      return answer
    end
    redirects = redirects + 1
    if redirects > request.max_redirects then
      return nil, ("%s: more than %d redirects"):format(target, request.max_redirects)
    end
    local next_place, next_target = redirect(place, request, answer)
    if not next_place then return nil, ("%s: %s"):format(target, next_target) end
    place, target = next_place, next_target
  end
end

-- Sends a request with this method and URL, and with the other options.
local function with_url(self, method, target, options)
  local all = {}
  for name, value in pairs(options or {}) do all[name] = value end
  all.url, all.method = target, method
  return self:request(all)
end

--- Gets a URL.
---@param target string
---@param options? table as for `request`
---@return table|nil reply
---@return string? message
function Client:get(target, options)
  return with_url(self, "GET", target, options)
end

--- Posts to a URL.
---@param target string
---@param options table as for `request`, with `body`, `json` or `form`
---@return table|nil reply
---@return string? message
function Client:post(target, options)
  return with_url(self, "POST", target, options)
end

--- Closes the client and its kept connections.
function Client:close()
  self.closed = true
  for _, list in pairs(self.idle) do
    for _, link in ipairs(list) do drop(link) end
  end
  self.idle = {}
end

local defaults = {
  --- Seconds: for a whole request, for connecting, and for keeping an unused connection.
  timeout = 30,
  connect_timeout = 5,
  idle_timeout = 30,
  --- Maximum numbers: of kept connections per server, of bytes in a reply's body, and of redirects to follow.
  max_idle = 8,
  max_body = 16777216,
  max_redirects = 5,
}

local settings = { headers = "table", tls = "table" }
for name in pairs(defaults) do settings[name] = "amount" end

local M = {}

--- Creates a client. Raises an error for an unknown option, or for a value of the wrong type or below 0.
---@param options? table numbers: `timeout` (30 s), `connect_timeout` (5 s), `idle_timeout` (30 s), `max_idle` (8
--- connections), `max_body` (16777216 bytes), `max_redirects` (5); and tables: `headers` for every request; `tls`: the
--- settings of tls.connect
---@return table client with `get(url, options)`, `post(url, options)`, `request(options)` and `close()`
function M.new(options)
  options = options or {}
  local self = { idle = {}, closed = false, headers = options.headers or {}, tls = options.tls }
  local ok, message = check_settings("a client", options, settings)
  if not ok then error(message, 2) end
  for name, value in pairs(defaults) do self[name] = options[name] or value end
  return setmetatable(self, Client)
end

return M
