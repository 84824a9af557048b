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

--- Unmaps the block; do not use its `data` afterwards. The memory exists until every process has closed it and its name
--- is removed.
function Block:close()
  if self.data ~= nil then
    C.munmap(self.data, self.size)
    self.data = nil
  end
end

--- A call that does nothing, for the body of a loop that waits for a change of memory.
function M.pause()
  C.abs(0)
end

if not sys.futex_wait then
  -- Without a futex, check the word every millisecond.
  function M.wait(word, value, seconds)
    local deadline = seconds and time.monotonic() + seconds
    word = ffi.cast("volatile uint32_t *", word)
    while word[0] == value do
      if deadline and time.monotonic() >= deadline then return false end
      time.sleep(0.001)
    end
    return true
  end

  function M.wake()
    return 0
  end
else
  local limit = ffi.new("struct fw_timespec")

  --- Sleeps while a word has a value; returns at once if it has another.
  ---@param word ffi.cdata* pointer to 32 aligned bits of shared memory
  ---@param value integer
  ---@param seconds? number longest wait; without it, forever
  ---@return boolean woken false after the time; true means: read the word again
  function M.wait(word, value, seconds)
    local timeout = nil
    if seconds then
      limit.sec = math.floor(seconds)
      limit.nsec = seconds % 1 * 1e9
      timeout = limit
    end
    return sys.futex_wait(word, value, timeout) == 0 or sys.errno() ~= sys.ETIMEDOUT
  end

  --- Wakes processes that sleep on a word.
  ---@param word ffi.cdata*
  ---@param count? integer how many at most, 1 by default
  ---@return integer woken
  function M.wake(word, count)
    return sys.futex_wake(word, count or 1)
  end
end

return M
