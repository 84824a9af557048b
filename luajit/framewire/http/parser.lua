--- Parses request heads, strictly by RFC 9112. It reads the bytes in place and does no I/O.
--
-- Every request that another program could interpret differently is refused: one that has both Content-Length and
-- Transfer-Encoding, several lengths, a bare CR or LF, folded lines, or white space before a colon.

local bit = require "bit"
local ffi = require "ffi"
local has_word = require "framewire.http.has_word"
local trim = require "framewire.http.trim"

local band, bor = bit.band, bit.bor
local C, string_of = ffi.C, ffi.string
local CR, LF, SP, TAB, COLON, SLASH = 13, 10, 32, 9, 58, 47

local M = {}

-- The kinds of text in which a byte may occur. `class` has a combination of these bits for each byte.
local TOKEN, TARGET, VALUE, HOST = 1, 2, 4, 8
local class = ffi.new("uint8_t[256]")

local function allow(kind, characters)
  for i = 1, #characters do
    local byte = characters:byte(i)
    class[byte] = bor(class[byte], kind)
  end
end

local function allow_range(kind, first, last)
  for byte = first, last do class[byte] = bor(class[byte], kind) end
end

for _, range in ipairs { "09", "az", "AZ" } do
  allow_range(TOKEN + HOST, range:byte(1), range:byte(2))
end
allow(TOKEN, "!#$%&'*+-.^_`|~")
allow(HOST, "-._~%!$&'()*+,;=:[]")
allow_range(TARGET, 0x21, 0x7e)
class[("#"):byte()] = band(class[("#"):byte()], bit.bnot(TARGET))
allow_range(VALUE, 0x20, 0x7e)
allow_range(VALUE, 0x80, 0xff)
allow(VALUE, "\t")

--- `class` has the kinds of text in which each byte may occur. TOKEN and VALUE are the kinds for chunked.lua.
M.class, M.TOKEN, M.VALUE = class, TOKEN, VALUE

--- Searches for the empty line that ends a head.
---@param data ffi.cdata* uint8_t *
---@param from integer where to begin: at the head's first byte, or at the `place` of an earlier call
---@param stop integer
---@return integer|nil place if found, just after the empty line; otherwise the `from` of the next call
---@return boolean|nil found nil if a line ends in a bare LF
function M.find_end(data, from, stop)
  local line = from
  while true do
    local left = stop - line
    if left <= 0 then return line, false end
    local newline = C.memchr(data + line, LF, left)
    if newline == nil then return line, false end
    local place = tonumber(ffi.cast("uint8_t *", newline) - data)
    if place == line or data[place - 1] ~= CR then return nil, nil end
    if place == line + 1 then return place + 1, true end
    line = place + 1
  end
end

local function all_of(kind, text)
  for i = 1, #text do
    if band(class[text:byte(i)], kind) == 0 then return false end
  end
  return true
end

-- Reads the last part of the request line, such as "HTTP/1.1".
local function read_version(text)
  if text == "HTTP/1.1" then return 1.1 end
  if text == "HTTP/1.0" then return 1.0 end
  local major = text:match("^HTTP/(%d)%.%d$")
  if not major then return nil, 400, "the request line must end with HTTP/1.1" end
  if major ~= "1" then return nil, 505, "this server supports only HTTP/1.1 and HTTP/1.0" end
  return 1.1
end

-- All bytes of the kind TARGET, for `strspn`.
local TARGET_BYTES = {}
for byte = 0, 255 do
  if band(class[byte], TARGET) ~= 0 then TARGET_BYTES[#TARGET_BYTES + 1] = string.char(byte) end
end
TARGET_BYTES = table.concat(TARGET_BYTES)

-- Splits a target into path and query; sets `authority` for the absolute form.
local function read_target(head, target)
  if target:byte(1) ~= SLASH then
    if target == "*" then
      if head.method ~= "OPTIONS" then return nil, 400, "the target * is for OPTIONS only" end
      head.path = "*"
      return true
    end
    local authority, rest = target:match("^[Hh][Tt][Tt][Pp][Ss]?://([^/?]+)(.*)$")
    if not authority then return nil, 400, "the request target must begin with /" end
    if not all_of(HOST, authority) then return nil, 400, "the host in the request target is malformed" end
    head.authority = authority
    target = rest:byte(1) == SLASH and rest or "/" .. rest
  end
  local question = target:find("?", 1, true)
  if question then
    head.path, head.query = target:sub(1, question - 1), target:sub(question + 1)
  else
    head.path = target
  end
  return true
end

-- Reads the value of Transfer-Encoding. Returns "chunked" if this is the only coding in the list; otherwise nil, a
-- status and a reason.
local function read_codings(list)
  local last, has_chunked = nil, false
  for item in (list .. ","):gmatch("([^,]*),") do
    local coding = trim(item)
    if coding == "" then return nil, 400, "Transfer-Encoding is empty" end
    if has_chunked then return nil, 400, "chunked must be the last transfer coding, and only once" end
    if last then last = "several" else last = coding end
    has_chunked = coding == "chunked"
  end
  if last == "chunked" then return last end
  return nil, 501, "this server supports only the transfer coding chunked"
end

-- Sets `head.length`: the bytes of the body, or -1 if the body is chunked.
local function read_framing(head, headers)
  local coding, length = headers["transfer-encoding"], headers["content-length"]
  head.length = 0
  if coding then
    if length then return nil, 400, "both Content-Length and Transfer-Encoding" end
    if head.version < 1.1 then return nil, 400, "HTTP/1.0 has no Transfer-Encoding" end
    local last, status, reason = read_codings(coding:lower())
    if last ~= "chunked" then return nil, status, reason end
    head.length = -1
  elseif length then
    if not length:find("^%d+$") then return nil, 400, "Content-Length must be one decimal number" end
    if #length > 15 then return nil, 413, "the body is too large" end
    head.length = tonumber(length)
  end
  return true
end

-- Sets `head.keep_alive` and `head.expect_continue`, from the headers Connection and Expect.
local function read_connection(head, headers)
  local connection = headers["connection"]
  head.keep_alive = not has_word(connection, "close")
    and (head.version >= 1.1 or has_word(connection, "keep-alive"))
  local expect = headers["expect"]
  if expect and head.version >= 1.1 then
    if expect:lower() ~= "100-continue" then
      return nil, 417, "this server supports only the expectation 100-continue"
    end
    head.expect_continue = true
  end
  return true
end

-- Reads the header lines from `place` to the head's end.
local function read_fields(data, place, stop, limits)
  local headers, count = {}, 0
  while data[place] ~= CR do
    local first = place
    while band(class[data[place]], TOKEN) ~= 0 do place = place + 1 end
    if place == first or data[place] ~= COLON then
      if data[first] == SP or data[first] == TAB then return nil, 400, "folded header lines are not accepted" end
      return nil, 400, "a header line must begin with a name and a colon"
    end
    local name = string_of(data + first, place - first):lower()
    place = place + 1
    while data[place] == SP or data[place] == TAB do place = place + 1 end
    first = place
    while band(class[data[place]], VALUE) ~= 0 do place = place + 1 end
    local last = place
    while last > first and (data[last - 1] == SP or data[last - 1] == TAB) do last = last - 1 end
    if data[place] ~= CR or data[place + 1] ~= LF then
      return nil, 400, "a control character in the header '" .. name .. "'"
    end
    place = place + 2

    local value, before = string_of(data + first, last - first), headers[name]
    if before then
      if name == "host" or name == "content-length" then return nil, 400, "more than one " .. name .. " header" end
      value = before .. (name == "cookie" and "; " or ", ") .. value
    end
    headers[name] = value
    count = count + 1
    if count > limits.max_headers then return nil, 431, "too many headers" end
  end
  if place + 2 ~= stop then return nil, 400, "a bare carriage return" end
  return headers
end

--- Parses a complete head.
---@param data ffi.cdata* uint8_t *
---@param start integer first byte of the request line
---@param stop integer just after the empty line, from `find_end`
---@param limits table `max_target`, `max_headers`
---@return table|nil head method, path, query, version (1.1 or 1.0), headers (names in lower case), length (of the body;
--- -1: chunked), keep_alive, expect_continue, authority
---@return integer? status for the error response, if `head` is nil
---@return string? reason
function M.parse(data, start, stop, limits)
  local place = start
  while band(class[data[place]], TOKEN) ~= 0 do place = place + 1 end
  if place == start or data[place] ~= SP or place - start > 32 then
    return nil, 400, "the request line must begin with a method and one space"
  end
  local head = { method = string_of(data + start, place - start) }

  local first = place + 1
  place = first
  while band(class[data[place]], TARGET) ~= 0 do place = place + 1 end
  if place - first > limits.max_target then return nil, 414, "the request target is too long" end
  if place == first or data[place] ~= SP then
    return nil, 400, "the request line must be a method, a target and HTTP/1.1, with one space between"
  end
  local target = string_of(data + first, place - first)

  first = place + 1
  place = first
  while band(class[data[place]], TARGET) ~= 0 do place = place + 1 end
  if data[place] ~= CR or data[place + 1] ~= LF then return nil, 400, "the request line must end with HTTP/1.1" end
  local ok, status, reason
  head.version, status, reason = read_version(string_of(data + first, place - first))
  if not head.version then return nil, status, reason end
  if head.method == "CONNECT" then return nil, 501, "this server is not a proxy" end

  ok, status, reason = read_target(head, target)
  if not ok then return nil, status, reason end
  local headers
  headers, status, reason = read_fields(data, place + 2, stop, limits)
  if not headers then return nil, status, reason end
  head.headers = headers

  local host = headers["host"]
  if not host and head.version >= 1.1 then return nil, 400, "the Host header is missing" end
  if host and not all_of(HOST, host) then return nil, 400, "the Host header is malformed" end
  ok, status, reason = read_framing(head, headers)
  if not ok then return nil, status, reason end
  ok, status, reason = read_connection(head, headers)
  if not ok then return nil, status, reason end
  return head
end

local VERSION = " HTTP/1.1\r"
local common_methods = { GET = true, HEAD = true, POST = true, PUT = true, PATCH = true, DELETE = true }

--- Reads a head faster than `parse`, if its header lines are in the cache: clients often change only the request line.
-- The head must have a common method, a path as its target, and HTTP/1.1. This function has no loop, so LuaJIT can
-- compile the serving of a whole request as one trace.
---@param data ffi.cdata* uint8_t *
---@param start integer
---@param stop integer
---@param limits table `max_target`, `max_head`
---@param fields table the cache: it finds a head by the bytes after its request line
---@return table|nil head as from `parse`; nil if this function cannot read the head
---@return integer? place just after the head
function M.recall(data, start, stop, limits, fields)
  local newline = C.memchr(data + start, LF, stop - start)
  if newline == nil then return nil end
  local line_end = tonumber(ffi.cast("uint8_t *", newline) - data)
  local target_end = line_end - #VERSION
  local space = C.memchr(data + start, SP, line_end - start)
  if space == nil then return nil end
  local first = tonumber(ffi.cast("uint8_t *", space) - data) + 1
  local size = target_end - first
  if size < 1 or size > limits.max_target then return nil end
  if C.memcmp(data + target_end, VERSION, #VERSION) ~= 0 then return nil end
  if data[first] ~= SLASH or tonumber(C.strspn(data + first, TARGET_BYTES)) ~= size then return nil end
  local method = string_of(data + start, first - 1 - start)
  if not common_methods[method] then return nil end
  local known, length = fields:find(data, line_end + 1, stop)
  if not known then return nil end
  local place = line_end + 1 + length
  if place - start > limits.max_head then return nil end
  local path, query = string_of(data + first, size), nil
  local question = path:find("?", 1, true)
  if question then path, query = path:sub(1, question - 1), path:sub(question + 1) end
  return {
    method = method, path = path, query = query, version = 1.1, headers = known.headers, length = known.length,
    keep_alive = known.keep_alive, expect_continue = known.expect_continue,
  }, place
end

--- Puts the header lines of a head into the cache for `recall`.
---@param data ffi.cdata* uint8_t *
---@param start integer
---@param stop integer just after the empty line
---@param head table from `parse`
---@param fields table the cache
function M.remember(data, start, stop, head, fields)
  if head.version ~= 1.1 then return end
  local newline = C.memchr(data + start, LF, stop - start)
  fields:keep(data, tonumber(ffi.cast("uint8_t *", newline) - data) + 1, stop, head)
end

return M
