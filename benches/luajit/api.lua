--- A server for the benchmarks: `/` answers with a short text, `/items/ID` answers with JSON, and `/echo` is a
-- WebSocket that echoes. `luajit api.lua PORT`

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/../../luajit/?.lua;" .. package.path

local http = require "framewire.http"
local websocket = require "framewire.websocket"

assert(http.serve {
  port = tonumber(arg[1]),
  limits = { idle_timeout = 600 },
  handler = http.routes {
    ["GET /"] = function(_, response) response:text(200, "hello, world\n") end,
    ["GET /items/:id"] = function(request, response)
      response:json(200, { id = request.params.id, name = "a lamp", price = 12.5 })
    end,
    ["GET /echo"] = function(request, response)
      websocket.accept(request, response, { on_message = function(ws, data, is_text) ws:send(data, is_text) end })
    end,
  },
})
