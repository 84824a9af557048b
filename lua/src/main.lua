-- Reads the settings and starts the script. The user may load the script again while it runs.

local log = require "log"
local operations = require "operations"
local server = require "server"
local version = require "version"

-- The script's only global. Before the script is loaded, this table holds the user's settings. The script then adds
-- values for other scripts.
local public = type(framewire) == "table" and framewire or {}
framewire = public

public.version = version.script
public.operations = {}
for code, op in pairs(operations.by_code) do
  local effect = op.change and "change" or "read"
  public.operations[code] = { name = op.name, effect = effect, format = op.format, result = op.result }
end

local DEFAULT_PORT = 8888 -- if no setting has a valid port

local function setting(name)
  local value = public[name]
  if value == nil then
    value = os.getenv("FRAMEWIRE_SCRIPT_" .. name:upper())
    -- An empty variable counts as not set, because an empty address would open the script to the network.
    if value == nil or value == "" then
      value = SETTINGS[name] -- defined in head.lua
    end
  end
  return value
end

local function valid_port(value)
  local port = math.tointeger(tonumber(value))
  return port and port >= 1 and port <= 65535 and port or nil
end

local function read_settings()
  local level = tostring(setting("log_level")):lower()
  if not log.set_level(level) then
    log.error("log_level must be debug, info, warn, error or none, not %q; it stays info", level)
  end
  local allowed = tostring(setting("allow_script")):lower()
  operations.scripts.allowed = allowed == "true" or allowed == "1"
  if not operations.scripts.allowed and allowed ~= "false" and allowed ~= "0" then
    log.error("allow_script must be true or false, not %q; it stays false", allowed)
  end
  server.address = tostring(setting("address"))
  server.port = valid_port(setting("port"))
  if not server.port then
    server.port = valid_port(SETTINGS.port) or DEFAULT_PORT
    log.error("port must be a number from 1 to 65535, not %q; it stays %d", tostring(setting("port")), server.port)
  end
end

-- Adds one callback to mGBA, which is never removed. It calls the functions of the copy of this script that was loaded
-- last. `package.loaded` holds these functions, so a later copy finds them even if the user has changed the global.
local function start()
  local loaded = package.loaded.framewire or {}
  package.loaded.framewire = loaded
  -- With OpenGL, mGBA 0.10 may run this at the same time as the callback of the previous copy (lua/README.md). Then
  -- either can fail. So if stopping the previous copy fails, tries once more.
  if loaded.stop and not pcall(loaded.stop, "the script is loaded again") then
    pcall(loaded.stop, "the script is loaded again")
  end
  read_settings()
  server.start()
  loaded.frame, loaded.stop = server.frame, server.stop
  if loaded.callback then
    return
  end
  loaded.callback = callbacks:add("frame", function()
    local fine, problem = pcall(loaded.frame)
    if not fine then
      log.error("%s", tostring(problem))
    end
  end)
end

if not public.testing then
  start()
end
