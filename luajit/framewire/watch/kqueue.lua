--- Watches files with kqueue, on macOS and FreeBSD. `make test-kqueue` tests it on Linux with libkqueue.

local bit = require "bit"
local ffi = require "ffi"
local sys = require "framewire.sys"

local C, band = ffi.C, bit.band

local Watch = {}
Watch.__index = Watch

function Watch:add(path, options)
  if options and options.recursive then return nil, "recursive watching is supported on Linux only" end
  local file = sys.open(path, sys.O_EVTONLY + sys.O_CLOEXEC)
  if file < 0 then return sys.fail("cannot watch '" .. path .. "'") end
  local change = ffi.new("struct fw_kevent[1]")
  change[0].ident, change[0].filter = file, sys.EVFILT_VNODE
  change[0].flags = sys.EV_ADD + sys.EV_CLEAR
  change[0].fflags = sys.NOTE_WRITE + sys.NOTE_DELETE + sys.NOTE_RENAME
  if C.kevent(self.fd, change, 1, nil, 0, nil) < 0 then
    C.close(file)
    return sys.fail("cannot watch '" .. path .. "'")
  end
  self:remove(path) -- the new watch replaces an earlier one
  self.paths[file] = path
  self.files[path] = file
  return true
end

function Watch:remove(path)
  local file = self.files[path]
  if not file then return end
  C.close(file)
  self.files[path], self.paths[file] = nil, nil
end

function Watch:read()
  local changes = {}
  local events, no_time = ffi.new("struct fw_kevent[64]"), ffi.new("struct fw_timespec")
  while true do
    local count = C.kevent(self.fd, nil, 0, events, 64, no_time)
    if count <= 0 then return changes end
    for i = 0, count - 1 do
      local path = self.paths[tonumber(events[i].ident)]
      local gone = band(events[i].fflags, sys.NOTE_DELETE + sys.NOTE_RENAME) ~= 0
      if path then changes[#changes + 1] = { kind = gone and "deleted" or "changed", path = path } end
    end
  end
end

function Watch:close()
  for file in pairs(self.paths) do C.close(file) end
  self.paths, self.files = {}, {}
  if self.fd >= 0 then C.close(self.fd) end
  self.fd = -1
end

local M = {}

function M.new()
  local fd = C.kqueue()
  if fd < 0 then return sys.fail("kqueue") end
  return setmetatable({ fd = fd, paths = {}, files = {} }, Watch)
end

return M
