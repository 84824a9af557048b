--- Parses command lines. A table defines the options, and also the text of --help.
--
--   local options = require("framewire.options").read(arg, {
--     usage = "luajit demo.lua [options]", about = "Says hello.",
--     { "port", "N", "port to listen on", kind = "integer", default = 8080 },
--     { "verbose", nil, "say more" },
--   })

local M = {}

local function help_of(spec)
  local lines = { "Usage: " .. spec.usage, "", spec.about, "" }
  local function add(name, value, text, default)
    local left = "  --" .. name .. (value and " " .. value or "")
    if default ~= nil and default ~= "" then text = text .. " [" .. tostring(default) .. "]" end
    lines[#lines + 1] = left .. (" "):rep(24 - #left) .. text
  end
  for _, option in ipairs(spec) do add(option[1], option[2], option[3], option.default) end
  add("help", nil, "print this help")
  return table.concat(lines, "\n") .. "\n"
end

local function convert(option, text)
  if option.kind ~= "integer" then return text end
  local low, high = option.low or 0, option.high or 65535
  local value = text:find("^%d+$") and tonumber(text)
  if not value or value < low or value > high then
    return nil, ("--%s needs a whole number from %d to %d, not '%s'"):format(option[1], low, high, text)
  end
  return value
end

--- Parses a command line. Prints nothing.
---@param arguments string[]
---@param spec table `usage` and `about`, for the help, and a list of options: { name, name of its value, help text,
--- kind = "integer", low =, high =, default = }; without `low` and `high`, an integer is 0 to 65,535; an option whose
--- second entry is nil takes no value, and is true if it is given
---@return table|nil values by name, with defaults filled in; { help = true } if the command line asks for help
---@return string? message
function M.parse(arguments, spec)
  local by_name, values = {}, {}
  for _, option in ipairs(spec) do
    by_name[option[1]] = option
    values[option[1]] = option.default
  end
  local i = 1
  while i <= #arguments do
    local name, attached = arguments[i]:match("^%-%-([%w%-]+)=(.*)$")
    name = name or arguments[i]:match("^%-%-([%w%-]+)$")
    local option = by_name[name]
    if arguments[i] == "-h" or name == "help" then return { help = true } end
    if not option then return nil, "unknown argument '" .. arguments[i] .. "'" end
    if not option[2] then
      if attached then return nil, "--" .. name .. " takes no value" end
      values[name] = true
    else
      local text = attached
      if not text then
        i = i + 1
        text = arguments[i]
      end
      if not text then return nil, "--" .. name .. " needs " .. option[2] end
      local value, message = convert(option, text)
      if value == nil then return nil, message end
      values[name] = value
    end
    i = i + 1
  end
  return values
end

--- Parses a program's command line. For --help, prints the help and ends the program with exit code 0. For errors,
--- prints the message and ends it with exit code 2.
---@param arguments string[]
---@param spec table
---@return table values
function M.read(arguments, spec)
  local values, message = M.parse(arguments, spec)
  if not values then
    io.stderr:write(message, "\nTry --help.\n")
    os.exit(2)
  end
  if values.help then
    io.stdout:write(help_of(spec))
    os.exit(0)
  end
  return values
end

return M
