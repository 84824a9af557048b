--- Runs servers and programs during a test.

local ffi = require "ffi"
local check = require "tests.support.check"
local files = require "framewire.files"
local http = require "framewire.http"
local loops = require "framewire.loop"
local shm = require "framewire.shm"
local socket = require "framewire.socket"
local time = require "framewire.time"
local worker = require "framewire.worker"

local M = {}

--- Runs a function, `body`, while `main` runs in another process. Passes the other process to `body`. Afterwards, that
-- process must end without an error: after TERM or, with `ends`, by itself.
---@param main function
---@param body function
---@param ends? boolean whether `main` ends by itself, or after a signal from `body`; another TERM could arrive when
--- the process no longer handles signals
function M.run_with(main, body, ends)
  local process = assert(worker.start(main))
  local ok, message = xpcall(body, debug.traceback, process)
  if not ends then process:signal("TERM") end
  local code, reason = process:wait(8)
  if reason == "timeout" then
    process:signal("KILL")
    process:wait()
  end
  if not ok then error(message, 0) end
  check.equal(reason or code, 0, "end of the process that ran during the test")
end

-- `free_port` uses the ports from 20000 to 31999. For connections and for listeners on port 0, the system chooses only
-- other ports. So it never takes a port of `free_port` before the test uses it. Processes begin at different ports.
local PORTS = 12000
local last_port = ffi.C.getpid() * 97 % PORTS

--- Returns a port that was free a moment ago.
function M.free_port()
  for _ = 1, PORTS do
    last_port = (last_port + 1) % PORTS
    local port = 20000 + last_port
    local listener = socket.listen { port = port }
    if listener then
      listener:close()
      return port
    end
  end
  error("there is no free port")
end

--- Waits until a server on this machine accepts connections.
---@param port integer
function M.wait_for_port(port)
  check.eventually(5, function()
    local client = socket.connect("127.0.0.1", port, 1)
    if client then client:close() end
    return client
  end, "something listens on port " .. port)
end

--- Creates two connected TCP sockets: the one that connected, and the one that was accepted.
---@return table one
---@return table other
function M.pair()
  local listener = assert(socket.listen())
  local one = assert(socket.connect("127.0.0.1", select(2, listener:name()), 1))
  local other = assert(listener:accept(1))
  listener:close()
  return one, other
end

--- Creates memory that this process shares with the processes that it starts. It exists until they have all ended.
---@return ffi.cdata* words volatile uint32_t *: sixteen words, which are 0 at first
function M.shared_words()
  local name = "framewire-test-words-" .. ffi.C.getpid()
  shm.remove(name)
  local block = assert(shm.create(name, 64))
  shm.remove(name)
  return ffi.cast("volatile uint32_t *", block.data)
end

--- Runs a function while a server runs.
---@param options table as for `http.serve`; this function sets the port
---@param body fun(port: integer)
function M.with_server(options, body)
  local port = M.free_port()
  options.port = port
  M.run_with(function() assert(http.serve(options)) end, function()
    M.wait_for_port(port)
    body(port)
  end)
end

--- Runs a function as a task of a new loop. Fails if the function fails, or does not end within 20 seconds.
---@param body fun(loop: table)
function M.in_task(body)
  local loop = assert(loops.new { log = function() end })
  local ok, message = false, "the test takes too long"
  loop:spawn(function()
    ok, message = xpcall(body, debug.traceback, loop)
    loop:stop()
  end)
  loop:after(20, function() loop:stop() end)
  assert(loop:run())
  loop:close()
  if not ok then error(message, 0) end
end

--- Starts a server on a loop of this process.
---@param loop table
---@param handler function
---@return integer port
---@return table server
function M.serve_on(loop, handler)
  local listener = assert(socket.listen())
  local server = assert(http.new(loop, listener, { handler = handler, log = function() end }))
  return select(2, listener:name()), server
end

--- Reads from a socket until the other side closes it or sends nothing for a second. Reads slowly at first: 600 KB a
--- second.
---@param loop table the loop of the running task
---@param connected table socket
---@param seconds number how long it reads slowly
---@return integer bytes
function M.read_slowly(loop, connected, seconds)
  local fast_from, bytes = time.monotonic() + seconds, 0
  while true do
    local data = connected:read(30000, 1)
    if not data then return bytes end
    bytes = bytes + #data
    if time.monotonic() < fast_from then loop:sleep(0.05) end
  end
end

--- How many descriptors this process has open.
function M.descriptors()
  return #assert(files.list("/proc/self/fd"))
end

--- Starts a program through the shell, as a user would.
---@param command string
---@return table program with `line()`, which reads a line of the output; `signal(name)`; and `finish()`, which returns
--- the exit code and the rest of the output
function M.start(command)
  -- The inner shell prints its process id and is then replaced by the program, which keeps the id. The outer shell
  -- prints the program's exit code afterwards.
  local pipe = assert(io.popen("sh -c 'echo $$; exec " .. command .. "' 2>&1; echo \"exit $?\"", "r"))
  local pid = tonumber(pipe:read("*l"))
  local program = {}
  function program.line() return pipe:read("*l") end
  function program.signal(name) return require("framewire.signal").send(pid, name) end
  function program.finish()
    local rest = pipe:read("*a")
    pipe:close()
    return tonumber(rest:match("exit (%d+)%s*$")), (rest:gsub("exit %d+%s*$", ""))
  end
  return program
end

--- Runs a shell command, and returns its output.
function M.output(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read("*a")
  pipe:close()
  return output
end

--- Creates a folder for the files of a test.
---@return string path
function M.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir '" .. path .. "'") == 0)
  return path
end

function M.remove_folder(path)
  os.execute("rm -rf '" .. path .. "'")
end

--- Writes a file.
function M.write(path, data)
  local file = assert(io.open(path, "wb"))
  file:write(data)
  file:close()
end

--- Runs a function, and returns the seconds that it takes.
function M.timed(body)
  local started = time.monotonic()
  body()
  return time.monotonic() - started
end

return M
