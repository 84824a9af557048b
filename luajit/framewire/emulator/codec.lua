--- Encodes batches of operations, and decodes their outcomes. The binary format is that of docs/protocol.md.

local bit = require "bit"
local ffi = require "ffi"
local operations = require "framewire.emulator.operations"

local char = string.char
local band, rshift = bit.band, bit.rshift

local M = { REQUEST = 1, REPLY = 2, GOODBYE = 6 }

local statuses = {
  "bad argument", "unsupported", "no game", "failed", "busy", "too large", "lost", "not done", "not found",
}
local NOT_DONE = 8
-- The most operations in a batch. An emulator ends the connection if a batch has more.
local MOST_CALLS = 4096

local function u16(value)
  return char(band(value, 255), band(rshift(value, 8), 255))
end

local function u32(value)
  value = bit.tobit(value)
  return char(band(value, 255), band(rshift(value, 8), 255), band(rshift(value, 16), 255), rshift(value, 24))
end

local function whole(low, high, pack)
  return function(value)
    if type(value) ~= "number" or value % 1 ~= 0 or value < low or value > high then
      return nil, ("a whole number from %d to %d"):format(low, high)
    end
    return pack(value)
  end
end

local function text(value)
  if type(value) ~= "string" then return nil, "a string" end
  return u32(#value) .. value
end

local encode = {
  u8 = whole(0, 255, char),
  u16 = whole(0, 65535, u16),
  u32 = whole(0, 4294967295, u32),
  i32 = whole(-2147483648, 2147483647, u32),
  bool = function(value) return type(value) == "boolean" and (value and "\1" or "\0") or nil, "true or false" end,
  text = text,
  bytes = text,
}

--- Encodes one operation.
---@param call table a list of the operation's name and its arguments
---@return string|nil bytes
---@return string? message
function M.operation(call)
  local operation = operations[call[1]]
  if not operation then return nil, "there is no operation '" .. tostring(call[1]) .. "'" end
  local parts = { char(operation.code) }
  for index, kind in ipairs(operation.types) do
    local bytes, wanted = encode[kind](call[index + 1])
    if not bytes then
      return nil, ("%s: argument %d must be %s, not %s"):format(call[1], index, wanted, tostring(call[index + 1]))
    end
    parts[index + 1] = bytes
  end
  return table.concat(parts)
end

--- Encodes a request with several operations.
---@param id integer the reply has the same id
---@param calls table[] up to 4,096; each is a list of an operation's name and its arguments
---@return string|nil bytes
---@return string? message
function M.request(id, calls)
  if #calls > MOST_CALLS then
    return nil, ("a batch has up to 4,096 operations, not %d; send fewer at a time"):format(#calls)
  end
  -- The second id means: the replies to all requests before this one have arrived.
  local parts = { char(M.REQUEST), u32(id), u32(id), u16(#calls) }
  for _, call in ipairs(calls) do
    local bytes, message = M.operation(call)
    if not bytes then return nil, message end
    parts[#parts + 1] = bytes
  end
  return table.concat(parts)
end

-- The functions below read a message from a table with the message's bytes and the current position. They raise an
-- error if the message is too short.
local function take(from, count)
  local place = from.place
  if count > from.length - place then error("the reply ends early", 0) end
  from.place = place + count
  return from.data + place
end

local function take_u8(from)
  return take(from, 1)[0]
end

local function take_u16(from)
  return ffi.cast("const uint16_t *", take(from, 2))[0]
end

local function take_u32(from)
  return ffi.cast("const uint32_t *", take(from, 4))[0]
end

local function take_text(from)
  local length = take_u32(from)
  return ffi.string(take(from, length), length)
end

local value_of

-- The functions that read a value, by the tag byte before it.
local values = {
  [0] = function() return nil end,
  function() return false end,
  function() return true end,
  function(from) return tonumber(ffi.cast("const int64_t *", take(from, 8))[0]) end,
  take_text,
  take_text,
  function(from)
    local list = {}
    for index = 1, take_u16(from) do list[index] = value_of(from) end
    return list
  end,
}

function value_of(from)
  local tag = take_u8(from)
  local read = values[tag] or error("the reply holds an unknown kind of value, " .. tag, 0)
  return read(from)
end

--- Decodes a value. Only tests use this function.
function M.value(bytes)
  return value_of { data = ffi.cast("const uint8_t *", bytes), length = #bytes, place = 0 }
end

--- Decodes a reply.
---@param data ffi.cdata* uint8_t *
---@param length integer
---@return table|nil outcome `id`, `frame`, `count`, and the result of each operation under its number
---@return string? message the error of an operation, the text of a goodbye, or what is wrong with the reply
function M.reply(data, length)
  local from = { data = data, length = length, place = 0 }
  local ok, outcome, message = pcall(function()
    local kind = take_u8(from)
    if kind == M.GOODBYE then return nil, take_text(from) end
    if kind ~= M.REPLY then return nil, "an unexpected message of kind " .. kind end
    local outcome = { id = take_u32(from), frame = take_u32(from) }
    outcome.count = take_u16(from)
    for index = 1, outcome.count do
      local status = take_u8(from)
      if status == NOT_DONE then
        take_text(from) -- a later operation was refused, and its result has the reason
      elseif status ~= 0 then
        return nil, ("%s: %s"):format(statuses[status] or "refused", take_text(from))
      else
        outcome[index] = value_of(from)
      end
    end
    return outcome
  end)
  if not ok then return nil, outcome end
  return outcome, message
end

return M
