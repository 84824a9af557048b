--- The terminal: its size, single keys, and raw mode.
--
--   print "Press a key."
--   print(terminal.key())                      -- "a", "enter", "up", "ctrl+x", "f5", "ü"
--
-- In raw mode, each key arrives at once and is not shown. `raw` switches it on. It ends with `restore`, or when the
-- program ends, even if the program crashes (except on Windows).

local bit = require "bit"
local sys = require "framewire.sys"
local time = require "framewire.time"

local M = {}

-- How many seconds to wait for the remaining bytes of a key. An escape with no byte after it is the escape key.
local REST = 0.05

local input = sys.terminal

--- Whether a standard stream is a terminal.
---@param stream? integer 0: input (the default), 1: output, 2: errors
---@return boolean
function M.is_terminal(stream)
  return input.is_terminal(stream or 0)
end

--- The size of the terminal.
---@return integer|nil columns
---@return integer|string rows, or the message
function M.size()
  for _, stream in ipairs { 1, 2, 0 } do
    local columns, rows = input.size(stream)
    if columns then return columns, rows end
  end
  return nil, "there is no terminal"
end

-- What `restore` needs to undo `raw`, such as the earlier settings; nil if `raw` is not on.
local changed

--- Restores the terminal's mode from before `raw`.
function M.restore()
  if not changed then return end
  input.restore(changed)
  changed = nil
end

--- Switches raw mode on. When the program ends, the terminal's mode is restored. If raw mode is on already, this does
--- nothing, so `options` have no effect.
---@param options? table `signals = false`: Ctrl+C, Ctrl+Z and Ctrl+\ do not send signals, but arrive as keys
---@return true|nil ok
---@return string? message
function M.raw(options)
  if changed then return true end
  if not M.is_terminal() then return nil, "the input is not a terminal" end
  local earlier, message = input.raw(not options or options.signals ~= false)
  if not earlier then return nil, message end
  changed = earlier
  -- The garbage collector calls the function below, at the latest when the program ends normally. By then, `restore`
  -- may have ended this raw mode, and another call of `raw` may have begun a new one, which must continue.
  earlier.guard = newproxy(true)
  getmetatable(earlier.guard).__gc = function()
    if changed == earlier then M.restore() end
  end
  return true
end

local CONTROL = {
  [0] = "ctrl+space", [8] = "backspace", [9] = "tab", [10] = "enter", [13] = "enter", [27] = "escape",
  [127] = "backspace",
}

-- Terminals send special keys as escape sequences. The last byte identifies the key. If the last byte is "~", the
-- number before it identifies the key.
local LETTERS = { A = "up", B = "down", C = "right", D = "left", F = "end", H = "home", P = "f1", Q = "f2", R = "f3",
  S = "f4", Z = "shift+tab" }
local NUMBERS = { [1] = "home", [2] = "insert", [3] = "delete", [4] = "end", [5] = "pageup", [6] = "pagedown",
  [7] = "home", [8] = "end", [11] = "f1", [12] = "f2", [13] = "f3", [14] = "f4", [15] = "f5", [17] = "f6", [18] = "f7",
  [19] = "f8", [20] = "f9", [21] = "f10", [23] = "f11", [24] = "f12" }

-- Adds the names of the modifiers Shift, Alt and Ctrl, which a sequence contains as one number.
-- Without modifiers, `number` is empty.
local function with_modifiers(name, number)
  local bits = (tonumber(number) or 1) - 1
  if bit.band(bits, 1) ~= 0 then name = "shift+" .. name end
  if bit.band(bits, 2) ~= 0 then name = "alt+" .. name end
  if bit.band(bits, 4) ~= 0 then name = "ctrl+" .. name end
  return name
end

local function next_byte(seconds)
  local ready, message = input.wait(seconds)
  if not ready then return nil, message end
  return input.read()
end

-- Reads the rest of a character, which may have several bytes.
local function character(first)
  local length = first >= 0xf0 and 4 or first >= 0xe0 and 3 or first >= 0xc0 and 2 or 1
  local parts = { string.char(first) }
  for place = 2, length do
    local byte = next_byte(REST)
    if not byte then break end
    parts[place] = string.char(byte)
  end
  return table.concat(parts)
end

-- Returns the name of a key that does not begin with an escape.
local function simple(first)
  if CONTROL[first] then return CONTROL[first] end
  if first < 27 then return "ctrl+" .. string.char(first + 96) end
  if first < 32 then return "ctrl+" .. string.char(first + 64) end
  return character(first)
end

-- Reads the rest of a sequence that began with an escape. Returns the key's name.
local function sequence()
  local byte = next_byte(REST)
  if not byte then return "escape" end
  if byte ~= 91 and byte ~= 79 then -- "[" or "O"
    local name = simple(byte)
    local rest = name:match("^ctrl%+(.+)")
    return rest and "ctrl+alt+" .. rest or "alt+" .. name
  end
  local name_alone = "alt+" .. string.char(byte)
  local parts = {}
  repeat
    byte = next_byte(REST)
    if not byte then return name_alone end
    parts[#parts + 1] = string.char(byte)
    -- The text console of Linux sends "[[A" to "[[E" for F1 to F5.
  until byte >= 64 and not (byte == 91 and #parts == 1) or #parts == 16
  local text = table.concat(parts)
  if text:find("^%[[A-E]$") then return "f" .. text:byte(2) - 64 end
  local number, modifiers = text:match("^(%d*);?(%d*)")
  local last = text:sub(-1)
  local name = last == "~" and NUMBERS[tonumber(number)] or LETTERS[last]
  return name and with_modifiers(name, modifiers) or "unknown"
end

local function read_key(timeout)
  local deadline = time.deadline(timeout)
  local ready, message = input.wait(deadline - time.monotonic())
  if not ready then return nil, message end
  local byte
  byte, message = input.read()
  if not byte then return nil, message end
  if byte == 27 then return sequence() end
  return simple(byte)
end

--- Waits for a key. If raw mode is off, this function switches it on while it waits. If the input is not a terminal,
--- each of its characters is a key.
---@param timeout? number seconds; forever if left out
---@return string|nil key a character, or a name such as "enter", "escape", "up", "f1", "ctrl+a", "alt+x", "shift+tab"
---@return string? message "timeout", or "closed" if the input has ended
function M.key(timeout)
  local was_raw = changed ~= nil
  local is_terminal = M.is_terminal()
  if is_terminal and not was_raw then
    local ok, message = M.raw()
    if not ok then return nil, message end
  end
  local key, message = read_key(timeout)
  if is_terminal and not was_raw then M.restore() end
  return key, message
end

return M
