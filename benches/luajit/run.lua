--- Measures the LuaJIT library and the channel, and compares the figures with the limits of the machine.
-- It takes several minutes. Run it on an idle machine. `luajit benches/luajit/run.lua --help` lists the options.
-- It needs cc, wrk, libmgba-dev, nginx, taskset, ss and two release builds: `cargo build --release -p framewire` and
-- `cargo build --release -p framewire-channel --example pingpong`.

local here = arg[0]:match("^(.*)/") or "."
local root = here .. "/../.."
package.path = root .. "/luajit/?.lua;" .. here .. "/?.lua;" .. package.path

local ffi = require "ffi"
local cli = require "framewire.options"
local json = require "framewire.json"
local measure = require "measure"
local time = require "framewire.time"
local worker = require "framewire.worker"

local options = cli.read(arg, {
  usage = "luajit benches/luajit/run.lua [options]",
  about = "Measures the channel, an emulator on a channel, and the HTTP server, compared with the machine's limits.",
  { "rounds", "N", "rounds; the results are their medians", kind = "integer", low = 1, high = 99, default = 5 },
  { "seconds", "N", "seconds of HTTP load in a round", kind = "integer", low = 1, high = 60, default = 3 },
  { "only", "PARTS", "only these parts, with commas between: channel, steps, http, files, api, idle", default = "" },
  { "json", "FILE", "also write the figures to this file" },
  { "retro", "PYTHON", "a Python with stable-retro, to measure its frames too" },
})

local SERVER, CLIENT = 1, 0 -- processor cores
local target = root .. "/target/release"
local rounds, seconds = options.rounds, options.seconds
local figures = {}

-- Prints a figure and, if `limit` names another figure, the ratio of the two. `wanted` is the ratio that should be
-- reached, or the value that should be reached, with its unit.
local function show(name, value, unit, limit, wanted)
  figures[name] = value
  local line = ("%-42s %12s %s"):format(name, ("%.4g"):format(value), unit)
  if limit then line = ("%s, %.3g of %s"):format(line, value / figures[limit], limit) end
  if wanted then line = line .. " (wanted: " .. wanted .. ")" end
  print(line)
  io.stdout:flush()
end

local function pingpong(partner)
  local file = measure.folder() .. "/pingpong.json"
  local command = ("luajit '%s/pingpong.lua' --rounds 3 --json '%s'"):format(here, file)
  if partner then command = command .. " --partner '" .. partner .. "'" end
  measure.output(command)
  return json.decode(assert(io.open(file)):read("*a"))
end

local parts = {}

function parts.channel()
  local rust = target .. "/examples/pingpong"
  local lists = { lua = {}, mixed = {}, rust = {} }
  for round = 1, rounds do
    lists.lua[round], lists.mixed[round] = pingpong(), pingpong(rust)
    lists.rust[round] = json.decode(measure.output(("'%s' --measure 1000000 3"):format(rust)))
  end
  local function million(pair, what)
    local all = {}
    for round, one in ipairs(lists[pair]) do all[round] = 1e3 / one[what] end
    return measure.median(all)
  end
  local line, copies = "cache line to and fro, C", "copies of 64 bytes, C"
  show(line, million("lua", "line_ns"), "million/s")
  show("round trips, LuaJIT and LuaJIT", million("lua", "round_trip_ns"), "million/s", line, "0.7")
  show("round trips, LuaJIT and Rust", million("mixed", "round_trip_ns"), "million/s", line, "0.7")
  show("round trips, Rust and Rust", million("rust", "round_trip_ns"), "million/s", line, "0.8")
  show(copies, million("lua", "copy_ns"), "million/s")
  show("one way, 64 bytes, LuaJIT and LuaJIT", million("lua", "message_ns"), "million/s", copies, "20 million/s")
  show("one way, 64 bytes, Rust and Rust", million("rust", "message_ns"), "million/s", copies)
end

function parts.steps()
  local rom, name, frames = root .. "/rom/framewire-demo.gba", "bench-" .. ffi.C.getpid(), 8000
  local bare = measure.build(root .. "/benches/bare.c", "-lmgba")
  local program = target .. "/framewire"
  local server = measure.start({
    program, "serve", "--channel", name, "--listen", "127.0.0.1:0", "--quiet", "--data", measure.folder() .. "/data",
  }, SERVER)
  local lists = { bare = {}, channel = {}, retro = {} }
  for round = 1, rounds do
    lists.bare[round] = tonumber(measure.output(("taskset -c %d '%s' '%s' 1"):format(SERVER, bare, rom)))
    lists.channel[round] = tonumber(measure.output(
      ("luajit '%s/steps.lua' %s %d %d"):format(here, name, frames, CLIENT)))
    if options.retro then
      lists.retro[round] = tonumber(measure.output(("taskset -c %d '%s' '%s/retro.py' '%s' %d")
        :format(SERVER, options.retro, here, rom, frames)):match("([%d.]+)%s*$"))
    end
  end
  server:stop()
  show("frames of bare libmgba, C", measure.median(lists.bare), "frames/s")
  if options.retro then show("step and screen, stable-retro", measure.median(lists.retro), "frames/s") end
  local ours = measure.median(lists.channel)
  show("step, 64 bytes and picture, LuaJIT", ours, "frames/s", "frames of bare libmgba, C", "0.95")
end

local function nginx_config(port)
  local work = measure.folder()
  local path = work .. "/nginx.conf"
  local file = assert(io.open(path, "w"))
  local text = ([[
worker_processes 1; daemon off; pid WORK/nginx.pid; error_log WORK/nginx.log;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path WORK; proxy_temp_path WORK; fastcgi_temp_path WORK; uwsgi_temp_path WORK; scgi_temp_path WORK;
  server {
    listen 127.0.0.1:PORT backlog=4096;
    location / { default_type text/plain; return 200 "hello, world\n"; }
    location /files/ { sendfile on; }
    root WORK;
  }
}
]]):gsub("WORK", work):gsub("PORT", tostring(port))
  file:write(text)
  file:close()
  return path
end

-- Puts load on a server with wrk. Returns requests per second, and the server's processor time per request in
-- microseconds.
local function load(server, port, pinned, arguments, path)
  local before = server:cpu()
  local text = measure.output(("%s wrk -t1 -c60 -d%ds %s http://127.0.0.1:%d%s"):format(
    pinned and "taskset -c " .. CLIENT or "", seconds, arguments or "", port, path or "/"))
  if text:find("Non-2xx", 1, true) or text:find("Socket errors", 1, true) then error(text, 0) end
  local requests = tonumber(text:match("(%d+) requests in"))
  return tonumber(text:match("Requests/sec:%s*([%d.]+)")), (server:cpu() - before) / requests * 1e6
end

local function start_http(arguments, port, core)
  local server = measure.start(arguments, core)
  measure.await_port(port)
  return server
end

local function hello(port, workers, core)
  return start_http({ "luajit", here .. "/hello.lua", tostring(port), tostring(workers) }, port, core)
end

function parts.http()
  local servers = {}
  local function add(name, start)
    local port = measure.free_port()
    servers[#servers + 1] = { name = name, port = port, server = start(port), rates = {}, times = {}, piped = {} }
  end
  local epoll = measure.build(here .. "/epoll.c")
  add("epoll server, C", function(port) return start_http({ epoll, tostring(port) }, port, SERVER) end)
  add("nginx", function(port)
    return start_http({ "nginx", "-c", nginx_config(port), "-p", measure.folder() }, port, SERVER)
  end)
  add("LuaJIT", function(port) return hello(port, 1, SERVER) end)
  local pipeline = "-s '" .. here .. "/pipeline.lua'"
  for round = 1, rounds do
    for _, one in ipairs(servers) do
      one.rates[round], one.times[round] = load(one.server, one.port, true)
      one.piped[round] = load(one.server, one.port, true, pipeline)
    end
  end
  for _, one in ipairs(servers) do one.server:stop() end
  local function all(what, list, unit, compare)
    for _, one in ipairs(servers) do
      local limit, wanted = unpack(compare[one.name] or {})
      show(what .. ", " .. one.name, measure.median(one[list]), unit, limit and what .. ", " .. limit, wanted)
    end
  end
  all("requests", "rates", "/s", { LuaJIT = { "epoll server, C", "0.97" } })
  all("time per request", "times", "us", { LuaJIT = { "nginx", "1 or less" } })
  all("16 pipelined", "piped", "/s", { LuaJIT = { "nginx", "5" } })
end

-- Requests a file of 1 KiB. Both servers open the file again for each request.
function parts.files()
  local folder = measure.folder() .. "/files"
  measure.output(("mkdir -p '%s' && head -c 1024 /dev/zero | tr '\\0' x > '%s/small.txt'"):format(folder, folder))
  local ports = { nginx = measure.free_port(), LuaJIT = measure.free_port() }
  local servers = {
    nginx = start_http({ "nginx", "-c", nginx_config(ports.nginx), "-p", measure.folder() }, ports.nginx, SERVER),
    LuaJIT = start_http({ "luajit", root .. "/luajit/serve.lua", "--port", tostring(ports.LuaJIT), "--root",
      measure.folder() }, ports.LuaJIT, SERVER),
  }
  local lists = { nginx = {}, LuaJIT = {} }
  for round = 1, rounds do
    for name, server in pairs(servers) do
      lists[name][round] = load(server, ports[name], true, nil, "/files/small.txt")
    end
  end
  for _, server in pairs(servers) do server:stop() end
  show("small file, nginx", measure.median(lists.nginx), "/s")
  show("small file, LuaJIT", measure.median(lists.LuaJIT), "/s", "small file, nginx", "1 or more")
end

function parts.api()
  local fixed, port = measure.free_port(), measure.free_port()
  local servers = { fixed = hello(fixed, 1, SERVER) }
  servers.api = start_http({ "luajit", here .. "/api.lua", tostring(port) }, port, SERVER)
  local items = "-s '" .. here .. "/items.lua'"
  local lists = { fixed = {}, item = {}, items = {}, echoes = {} }
  for round = 1, rounds do
    lists.fixed[round] = load(servers.fixed, fixed, true)
    lists.item[round] = load(servers.api, port, true, nil, "/items/42")
    lists.items[round] = load(servers.api, port, true, items)
    lists.echoes[round] = tonumber(measure.output(
      ("taskset -c %d luajit '%s/echoes.lua' %d 60 %d"):format(CLIENT, here, port, seconds)))
  end
  servers.fixed:stop()
  servers.api:stop()
  show("fixed reply, LuaJIT", measure.median(lists.fixed), "/s")
  show("path parameter and JSON, LuaJIT", measure.median(lists.item), "/s", "fixed reply, LuaJIT", "0.8")
  show("1,000 paths and JSON, LuaJIT", measure.median(lists.items), "/s", "fixed reply, LuaJIT")
  show("WebSocket echo, 60 clients, LuaJIT", measure.median(lists.echoes), "messages/s")
end

function parts.idle()
  local COUNT = 10000
  local port = measure.free_port()
  local server = hello(port, 2)
  local alone, held = {}, {}
  load(server, port)
  local busy = server:memory()
  for round = 1, rounds do alone[round] = load(server, port) end
  local pipe = assert(io.popen(("ulimit -n 20000; exec luajit '%s/hold.lua' %d %d")
    :format(here, port, COUNT), "w"))
  local deadline = time.monotonic() + 30
  while tonumber(measure.output("ss -Htn state established sport = :" .. port .. " | wc -l")) < COUNT do
    if time.monotonic() > deadline then error("the idle connections were not established within 30 seconds", 0) end
    time.sleep(0.2)
  end
  local full = server:memory()
  for round = 1, rounds do held[round] = load(server, port) end
  pipe:close()
  server:stop()
  show("2 workers", measure.median(alone), "/s")
  show("2 workers, 10,000 idle connections held", measure.median(held), "/s", "2 workers", "0.9")
  show("memory of an idle connection", (full - busy) / COUNT, "bytes")
end

local order = { "channel", "steps", "http", "files", "api", "idle" }

-- Returns the set of parts that --only names, or nil and an error.
local function wanted_parts(only)
  local wanted = {}
  if only == "" then
    for _, name in ipairs(order) do wanted[name] = true end
    return wanted
  end
  for word in (only .. ","):gmatch("%s*([^,]-)%s*,") do
    if not parts[word] then
      return nil, ("--only %s: %q is not a part; use some of %s"):format(only, word, table.concat(order, ","))
    end
    wanted[word] = true
  end
  return wanted
end

-- Returns which requirement this machine does not meet, or nil.
local function missing(wanted)
  for _, program in ipairs { "cc", "wrk", "nginx", "taskset", "ss" } do
    if not measure.has(program) then return "needs " .. program end
  end
  local needs_builds = wanted.channel or wanted.steps
  for _, file in ipairs { target .. "/framewire", target .. "/examples/pingpong" } do
    if needs_builds and not io.open(file) then
      return "needs " .. file .. "; the first lines of this file say how to build it"
    end
  end
  if worker.cores() < 2 then return "needs two processor cores" end
end

local function main()
  local wanted, problem = wanted_parts(options.only)
  problem = problem or missing(wanted)
  if problem then error(problem, 0) end
  for _, name in ipairs(order) do
    if wanted[name] then parts[name]() end
  end
  if options.json then measure.write(options.json, figures) end
end

local ok, message = pcall(main)
measure.clean()
if not ok then
  io.stderr:write("run.lua: ", tostring(message), "\n")
  os.exit(1)
end
