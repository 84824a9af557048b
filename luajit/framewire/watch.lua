--- Watches files and folders, and reports their changes through a descriptor.
--
--   local changes = assert(watch.new())
--   assert(changes:add("scripts"))
--   loop:watch(changes.fd, loop.READ, function()
--     for _, change in ipairs(changes:read()) do print(change.kind, change.path) end
--   end)
--
-- The kinds of changes are "created", "changed" and "deleted". A file that is moved into or out of a folder is reported
-- as created or deleted. "changed" is reported when a program closes a file that it has written. "overflow" means that
-- some changes were lost: check the files yourself. On macOS and FreeBSD, "changed" is reported after each write, and
-- "created" is never reported. There, a folder reports "changed" with its own path, and the program must find out what
-- has changed in it.
--
-- `changes:add(path, { recursive = true })` also watches all folders in a folder, and those that are created later
-- (Linux only). Everything in a new folder is reported as created. If a file in it is already complete, it is possible
-- that no "changed" follows. "unwatched" means that a folder cannot be watched; the field `message` has the reason.
--
-- On Linux, if a path that was added is deleted or moved away, "deleted" is reported, and its watch ends. The watches
-- of paths in it end, too. To watch what is at the path later, add the path again. The move of a folder that is not
-- watched is not noticed: changes of paths in it are reported with the old paths.
--
-- On Linux, if a file or folder is added with two paths, such as "a" and "./a" or two hard links, its changes have the
-- path that was added last.

local sys = require "framewire.sys"

local M = {}

--- Creates a watch without any files.
---@return table|nil watch with `fd`, `add(path, options)`, `remove(path)`, `read()` (a list of { kind, path }) and
--- `close()`
---@return string? message
function M.new()
  if not sys.watch_module then return nil, "watching files is not supported on " .. sys.name end
  return require(sys.watch_module).new()
end

return M
