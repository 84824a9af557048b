--- A channel's block of shared memory: creates it, finds it, and checks whether the process on the other side is still
-- running.
--
-- As long as a side uses the block, it holds a lock on one byte of the block's file: the creator on byte 0, the side
-- that attaches on byte 1. The kernel releases the lock when the process ends, for any reason. Byte 2 protects the
-- name: a process locks it before it creates a block or replaces a *leftover*, the block of a creator that has ended.
-- The creator keeps this lock too. A process that replaces a leftover does not lock byte 0 of the leftover, so the
-- leftover never looks as if its creator still ran.

local closed = require "framewire.closed"
local ffi = require "ffi"
local layout = require "framewire.channel.layout"
local shm = require "framewire.shm"
local sys = require "framewire.sys"
local time = require "framewire.time"

local C = ffi.C

local M = {}

local Block = {}
Block.__index = Block

local MODE = 384 -- 0600
local CREATOR, NAME = 0, 2 -- bytes to lock; the side that attaches locks byte 1
local PAGE = 4096 -- the size of a page of memory on x86-64
local MAGIC = ffi.cast("const uint64_t *", layout.MAGIC)[0]

local function path_of(name)
  if type(name) ~= "string" or not name:find("^[%w_%-][%w_%-%.]*$") or #name > 200 then
    return nil, "a channel cannot be called '" .. tostring(name) .. "'; use 1 to 200 letters, digits, '-', '_' and "
      .. "'.', with no '.' at the beginning"
  end
  return "/framewire." .. name
end

local function word(data, offset)
  return ffi.cast("volatile uint32_t *", data + offset)
end

local function total(slots, bulk, extra)
  return layout.HEADER + 2 * slots * layout.SLOT + 2 * bulk + extra
end

local function map(fd, size)
  local data = C.mmap(nil, size, sys.PROT_READ + sys.PROT_WRITE, sys.MAP_SHARED, fd, 0)
  if ffi.cast("intptr_t", data) == -1 then return sys.fail("cannot be mapped") end
  return ffi.cast("uint8_t *", data)
end

local function foreign(name)
  return "channel '" .. name .. "' belongs to another user, or others may open it; choose another name"
end

-- The error if the shared memory with this name cannot be opened.
local function refused(name)
  local number = sys.errno()
  if number == sys.EACCES then return nil, foreign(name) end
  if number == sys.ELOOP or number == sys.EINVAL then
    return nil, "/dev/shm/framewire." .. name .. " is a link or a folder; remove it or choose another name"
  end
  return sys.fail("channel '" .. name .. "' cannot be opened")
end

-- Refuses a file that belongs to another user, that other users may open, or that is not a regular file (such as a
-- FIFO). Returns its size.
local function check_owner(fd, name)
  local size, _, kind, _, owner, mode = sys.stat(fd)
  if not size then return sys.fail("channel '" .. name .. "'") end
  if owner ~= C.geteuid() or bit.band(mode, 63) ~= 0 then return nil, foreign(name) end
  if kind ~= "file" then
    return nil, "/dev/shm/framewire." .. name .. " is not a regular file; remove it or choose another name"
  end
  return size
end

-- Whether the file that has this path now is the one with this inode.
local function same_file(path, inode)
  local fd = sys.shm_open(path, sys.O_RDWR + sys.O_CLOEXEC, 0)
  if fd < 0 then return false end
  local _, _, _, current_inode = sys.stat(fd)
  C.close(fd)
  return current_inode == inode
end

local function finish(fd, data, fields)
  fields.fd, fields.data = fd, data
  -- If the kernel has no memory barriers that reach other processes, a sleeping side checks more often instead.
  fields.barriers = sys.accept_barriers() == 0
  return setmetatable(fields, Block)
end

local function initialise(fd, name, path, sizes)
  local size = total(sizes.slots, sizes.bulk, sizes.extra)
  if sys.allocate(fd, size) ~= 0 then
    local what = "cannot allocate %d bytes for channel '%s'; free some memory in /dev/shm or make the channel smaller"
    return sys.fail(what:format(size, name))
  end
  local data, message = map(fd, size)
  if not data then return nil, "channel '" .. name .. "' " .. message end
  word(data, layout.AT_VERSION)[0] = layout.VERSION
  word(data, layout.AT_SLOTS)[0] = sizes.slots
  word(data, layout.AT_BULK)[0] = sizes.bulk
  word(data, layout.AT_EXTRA)[0] = sizes.extra
  word(data, layout.AT_CREATOR)[0] = C.getpid()
  -- SYNC POINT (ready): a process that sees the magic also sees the sizes.
  ffi.cast("volatile uint64_t *", data)[0] = MAGIC
  return finish(fd, data, {
    side = 0, path = path, size = size, slots = sizes.slots, bulk = sizes.bulk, extra = sizes.extra,
  })
end

-- Returns an error text if a channel cannot have these sizes.
local function problem_with(sizes)
  local function fits(value, least, most, step)
    return type(value) == "number" and value >= least and value <= most and value % step == 0
  end
  local slots, most = sizes.slots, 2 ^ 30
  if not fits(slots, 8, 65536, 1) or bit.band(slots, slots - 1) ~= 0 then
    return "slots: a power of two from 8 to 65536 is accepted"
  end
  -- Twice the longest message, so that a message always fits even if the end of this room stays unused.
  if not fits(sizes.bulk, 2 * layout.MAX_MESSAGE, most, PAGE) then
    return "bulk: a multiple of 4096 from 2 MiB to 1 GiB is accepted"
  end
  if not fits(sizes.extra, 0, most, PAGE) then return "extra: a multiple of 4096 up to 1 GiB is accepted" end
end

--- Creates the block with this name. If there is a block whose creator has ended, the new one replaces it.
---@param name string
---@param sizes table `slots`, `bulk`, `extra`
---@return table|nil block
---@return string? message
function M.create(name, sizes)
  local message = problem_with(sizes)
  if message then return nil, message end
  local path
  path, message = path_of(name)
  if not path then return nil, message end
  for _ = 1, 100 do
    local fd = sys.shm_open(path, sys.O_RDWR + sys.O_CREAT + sys.O_CLOEXEC, MODE)
    if fd < 0 then return refused(name) end
    local owned, problem = check_owner(fd, name)
    if not owned then
      C.close(fd)
      return nil, problem
    end
    if sys.lock(fd, NAME) ~= 0 then
      C.close(fd)
      return nil, "channel '" .. name .. "' is served already; stop that program or choose another name"
    end
    local size, _, _, inode = sys.stat(fd)
    if same_file(path, inode) then
      if size == 0 then
        sys.lock(fd, CREATOR)
        local block
        block, problem = initialise(fd, name, path, sizes)
        if block then return block end
        C.shm_unlink(path)
        C.close(fd)
        return nil, problem
      end
      C.shm_unlink(path) -- a leftover
    end
    C.close(fd)
  end
  return nil, "channel '" .. name .. "' changes all the time; is another program starting and ending in a loop?"
end

-- Maps the block of an open file and marks it as attached. Returns the block; or nil, a problem, and whether waiting is
-- useless. The problem continues the sentence "channel 'NAME' ...".
local function adopt(fd, size)
  if size < layout.HEADER then return nil, "is not ready" end
  local header, message = map(fd, layout.HEADER)
  if not header then return nil, message, true end
  -- SYNC POINT (ready).
  local ready = ffi.string(header, 8) == layout.MAGIC
  local version, slots = word(header, layout.AT_VERSION)[0], word(header, layout.AT_SLOTS)[0]
  local bulk, extra = word(header, layout.AT_BULK)[0], word(header, layout.AT_EXTRA)[0]
  C.munmap(header, layout.HEADER)
  if not ready then return nil, "is not ready" end
  if version ~= layout.VERSION then
    return nil, ("speaks version %d of the channel, this library %d"):format(version, layout.VERSION), true
  end
  if problem_with { slots = slots, bulk = bulk, extra = extra } or size ~= total(slots, bulk, extra) then
    return nil, "is damaged" -- not final: the program that serves the channel may replace the block
  end
  local data
  data, message = map(fd, size)
  if not data then return nil, message, true end
  if word(data, layout.AT_ATTACHED)[0] ~= 0 then
    -- There was a client before. The creator will make a new block; this one cannot be used.
    C.munmap(data, size)
    return nil, "has a client already"
  end
  word(data, layout.AT_ATTACHED)[0] = C.getpid()
  return finish(fd, data, { side = 1, size = size, slots = slots, bulk = bulk, extra = extra })
end

-- The results are those of `adopt`. If the third is "whole", waiting is useless, and the problem is a whole sentence.
local function try_attach(path, name)
  local fd = sys.shm_open(path, sys.O_RDWR + sys.O_CLOEXEC, 0)
  if fd < 0 then
    if sys.errno() == sys.ENOENT then return nil, "does not exist; start the program that serves it" end
    local _, message = refused(name)
    return nil, message, "whole"
  end
  local block, message, final
  local size, problem = check_owner(fd, name)
  if not size then
    message, final = problem, "whole"
  elseif not sys.is_locked(fd, CREATOR) then
    message = "is a leftover of a program that ended; start it again"
  elseif sys.lock(fd, 1) ~= 0 then
    message = "has a client already"
  else
    block, message, final = adopt(fd, size)
  end
  if block and not sys.is_locked(fd, CREATOR) then
    block:close()
    return nil, "ended while this program attached to it"
  end
  if not block then C.close(fd) end
  return block, message, final
end

--- Attaches to the block with this name, and waits for it if necessary.
---@param name string
---@param timeout number seconds
---@return table|nil block
---@return string? message
function M.attach(name, timeout)
  local path, message = path_of(name)
  if not path then return nil, message end
  local deadline = time.deadline(timeout)
  while true do
    local block, problem, final = try_attach(path, name)
    if block then return block end
    if final == "whole" then return nil, problem end
    if final or time.monotonic() >= deadline then return nil, ("channel '%s' %s"):format(name, problem) end
    time.sleep(0.002)
  end
end

-- Maps zeros in place of the pages that the file no longer has. An access to a missing page would kill this process.
local function replace_missing(self, size)
  local start = math.ceil(size / PAGE) * PAGE
  if start >= self.size then return end
  local access, kind = sys.PROT_READ + sys.PROT_WRITE, sys.MAP_PRIVATE + sys.MAP_ANONYMOUS + sys.MAP_FIXED
  C.mmap(self.data + start, self.size - start, access, kind, -1, 0)
end

--- Checks whether another program has damaged the memory. If pages are missing, this maps zeros in their place, so that
--- the memory can be accessed safely.
---@return string|nil damage a message, if the channel cannot continue
function Block:damage()
  local size = sys.stat(self.fd)
  if size ~= self.size then
    replace_missing(self, size or 0)
    return "the channel is damaged: another program has changed the size of its file in /dev/shm"
  end
  local data = self.data
  if self.side == 0 and word(data, layout.AT_ATTACHED)[0] == 0 and sys.links(self.fd) == 0 then
    return "the channel is damaged: another program has removed its file from /dev/shm, so no client can attach"
  end
  if ffi.cast("const volatile uint64_t *", data)[0] == MAGIC
    and word(data, layout.AT_VERSION)[0] == layout.VERSION and word(data, layout.AT_SLOTS)[0] == self.slots
    and word(data, layout.AT_BULK)[0] == self.bulk and word(data, layout.AT_EXTRA)[0] == self.extra then
    return nil
  end
  return "the channel is damaged: another program has overwritten its header"
end

--- Whether the process on the other side is still running. True as long as no client has attached.
---@return boolean
function Block:peer_lives()
  if self.side == 0 and word(self.data, layout.AT_ATTACHED)[0] == 0 then return true end
  return sys.is_locked(self.fd, 1 - self.side)
end

--- Whether the other side has closed the channel.
function Block:peer_closed()
  return word(self.data, layout.AT_CLOSED[1 - self.side])[0] ~= 0
end

--- Marks the channel as closed by this side. The creator first removes the name. So a client that sees the mark can
--- create a channel of the same name. If another program has removed the name, it may belong to a newer channel by now.
function Block:mark_closed()
  if self.side == 0 and sys.links(self.fd) ~= 0 then C.shm_unlink(self.path) end
  word(self.data, layout.AT_CLOSED[self.side])[0] = 1
end

local Closed = closed.of(Block, "the channel is closed")

--- Releases the memory and this side's lock. As long as this object exists, the former addresses of the memory can
--- still be read, as zeros.
function Block:close()
  self.zeros = shm.retire(self.data, self.size)
  C.close(self.fd)
  self.fd, self.data = -1, nil
  setmetatable(self, Closed)
end

return M
