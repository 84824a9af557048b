--- Folders, and facts about files. Linux, macOS, FreeBSD and Windows.
--
--   for _, entry in ipairs(assert(files.list("."))) do print(entry.kind, entry.name) end
--   print(assert(files.facts("README.md")).size)
--
-- Kinds: "file", "directory", "link" (a symbolic link), "socket" (only on Linux) and "other".

local sys = require "framewire.sys"

local M = {}

local function check_path(path)
  if type(path) ~= "string" then error("a path is a string, not a " .. type(path), 3) end
end

--- Facts about a file.
---@param path string
---@param options? table `follow = false`: if the path is a symbolic link, facts about the link, not about its target;
--- on Windows, the facts are always about the link
---@return table|nil facts `kind`, `size` in bytes, `modified` in seconds since 1970; and, except on Windows, `inode`,
--- `owner` (a user id) and `mode` (permission bits)
---@return string? message
---@return integer? number ENOENT if there is no such file
function M.facts(path, options)
  check_path(path)
  local size, modified, kind, inode, owner, mode = sys.facts(path, not options or options.follow ~= false)
  if not size then return sys.fail("cannot read the facts of '" .. path .. "'") end
  return { kind = kind, size = size, modified = modified, inode = inode, owner = owner, mode = mode }
end

--- Whether there is a file, a folder or anything else at a path. True for a symbolic link without a target.
---@param path string
---@return boolean
function M.exists(path)
  check_path(path)
  return sys.facts(path, false) ~= nil
end

--- The entries of a folder, sorted by name, without "." and "..".
---@param path string
---@return table[]|nil entries each with `name` and `kind`
---@return string? message
---@return integer? number
function M.list(path)
  check_path(path)
  local entries = {}
  local ok = sys.list(path, function(name, kind)
    if name == "." or name == ".." then return end
    if not kind then
      -- Some file systems do not report the kind when a folder is listed.
      local _
      _, _, kind = sys.facts(path .. "/" .. name, false)
    end
    entries[#entries + 1] = { name = name, kind = kind or "other" }
  end)
  if not ok then return sys.fail("cannot list '" .. path .. "'") end
  table.sort(entries, function(a, b) return a.name < b.name end)
  return entries
end

--- The user's home folder.
---@return string|nil path
function M.home()
  return os.getenv("HOME") or os.getenv("USERPROFILE")
end

--- The current working directory.
---@return string|nil path
---@return string? message
function M.here()
  local path = sys.here()
  if not path then return sys.fail("cannot find the current folder") end
  return path
end

return M
