--- Watches files with inotify, on Linux.

local bit = require "bit"
local ffi = require "ffi"
local files = require "framewire.files"
local sys = require "framewire.sys"

local C, band = ffi.C, bit.band

-- Room for many events, each with a name of up to 255 bytes.
local SIZE = 65536
local HEAD = ffi.sizeof("struct fw_inotify_event")

local MASK = sys.IN_CREATE + sys.IN_DELETE + sys.IN_MOVED_FROM + sys.IN_MOVED_TO + sys.IN_CLOSE_WRITE
  + sys.IN_DELETE_SELF + sys.IN_MOVE_SELF

-- The mask for folders inside of a watched folder. The outer folder reports when they are deleted or moved.
local INNER = MASK - sys.IN_DELETE_SELF - sys.IN_MOVE_SELF + sys.IN_ONLYDIR + sys.IN_DONT_FOLLOW

local kinds = {
  { sys.IN_CREATE + sys.IN_MOVED_TO, "created" },
  { sys.IN_DELETE + sys.IN_MOVED_FROM + sys.IN_DELETE_SELF + sys.IN_MOVE_SELF, "deleted" },
  { sys.IN_CLOSE_WRITE, "changed" },
}

local Watch = {}
Watch.__index = Watch

local function watch_one(self, path, mask)
  local number = C.inotify_add_watch(self.fd, path, mask)
  if number < 0 then
    local _, message, code = sys.fail("cannot watch '" .. path .. "'")
    -- The system's message, "No space left on device", would be misleading here.
    if code == sys.ENOSPC then message = "cannot watch '" .. path .. "': raise fs.inotify.max_user_watches" end
    return nil, message, code
  end
  self.paths[number] = path
  self.numbers[path] = number
  return true
end

-- Stops watching a path, if it is watched.
local function forget(self, path)
  local number = self.numbers[path]
  if not number then return end
  -- If the file is watched with another path by now, its watch continues with that path. For example, a folder was
  -- moved into a new folder, which was watched before this path was forgotten.
  if self.paths[number] == path then
    C.inotify_rm_watch(self.fd, number)
    self.paths[number] = nil
  end
  self.numbers[path], self.is_deep[path] = nil, nil
end

local function is_inside(path, folder)
  return path:sub(1, #folder + 1) == folder .. "/"
end

-- Stops watching a folder and everything in it.
local function forget_tree(self, folder)
  local gone = {}
  for path in pairs(self.is_deep) do
    if path == folder or is_inside(path, folder) then gone[#gone + 1] = path end
  end
  for _, path in ipairs(gone) do forget(self, path) end
  self.roots[folder] = nil
  for _, set in ipairs { self.listed, self.roots } do
    for path in pairs(set) do
      if is_inside(path, folder) then set[path] = nil end
    end
  end
end

-- Stops watching a path that was moved or deleted, and everything in it, because these paths are wrong now. For each
-- path in it that the program has added, adds a deletion to `changes`.
local function forget_gone(self, gone, changes)
  local added = {}
  for path in pairs(self.numbers) do
    if is_inside(path, gone) and (self.roots[path] or not self.is_deep[path]) then added[#added + 1] = path end
  end
  table.sort(added)
  forget_tree(self, gone)
  forget(self, gone)
  for _, path in ipairs(added) do
    forget(self, path)
    changes[#changes + 1] = { kind = "deleted", path = path }
  end
end

-- Whether a watched path still leads to the file that is watched under this number.
local function is_same(self, path, number)
  -- For a file that is watched already, the system returns the number of its watch. With IN_MASK_ADD, it keeps the
  -- watch's mask, which has IN_CREATE anyway.
  local now = C.inotify_add_watch(self.fd, path, sys.IN_CREATE + sys.IN_MASK_ADD)
  if now >= 0 and not self.paths[now] then C.inotify_rm_watch(self.fd, now) end
  return now == number
end

-- Handles the move of a path that the program has added. The system would continue to watch the file at its new place.
local function end_moved(self, number, gone, changes)
  if self.numbers[gone] == number then
    forget_gone(self, gone, changes)
    return
  end
  -- The program has added the path again, and `watch_one` has replaced its number.
  C.inotify_rm_watch(self.fd, number)
  self.paths[number] = nil
  -- What was in the old folder has moved with it.
  local moved = {}
  for path, inner in pairs(self.numbers) do
    if is_inside(path, gone) and not is_same(self, path, inner) then moved[#moved + 1] = path end
  end
  table.sort(moved)
  for _, path in ipairs(moved) do
    local is_added = self.roots[path] or not self.is_deep[path]
    forget(self, path)
    self.roots[path] = nil
    if is_added then changes[#changes + 1] = { kind = "deleted", path = path } end
  end
end

-- Watches a folder and all folders in it. With `changes`, adds everything in the folder to `changes` as created: it may
-- have been created before the folder was watched.
local function watch_tree(self, folder, mask, changes)
  local ok, message, code = watch_one(self, folder, mask)
  if not ok then return nil, message, code end
  self.is_deep[folder] = true
  for _, entry in ipairs(files.list(folder) or {}) do
    local path = folder .. "/" .. entry.name
    if changes then
      self.listed[path] = true
      changes[#changes + 1] = { kind = "created", path = path }
    end
    if entry.kind == "directory" then
      ok, message, code = watch_tree(self, path, INNER, changes)
      -- If the inner folder was deleted meanwhile, the outer folder reports that.
      if not ok and code ~= sys.ENOENT and code ~= sys.ENOTDIR then
        if not changes then return nil, message, code end
        changes[#changes + 1] = { kind = "unwatched", path = path, message = message }
      end
    end
  end
  return true
end

-- The path that is stored: it has no slashes at its end.
local function stored(path)
  if path == "" then return path end -- the system refuses it
  path = path:match("^(.-)/*$")
  return path == "" and "/." or path -- the root folder
end

--- Watches a file, or a folder and its entries.
---@param path string
---@param options? table `recursive`: also watch all folders in the folder, and those that are created later
---@return true|nil ok
---@return string? message
function Watch:add(path, options)
  local mask = path:sub(-1) == "/" and MASK + sys.IN_ONLYDIR or MASK
  path = stored(path)
  if not (options and options.recursive) then return watch_one(self, path, mask) end
  local ok, message, code = watch_tree(self, path, MASK + sys.IN_ONLYDIR)
  if not ok then
    if path ~= "" then forget_tree(self, path) end
    return nil, message, code
  end
  self.roots[path] = true
  return true
end

-- Whether the path is anywhere inside of a folder that was added with `recursive`. If so, its parent folder is in
-- `is_deep`.
local function has_outer(self, path)
  return self.is_deep[path:match("^(.*)/")] ~= nil
end

--- Stops watching a path. If it was added with `recursive`, stops watching everything in it. If the path is a folder
-- inside of one that was added with `recursive`, it stays watched as part of the outer folder.
---@param path string
function Watch:remove(path)
  path = stored(path)
  if self.roots[path] then
    self.roots[path] = nil
    -- A link to a folder is not part of the outer folder, and `watch_one` with INNER fails for it.
    if not (has_outer(self, path) and watch_one(self, path, INNER)) then forget_tree(self, path) end
  elseif self.is_deep[path] then
    -- If the folder was also added on its own, this undoes it: only the outer folder reports its deletion or move.
    watch_one(self, path, INNER)
  else
    -- If the file is also watched with another path, its watch continues with that path.
    local number = self.numbers[path]
    for other, same in pairs(self.numbers) do
      if same == number and other ~= path then self.paths[number] = other end
    end
    forget(self, path)
  end
end

-- Handles a change in a folder that was added with `recursive`: adds it to `changes`, and watches new folders.
local function follow(self, event, kind, path, changes)
  local is_folder = band(event.mask, sys.IN_ISDIR) ~= 0
  if kind == "deleted" then
    self.listed[path] = nil
  elseif band(event.mask, sys.IN_CREATE) ~= 0 and self.listed[path] then
    -- `watch_tree` has already reported this entry.
    self.listed[path] = nil
    return
  end
  changes[#changes + 1] = { kind = kind, path = path }
  if not is_folder then return end
  if kind == "deleted" then forget_gone(self, path, changes) end
  if kind ~= "created" then return end
  local ok, message, code = watch_tree(self, path, INNER, changes)
  if not ok and code ~= sys.ENOENT and code ~= sys.ENOTDIR then
    changes[#changes + 1] = { kind = "unwatched", path = path, message = message }
  end
end

-- Called after events were lost. Watches folders that were created meanwhile.
local function repair(self)
  for path in pairs(self.roots) do watch_tree(self, path, MASK + sys.IN_ONLYDIR) end
end

local function kind_of(mask)
  for _, pair in ipairs(kinds) do
    if band(mask, pair[1]) ~= 0 then return pair[2] end
  end
  return nil
end

--- Returns the changes since the last call. A change of the kind "overflow" means that changes were lost, and has no
-- path. One of the kind "unwatched" also has a `message`.
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
      local is_moved = folder and band(event.mask, sys.IN_MOVE_SELF) ~= 0
      -- If the file has been moved to the path with which it is watched now, its watch continues.
      if is_moved and is_same(self, folder, event.wd) then folder, is_moved = nil, false end
      if band(event.mask, sys.IN_Q_OVERFLOW) ~= 0 then
        changes[#changes + 1] = { kind = "overflow" }
        repair(self)
      elseif folder and kind then
        local path = folder
        if event.len > 0 then path = folder .. "/" .. ffi.string(self.buffer + place + HEAD) end
        if self.is_deep[folder] and event.len > 0 then
          follow(self, event, kind, path, changes)
        else
          changes[#changes + 1] = { kind = kind, path = path }
        end
      end
      if is_moved then end_moved(self, event.wd, folder, changes) end
      -- The system has removed the watch, because the path no longer exists.
      if folder and band(event.mask, sys.IN_IGNORED) ~= 0 then
        self.paths[event.wd] = nil
        -- The same path may be watched again by now.
        if self.numbers[folder] == event.wd then
          self.numbers[folder], self.is_deep[folder], self.roots[folder] = nil, nil, nil
        end
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
  return setmetatable({
    fd = fd,
    --- Paths by inotify's watch numbers, and the numbers by path.
    paths = {},
    numbers = {},
    --- Paths that were added with `recursive`; all folders that are watched for them; and entries that `watch_tree` has
    --- already reported as created.
    roots = {},
    is_deep = {},
    listed = {},
    buffer = ffi.new("uint8_t[?]", SIZE),
  }, Watch)
end

return M
