--- POSIX shared memory; framewire/shm.lua describes the functions. `create` and `open` return an address and a size; or
-- nil, a message and the system's error number.

local ffi = require "ffi"
local sys = require "framewire.sys"

local C = ffi.C

local M = {}

local function map(fd, size)
  local data = C.mmap(nil, size, sys.PROT_READ + sys.PROT_WRITE, sys.MAP_SHARED, fd, 0)
  if ffi.cast("intptr_t", data) == -1 then return sys.fail("mmap") end
  return data, size
end

function M.create(name, size)
  local path = "/" .. name
  local fd = sys.shm_open(path, sys.O_RDWR + sys.O_CREAT + sys.O_EXCL + sys.O_CLOEXEC, 384) -- 0600
  if fd < 0 then return sys.fail("shared memory '" .. name .. "'") end
  local data, message, number
  if C.ftruncate(fd, size) ~= 0 then
    data, message, number = sys.fail("shared memory '" .. name .. "'")
  else
    data, message, number = map(fd, size)
  end
  C.close(fd)
  if not data then C.shm_unlink(path) end
  return data, message, number
end

function M.open(name)
  local fd = sys.shm_open("/" .. name, sys.O_RDWR + sys.O_CLOEXEC, 0)
  if fd < 0 then return sys.fail("shared memory '" .. name .. "'") end
  local size, _, _, _, owner = sys.stat(fd)
  local data, message, number
  if not size then
    data, message, number = sys.fail("shared memory '" .. name .. "'")
  elseif owner ~= C.geteuid() then
    message = "shared memory '" .. name .. "' belongs to another user"
  elseif size == 0 then
    message = "shared memory '" .. name .. "' is not ready yet; try again"
  else
    data, message, number = map(fd, size)
  end
  C.close(fd)
  return data, message, number
end

function M.remove(name)
  if C.shm_unlink("/" .. name) ~= 0 then return sys.fail("shared memory '" .. name .. "'") end
  return true
end

function M.retire(data, size)
  local access, kind = sys.PROT_READ + sys.PROT_WRITE, sys.MAP_PRIVATE + sys.MAP_ANONYMOUS + sys.MAP_FIXED
  C.mmap(data, size, access, kind, -1, 0)
  return ffi.gc(data, function(place) C.munmap(place, size) end)
end

return M
