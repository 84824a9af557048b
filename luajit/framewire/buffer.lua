--- Byte buffers that grow. Their bytes are in FFI arrays. The bytes in use are `data[start]` to `data[stop - 1]`. Where
-- speed matters, code reads and changes the fields directly.

local ffi = require "ffi"

local copy = ffi.copy
local bytes_type = ffi.typeof("uint8_t[?]")
-- `compact` moves bytes only if more than this many bytes at the beginning of the buffer are no longer in use.
local MOVE_AT = 65536

local Buffer = {}
Buffer.__index = Buffer

--- The number of bytes in use.
---@return integer
function Buffer:length()
  return self.stop - self.start
end

--- Makes room for more bytes after `stop`. `data` can move; offsets stay valid.
---@param room integer bytes
function Buffer:reserve(room)
  if self.size - self.stop >= room then return end
  local size = self.size * 2
  while size < self.stop + room do size = size * 2 end
  local data = bytes_type(size)
  copy(data, self.data, self.stop)
  self.data, self.size = data, size
end

--- Appends a string.
---@param text string
function Buffer:append(text)
  local length = #text
  if self.size - self.stop < length then self:reserve(length) end
  copy(self.data + self.stop, text, length)
  self.stop = self.stop + length
end

--- Appends bytes from memory that does not belong to this buffer.
---@param source ffi.cdata* uint8_t *
---@param length integer
function Buffer:append_bytes(source, length)
  if type(source) ~= "cdata" then error("append_bytes takes an address; append takes a string", 2) end
  if self.size - self.stop < length then self:reserve(length) end
  copy(self.data + self.stop, source, length)
  self.stop = self.stop + length
end

--- The bytes in use as a string.
---@return string
function Buffer:text()
  return ffi.string(self.data + self.start, self.stop - self.start)
end

--- Moves the bytes in use to the beginning of the buffer. Does this only if the unused bytes before them are more than
--- 64 KiB, and more than the bytes to move. Without this, a buffer that never becomes empty would grow without limit.
function Buffer:compact()
  local length = self.stop - self.start
  if self.start <= MOVE_AT or self.start <= length then return end
  copy(self.data, self.data + self.start, length)
  self.start, self.stop = 0, length
end

--- Removes all bytes and keeps the memory.
function Buffer:clear()
  self.start, self.stop = 0, 0
end

local M = {}

--- Creates an empty buffer.
---@param size integer initial size in bytes, at least 1
---@return table buffer
function M.new(size)
  if size < 1 or size ~= size then error(("a buffer has at least one byte, not %s"):format(tostring(size)), 2) end
  return setmetatable({ data = bytes_type(size), size = size, start = 0, stop = 0 }, Buffer)
end

local Pool = {}
Pool.__index = Pool

--- Takes an empty buffer from the pool, or creates one.
---@return table buffer
function Pool:take()
  local count = self.count
  if count == 0 then return M.new(self.size) end
  local buffer = self[count]
  self[count] = nil
  self.count = count - 1
  return buffer
end

--- Gives a buffer back to the pool. The pool does not keep a buffer that has grown, and keeps at most `limit` buffers.
---@param buffer table
function Pool:give(buffer)
  if buffer.size ~= self.size or self.count >= self.limit then return end
  buffer:clear()
  self.count = self.count + 1
  self[self.count] = buffer
end

--- Creates a pool of buffers of one size.
---@param size integer bytes
---@param limit integer the largest number of buffers to keep
---@return table pool
function M.pool(size, limit)
  return setmetatable({ size = size, limit = limit, count = 0 }, Pool)
end

return M
