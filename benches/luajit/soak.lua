--- Runs serve.lua under load for a long time. Its memory must not grow, and each signal must stop it cleanly.
-- `luajit benches/luajit/soak.lua [MINUTES]`: the load takes this many minutes, 10 by default. It needs wrk.

local root = (arg[0]:match("^(.*)/") or ".") .. "/../.."
package.path = root .. "/luajit/?.lua;" .. root .. "/benches/luajit/?.lua;" .. package.path

local measure = require "measure"
local socket = require "framewire.socket"
local time = require "framewire.time"

local minutes = tonumber(arg[1] or 10)
-- After the first tenth of the time, the memory may grow by at most this share plus 1 MB. Normal garbage collection
-- stays below this limit, but a leak does not.
local GROWTH = 0.1

local function start(workers)
  local port = measure.free_port()
  local program = root .. "/luajit/serve.lua"
  local server = measure.start {
    "luajit", program, "--port", tostring(port), "--root", root .. "/docs", "--workers", tostring(workers),
  }
  measure.await_port(port)
  return server, port
end

-- Sends three kinds of requests, one kind after the other: requests for a static file, requests for an echo, and
-- requests that each use a new connection.
local function load(port, seconds)
  local url = "http://127.0.0.1:" .. port
  local third = math.max(1, math.floor(seconds / 3))
  local kinds = { url .. "/luajit.md", url .. "/echo?message=soak", "-H 'Connection: close' " .. url .. "/" }
  for _, arguments in ipairs(kinds) do
    local text = measure.output(("wrk -t1 -c60 -d%ds %s"):format(third, arguments))
    if text:find("Socket errors: connect [1-9]") then error(text, 0) end
  end
end

local function soak()
  local server, port = start(2)
  local step = math.max(6, minutes * 60 / 10)
  local first
  for number = 1, 10 do
    load(port, step)
    local memory = server:memory()
    first = first or memory
    print(("%3d%%: %.1f MB"):format(number * 10, memory / 1e6))
    io.stdout:flush()
    if memory > first * (1 + GROWTH) + 1e6 then error("the memory of serve.lua grows", 0) end
  end
  server:stop()
end

-- Sends each signal while the server is under load. The server must end with code 0 within 12 seconds, and then its
-- port must be closed.
local function signals()
  for _, name in ipairs { "INT", "TERM", "HUP" } do
    for _, workers in ipairs { 1, 2 } do
      local server, port = start(workers)
      local busy = assert(io.popen(("wrk -t1 -c30 -d4s http://127.0.0.1:%d/luajit.md"):format(port)))
      time.sleep(1)
      server.worker:signal(name)
      local code, problem = server.worker:wait(12)
      server.running = problem == "timeout" -- then `measure.clean` kills it
      busy:read("*a")
      busy:close()
      if code ~= 0 then error(("%s with %d worker(s): ended with %s"):format(name, workers, problem or code), 0) end
      if socket.connect("127.0.0.1", port, 1) then error(name .. ": the port is still open", 0) end
      print(("%s, %d worker(s): stopped cleanly"):format(name, workers))
    end
  end
end

local ok, message = pcall(function()
  soak()
  signals()
end)
measure.clean()
if not ok then
  io.stderr:write("soak.lua: ", tostring(message), "\n")
  os.exit(1)
end
