--- Tasks: coroutines that run on a loop. `loop:spawn(f)` starts a task. While a task waits in `socket.connect`, or in a
-- method of a socket such as `read`, `write` or `wait`, the loop continues. Outside of tasks, these functions block as
-- usual.
--
--   loop:spawn(function()
--     local client = assert(socket.connect("127.0.0.1", 8080, 3))
--     assert(client:write("ping", 1))
--     print(client:read(100, 1))
--   end)
--
-- A task that fails does not stop the loop. The error and its traceback go to `loop.log`, unless the task was
-- cancelled, or another task waits for it in `join`.

local poller = require "framewire.poller"
local time = require "framewire.time"

local monotonic = time.monotonic
local running, status = coroutine.running, coroutine.status
local READ, WRITE = poller.READ, poller.WRITE

local Task = {}
Task.__index = Task

-- Tasks by their coroutine.
local tasks = setmetatable({}, { __mode = "k" })
-- The `Wait` objects of the descriptors for which tasks wait, by descriptor.
local waits = {}
-- If this is the first value with which a task continues, the task was cancelled.
local CANCELLED = {}
-- What a task waits for in `M.suspend`. Only `M.resume`, `cancel` and a time-out end such a wait, not `wake`.
local LIBRARY = { leave = function() end }
-- A wait of this many seconds or more has no time-out.
local FOREVER = 1e9

local M = {}

--- What a wait returns if another task waits for the same socket already.
M.BUSY = "another task waits for this socket"

--- The running task.
---@return table|nil task nil outside of tasks, and in a coroutine that a task has created
function M.current()
  local thread = running()
  return thread and tasks[thread]
end

local schedule

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
    -- The error is logged in the loop's next round: until then, another task may call `join`.
    task.loop:after(0, function()
      if not (task.joined or task.cancelled) then task.loop.log("a task failed: " .. task.results[1]) end
    end)
  end
  -- `schedule` removes the tasks from `joiners`, so this is a copy.
  for _, joiner in ipairs { unpack(task.joiners or {}) } do
    task.joined = true
    schedule(joiner, true)
  end
end

-- Gets the results of `coroutine.resume`. Finishes the task if its coroutine has ended.
local function check(task, ok, ...)
  if not ok or status(task.thread) == "dead" then finish(task, ok, ...) end
end

-- Continues a task from the loop.
local function resume(task, ...)
  task.waiting, task.deadline = nil, nil
  check(task, coroutine.resume(task.thread, ...))
end

local expire

-- Makes a timer call `expire` at the deadline. If a wait ends before its deadline, its timer is kept for the next wait.
-- `expire` checks whether the current deadline has passed.
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

-- Returns the values with which a task continues; raises an error if the task was cancelled.
local function continue(first, ...)
  if first == CANCELLED then error((...), 0) end
  return first, ...
end

-- Suspends the running task until `resume`. Returns the values that `resume` got.
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

-- The tasks that wait for one descriptor: at most one to read and one to write. Both can be the same task.
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

-- Called when a task no longer waits for the descriptor.
function Wait:leave(task)
  if self.reads == task then self.reads = nil end
  if self.writes == task then self.writes = nil end
  -- `on_ready` may have removed both tasks before this one continued. Then the descriptor can have a newer `Wait`
  -- object, whose tasks must continue to wait.
  if waits[self.fd] == self then update(self) end
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
---@param timeout? number seconds; forever if left out
---@return true|nil ready
---@return string? message "timeout"; "closed" if the socket has been closed meanwhile; or why the task cannot wait
function Task:wait(fd, interest, timeout)
  local reads, writes = interest % 2 == 1, interest >= 2
  local wait = waits[fd]
  if wait then
    if wait.loop ~= self.loop then return nil, "a task of another loop waits for this socket" end
    if reads and wait.reads or writes and wait.writes then return nil, M.BUSY end
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

--- Must be called before a descriptor is closed. The waits of tasks for this descriptor end with "closed".
---@param fd integer
function M.closing(fd)
  local wait = waits[fd]
  if not wait then return end
  local reader, writer = wait.reads, wait.writes
  wait.reads, wait.writes = nil, nil
  update(wait)
  if reader then schedule(reader, nil, "closed") end
  if writer and writer ~= reader then schedule(writer, nil, "closed") end
end

-- Returns the results of a call. If it has failed, closes `one` and raises the error again.
local function pass_on(one, returned, ...)
  if returned then return ... end
  one:close()
  error((...), 0)
end

--- Calls a function and returns its results. If it raises an error, for example because the running task was cancelled,
--- closes an object, which otherwise nobody would close, and raises the error again.
---@param one table has a method `close`
---@param f function
---@param ... any arguments of `f`
---@return any ...
function M.close_on_error(one, f, ...)
  return pass_on(one, pcall(f, ...))
end

--- For a new process: forgets the waits of its parent's tasks.
function M.forget_waits()
  for fd in pairs(waits) do waits[fd] = nil end
end

--- Suspends the running task until something calls its `wake`. If `wake` has been called before, returns at once.
---@param timeout? number seconds; forever if left out
---@return any ... the arguments of `wake`; or nil and "timeout"
function Task:suspend(timeout)
  if M.current() ~= self then error("only a task itself can call suspend", 2) end
  local pending = self.pending
  if pending then
    self.pending = nil
    return continue(unpack(pending, 1, pending.count))
  end
  return suspend(self, true, timeout)
end

--- Suspends the running task for the library, until `M.resume`. The program's `wake` does not end this wait, but is
--- kept for the next `Task:suspend`.
---@param task table
---@param timeout? number seconds; forever if left out
function M.suspend(task, timeout)
  suspend(task, LIBRARY, timeout)
end

-- Makes a waiting task continue in the loop's next round, with these values.
function schedule(task, ...)
  if not task.waiting then return end
  if type(task.waiting) == "table" then task.waiting:leave(task) end
  task.waiting, task.deadline = nil, nil
  task.scheduled = { count = select("#", ...), ... }
  task.loop:after(0, function()
    local values = task.scheduled
    task.scheduled = nil
    resume(task, unpack(values, 1, values.count))
  end)
end

--- Makes a task that waits in `M.suspend` continue in the loop's next round. When this is called, the task may already
--- wait in `M.suspend` for something else. So code that calls `M.suspend` checks afterwards whether it got what it
--- waits for, and suspends the task again if not.
---@param task table
function M.resume(task)
  if task.waiting == LIBRARY then schedule(task) end
end

--- Makes a waiting task continue in the loop's next round. This also ends a sleep, and a wait for a socket, which then
--- returns these values. If the task does not wait, or waits for the look-up of a name or in `websocket.accept`, its
--- next `suspend` returns at once. Does nothing if the task has not yet received the arguments of an earlier `wake`, or
--- waits in `join`.
---@param ... any the results of its `suspend`
function Task:wake(...)
  if self.waiting and self.waiting ~= LIBRARY then
    schedule(self, ...)
  elseif not (self.done or self.scheduled or self.pending) then
    self.pending = { count = select("#", ...), ... }
  end
end

--- Cancels a task: its current or next wait raises an error. The task may catch the error to clean up.
---@param reason? string the error, "cancelled" by default
function Task:cancel(reason)
  if self.done then return end
  self.cancelled = true
  reason = reason or "cancelled"
  if self.waiting then
    schedule(self, CANCELLED, reason)
  elseif self.scheduled then
    self.scheduled = { count = 2, CANCELLED, reason }
  else
    self.pending = { count = 2, CANCELLED, reason }
  end
end

-- The tasks that wait in `join` for the same task.
local Joiners = {}
Joiners.__index = Joiners

-- Called when a task no longer waits.
function Joiners:leave(task)
  for i, joiner in ipairs(self) do
    if joiner == task then
      table.remove(self, i)
      return
    end
  end
end

--- Waits until this task has ended, and returns its results. Only another task can wait; outside of tasks, `join`
--- returns the results only if the task has already ended.
---@param timeout? number seconds; forever if left out
---@return boolean|nil ok false if the task failed; nil if it has not ended
---@return any ... the task's results; the error with a traceback; or "timeout"
function Task:join(timeout)
  local me = M.current()
  if not self.done then
    if not me then return nil, "the task has not ended; only another task can wait for it" end
    if me == self then return nil, "a task cannot wait for itself" end
    local joiners = self.joiners or setmetatable({}, Joiners)
    self.joiners = joiners
    local deadline = time.deadline(timeout)
    repeat
      -- However the wait ends, even by cancellation, the task is then removed from `joiners`.
      table.insert(joiners, me)
      suspend(me, joiners, deadline - monotonic())
    until self.done or monotonic() >= deadline
    if not self.done then return nil, "timeout" end
  end
  self.joined = true
  return self.ok, unpack(self.results, 1, self.count)
end

--- Makes the running task sleep for a time.
---@param seconds number
function M.sleep(seconds)
  local task = M.current()
  if not task then error("only a task can sleep on a loop; call time.sleep elsewhere", 2) end
  suspend(task, true, seconds)
end

--- Starts a task. It runs at once, until it waits for the first time.
---@param loop table
---@param body function
---@param ... any arguments of `body`
---@return table task
function M.start(loop, body, ...)
  local thread = coroutine.create(body)
  local task = setmetatable({
    loop = loop,
    thread = thread,
    --- Whether the task has ended; and then, in `ok`, whether it ended without an error.
    done = false,
    ok = nil,
    --- While the task waits: a `Wait` object for a descriptor, a `Joiners` object in `join`, `LIBRARY` in `M.suspend`,
    --- or true in a sleep and in `Task:suspend`.
    waiting = nil,
    --- When the current wait ends with "timeout".
    deadline = nil,
    timer = nil,
    --- If `wake` or `cancel` was called while the task did not wait: the values for its next `suspend` or, after
    --- `cancel`, for its next wait of any kind.
    pending = nil,
    --- The values with which the task continues in the loop's next round.
    scheduled = nil,
    cancelled = false,
    --- The tasks that wait for this one; and whether a task waited for its end, or has got its results.
    joiners = nil,
    joined = false,
  }, Task)
  tasks[thread] = task
  resume(task, ...)
  return task
end

return M
