--- An HTTP/1.1 server, and a client.
--
--   local http = require "framewire.http"
--   http.serve { port = 8080, handler = function(request, response) response:text(200, "hello") end }

local loops = require "framewire.loop"
local poller = require "framewire.poller"
local servers = require "framewire.http.server"
local socket = require "framewire.socket"
local tasks = require "framewire.task"
local unix = require "framewire.unix"
local url = require "framewire.http.url"

local M = {}

--- Starts a server on an existing loop; see http/server.lua.
M.new = servers.new

--- Selects a handler by path and method; see http/router.lua.
M.routes = require("framewire.http.router").new

--- Refuses requests from web pages of other sites; see http/guard.lua.
M.guard = require("framewire.http.guard").new

--- Serves a folder's files; see http/static.lua.
M.static = require("framewire.http.static").new

-- Called when a task's handler has returned or failed. Logs an error, and a missing response. If no response was sent,
-- answers with 500. If the handler failed and its response is incomplete, closes the connection. If the handler has
-- opened a WebSocket, closes the WebSocket; but a WebSocket with callbacks stays open, unless the handler failed.
local function end_response(answer, request, ok, message)
  local upgraded = answer.upgraded
  if upgraded then
    if not ok then answer.server.log("the handler failed on " .. request.path .. ": " .. tostring(message)) end
    if not (ok and upgraded.on_message) then upgraded:close(ok and 1000 or 1011) end
    return
  end
  if ok and (answer.started or answer.closed) then return end
  if ok then message = "it returned without an answer" end
  answer.server.log("the handler failed on " .. request.method .. " " .. request.path .. ": " .. tostring(message))
  if answer.streaming or answer.late then
    -- Part of the response may have been sent, or `later` has passed it to other code. So only closing the connection
    -- can show the failure.
    answer.connection:close()
  elseif not (answer.done or answer.closed) then
    -- If the handler failed while it wrote the response, nothing of it was sent.
    answer.started = false
    answer:text(500, "the handler failed; the server's log has the reason\n")
  end
end

--- Wraps a handler so that it runs as a task of the server's loop. In the task, it may sleep, or wait for a socket or
--- another task.
---@param handler function
---@return function handler
function M.task(handler)
  return function(request, response)
    local answer = response:later()
    answer.server.loop:spawn(function()
      end_response(answer, request, xpcall(handler, debug.traceback, request, answer))
    end)
  end
end

--- Percent encoding; see http/url.lua.
M.decode, M.encode = url.decode, url.encode

--- Creates an HTTP client; see http/client.lua.
M.client = require("framewire.http.client").new

--- Reads and writes forms and queries; see http/form.lua.
M.form = require "framewire.http.form"

--- Reads and writes cookie headers; see http/cookie.lua.
M.cookie = require "framewire.http.cookie"

-- Runs one server on a new loop, until the process gets INT, TERM or HUP. Calls `ready` when these signals no longer
-- end the process at once.
local function run_on(loop, listener, options, context, ready)
  local server, message = servers.new(loop, not context and listener or nil, options)
  if not server then return nil, message end
  local ok
  if context then
    ok, message = require("framewire.http.secure").start(loop, server, listener, context)
    if not ok then return nil, message end
  end
  ok, message = loop:on_signal({ "INT", "TERM", "HUP" }, function()
    server:stop(options.grace or 5, function() loop:stop() end)
  end)
  if not ok then server.log(message) end
  if ready then ready() end
  if options.on_start then options.on_start(loop, server) end
  return loop:run()
end

local function run(listener, options, context, ready)
  local loop, message = loops.new { poller = options.poller }
  if not loop then return nil, message end
  local ok
  ok, message = tasks.close_on_error(loop, run_on, loop, listener, options, context, ready)
  loop:close()
  return ok, message
end

local function close_all(listeners)
  for _, listener in ipairs(listeners) do listener:close() end
end

-- Creates one listener for each worker. All listeners have the same port, and the system (except macOS) distributes the
-- connections among them. The list has a method `close`, which closes all of them.
local function listen(options, count)
  local listeners = { close = close_all }
  if options.unix then
    if count > 1 then return nil, "a server on a unix socket has one worker; remove workers = " .. count end
    local listener, message = unix.listen(options.unix, options.backlog)
    if not listener then return nil, message end
    listeners[1] = listener
    return listeners, 0
  end
  local port = options.port or 8080
  for index = 1, count do
    local listener, message = socket.listen {
      host = options.host, port = port, backlog = options.backlog, reuse_port = count > 1,
    }
    if not listener then
      listeners:close()
      return nil, message
    end
    listeners[index] = listener
    if port == 0 then port = select(2, listener:name()) end
  end
  return listeners, port
end

--- Serves until the process gets INT, TERM or HUP. Then it completes the requests in progress and returns.
---@param options table
--- `handler`: function of request and response;
--- `port` (8080; 0 for any free one) and `host` ("127.0.0.1"; "0.0.0.0" or "::" for other machines); or `unix`: path of
--- a unix socket;
--- `workers` (1): number of processes that share the port; each has its own copy of the handler;
--- `tls`: serves HTTPS; a table with the settings of tls.server;
--- `limits`: sizes and time-outs, see http/server.lua; `backlog` (1024); `grace` (5): seconds for which requests in
--- progress may continue after a signal; `poller`: name of the poller to use; `log`: function that gets each line of
--- the log; `on_listen`: called once with the URL, or with "unix:" and the path; `on_start`: called with loop and
--- server, in each worker
---@return true|nil ok
---@return string? message
function M.serve(options)
  if type(options.handler) ~= "function" then return nil, "http.serve needs a handler function" end
  local count = options.workers or 1
  -- This is checked here: otherwise, each worker would fail by itself, again and again.
  local limits, problem = servers.read_limits(options.limits)
  if not limits then return nil, problem end
  local context
  if options.tls then
    local message
    context, message = require("framewire.tls").server(options.tls)
    if not context then return nil, message end
  end
  if count > 1 and options.poller then
    -- The poller is checked here for the same reason.
    local one, message = poller.new(options.poller)
    if not one then return nil, message end
    one:close()
  end
  local listeners, port = listen(options, count)
  if not listeners then return nil, port end
  local function announce()
    if not options.on_listen then return end
    if options.unix then return options.on_listen("unix:" .. options.unix) end
    local host = options.host or "127.0.0.1"
    if host:find(":", 1, true) then host = "[" .. host .. "]" end
    options.on_listen(("%s://%s:%d"):format(context and "https" or "http", host, port))
  end
  local ok, message
  if count == 1 then
    ok, message = tasks.close_on_error(listeners, run, listeners[1], options, context, announce)
  else
    -- This process keeps the listeners for workers that it has to start again. When the server stops, it must close
    -- them: while one process has a listener open, the system lets clients connect, and nobody would accept them.
    local function on_stop() listeners:close() end
    local group = require("framewire.worker").group
    ok, message = tasks.close_on_error(listeners, group, count, function(index)
      for other, listener in ipairs(listeners) do
        if other ~= index then listener:close() end
      end
      assert(run(listeners[index], options, context))
    end, { ready = announce, on_stop = on_stop, grace = (options.grace or 5) + 2 })
  end
  listeners:close()
  return ok, message
end

return M
