-- Assembles framewire.lua, the one file that users load, from the parts in src/:
--
--   lua5.4 lua/bundle.lua          writes it
--   lua5.4 lua/bundle.lua --check  fails if it is not what the parts give

-- In the order of a reader: what each part stands on comes before it.
local PARTS = {
  "version", "ticks", "limits", "stopwatch", "log", "refusal", "happenings", -- what all stand on
  "inbox", "connection", -- one client's bytes
  "arguments", "holds", "timelines", "files", -- what operations are made of
  "cartridgeram", "videoram", "memory", "game", "emulator", -- the console
  "lockstep", "throttle", "watches", "operations", "readahead", -- what can be done
  "messages", "frames", "requests", "keyed", "sessions", -- how it is asked for
  "turn", "clients", "listener", "events", "steering", "window", "server", -- serving those who ask
}

local folder = arg[0]:match("^(.*)bundle%.lua$")

local function read(path)
  local file = assert(io.open(folder .. path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local function indented(text)
  return (text:gsub("([^\n]+)", "  %1"))
end

local function bundle()
  local out = {
    read("src/head.lua"),
    "-- This file is made from lua/src by lua/bundle.lua: change the parts there, not here.\n",
    "local parts = {}\n\nlocal function require(name)\n  return parts[name]\nend\n",
  }
  for _, name in ipairs(PARTS) do
    local title = "---- " .. name .. " "
    table.insert(out, title .. ("-"):rep(120 - #title) .. "\n")
    table.insert(out, ("parts.%s = (function()\n%send)()\n"):format(name, indented(read("src/" .. name .. ".lua"))))
  end
  table.insert(out, "---- main " .. ("-"):rep(110) .. "\n")
  table.insert(out, read("src/main.lua"))
  return table.concat(out, "\n")
end

if arg[1] == "--check" then
  if read("framewire.lua") ~= bundle() then
    io.stderr:write("lua/framewire.lua is not what lua/src gives; run `lua5.4 lua/bundle.lua`\n")
    os.exit(1)
  end
else
  local file = assert(io.open(folder .. "framewire.lua", "wb"))
  file:write(bundle())
  file:close()
end
