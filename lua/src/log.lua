-- Writes lines to mGBA's script console, but not more than `limits.log_lines` in a second.

local limits = require "limits"

local LEVELS = { debug = 1, info = 2, warn = 3, error = 4, none = 5 }
local METHODS = { debug = "log", info = "log", warn = "warn", error = "error" }

local log = {}

local threshold = LEVELS.info
local second, lines = 0, 0

-- Sets the level: lines of this level and above are shown. Returns false if there is no such level.
function log.set_level(name)
  threshold = LEVELS[name] or threshold
  return LEVELS[name] ~= nil
end

local function write(level, text, ...)
  if LEVELS[level] < threshold then
    return
  end
  local now = os.time()
  if now ~= second then
    local hidden = lines - limits.log_lines
    second, lines = now, 0
    if hidden > 0 then
      console:warn("Framewire: " .. hidden .. " more lines in one second are not shown")
    end
  end
  lines = lines + 1
  if lines <= limits.log_lines then
    console[METHODS[level]](console, "Framewire: " .. string.format(text, ...))
  end
end

for level in pairs(METHODS) do
  log[level] = function(text, ...)
    write(level, text, ...)
  end
end

return log
