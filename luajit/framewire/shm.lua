--- Shared memory between processes of one user, and waiting on a word in it.
--
--   local block = assert(shm.create("demo", 4096))       -- in one process
--   local block = assert(shm.open("demo"))               -- in the other
--   local word = ffi.cast("volatile uint32_t *", block.data)
--
-- Be careful: in a loop that only reads such a word, LuaJIT moves the read out of the loop, even with `volatile`, and
-- the loop never ends. Call a C function in the loop, for example with `shm.pause()`: then LuaJIT reads the word again.

local ffi = require "ffi"
local sys = require "framewire.sys"
local time = require "framewire.time"

local C = ffi.C
local memory = require(sys.shm_module)

local M = {}

-- The size of a process's address space.
local MAX_SIZE = 2 ^ 47

local Block = {}
Block.__index = Block

local function check_name(name)
  if type(name) ~= "string" or not name:find("^[%w_%-][%w_%-%.]*$") or #name > 200 then
    return nil, "'" .. tostring(name) .. "' is not a shared memory name; use up to 200 letters, digits, '-', '_' "
      .. "and '.', but not '.' first"
  end
  return true
end

-- Creates a block object from the results of `memory.create` or `memory.open`. Passes on an error.
local function made(data, size, handle)
  if not data then return nil, size, handle end
  return setmetatable({ data = ffi.cast("uint8_t *", data), size = size, handle = handle }, Block)
end

--- Creates a block of zeros that only this user can open.
---@param name string
---@param size integer bytes
---@return table|nil block with `data` (uint8_t *), `size` and `close()`
---@return string? message
---@return integer? number EEXIST if the name is in use
function M.create(name, size)
  local ok, message = check_name(name)
  if not ok then return nil, message end
  if type(size) ~= "number" or not (size >= 1 and size <= MAX_SIZE) or size % 1 ~= 0 then
    return nil, ("%s is not a size of shared memory; use a whole number of bytes from 1 to 2^47"):format(tostring(size))
  end
  return made(memory.create(name, size))
end

--- Opens a block that another process has created. A block of another user is refused.
---@param name string
---@return table|nil block
---@return string? message
---@return integer? number ENOENT if the name does not exist
function M.open(name)
  local ok, message = check_name(name)
  if not ok then return nil, message end
  return made(memory.open(name))
end

--- Removes a name. Processes that have the block open can still use it. On Windows, this always fails: the system
--- removes the name when the last process closes the block.
---@param name string
---@return true|nil ok
---@return string? message
function M.remove(name)
  local ok, message = check_name(name)
  if not ok then return nil, message end
  return memory.remove(name)
end

--- Unmaps memory and maps zeros at the same addresses. So a program that still uses these addresses does not crash.
---@param data ffi.cdata* uint8_t *
---@param size integer
---@return any zeros keep this object as long as the addresses may be used
M.retire = memory.retire

--- Closes the block. `data` becomes nil. As long as the block's object exists, addresses from the former `data` read as
--- zeros. The memory exists until every process has closed it and its name is removed.
function Block:close()
  if self.data == nil then return end
  self.zeros = memory.retire(self.data, self.size)
  if self.handle then memory.release(self.handle) end
  self.data, self.handle = nil, nil
end

--- Does nothing. Call it in a loop that waits for a change of memory; the beginning of this file says why.
function M.pause()
  C.abs(0)
end

local function address(word)
  local place = ffi.cast("void *", word)
  if place == nil then error("there is no word to wait on; is the block closed?", 3) end
  return place
end

if not sys.futex_wait then
  -- Without a futex, check the word every millisecond.
  function M.wait(word, value, seconds)
    local deadline = time.deadline(seconds)
    word = ffi.cast("volatile uint32_t *", address(word))
    while word[0] == value do
      if time.monotonic() >= deadline then return false end
      time.sleep(0.001)
    end
    return true
  end

  function M.wake()
    return 0
  end
else
  local limit = ffi.new("struct fw_timespec")
  -- From this many seconds on, wait without a limit, because the kernel does not accept every number.
  local FOREVER = 2 ^ 31

  --- Sleeps until `wake`, if a word has this value. Returns at once if it has another value.
  ---@param word ffi.cdata* pointer to 32 aligned bits of shared memory
  ---@param value integer
  ---@param seconds? number longest wait; forever if left out
  ---@return boolean woken false if the time is over; true: read the word again, it may have changed
  function M.wait(word, value, seconds)
    local timeout = nil
    if seconds and seconds < FOREVER then
      seconds = math.max(seconds, 0)
      limit.sec = math.floor(seconds)
      limit.nsec = seconds % 1 * 1e9
      timeout = limit
    end
    return sys.futex_wait(address(word), value, timeout) == 0 or sys.errno() ~= sys.ETIMEDOUT
  end

  --- Wakes processes that sleep on a word.
  ---@param word ffi.cdata*
  ---@param count? integer the most processes to wake, 1 by default
  ---@return integer woken
  function M.wake(word, count)
    return sys.futex_wake(address(word), count or 1)
  end
end

return M
