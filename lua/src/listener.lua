-- The listening socket: one port for all clients. If the port is in use, the script tries again until it is free.

local clients = require "clients"
local connection = require "connection"
local limits = require "limits"
local log = require "log"
local ticks = require "ticks"
local version = require "version"

local IN_USE = "address in use" -- mGBA's text for this error; on Windows, mGBA does not recognise the error

local listener = {
  socket = nil, -- nil while it does not listen
}

local retry_tick -- when to try again to listen; nil before the first attempt

-- Returns nil, or what went wrong.
local function try_to_listen(address, port)
  local candidate = socket.tcp()._s -- the bare socket, because mGBA polls a wrapped one in a callback
  local code = candidate:open(address, port)
  if code == 0 then
    code = candidate:listen(limits.backlog)
  end
  if code == 0 then
    listener.socket = candidate
    return
  end
  connection.shut(candidate)
  return socket.ERRORS[code] or "error " .. code
end

function listener.listen(address, port)
  local problem = try_to_listen(address, port)
  local other = port < 65535 and port + 1 or port - 1
  if not problem then
    log.info("version %s, listening on %s:%d", version.script, address, port)
  elseif not retry_tick then
    local cause = problem == IN_USE and "Most often"
      or "The address must belong to this machine, as 127.0.0.1 does. If it does, most often"
    log.error("cannot listen on %s:%d: %s. %s, another mGBA uses the port, or another script in this mGBA does, "
      .. "such as the script of mGBA-http. Close that mGBA or script, or choose another port before this script is loaded: "
      .. "`framewire = {port = %d}` in Lua, or FRAMEWIRE_SCRIPT_PORT=%d in mGBA's environment. Trying again every second.",
      address, port, problem, cause, other, other)
  end
  retry_tick = ticks.now + ticks.per_second
end

-- Tries again to listen, if the last attempt failed at least a second ago.
function listener.retry(address, port)
  if not listener.socket and ticks.now >= retry_tick then
    listener.listen(address, port)
  end
end

-- Accepts all clients that are waiting.
function listener.accept_all()
  while listener.socket:select(0) ~= 0 do
    local client = listener.socket:accept()
    if client.error ~= 0 then
      return
    end
    clients.add(client)
  end
end

function listener.close()
  if listener.socket then
    connection.shut(listener.socket)
    listener.socket = nil
  end
end

return listener
