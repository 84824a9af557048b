--- Measures a WebSocket server that echoes. Each of COUNT connections sends 64 bytes, waits for the echo, and sends
-- again. `luajit echoes.lua PORT COUNT SECONDS` prints messages per second.

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/../../luajit/?.lua;" .. package.path

local loops = require "framewire.loop"
local time = require "framewire.time"
local websocket = require "framewire.websocket"

local port, count, seconds = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3])
if not seconds then
  io.stderr:write("usage: luajit echoes.lua PORT COUNT SECONDS\n")
  os.exit(2)
end

local loop = assert(loops.new())
local text = ("0123456789abcdef"):rep(4)
local messages = 0
for _ = 1, count do
  local ws = assert(websocket.connect(("ws://127.0.0.1:%d/echo"):format(port), {
    loop = loop,
    on_message = function(ws, data)
      if data ~= text then error("the echo differs from the message") end
      messages = messages + 1
      ws:send(text)
    end,
    on_close = function(_, code) error("closed with " .. code) end,
  }))
  ws:send(text)
end
local started, before
-- Messages in the first half second are not counted.
loop:after(0.5, function()
  started, before = time.monotonic(), messages
  loop:after(seconds, function() loop:stop() end)
end)
assert(loop:run())
print(("%.1f"):format((messages - before) / (time.monotonic() - started)))
os.exit(0)
