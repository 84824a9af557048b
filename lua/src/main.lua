-- Settings, and loading: the script may be loaded again and again.

local log = require "log"
local operations = require "operations"
local server = require "server"
local version = require "version"

-- The user's settings, and then what this script shows to others: the only global.
local public = type(framewire) == "table" and framewire or {}
framewire = public

public.version = version.script
public.operations = {}
for code, op in pairs(operations.by_code) do
  public.operations[code] = { name = op.name, effect = op.effect, format = op.format, result = op.result }
end

local function setting(name)
  local value = public[name]
  if value == nil then
    value = os.getenv("FRAMEWIRE_SCRIPT_" .. name:upper())
  end
  if value == nil then
    value = SETTINGS[name]
  end
  return value
end

local function read_settings()
  local level = tostring(setting("log_level")):lower()
  if not log.set_level(level) then
    log.error("log_level is debug, info, warn, error or none, not %q; it stays info", level)
  end
  server.address = tostring(setting("address"))
  server.port = math.tointeger(tonumber(setting("port")))
  if not server.port or server.port < 1 or server.port > 65535 then
    log.error("port is a number from 1 to 65535, not %q; it stays %d", tostring(setting("port")), SETTINGS.port)
    server.port = SETTINGS.port
  end
end

-- What mGBA calls: its name there, and what of the server it runs.
local CALLBACKS = { frame = "frame", reset = "reset", start = "game" }

-- Callbacks are added to mGBA once and never removed; they run the script that was loaded last. What they run is kept
-- where a script that is loaded anew finds it even if the user has set the global to something else.
local function start()
  local loaded = package.loaded.framewire or {}
  package.loaded.framewire = loaded
  if loaded.stop then
    loaded.stop("the script is loaded again")
  end
  read_settings()
  server.start()
  loaded.stop = server.stop
  loaded.callbacks = loaded.callbacks or { frame = loaded.callback } -- 0.1 had no other
  for name, what in pairs(CALLBACKS) do
    loaded[what] = server[what]
    loaded.callbacks[name] = loaded.callbacks[name] or callbacks:add(name, function()
      local fine, problem = pcall(loaded[what])
      if not fine then
        log.error("%s", tostring(problem))
      end
    end)
  end
end

if not public.testing then
  start()
end
