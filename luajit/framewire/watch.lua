--- Changes of files and folders, as a descriptor to wait on.
--
--   local changes = assert(watch.new())
--   assert(changes:add("scripts"))
--   loop:watch(changes.fd, loop.READ, function()
--     for _, change in ipairs(changes:read()) do print(change.kind, change.path) end
--   end)
--
-- Kinds: "created", "changed", "deleted"; a file that is moved in or out is created or deleted. "changed" comes when a
-- writer closes the file. "overflow" says that some changes were lost: check the files yourself. On macOS and BSD
-- a folder reports "changed" with its own path, and the caller must find what changed in it.
--
-- `changes:add(path, { recursive = true })` watches all folders in a folder too, also those that come later (Linux
-- only). What is in a new folder is reported as created; it may be complete already. "unwatched" names a folder that
-- cannot be watched, with a message.

local sys = require "framewire.sys"

local M = {}

--- Begins without any watched files.
---@return table|nil watch with `fd`, `add(path, options)`, `remove(path)`, `read()` (a list of { kind, path }) and
--- `close()`
---@return string? message
function M.new()
  if not sys.watch_module then return nil, "watching files is not supported on " .. sys.name end
  return require(sys.watch_module).new()
end

return M
