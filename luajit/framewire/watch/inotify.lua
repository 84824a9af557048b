--- Linux inotify.

local bit = require "bit"
local ffi = require "ffi"
local sys = require "framewire.sys"

local C, band = ffi.C, bit.band

-- Room for many events, each with a name of up to 255 bytes.
local SIZE = 65536
local HEAD = ffi.sizeof("struct fw_inotify_event")

local MASK = sys.IN_CREATE + sys.IN_DELETE + sys.IN_MOVED_FROM + sys.IN_MOVED_TO + sys.IN_CLOSE_WRITE
  + sys.IN_DELETE_SELF + sys.IN_MOVE_SELF

local kinds = {
  { sys.IN_CREATE + sys.IN_MOVED_TO, "created" },
  { sys.IN_DELETE + sys.IN_MOVED_FROM + sys.IN_DELETE_SELF + sys.IN_MOVE_SELF, "deleted" },
  { sys.IN_CLOSE_WRITE + sys.IN_MODIFY, "changed" },
}

local Watch = {}
Watch.__index = Watch

--- Watches a file, or a folder and what is directly in it.
---@param path string
---@return true|nil ok
---@return string? message
function Watch:add(path)
  local number = C.inotify_add_watch(self.fd, path, MASK)
  if number < 0 then return sys.fail("cannot watch '" .. path .. "'") end
  self.paths[number] = path
  self.numbers[path] = number
  return true
end

--- Stops watching a path.
---@param path string
function Watch:remove(path)
  local number = self.numbers[path]
  if not number then return end
  C.inotify_rm_watch(self.fd, number)
  self.numbers[path], self.paths[number] = nil, nil
end

local function kind_of(mask)
  for _, pair in ipairs(kinds) do
    if band(mask, pair[1]) ~= 0 then return pair[2] end
  end
  return nil
end

--- What has changed since the last call.
---@return table[] changes each with `kind` and `path`
function Watch:read()
  local changes = {}
  while true do
    local got = tonumber(C.read(self.fd, self.buffer, SIZE))
    if got <= 0 then return changes end
    local place = 0
    while place < got do
      local event = ffi.cast("struct fw_inotify_event *", self.buffer + place)
      local folder, kind = self.paths[event.wd], kind_of(event.mask)
      if band(event.mask, sys.IN_Q_OVERFLOW) ~= 0 then
        changes[#changes + 1] = { kind = "overflow" }
      elseif folder and kind then
        local path = folder
        if event.len > 0 then path = folder .. "/" .. ffi.string(self.buffer + place + HEAD) end
        changes[#changes + 1] = { kind = kind, path = path }
      end
      -- The system has removed the watch, because the path no longer exists.
      if folder and band(event.mask, sys.IN_IGNORED) ~= 0 then
        self.paths[event.wd], self.numbers[folder] = nil, nil
      end
      place = place + HEAD + event.len
    end
  end
end

--- Stops watching everything.
function Watch:close()
  if self.fd >= 0 then C.close(self.fd) end
  self.fd = -1
end

local M = {}

function M.new()
  local fd = C.inotify_init1(sys.IN_NONBLOCK + sys.IN_CLOEXEC)
  if fd < 0 then return sys.fail("inotify_init1") end
  return setmetatable({ fd = fd, paths = {}, numbers = {}, buffer = ffi.new("uint8_t[?]", SIZE) }, Watch)
end

return M
