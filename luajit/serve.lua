--- A web server for a folder. For tests, it also echoes messages at /echo. `luajit serve.lua --help` lists the options.

local here = arg[0]:match("^(.*)[/\\]") or "."
package.path = here .. "/?.lua;" .. package.path

local cli = require "framewire.options"
local http = require "framewire.http"
local poller = require "framewire.poller"

local options = cli.read(arg, {
  usage = "luajit serve.lua [options]",
  about = "Serves the files of a folder. GET /echo?message=TEXT and POST /echo send the message back.",
  { "port", "N", "port to listen on; 0 for any free one", kind = "integer", default = 8080 },
  { "host", "ADDRESS", "address to listen on; 0.0.0.0 for other machines", default = "127.0.0.1" },
  { "root", "DIR", "folder to serve", default = "." },
  { "allow-host", "NAME", "a name of this machine that clients may use, in addition to localhost and IP addresses" },
  { "workers", "N", "processes that share the port", kind = "integer", low = 1, high = 256, default = 1 },
  { "poller", "NAME", "how to wait for sockets: " .. table.concat(poller.names, ", ") },
})

local function fail(message)
  io.stderr:write(message, "\n")
  os.exit(1)
end

local files, message = http.static(options.root)
if not files then fail(message) end

local handler = http.routes({
  ["GET /echo"] = function(request, response)
    local text = request:param("message")
    if not text then return response:text(400, "say what to echo: /echo?message=TEXT\n") end
    response:text(200, text)
  end,
  ["POST /echo"] = function(request, response)
    response:send(200, request.body, request.headers["content-type"])
  end,
}, files)

local ok
ok, message = http.serve {
  port = options.port,
  host = options.host,
  workers = options.workers,
  poller = options.poller,
  handler = http.guard(handler, { hosts = { options["allow-host"] } }),
  on_listen = function(url)
    print("listening on " .. url)
    io.stdout:flush()
  end,
}
if not ok then fail(message) end
