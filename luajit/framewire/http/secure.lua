--- HTTPS: accepts TLS connections for a server, and passes their decrypted bytes to it through pairs of unix sockets.
-- So the server needs no code for TLS, and connections without TLS do not become slower.

local poller = require "framewire.poller"
local servers = require "framewire.http.server"
local streams = require "framewire.stream"
local sys = require "framewire.sys"
local unix = require "framewire.unix"

local HANDSHAKE = 10 -- seconds
-- Seconds for which a client may continue to send after the end of the last response.
local LINGER = 2
-- How many descriptors a connection needs: the TLS socket and both ends of the pair.
local DESCRIPTORS = 3

local M = {}

-- Connects a TLS socket to the server through a pair of unix sockets.
local function connect(loop, server, secure)
  local outside, inside = unix.pair()
  if not outside then
    server.log("cannot serve a TLS connection: " .. tostring(inside))
    return secure:close()
  end
  if not server:adopt(inside.fd, secure) then
    -- If there are too many connections, the server has sent a reply that says so.
    local reply = outside:receive()
    if reply then secure:send(reply) end
    outside:close()
    return secure:close()
  end
  local options = { stall_timeout = server.limits.write_timeout }
  -- `one` is the stream to the client, `other` the stream to the server.
  local one, other = streams.new(loop, secure, options), streams.new(loop, outside, options)
  if not one or not other then
    if one then one:close() else secure:close() end
    if other then other:close() else outside:close() end
    return
  end
  one:pipe(other)
  other:pipe(one)
  server:relay(one)
  -- Called when the server has closed the connection or its sending direction, and everything has been sent to the
  -- client.
  one.on_finish = function()
    server:end_relay(one)
    loop:after(LINGER, function() one:close() end)
  end
  one.on_close = function()
    server:release_relay(one)
    other:close() -- so a handler that sends its response in parts learns that the client has gone
  end
  other.on_close = function() one:finish() end
end

--- Accepts connections until the server stops.
---@param server table from http.new without a listener
---@param context table from tls.server
---@return true|nil ok, string? message
function M.start(loop, server, listener, context)
  local limits = server.limits
  limits.max_connections = math.min(limits.max_connections, math.max(1, math.floor(servers.room() / DESCRIPTORS)))
  local function accept()
    local accepted, message, number = listener:accept()
    if not accepted then
      if sys.pause_accepting(loop, listener, number) then server.log("cannot accept connections: " .. message) end
      return
    end
    loop:spawn(function()
      local secure = context:accept(accepted, HANDSHAKE)
      if secure then connect(loop, server, secure) end
    end)
  end
  server.on_stop = function()
    loop:forget(listener.fd)
    listener:close()
  end
  return loop:watch(listener.fd, poller.READ, accept)
end

return M
