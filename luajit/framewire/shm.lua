--- Shared memory between processes of one user, and waiting on a word in it.
--
--   local block = assert(shm.create("demo", 4096))       -- in one process
--   local block = assert(shm.open("demo"))               -- in the other
--   local word = ffi.cast("volatile uint32_t *", block.data)
--
-- Be careful: in a loop that only reads such a word, LuaJIT moves the read out of the loop, even with `volatile`, and
-- the loop never ends. Any call of a C function inside the loop makes it read again; `shm.pause()` is one.

local ffi = require "ffi"
local sys = require "framewire.sys"
local time = require "framewire.time"

local C = ffi.C

local M = {}

-- All that a process can address.
local MAX_SIZE = 2 ^ 47

local Block = {}
Block.__index = Block

local function path_of(name)
  if type(name) ~= "string" or not name:find("^[%w_%-][%w_%-%.]*$") or #name > 200 then
    return nil, "a shared memory name is letters, digits, '-', '_' and '.', not '" .. tostring(name) .. "'"
  end
  return "/" .. name
end

local function map(fd, size)
  local data = C.mmap(nil, size, sys.PROT_READ + sys.PROT_WRITE, sys.MAP_SHARED, fd, 0)
  if ffi.cast("intptr_t", data) == -1 then return sys.fail("mmap") end
  return setmetatable({ data = ffi.cast("uint8_t *", data), size = size }, Block)
end

--- Creates a block of zeros that only this user can open.
---@param name string
---@param size integer bytes
---@return table|nil block with `data` (uint8_t *), `size` and `close()`
---@return string? message
---@return integer? number EEXIST if the name is taken
function M.create(name, size)
  local path, message = path_of(name)
  if not path then return nil, message end
  if type(size) ~= "number" or not (size >= 1 and size <= MAX_SIZE) or size % 1 ~= 0 then
    return nil, ("%s is not a size of shared memory; use a whole number of bytes from 1 to 2^47"):format(tostring(size))
  end
  local fd = sys.shm_open(path, sys.O_RDWR + sys.O_CREAT + sys.O_EXCL + sys.O_CLOEXEC, 384) -- 0600
  if fd < 0 then return sys.fail("shared memory '" .. name .. "'") end
  local block, number
  if C.ftruncate(fd, size) ~= 0 then
    block, message, number = sys.fail("shared memory '" .. name .. "'")
  else
    block, message, number = map(fd, size)
  end
  C.close(fd)
  if not block then C.shm_unlink(path) end
  return block, message, number
end

--- Opens a block that another process has created. A block of another user is refused.
---@param name string
---@return table|nil block
---@return string? message
---@return integer? number ENOENT if the name does not exist
function M.open(name)
  local path, message = path_of(name)
  if not path then return nil, message end
  local fd = sys.shm_open(path, sys.O_RDWR + sys.O_CLOEXEC, 0)
  if fd < 0 then return sys.fail("shared memory '" .. name .. "'") end
  local size, _, _, _, owner = sys.stat(fd)
  local block, number
  if not size then
    block, message, number = sys.fail("shared memory '" .. name .. "'")
  elseif owner ~= C.geteuid() then
    message = "shared memory '" .. name .. "' belongs to another user"
  elseif size == 0 then
    message = "shared memory '" .. name .. "' is not ready yet; try again"
  else
    block, message, number = map(fd, size)
  end
  C.close(fd)
  return block, message, number
end

--- Removes a name. Processes that have the block open keep it.
---@param name string
---@return true|nil ok
---@return string? message
function M.remove(name)
  local path, message = path_of(name)
  if not path then return nil, message end
  if C.shm_unlink(path) ~= 0 then return sys.fail("shared memory '" .. name .. "'") end
  return true
end

--- Puts zeros in place of mapped memory, so that addresses that a program has kept do no harm.
---@param data ffi.cdata* uint8_t *
---@param size integer
---@return any zeros keep it as long as the addresses may be used
function M.retire(data, size)
  local access, kind = sys.PROT_READ + sys.PROT_WRITE, sys.MAP_PRIVATE + sys.MAP_ANONYMOUS + sys.MAP_FIXED
  C.mmap(data, size, access, kind, -1, 0)
  return ffi.gc(data, function(place) C.munmap(place, size) end)
end

--- Closes the block. `data` becomes nil, and addresses that were made from it lead to zeros as long as the block's
--- object exists. The memory exists until every process has closed it and its name is removed.
function Block:close()
  if self.data == nil then return end
  self.zeros = M.retire(self.data, self.size)
  self.data = nil
end

--- A call that does nothing, for the body of a loop that waits for a change of memory.
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
  -- Seconds; the kernel does not accept any number.
  local FOREVER = 2 ^ 31

  --- Sleeps while a word has a value; returns at once if it has another.
  ---@param word ffi.cdata* pointer to 32 aligned bits of shared memory
  ---@param value integer
  ---@param seconds? number longest wait; without it, forever
  ---@return boolean woken false after the time; true means: read the word again
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
  ---@param count? integer how many at most, 1 by default
  ---@return integer woken
  function M.wake(word, count)
    return sys.futex_wake(address(word), count or 1)
  end
end

return M
