--- A server for the benchmarks that answers every request with the same short text: `luajit hello.lua PORT WORKERS`

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/../../luajit/?.lua;" .. package.path

assert(require("framewire.http").serve {
  port = tonumber(arg[1]),
  workers = tonumber(arg[2]),
  limits = { idle_timeout = 600 },
  handler = function(_, response) response:text(200, "hello, world\n") end,
})
