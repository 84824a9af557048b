--- The event loop: combines a poller, timers and signals.
--
--   local loop = assert(require("framewire.loop").new())
--   loop:after(1, function() print "one second later" end)
--   loop:on_signal({ "INT", "TERM" }, function() loop:stop() end)
--   loop:run()

local ffi = require "ffi"
local poller = require "framewire.poller"
local signal = require "framewire.signal"
local sys = require "framewire.sys"
local tasks = require "framewire.task"
local time = require "framewire.time"
local timer = require "framewire.timer"

local monotonic, ceil = time.monotonic, math.ceil

-- The delay, in seconds, that replaces a delay of 0. With it, a timer runs only in the loop's next round. So a timer
-- that restarts itself without a delay cannot block the loop.
local NEXT = 1e-7
-- If a timer is due in less than this many milliseconds, the loop does not sleep before it.
local SLACK = 0.01

local Loop = {}
Loop.__index = Loop

Loop.READ = poller.READ
Loop.WRITE = poller.WRITE

-- Wraps a plain function in an object with `on_ready`.
local Watcher = {}
Watcher.__index = Watcher

function Watcher:on_ready(readable, writable, broken)
  self.callback(readable, writable, broken)
end

--- Calls `watcher` whenever a descriptor is ready.
---@param fd integer
---@param interest integer READ, WRITE, their sum, or 0
---@param watcher function|table a function, or an object with a method `on_ready`; it gets (readable, writable, broken)
---@return true|nil ok
---@return string? message
function Loop:watch(fd, interest, watcher)
  if type(watcher) == "function" then
    watcher = setmetatable({ callback = watcher }, Watcher)
  elseif type(watcher) ~= "table" then
    error("the watcher is a " .. type(watcher) .. "; use a function, or an object with the method on_ready", 2)
  end
  local ok, message = self.poller:add(fd, interest)
  if not ok then return nil, message end
  self.watchers[fd] = watcher
  self.added[fd] = self.round
  return true
end

--- Changes the interest in a watched descriptor.
---@param fd integer
---@param interest integer
---@return true|nil ok
---@return string? message
function Loop:change(fd, interest)
  return self.poller:change(fd, interest)
end

--- Stops watching a descriptor. Do this before closing it.
---@param fd integer
function Loop:forget(fd)
  if self.watchers[fd] then
    self.watchers[fd] = nil
    self.poller:remove(fd)
  end
end

--- Calls a function once, after a time.
---@param seconds number
---@param callback function
---@return table timer with a method `cancel`
function Loop:after(seconds, callback)
  local at
  if seconds > 0 then at = monotonic() + seconds else at = self.now + NEXT end
  return self.timers:add(at, callback)
end

--- Starts a task: a coroutine. While a method of a socket waits in a task, the loop continues. See framewire.task.
---@param body function
---@param ... any arguments of `body`
---@return table task with `join(timeout)`, `cancel(reason)`, and the field `done`
function Loop:spawn(body, ...)
  return tasks.start(self, body, ...)
end

--- Makes the running task sleep for a time.
---@param seconds number
function Loop:sleep(seconds)
  tasks.sleep(seconds)
end

--- Calls a function repeatedly.
---@param seconds number time between the calls, greater than 0
---@param callback function
---@return table timer with a method `cancel`
function Loop:every(seconds, callback)
  return self.timers:add(monotonic() + seconds, callback, seconds)
end

-- Makes the loop receive signals, and call their handlers.
local function receive_signals(self, names)
  local signals, message = signal.open(names)
  if not signals then return nil, message end
  self.signals[#self.signals + 1] = signals
  local ok
  ok, message = self:watch(signals.fd, poller.READ, function()
    local name = signals:read()
    while name do
      for i = 1, #self.handlers do
        local handler = self.handlers[i]
        if handler.names[name] then handler.callback(name) end
      end
      name = signals:read()
    end
  end)
  if not ok then return nil, message end
  for _, name in ipairs(names) do self.received[name] = true end
  return true
end

--- Calls a function when the process gets one of these signals, instead of the system's default action. If several
--- functions are registered for a signal, calls all of them, in the order of registration.
---@param names string[] such as "INT", "TERM", "HUP", "WINCH"; see framewire.signal
---@param callback fun(name: string)
---@return true|nil ok
---@return string? message
function Loop:on_signal(names, callback)
  -- Linux reports a signal to only one descriptor, so each signal has one descriptor for all of its handlers.
  local new, wanted = {}, {}
  for _, name in ipairs(names) do
    if not self.received[name] then new[#new + 1] = name end
  end
  if new[1] ~= nil then
    local ok, message = receive_signals(self, new)
    if not ok then return nil, message end
  end
  for _, name in ipairs(names) do wanted[name] = true end
  self.handlers[#self.handlers + 1] = { names = wanted, callback = callback }
  return true
end

-- Calls the watchers of the ready descriptors. This is a separate function, so that LuaJIT compiles its loop alone.
local function dispatch(self, count)
  local watchers, source, added, round = self.watchers, self.poller, self.added, self.round
  for i = 0, count - 1 do
    local fd, readable, writable, broken = source:ready(i)
    local watcher = watchers[fd]
    -- An earlier callback of this round may have removed the watcher. It may also have closed the descriptor, and a new
    -- descriptor may have the same number. Then the event is not for the new one.
    if watcher and added[fd] ~= round then watcher:on_ready(readable, writable, broken) end
  end
end

--- Runs until `stop` is called. If it was called before, returns at once.
---@return true|nil ok
---@return string? message
function Loop:run()
  local source, timers = self.poller, self.timers
  while not self.stopping do
    local milliseconds = -1
    local due = timers:next()
    if due then
      milliseconds = ceil((due - monotonic()) * 1000 - SLACK)
      if milliseconds < 0 then milliseconds = 0 elseif milliseconds > 60000 then milliseconds = 60000 end
    end
    local count, message = source:wait(milliseconds)
    if not count then return nil, message end
    self.now = monotonic()
    self.round = self.round + 1
    if count > 0 then dispatch(self, count) end
    if due and due <= self.now then timers:run(self.now) end
  end
  self.stopping = false
  return true
end

--- Makes `run` return after the current round. If the loop does not run, its next `run` returns at once.
function Loop:stop()
  self.stopping = true
end

--- Closes the loop's own descriptors, but not the descriptors that it watches.
function Loop:close()
  for _, signals in ipairs(self.signals) do
    self:forget(signals.fd)
    signals:close()
  end
  self.received = {}
  self.poller:close()
end

local M = {}

-- The loops of this process.
local loops = setmetatable({}, { __mode = "k" })

--- For a new process: closes its copies of the parent's loops. On Linux, both processes share the pollers: without this
--- function, if the new process closed a socket or a stream, the parent's loop would no longer watch it.
function M.leave_parent()
  for loop in pairs(loops) do
    loop.received = {}
    loop.poller:close()
  end
  tasks.forget_waits()
end

M.READ = poller.READ
M.WRITE = poller.WRITE

--- Creates a loop.
---@param options? table `poller`: the name of the poller to use; `log`: a function that gets each line about an error
--- in a task (by default these lines go to standard error)
---@return table|nil loop
---@return string? message
function M.new(options)
  local source, message = poller.new(options and options.poller)
  if not source then return nil, message end
  -- Ignores SIGPIPE. Otherwise, `sendfile` to a broken connection would end the process: no flag prevents this.
  if sys.SIGPIPE then ffi.C.signal(sys.SIGPIPE, ffi.cast("void *", 1)) end
  local self = setmetatable({
    poller = source,
    timers = timer.new(),
    watchers = {},
    --- The number of the current round; and for each watched descriptor, the round in which it was added.
    round = 0,
    added = {},
    --- The descriptors for signals, and the names of the signals that they report.
    signals = {},
    received = {},
    --- The functions of `on_signal`: each is `callback`, and `names` is the set of its signals.
    handlers = {},
    --- Monotonic time of the last wake-up. It is exact enough for time-outs, and reading it needs no call.
    now = monotonic(),
    --- Whether `stop` was called, and `run` has not returned since.
    stopping = false,
    log = options and options.log or function(line) io.stderr:write(line, "\n") end,
  }, Loop)
  loops[self] = true
  return self
end

return M
