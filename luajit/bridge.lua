--- A bridge in Lua: an HTTP server that passes messages to a script in a stock mGBA and answers with the script's
-- replies. The script must use mGBA-http's text protocol. `luajit bridge.lua --help` lists the options.

local here = arg[0]:match("^(.*)[/\\]") or "."
package.path = here .. "/?.lua;" .. package.path

local cli = require "framewire.options"
local http = require "framewire.http"
local textlink = require "framewire.textlink"

local options = cli.read(arg, {
  usage = "luajit bridge.lua [options]",
  about = "Passes messages to a script that runs in mGBA, and answers with the script's replies:\n"
    .. "GET /mgbaendpoint?message=TEXT sends an echo message, POST /command?message=KEY,ARGUMENT,... any other.\n"
    .. "Requests from web pages of other sites are refused.",
  { "attach", "HOST:PORT", "where the script listens", default = "127.0.0.1:8888" },
  { "port", "N", "port to listen on; 0 for any free one", kind = "integer", default = 8080 },
  { "host", "ADDRESS", "address to listen on; 0.0.0.0 for other machines", default = "127.0.0.1" },
  { "allow-host", "NAME", "a name of this machine that clients may use, in addition to localhost and IP addresses" },
  { "timeout", "MS", "longest wait for a reply", kind = "integer", low = 1, high = 600000, default = 3000 },
  { "echo-key", "KEY", "key of the script's echo message; `none` if the script echoes every message: then use POST",
    default = "framewire.echo" },
})

local function fail(message)
  io.stderr:write(message, "\n")
  os.exit(1)
end

local script_host, script_port = options.attach:match("^%[?([^%]]+)%]?:(%d+)$")
if not script_host or tonumber(script_port) < 1 or tonumber(script_port) > 65535 then
  fail("--attach needs HOST:PORT, such as 127.0.0.1:8888, not '" .. options.attach .. "'")
end

local statuses = {
  [textlink.UNREACHABLE] = 502,
  [textlink.TIMEOUT] = 504,
  [textlink.BUSY] = 503,
  [textlink.BAD] = 400,
}

local advice = {
  [textlink.UNREACHABLE] = "Start mGBA with a ROM, and load the script under Tools > Scripting.",
  [textlink.TIMEOUT] = "Is mGBA paused? Has a ROM been loaded? The script runs only while the game runs.",
}

local link

-- Sends a message to the script and answers the request with the reply.
local function forward(message, response)
  local late = response:later()
  link:ask(message, function(reply, kind, reason)
    if not reply then
      local text = ("mGBA at %s: %s. %s"):format(options.attach, reason, advice[kind] or "")
      late:text(statuses[kind], text:gsub("%s+$", "") .. "\n")
    elseif reply == "<|ERROR|>" then
      late:text(502, "the script could not do that; the scripting window in mGBA says why\n")
    else
      late:text(200, reply == "<|SUCCESS|>" and "" or reply)
    end
  end)
end

-- Makes a handler that forwards `prefix`, followed by the query's message or the body of a POST.
local function route(prefix)
  return function(request, response)
    local message = request:param("message") or request.method == "POST" and request.body or ""
    if message == "" then return response:text(400, "say what to send: " .. request.path .. "?message=TEXT\n") end
    -- This message would switch the connection, which all clients share, to the binary protocol.
    if (prefix .. message):find("^%s*framewire%.hello") then
      return response:text(400, "framewire.hello begins another protocol, so it is not passed on\n")
    end
    forward(prefix .. message, response)
  end
end

local echo = route(options["echo-key"] == "none" and "" or options["echo-key"] .. ",")
local command = route("")
-- Without an echo key, every message is passed on unchanged. A message may change the game, so only POST is allowed.
local echo_method = options["echo-key"] == "none" and "POST" or "GET"

local ok, message = http.serve {
  port = options.port,
  host = options.host,
  -- If a reply takes longer than --timeout, the link itself reports this. The server must not give up earlier.
  limits = { handler_timeout = options.timeout / 1000 + 10 },
  handler = http.guard(http.routes {
    [echo_method .. " /mgbaendpoint"] = echo,
    ["POST /command"] = command,
  }, { hosts = { options["allow-host"] } }),
  on_start = function(loop)
    link = textlink.new(loop, script_host, tonumber(script_port), { timeout = options.timeout / 1000 })
  end,
  on_listen = function(url)
    print("listening on " .. url)
    io.stdout:flush()
  end,
}
if not ok then fail(message) end
