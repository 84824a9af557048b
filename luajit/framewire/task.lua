--- Tasks: coroutines that wait on a loop. `loop:spawn(f)` starts one. In a task, the methods of sockets that wait (such
-- as `read`, `write`, `wait` and `connect`) let the loop continue meanwhile; outside of tasks they block as usual.
--
--   loop:spawn(function()
--     local client = assert(socket.connect("127.0.0.1", 8080, 3))
--     assert(client:write("ping", 1))
--     print(client:read(100, 1))
--   end)
--
-- A task that fails does not stop the loop. The error and its traceback go to `loop.log`, unless another task waits for
-- it in `join`.

local poller = require "framewire.poller"
local time = require "framewire.time"

local monotonic = time.monotonic
local running, status = coroutine.running, coroutine.status
local READ, WRITE = poller.READ, poller.WRITE

local Task = {}
Task.__index = Task

-- Tasks by their coroutine.
local tasks = setmetatable({}, { __mode = "k" })
-- What tasks wait for, by descriptor.
local waits = {}
-- Passed to a task that has been cancelled, instead of what it waits for.
local CANCELLED = {}
-- Seconds that no wait lasts.
local FOREVER = 1e9

local M = {}

--- The task that runs now.
---@return table|nil task nil outside of tasks, and in a coroutine that a task has made itself
function M.current()
  local thread = running()
  return thread and tasks[thread]
end

local function finish(task, ok, ...)
  task.done = true
  task.ok = ok
  if task.timer then task.timer:cancel() end
  if ok then
    task.count = select("#", ...)
    task.results = { ... }
  else
    task.count = 1
    task.results = { debug.traceback(task.thread, tostring((...))) }
    -- Not at once, because a task that has just been started can still be joined.
    task.loop:after(0, function()
      if not (task.joined or task.cancelled) then task.loop.log("a task failed: " .. task.results[1]) end
    end)
  end
  for _, joiner in ipairs(task.joiners or {}) do joiner:wake(true) end
end

local function check(task, ok, ...)
  if not ok or status(task.thread) == "dead" then finish(task, ok, ...) end
end

-- Continues a task from the loop.
local function resume(task, ...)
  task.waiting, task.deadline, task.pending = nil, nil, nil
  check(task, coroutine.resume(task.thread, ...))
end

local expire

-- Calls `expire` at the deadline. One timer serves many waits: it stays when a wait ends early, and finds out later
-- whether another deadline is due.
local function arm(task)
  local timer, deadline = task.timer, task.deadline
  if timer then
    if timer.at <= deadline then return end
    timer:cancel()
  end
  task.timer = task.loop:after(deadline - monotonic(), function()
    task.timer = nil
    if task.deadline then expire(task) end
  end)
end

function expire(task)
  if monotonic() < task.deadline then return arm(task) end
  local wait = task.waiting
  if type(wait) == "table" then wait:leave(task) end
  resume(task, nil, "timeout")
end

local function continue(first, ...)
  if first == CANCELLED then error((...), 0) end
  return first, ...
end

-- Stops the running task until something resumes it. Returns what that passes.
local function suspend(task, reason, seconds)
  local pending = task.pending
  if pending and pending[1] == CANCELLED then
    task.pending = nil
    if type(reason) == "table" then reason:leave(task) end
    return continue(unpack(pending))
  end
  task.waiting = reason
  if seconds and seconds < FOREVER then
    task.deadline = monotonic() + math.max(0, seconds)
    arm(task)
  end
  return continue(coroutine.yield())
end

-- The tasks that wait for one descriptor: one can read while another writes.
local Wait = {}
Wait.__index = Wait

local function interest_of(wait)
  return (wait.reads and READ or 0) + (wait.writes and WRITE or 0)
end

local function update(wait)
  local interest = interest_of(wait)
  if interest == 0 then
    waits[wait.fd] = nil
    wait.loop:forget(wait.fd)
  else
    wait.loop:change(wait.fd, interest)
  end
end

-- Removes a task that no longer waits.
function Wait:leave(task)
  if self.reads == task then self.reads = nil end
  if self.writes == task then self.writes = nil end
  update(self)
end

function Wait:on_ready(readable, writable, broken)
  local reader = (readable or broken) and self.reads
  local writer = (writable or broken) and self.writes
  if reader then self.reads = nil end
  if writer then self.writes = nil end
  if reader and self.writes == reader then self.writes = nil end
  if writer and self.reads == writer then self.reads = nil end
  update(self)
  if reader and reader.waiting == self then resume(reader, true) end
  if writer and writer.waiting == self then resume(writer, true) end
end

--- Waits until a descriptor is ready. Only the running task can call this.
---@param fd integer
---@param interest integer READ, WRITE or their sum
---@param timeout? number seconds; without it, as long as it takes
---@return true|nil ready
---@return string? message "timeout", or "closed" if the socket has been closed meanwhile
function Task:wait(fd, interest, timeout)
  local reads, writes = interest % 2 == 1, interest >= 2
  local wait = waits[fd]
  if wait then
    if wait.loop ~= self.loop then return nil, "a task of another loop waits for this socket" end
    if reads and wait.reads or writes and wait.writes then return nil, "another task waits for this socket" end
  else
    wait = setmetatable({ fd = fd, loop = self.loop, reads = nil, writes = nil }, Wait)
    local ok, message = self.loop:watch(fd, interest, wait)
    if not ok then return nil, message end
    waits[fd] = wait
  end
  local is_shared = wait.reads or wait.writes
  if reads then wait.reads = self end
  if writes then wait.writes = self end
  if is_shared then self.loop:change(fd, interest_of(wait)) end
  return suspend(self, wait, timeout)
end

--- Lets tasks know that a descriptor is about to be closed. Their waits end with "closed".
---@param fd integer
function M.closing(fd)
  local wait = waits[fd]
  if not wait then return end
  local reader, writer = wait.reads, wait.writes
  wait.reads, wait.writes = nil, nil
  update(wait)
  if reader then reader:wake(nil, "closed") end
  if writer and writer ~= reader then writer:wake(nil, "closed") end
end

--- Stops the running task until `wake` is called on it. A `wake` before that is not lost.
---@param timeout? number seconds; without it, as long as it takes
---@return any ... what was passed to `wake`; or nil and "timeout"
function Task:suspend(timeout)
  if M.current() ~= self then error("only a task itself can call suspend", 2) end
  local pending = self.pending
  if pending then
    self.pending = nil
    return continue(unpack(pending, 1, pending.count))
  end
  return suspend(self, true, timeout)
end

-- Lets a waiting task continue in the loop's next round with the values that are pending then.
local function schedule(task)
  if type(task.waiting) == "table" then task.waiting:leave(task) end
  task.waiting, task.deadline = nil, nil
  task.loop:after(0, function()
    local pending = task.pending
    if pending and not task.done then resume(task, unpack(pending, 1, pending.count)) end
  end)
end

--- Lets a suspended task continue, in the loop's next round.
---@param ... any the results of its `suspend`
function Task:wake(...)
  if self.done or self.pending then return end
  self.pending = { count = select("#", ...), ... }
  if self.waiting then schedule(self) end
end

--- Ends a task: what it waits for, or waits for next, fails with an error, which it may catch to clean up.
---@param reason? string the error, "cancelled" by default
function Task:cancel(reason)
  if self.done then return end
  self.cancelled = true
  self.pending = { count = 2, CANCELLED, reason or "cancelled" }
  if self.waiting then schedule(self) end
end

--- Waits in a task until another task has ended. Outside of tasks, returns the results of a task that has ended.
---@param timeout? number seconds; without it, as long as it takes
---@return boolean|nil ok false if it failed; nil if it has not ended
---@return any ... its results; the error with a traceback; or "timeout"
function Task:join(timeout)
  local me = M.current()
  if not self.done then
    if not me then return nil, "the task has not ended; only another task can wait for it" end
    if me == self then return nil, "a task cannot wait for itself" end
    self.joined = true
    self.joiners = self.joiners or {}
    table.insert(self.joiners, me)
    suspend(me, true, timeout)
    if not self.done then
      for i, joiner in ipairs(self.joiners) do
        if joiner == me then
          table.remove(self.joiners, i)
          break
        end
      end
      self.joined = #self.joiners > 0
      return nil, "timeout"
    end
  end
  self.joined = true
  return self.ok, unpack(self.results, 1, self.count)
end

--- Stops the running task for a time.
---@param seconds number
function M.sleep(seconds)
  local task = M.current()
  if not task then error("only a task can sleep on a loop; call time.sleep elsewhere", 2) end
  suspend(task, true, seconds)
end

--- Starts a task. It runs at once, until it waits for the first time.
---@param loop table
---@param body function
---@param ... any its arguments
---@return table task
function M.start(loop, body, ...)
  local thread = coroutine.create(body)
  local task = setmetatable({
    loop = loop,
    thread = thread,
    --- Whether it has ended, and then whether without an error.
    done = false,
    ok = nil,
    --- What it waits for: an object with `leave`, or true.
    waiting = nil,
    --- When its wait ends with "timeout".
    deadline = nil,
    timer = nil,
    --- What `wake` passed, until the task gets it.
    pending = nil,
    cancelled = false,
    --- Whether another task waits for this one, or has got its results; and the tasks that wait.
    joined = false,
    joiners = nil,
  }, Task)
  tasks[thread] = task
  resume(task, ...)
  return task
end

return M
