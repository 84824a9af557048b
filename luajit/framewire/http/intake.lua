--- Finds requests in the bytes that a connection has received, and answers malformed requests with an error.

local bit = require "bit"
local ffi = require "ffi"
local chunked = require "framewire.http.chunked"
local parser = require "framewire.http.parser"
local responses = require "framewire.http.response"

local band, string_of = bit.band, ffi.string
local CR, LF = 13, 10

local M = {}

--- Answers with an error. The connection ends after the response.
---@param self table connection
---@param status integer
---@param reason string
---@return nil
function M.refuse(self, status, reason)
  local server = self.server
  responses.fill(server.response, self, server.refused_head, false)
  server.response:text(status, reason .. "\n")
  self.closing = "linger"
end

--- Removes the head of the next request from the input and parses it.
---@param self table connection
---@param input table buffer
---@return table|nil head nil if it is incomplete or was refused
function M.head(self, input)
  local server, data, stop = self.server, input.data, input.stop
  local start = input.start
  if start == stop then return nil end
  local head, length = server.cache:find(data, start, stop)
  if head then
    self.scanned, self.skipped = 0, false
    input.start = start + length
    return head
  end
  local place
  -- The second cache, `server.fields`, has heads without their request line.
  head, place = parser.recall(data, start, stop, server.limits, server.fields)
  if head then
    server.cache:keep(data, start, place, head)
    self.scanned, self.skipped = 0, false
    input.start = place
    return head
  end
  if data[start] == CR and self.scanned == 0 and not self.skipped then
    -- RFC 9112, 2.2: one empty line before a request is allowed.
    if stop - start < 2 then return nil end
    if data[start + 1] == LF then
      self.skipped = true
      input.start = start + 2
      return M.head(self, input)
    end
  end
  local limits = server.limits
  if band(parser.class[data[start]], parser.TOKEN) == 0 then
    return M.refuse(self, 400, "the request line must begin with a method")
  end
  local found
  place, found = parser.find_end(data, start + self.scanned, stop)
  if not place then return M.refuse(self, 400, "a line must end with carriage return and line feed") end
  if (found and place or stop) - start > limits.max_head then
    -- `place` is where the line begins that is not complete yet: here, the request line.
    if place == start then return M.refuse(self, 414, "the request target is too long") end
    return M.refuse(self, 431, "the request head is too large")
  end
  if not found then
    self.scanned = place - start
    return nil
  end
  self.scanned, self.skipped = 0, false
  local status, reason
  head, status, reason = parser.parse(data, start, place, limits)
  if not head then return M.refuse(self, status, reason) end
  server.cache:keep(data, start, place, head)
  parser.remember(data, start, place, head, server.fields)
  input.start = place
  return head
end

--- Removes the body of a request from the input.
---@param self table connection
---@param input table buffer
---@param head table
---@return string|nil body nil if it is incomplete or was refused
function M.body(self, input, head)
  local server = self.server
  local limit = server.limits.max_body
  if head.length > limit then return M.refuse(self, 413, "the body is too large") end
  local body
  if head.length > 0 then
    if input.stop - input.start >= head.length then
      body = string_of(input.data + input.start, head.length)
      input.start = input.start + head.length
    end
  else -- the length is -1: the body is chunked
    local decoder = self.decoder or chunked.new(input.start, limit)
    local done, status, reason = decoder:feed(input.data, input.stop)
    if done == nil then return M.refuse(self, status, reason) end
    if done then
      body = string_of(input.data + decoder.start, decoder.stop - decoder.start)
      input.start = decoder.raw
      self.decoder = nil
    else
      input.stop = decoder:compact(input.data, input.stop)
      self.decoder = decoder
    end
  end
  if body then
    self.head = nil
    return body
  end
  if not self.head then
    self.head = head
    self:enter("body", server.limits.body_timeout)
    if head.expect_continue and input.stop == input.start then server.out:append("HTTP/1.1 100 Continue\r\n\r\n") end
  end
  return nil
end

return M
