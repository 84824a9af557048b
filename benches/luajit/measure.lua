--- Functions that several benchmarks use: they start and stop programs, pin them to processor cores, and measure their
-- processor time and memory.

-- The methods of a started program.
local process = {}

local socket = require "framewire.socket"
local time = require "framewire.time"
local worker = require "framewire.worker"

local M = {}

local TICKS = 100 -- the ticks per second in /proc (the kernel's USER_HZ, which is the same on all common machines)

--- Runs a command and returns its output, including its standard error. If the command fails, this raises an error.
function M.output(command)
  local pipe = assert(io.popen(command .. " 2>&1; echo \"exit $?\""))
  local text = pipe:read("*a")
  pipe:close()
  local lines, code = text:match("^(.*)exit (%d+)%s*$")
  if code ~= "0" then error(("%s\nfailed: %s"):format(command, lines), 0) end
  return lines
end

--- Whether a program is in PATH.
function M.has(program)
  return os.execute("command -v " .. program .. " >/dev/null 2>&1") == 0
end

--- The median of a list of numbers. For an even number of them, it is the lower one of the two in the middle.
function M.median(list)
  local sorted = { unpack(list) }
  table.sort(sorted)
  return sorted[math.ceil(#sorted / 2)]
end

--- Writes figures, a table from names to numbers, to a JSON file.
function M.write(path, figures)
  local lines = {}
  for name, value in pairs(figures) do lines[#lines + 1] = ('  "%s": %.6g'):format(name, value) end
  table.sort(lines)
  local file = assert(io.open(path, "w"))
  file:write("{\n", table.concat(lines, ",\n"), "\n}\n")
  file:close()
end

--- Returns a temporary folder for built programs and other files. `M.clean` removes it.
function M.folder()
  if not M.work then
    M.work = os.tmpname()
    os.remove(M.work)
    M.output("mkdir '" .. M.work .. "'")
  end
  return M.work
end

--- Builds a C program and returns its path.
function M.build(source, flags)
  local program = M.folder() .. "/" .. source:match("([%w%-]+)%.c$")
  M.output(("cc -O2 -o '%s' '%s' %s"):format(program, source, flags or ""))
  return program
end

--- Stops the program with SIGTERM; after 15 seconds, with SIGKILL.
function process:stop()
  if not self.running then return end
  self.running = false
  self.worker:signal("TERM")
  local _, problem = self.worker:wait(15)
  if problem == "timeout" then
    self.worker:signal("KILL")
    self.worker:wait()
  end
end

-- The text of a file in the folder of a process in /proc; "" if the process ended before the text was read.
local function read_proc(pid, name)
  local file = io.open("/proc/" .. pid .. "/" .. name)
  if not file then return "" end
  local text = file:read("*a")
  file:close()
  return text or ""
end

-- The ids of a process's children.
local function children_of(pid)
  return read_proc(pid, "task/" .. pid .. "/children"):gmatch("%d+")
end

-- The processor time of a process and its running descendants, in seconds.
local function cpu_of(pid)
  local fields = {}
  for field in (read_proc(pid, "stat"):match("%) (.*)$") or ""):gmatch("%S+") do fields[#fields + 1] = field end
  local sum = (tonumber(fields[12] or 0) + tonumber(fields[13] or 0)) / TICKS
  for child in children_of(pid) do sum = sum + cpu_of(child) end
  return sum
end

--- The processor time that the program and its running descendants have used, in seconds.
function process:cpu()
  return cpu_of(self.worker.pid)
end

local function memory_of(pid)
  local sum = 1024 * tonumber(read_proc(pid, "status"):match("\nVmRSS:%s*(%d+)") or 0)
  for child in children_of(pid) do sum = sum + memory_of(child) end
  return sum
end

--- The resident memory of the program and its descendants, in bytes. Shared pages count once for each process.
function process:memory()
  return memory_of(self.worker.pid)
end

local started = {}

--- Starts a program, pinned to a core if one is given, and discards its standard output. `stop` or `M.clean` stops it.
---@param arguments string[]
---@param core? integer
function M.start(arguments, core)
  local one = assert(worker.start(function()
    if core then assert(worker.pin(core)) end
    local quietly = { "sh", "-c", 'exec "$0" "$@" >/dev/null' }
    for _, argument in ipairs(arguments) do quietly[#quietly + 1] = argument end
    assert(worker.become(quietly))
  end))
  local program = setmetatable({ worker = one, running = true }, { __index = process })
  started[#started + 1] = program
  return program
end

--- Waits until something listens on a port. After 10 seconds, this raises an error.
function M.await_port(port)
  local deadline = time.monotonic() + 10
  while time.monotonic() < deadline do
    local client = socket.connect("127.0.0.1", port, 1)
    if client then
      client:close()
      return
    end
    time.sleep(0.05)
  end
  error("nothing listens on port " .. port, 0)
end

--- Returns a free port.
function M.free_port()
  local listener = assert(socket.listen { port = 0 })
  local _, port = listener:name()
  listener:close()
  return port
end

--- Stops all started programs and removes the temporary folder.
function M.clean()
  for _, program in ipairs(started) do program:stop() end
  if M.work then os.execute("rm -rf '" .. M.work .. "'") end
end

return M
