-- Answers mGBA-http's text messages. Most of them perform one operation.

local arguments = require "arguments"
local inbox = require "inbox"
local limits = require "limits"
local lockstep = require "lockstep"
local log = require "log"
local operations = require "operations"
local refusal = require "refusal"
local throttle = require "throttle"
local version = require "version"

local find, format, sub = string.find, string.format, string.sub
local refuse, sentence, BAD_ARGUMENT = refusal.refuse, refusal.sentence, refusal.BAD_ARGUMENT
local types, attempt, moved_bytes = arguments.types, operations.attempt, operations.moved_bytes

local SUCCESS, ERROR = "<|SUCCESS|>", "<|ERROR|>"
local END = inbox.END

-- Converters of results to text, by the type of the result.
local WRITE = {
  none = function() return SUCCESS end,
  bool = function(value) return value and "true" or "false" end,
  int = function(value) return format("%d", value) end,
  text = refusal.printable,
  bytes = arguments.to_hex,
  names = function(value) return table.concat(value, ",") end,
}

local messages = {} -- by their *key*, the name with which a message begins, such as `core.addKey`

-- Defines the text message `key`, which performs the operation `name`. `takes` lists the message's arguments, if they
-- differ from those of the operation. `write` converts the result to text, if the usual converter for the type of the
-- result is not used. `last` is the value of the operation's last argument, if the message does not have this argument.
local function message(key, name, takes, last, write)
  local op = operations.by_name[name]
  local specs = op.arguments
  if takes then
    specs = {}
    for argument, kind in takes:gmatch("([%w_]+):([%w_]+)") do
      table.insert(specs, arguments.new(argument, kind))
    end
  end
  local free -- the index of the argument that may contain commas
  for index, spec in ipairs(specs) do
    free = spec.kind.free and index or free
  end
  messages[key] = { op = op, specs = specs, free = free, last = last, write = write or WRITE[op.result] }
end

for name, op in pairs(operations.by_name) do
  if op.message then
    message(op.message, name)
  end
end

-- The flags of savestates, for messages without them.
local DEFAULT_FLAGS = { ["core.saveState"] = 31, ["core.loadState"] = 29 }
for key, entry in pairs(messages) do
  local last = entry.specs[#entry.specs]
  if last and last.name == "flags" then
    last.default = DEFAULT_FLAGS[key:match("^core%.%l+State")]
  end
end

message("core.addKey", "add_keys", "key:key_mask")
message("core.clearKey", "clear_keys", "key:key_mask")

local TAP_FRAMES = 15

message("mgba-http.button.add", "add_keys", "button:button")
message("mgba-http.button.addMany", "add_keys", "buttons:buttons")
message("mgba-http.button.clear", "clear_keys", "button:button")
message("mgba-http.button.clearMany", "clear_keys", "buttons:buttons")
message("mgba-http.button.get", "get_key", "button:button_key")
message("mgba-http.button.getAll", "get_keys", nil, nil, function(keys)
  return arguments.names(keys, ",")
end)
message("mgba-http.button.tap", "hold_keys", "button:button", TAP_FRAMES)
message("mgba-http.button.tapMany", "hold_keys", "buttons:buttons", TAP_FRAMES)
message("mgba-http.button.hold", "hold_keys", "button:button duration:u32")
message("mgba-http.button.holdMany", "hold_keys", "buttons:buttons duration:u32")

message("framewire.echo", "echo", "text:text", nil, arguments.as_it_is)

-- Reads one argument from its text. If the text is nil or only white space, returns the argument's default, or raises a
-- refusal if there is no default. But a `free` argument is always read: its text may be empty or only white space.
local function read_argument(spec, text)
  local kind = spec.kind
  if not kind.free and (not text or not find(text, "%S")) then
    return spec.default or refuse(BAD_ARGUMENT, "`%s` is missing", spec.name)
  end
  local value = kind.read(text or "")
  if value == nil then
    refuse(BAD_ARGUMENT, "`%s` must be %s, not %q", spec.name, kind.expected, sentence(text))
  end
  arguments.check(spec, value)
  return value
end

-- Reads the arguments of a message into `values`. The argument at index `free` may contain commas. The arguments after
-- it are read from the right. If the text after the last comma does not have the type of such an argument, the text
-- belongs to the free argument, and the other argument gets its default. Without a default, this raises a refusal.
local function read_from_right(specs, free, rest, values)
  for index = #specs, free + 1, -1 do
    local spec = specs[index]
    local front, last = rest:match("^(.*),(.-)$")
    local blank = last and not find(last, "%S")
    if last and (blank or spec.kind.read(last) ~= nil) then
      values[index] = read_argument(spec, last)
      rest = front
    elseif spec.default then
      values[index] = spec.default
    else
      refuse(BAD_ARGUMENT, "`%s` must be the last argument: %s", spec.name, spec.kind.expected)
    end
  end
  values[free] = read_argument(specs[free], rest)
end

-- Reads the arguments of a message into `values`. A comma always ends an argument, except inside the brackets of bytes.
local function read_from_left(specs, rest, values)
  for index, spec in ipairs(specs) do
    local text = rest
    local bracketed = spec.kind == types.bytes
    if bracketed and rest then
      text, rest = rest:match("^%s*%[([^%]]*)%]%s*,?(.*)$")
      values[index] = text and arguments.from_hex(text)
        or refuse(BAD_ARGUMENT, "`%s` must be %s", spec.name, spec.kind.expected)
    else
      local comma = rest and find(rest, ",", 1, true)
      if comma then
        text, rest = sub(rest, 1, comma - 1), sub(rest, comma + 1)
      else
        rest = nil
      end
      values[index] = read_argument(spec, text)
    end
  end
  if rest and find(rest, "[^,%s]") then
    refuse(BAD_ARGUMENT, "there are more arguments than this message takes (%d): %q", #specs, sentence(rest))
  end
end

-- Reads the operation's arguments from `rest`, the text after a message's key and comma. Raises a refusal if they are
-- wrong.
local function read_arguments(entry, rest)
  local specs = entry.specs
  local values = { nil, nil, nil }
  if entry.free then
    read_from_right(specs, entry.free, rest or "", values)
  else
    read_from_left(specs, rest, values)
  end
  if entry.last then
    values[#specs + 1] = entry.last
  end
  -- `moved_at` is the index of the argument that says how many bytes are read or written: a length, or the data itself.
  if entry.op.moved_at == #specs and type(values[#specs]) == "number" and values[#specs] > limits.text_range then
    refuse(BAD_ARGUMENT, "`length` must be at most %d in a text message, not %d; read less or use a binary connection",
      limits.text_range, values[#specs])
  end
  return values[1], values[2], values[3]
end

local function perform(entry, key, a, b, c)
  local done, result, problem = attempt(entry.op, nil, a, b, c)
  if done then
    return entry.write(result)
  end
  log.warn("%s: %s", key, problem)
  -- If an operation that returns a boolean was tried and failed, the reply is `false`, as with mGBA-http. No reply to a
  -- text message gives a reason.
  local failed = result == refusal.FAILED or result == refusal.NOT_FOUND
  return failed and entry.op.result == "bool" and "false" or ERROR
end

-- A byte of memory in a text message counts as this many bytes, because hexadecimal digits take longer: about 35 ns for
-- a byte that is read.
local TEXT_COST = 4

-- Returns the reply to a message, both without their end marker; nil if the message has to wait for a later frame.
local function answer(text)
  local comma = find(text, ",", 1, true)
  local key = comma and sub(text, 1, comma - 1) or text
  local entry = messages[key]
  if not entry then
    if key == "framewire.version" then
      return "framewire " .. version.script
    end
    log.warn("unknown message %q", sentence(key))
    return ERROR
  end
  lockstep.ask() -- notes this request, because lockstep ends after some time without requests
  local read, a, b, c = pcall(read_arguments, entry, comma and sub(text, comma + 1))
  if not read then
    log.warn("%s: %s", key, type(a) == "table" and a.text or sentence(a))
    return ERROR
  end
  local moved = TEXT_COST * moved_bytes(entry.op, a, b, c)
  if not throttle.admits(moved) then
    return nil
  end
  return throttle.run(moved, perform, entry, key, a, b, c)
end

local LONGEST_KEY = 64 -- characters; all known keys are shorter

-- Whether a connection begins with a known message: true, false, or nil if too few bytes have arrived to decide. The
-- second result is true if it begins with a message whose key is unknown.
local function begins_known(bytes)
  local key, rest = bytes:match("^%s*([%w._-]*)(.*)$")
  local first_end = sub(rest, 1, #END)
  if #key > LONGEST_KEY or #bytes > limits.small_read and key == "" then
    return false, false
  elseif sub(rest, 1, 1) == "," or first_end == END then
    local known = messages[key] ~= nil or key == "framewire.version" or key == "framewire.hello"
    return known, not known
  elseif first_end == sub(END, 1, #first_end) then
    return nil
  end
  return false, false
end

return { answer = answer, begins_known = begins_known, ERROR = ERROR }
