--- Opens COUNT connections to a local HTTP server: `luajit hold.lua PORT COUNT`. On each connection, sends one request
-- and reads the reply. Then keeps the idle connections open until the end of the standard input.

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/../../luajit/?.lua;" .. package.path

local socket = require "framewire.socket"

local port, count = tonumber(arg[1]), tonumber(arg[2])
local held = {} -- luacheck: ignore (this table keeps the connections from being collected as garbage)
for number = 1, count do
  local client = assert(socket.connect("127.0.0.1", port, 5))
  assert(client:write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 5))
  assert(client:read(4096, 5))
  held[number] = client
end
io.read("*a")
