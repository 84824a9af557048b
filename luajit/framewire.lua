--- Framewire for LuaJIT: TCP, HTTP, threads, processes and shared memory, in Lua only.
--
-- `require "framewire.socket"` loads one module and the modules that it needs. The table that this file returns has all
-- modules as fields and loads each when it is first used: `require("framewire").socket`.
--
--   socket   TCP over IPv4 and IPv6           http     HTTP/1.1 server and client, routes, static files
--   loop     event loop, timers, signals      poller   epoll, kqueue, poll, WSAPoll
--   timer    a heap of timers                 signal   signals through a descriptor
--   thread   threads, each with its own Lua   worker   processes, monitored and stopped together
--   watch    changes of files and folders     shm      shared memory, and waiting on it
--   time     clocks and dates                 num      digits, 32-bit numbers, rounding
--   buffer   byte buffers that grow           sys      C declarations of the running system
--   options  command lines                    textlink a connection to a script in mGBA
--   channel  messages through shared memory    emulator a core served by `framewire serve --channel`
--   json     JSON                              utf8     checks UTF-8
--   resolve  names and addresses of hosts      files    folders, and facts about files
--   terminal keys and raw mode                 show     values as text
--   websocket WebSocket servers and clients    udp      UDP
--   unix     unix sockets                      tls      TLS, if OpenSSL is installed
--   stream   buffered streams on a loop        task     coroutines on a loop

local names = {
  "socket", "http", "loop", "poller", "timer", "signal", "thread", "worker", "watch", "shm", "time", "num", "buffer",
  "sys", "options", "textlink", "channel", "emulator", "json", "utf8", "stream", "task",
  "resolve", "files", "terminal", "show", "websocket", "udp", "unix", "tls",
}

local known = {}
for _, name in ipairs(names) do known[name] = true end

return setmetatable({}, {
  __index = function(modules, name)
    if not known[name] then return nil end
    local module = require("framewire." .. name)
    modules[name] = module
    return module
  end,
})
