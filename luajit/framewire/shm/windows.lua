--- Shared memory on Windows; framewire/shm.lua describes the functions. `create` and `open` return an address, a size
-- and a handle; or nil, a message and the system's error number. A block's name exists as long as a process has a
-- handle to the block.

local bit = require "bit"
local ffi = require "ffi"
local sys = require "framewire.sys"

local C = ffi.C

local PAGE_READWRITE, MAP_READ_WRITE = 4, 6
local RESERVE_AND_COMMIT, RELEASE = 0x3000, 0x8000
local NO_FILE = ffi.cast("void *", -1)

local M = {}

-- "Local\" limits the name to the user's session. Only the user who has created a block can open it.
local function path_of(name)
  return "Local\\framewire." .. name
end

local function fail(name, number)
  if number then C.SetLastError(number) end
  return sys.fail("shared memory '" .. name .. "'")
end

local function map(name, handle)
  local data = C.MapViewOfFile(handle, MAP_READ_WRITE, 0, 0, 0)
  if data ~= nil then return data end
  local number = sys.errno()
  C.CloseHandle(handle)
  return fail(name, number)
end

function M.create(name, size)
  local handle = C.CreateFileMappingA(NO_FILE, nil, PAGE_READWRITE, math.floor(size / 4294967296),
    bit.tobit(size % 4294967296), path_of(name))
  local number = sys.errno()
  if handle == nil then return fail(name, number) end
  if number == sys.EEXIST then
    C.CloseHandle(handle)
    return fail(name, number)
  end
  local data, message
  data, message, number = map(name, handle)
  if not data then return nil, message, number end
  return data, size, handle
end

--- The size is rounded up to whole pages, because the system does not report the exact size.
function M.open(name)
  local handle = C.OpenFileMappingA(MAP_READ_WRITE, 0, path_of(name))
  if handle == nil then return fail(name) end
  local data, message, number = map(name, handle)
  if not data then return nil, message, number end
  local facts = ffi.new("struct fw_memory_facts")
  C.VirtualQuery(data, facts, ffi.sizeof(facts))
  return data, tonumber(facts.size), handle
end

--- Always fails: the system removes a name when the last handle to its block is closed.
function M.remove(name)
  local handle = C.OpenFileMappingA(MAP_READ_WRITE, 0, path_of(name))
  if handle == nil then return fail(name) end
  C.CloseHandle(handle)
  return nil, "shared memory '" .. name .. "' is in use; its name ends with the last process that has it open"
end

function M.release(handle)
  C.CloseHandle(handle)
end

function M.retire(data, size)
  C.UnmapViewOfFile(data)
  local zeros = C.VirtualAlloc(data, size, RESERVE_AND_COMMIT, PAGE_READWRITE)
  if zeros == nil then return nil end
  return ffi.gc(zeros, function(place) C.VirtualFree(place, 0, RELEASE) end)
end

return M
