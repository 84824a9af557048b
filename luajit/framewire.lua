--- Framewire for LuaJIT: TCP, HTTP, threads, processes and shared memory, in pure Lua (without C modules).
--
-- `require "framewire.socket"` loads one module and the modules that it needs. The table that this file returns has all
-- modules as fields and loads each when it is first used: `require("framewire").socket`. docs/luajit.md describes the
-- modules.

local known = {}
for _, name in ipairs {
  "socket", "http", "loop", "poller", "timer", "signal", "thread", "worker", "watch", "shm", "time", "num", "buffer",
  "sys", "options", "textlink", "channel", "emulator", "json", "utf8", "stream", "task",
  "resolve", "files", "terminal", "show", "websocket", "udp", "unix", "tls",
} do known[name] = true end

return setmetatable({}, {
  __index = function(modules, name)
    if not known[name] then return nil end
    local module = require("framewire." .. name)
    modules[name] = module
    return module
  end,
})
