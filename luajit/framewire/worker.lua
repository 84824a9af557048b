--- Worker processes: starts them, monitors them, and stops them together. Linux, macOS and FreeBSD; on Windows,
-- only `cores` and `pin` work.

local ffi = require "ffi"
local loops = require "framewire.loop"
local signal = require "framewire.signal"
local sys = require "framewire.sys"
local tasks = require "framewire.task"
local threads = require "framewire.thread"
local time = require "framewire.time"

local C = ffi.C

local M = {}

local Worker = {}
Worker.__index = Worker

local status_box = ffi.new("int[1]")
-- The largest number of workers in a group.
local MOST = 4096
-- SIG_IGN: what `signal` returns for a signal that the process ignores.
local IGNORED = ffi.cast("void *", 1)

-- How a process ended, from waitpid's status: its exit code, or the signal that killed it.
local function ending(status)
  local signalled = status % 128
  if signalled == 0 then return math.floor(status / 256) % 256 end
  return nil, signal.names[signalled] or "signal " .. signalled
end

--- The number of processor cores that the system uses.
---@return integer
M.cores = sys.cores

--- Keeps the calling thread on one core. Linux and Windows only.
---@param core integer the first core is 0
---@return true|nil ok
---@return string? message
function M.pin(core)
  if not sys.pin then return nil, "pinning is not supported on " .. sys.name end
  if type(core) ~= "number" or core < 0 or core % 1 ~= 0 then
    return nil, tostring(core) .. " is not a processor core; they are counted from 0"
  end
  if sys.pin(core) ~= 0 then return sys.fail("pin") end
  return true
end

-- Writes what is in the buffers of open files. If there are other threads, only the buffers of stdout and stderr:
-- fflush(nil) would wait for a file from which another thread is reading.
local function flush_files()
  if threads.running == 0 then
    C.fflush(nil)
  else
    io.stdout:flush()
    io.stderr:flush()
  end
end

-- Unblocks all signals. If `before` is not nil, stores the earlier signal mask there.
local function unblock_signals(before)
  local none = ffi.new("struct fw_sigset")
  C.sigemptyset(none)
  C.sigprocmask(sys.SIG_SETMASK, none, before)
end

-- Makes the system keep the exit codes of child processes, until `waitpid` takes them. Without this, the system drops
-- them if the program was started with CHLD ignored.
local function keep_exit_codes()
  local before = C.signal(sys.SIGCHLD, nil)
  if before ~= IGNORED then C.signal(sys.SIGCHLD, before) end
end

-- Calls a function so that it is not in a task. If it ran in the task that started this process, its first wait would
-- continue with the parent's loop, of which this process has a copy. Results as for `xpcall`.
local function call_outside(main)
  if not coroutine.running() then return xpcall(main, debug.traceback) end
  local ok, message = false, "it yielded, but it is not in a task"
  coroutine.wrap(function() ok, message = xpcall(main, debug.traceback) end)()
  return ok, message
end

-- Runs a function in a new process; see `M.start`. With `keep_blocked`, blocked signals stay blocked.
local function start(main, keep_blocked)
  if sys.name == "windows" then return nil, "worker processes are not supported on windows; use threads" end
  flush_files() -- otherwise, both processes would write what is in the buffers
  keep_exit_codes()
  local parent = C.getpid()
  local pid = C.fork()
  if pid < 0 then return sys.fail("fork") end
  if pid == 0 then
    if sys.die_with_parent then
      sys.die_with_parent()
      -- If the parent has ended already, no signal will come.
      if C.getppid() ~= parent then C._exit(1) end
    end
    -- A loop of the parent blocks the signals that it waits for. Nothing reads them in this process, so TERM would do
    -- nothing.
    if not keep_blocked then unblock_signals() end
    loops.leave_parent()
    local ok, message = call_outside(main)
    if not ok then io.stderr:write("worker: ", tostring(message), "\n") end
    flush_files()
    C._exit(ok and 0 or 1)
  end
  return setmetatable({ pid = pid }, Worker)
end

--- Runs a function in a new process. The process ends when the function returns, with exit code 0, or 1 after an error.
--- In the new process, the function is not in a task, no signal is blocked, and the loops of the parent are closed: the
--- function must create each loop that it needs. On Linux, the process gets TERM when the thread that started it ends.
--- At its end, the process writes what is in the buffers of open files. If there are threads from framewire.thread,
--- even in the parent, it does so only for stdout and stderr.
---@param main function
---@return table|nil worker with `pid`
---@return string? message
function M.start(main)
  if type(main) ~= "function" then error("a worker runs a function, not a " .. type(main), 2) end
  return start(main, false)
end

--- Replaces the program of this process with another one. Returns only if that fails.
---@param arguments string[] the program and its arguments; a program without a slash in its name is searched for in
--- PATH
---@return nil
---@return string message
function M.become(arguments)
  if sys.name == "windows" then return nil, "a process cannot become another program on windows" end
  if not arguments[1] then return nil, "there is nothing to run; name a program" end
  local list = ffi.new("const char *[?]", #arguments + 1)
  for index, argument in ipairs(arguments) do list[index - 1] = argument end
  flush_files() -- otherwise, what is in the buffers would be lost
  -- A loop of this process blocks the signals that it waits for, and ignores PIPE. The new program would inherit this,
  -- and TERM, for example, would not end it.
  local before = ffi.new("struct fw_sigset")
  unblock_signals(before)
  local pipe = C.signal(sys.SIGPIPE, nil)
  C.execvp(arguments[1], ffi.cast("char *const *", list))
  local _, message = sys.fail("cannot run " .. arguments[1])
  C.signal(sys.SIGPIPE, pipe)
  C.sigprocmask(sys.SIG_SETMASK, before, nil)
  return nil, message
end

--- Waits for the process to end. Blocks even in a task, so the loop does not run meanwhile.
---@param timeout? number seconds; forever if left out
---@return integer|nil code exit code; nil if a signal ended the process, or if it has not ended
---@return string? message the signal's name, or "timeout"
function Worker:wait(timeout)
  local deadline = time.deadline(timeout)
  while not self.status do
    local pid = C.waitpid(self.pid, status_box, timeout and sys.WNOHANG or 0)
    if pid < 0 and sys.errno() ~= sys.EINTR then return sys.fail("waitpid") end
    if pid == self.pid then
      self.status = status_box[0]
    elseif timeout then
      if time.monotonic() >= deadline then return nil, "timeout" end
      time.sleep(0.002)
    end
  end
  return ending(self.status)
end

--- Sends the process a signal.
---@param name string such as "TERM"
---@return true|nil ok
---@return string? message
function Worker:signal(name)
  -- After the end of the process, another process can have its number.
  if self.status then return nil, "the process has ended" end
  return signal.send(self.pid, name)
end

-- Starts worker number `index`, unless the group is stopping. If this fails, tries again after a second.
local function keep(state, index)
  if state.stopping then return end
  local worker, message = start(function() state.main(index) end, true)
  if not worker then
    io.stderr:write("cannot start worker ", index, ": ", message, "; trying again\n")
    state.loop:after(1, function() keep(state, index) end)
    return
  end
  state.workers[worker.pid] = { worker = worker, index = index, started = time.monotonic() }
end

-- Called when worker processes have ended. Starts each again, but at most once a second, so a worker that always ends
-- immediately does not use much processor time.
local function collect(state)
  for pid, gone in pairs(state.workers) do
    -- Not -1, which would also take the exit codes of processes that do not belong to the group.
    if C.waitpid(pid, status_box, sys.WNOHANG) == pid then
      state.workers[pid] = nil
      if not state.stopping then
        local code, reason = ending(status_box[0])
        io.stderr:write(("worker %d ended (%s); starting it again\n"):format(gone.index, reason or "code " .. code))
        local wait = math.max(0, gone.started + 1 - time.monotonic())
        state.loop:after(wait, function() keep(state, gone.index) end)
      end
    end
  end
  if state.stopping and not next(state.workers) then state.loop:stop() end
end

local function signal_all(state, name)
  for pid in pairs(state.workers) do signal.send(pid, name) end
end

-- Sends TERM to all workers, kills those that have not ended in time, and stops the loop when all have ended.
local function stop_workers(state, grace)
  state.stopping = true
  signal_all(state, "TERM")
  state.loop:after(grace, function() signal_all(state, "KILL") end)
  collect(state)
end

-- Runs a group on a loop that is new.
local function run_group(loop, count, main, options)
  local state = { loop = loop, main = main, workers = {}, stopping = false }
  local grace = options.grace or 10
  -- This comes before the first fork, so that no signal is missed.
  local ok, message = loop:on_signal({ "CHLD" }, function() collect(state) end)
  if not ok then return nil, message end
  ok, message = loop:on_signal({ "INT", "TERM", "HUP" }, function()
    if state.stopping then return end
    state.stopping = true
    if options.on_stop then options.on_stop() end
    stop_workers(state, grace)
  end)
  if not ok then return nil, message end
  for index = 1, count do keep(state, index) end
  local returned
  returned, ok, message = pcall(function()
    if options.ready then options.ready() end
    return loop:run()
  end)
  if returned then return ok, message end
  -- Without this, the workers would continue, and nobody would stop them.
  stop_workers(state, grace)
  loop:run()
  error(ok, 0)
end

--- Runs a function in several processes until this process gets INT, TERM or HUP. Then sends TERM to all of them, kills
--- those that have not ended in time, and returns. A worker that ends earlier is started again. If `ready` or `on_stop`
--- fails, stops the workers in the same way, and raises the error again.
---@param count integer 1 to 4096
---@param main fun(index: integer) must wait for TERM with `Loop:on_signal` of a new loop, and then return; TERM is
--- blocked in workers, so it does not end them by itself
---@param options? table `grace`: seconds between TERM and killing, 10 by default; `ready`: called once, after
--- the first attempts to start all workers; `on_stop`: called once, before TERM is sent; from then on, no worker is
--- started
---@return true|nil ok
---@return string? message
function M.group(count, main, options)
  options = options or {}
  if type(count) ~= "number" or not (count >= 1 and count <= MOST) or count % 1 ~= 0 then
    return nil, ("%s is not a number of workers; use 1 to %d"):format(tostring(count), MOST)
  end
  if type(main) ~= "function" then error("a worker runs a function, not a " .. type(main), 2) end
  local loop, message = loops.new()
  if not loop then return nil, message end
  local ok, reason = tasks.close_on_error(loop, run_group, loop, count, main, options)
  loop:close()
  return ok, reason
end

return M
