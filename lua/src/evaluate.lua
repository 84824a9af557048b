-- Runs Lua code for a client, and converts the values that it returns to JSON. Embedded cores use this file too, so it
-- requires no other file.

local concat, format, gsub, tointeger = table.concat, string.format, string.gsub, math.tointeger

-- How many instructions the code of one request may run, and how many more the conversion of its values to text may
-- run. Each of the two takes about 15 ms, during which mGBA runs no frame. With mGBA's setting `videoSync`, a callback
-- of more than 50 ms can stop emulation until mGBA is started again.
local INSTRUCTIONS = 5000000
local PERIOD = 100000 -- instructions between two checks of this limit
-- The same in a coroutine. Each new coroutine also counts as this many instructions, because it can end before its
-- first check.
local THREAD_PERIOD = 250
local DEPTH = 8 -- how deeply tables may be nested
local ENTRIES = 10000 -- entries of all tables together
-- Bytes of the values as JSON, without the punctuation of tables. The output has a separate limit of this size.
local LENGTH = 262144
local LINES = 1000 -- lines of output
local MESSAGE = 4096 -- bytes of the error

-- Functions that are not available, because they would run, restart or replace the game in the middle of a request. The
-- values say what to use instead: a tool of the MCP server, a route of the HTTP API, or an operation.
local ALTERNATIVES = {
  runFrame = "the MCP tool act, or POST /v1/advance",
  step = "the operation step",
  reset = "the MCP tool control, or POST /v1/reset",
  loadFile = "the MCP tool load, or POST /v1/load",
}

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r" }

local function escape(char)
  return ESCAPES[char] or format("\\u%04x", char:byte())
end

-- Converts text to JSON. Text that is not UTF-8 becomes {"hex": "..."}.
local function from_text(text)
  if utf8.len(text) then
    return '"' .. gsub(text, '[%c"\\]', escape) .. '"'
  end
  return '{"hex":"' .. gsub(text, ".", function(char)
    return format("%02x", char:byte())
  end) .. '"}'
end

-- Replaces the decimal point in the text of a number with ".". Qt sets the locale to the user's, in which the decimal
-- point can be a comma, or a character of several bytes.
local function with_point(number)
  return (gsub(number, "^(-?%d+)[^%de+-]+", "%1."))
end

-- Like `tostring`, but independent of the locale.
local function to_text(value)
  local text = tostring(value)
  return math.type(value) == "float" and with_point(text) or text
end

local function from_number(number)
  if math.type(number) == "integer" then
    return format("%d", number)
  end
  if number ~= number or number == math.huge or number == -math.huge then
    return '"' .. tostring(number) .. '"'
  end
  return with_point(format("%.17g", number))
end

-- Counts the bytes of a value or key as JSON.
local function count_bytes(text, budget)
  budget.bytes = budget.bytes - #text
  if budget.bytes < 0 then
    error(format("the values have more than %d bytes; return less", LENGTH), 0)
  end
end

local to_json

local function from_table(value, depth, budget)
  if depth == DEPTH then
    error(format("the values have tables that are nested deeper than %d; return fewer levels", DEPTH), 0)
  end
  local names, is_list = {}, true
  for key in next, value do
    budget.entries = budget.entries - 1
    if budget.entries < 0 then
      error(format("the values have more than %d entries; return fewer", ENTRIES), 0)
    end
    names[#names + 1] = key
  end
  for key in next, value do
    local index = tointeger(key)
    if type(key) ~= "number" or not index or index < 1 or index > #names then
      is_list = false
      break
    end
  end
  local parts = {}
  if is_list then
    for index = 1, #names do
      parts[index] = to_json(value[index], depth + 1, budget)
    end
    return "[" .. concat(parts, ",") .. "]"
  end
  local by_name = {}
  for index, key in ipairs(names) do
    local name = to_text(key)
    if by_name[name] ~= nil then
      error(format("the values have a table with two keys that are %s as text; use different keys", from_text(name)), 0)
    end
    names[index] = name
    by_name[name] = rawget(value, key)
  end
  table.sort(names)
  for index, name in ipairs(names) do
    -- A key of a JSON object must be text. So if a key is not UTF-8, each of its bytes from 128 on becomes the
    -- character with that number.
    local written = utf8.len(name) and from_text(name) or '"' .. gsub(name, "[%c\"\\\128-\255]", escape) .. '"'
    count_bytes(written, budget)
    parts[index] = written .. ":" .. to_json(by_name[name], depth + 1, budget)
  end
  return "{" .. concat(parts, ",") .. "}"
end

function to_json(value, depth, budget)
  local kind = type(value)
  if kind == "table" then
    return from_table(value, depth, budget)
  end
  local text
  if kind == "nil" or kind == "boolean" then
    text = value == nil and "null" or tostring(value)
  elseif kind == "number" then
    text = from_number(value)
  elseif kind == "string" then
    if #value > budget.bytes then
      error(format("the values have more than %d bytes; return less", LENGTH), 0)
    end
    text = from_text(value)
  else
    text = from_text(tostring(value))
  end
  count_bytes(text, budget)
  return text
end

-- The output of the code: its lines, their total size in bytes, and whether some lines were left out.
local output

local function write(line)
  if #output.lines == LINES or output.bytes + #line > LENGTH then
    output.is_cut = true
    return
  end
  output.bytes = output.bytes + #line
  output.lines[#output.lines + 1] = line
end

local function print_line(...)
  local parts = table.pack(...)
  for index = 1, parts.n do
    parts[index] = to_text(parts[index])
  end
  write(concat(parts, "\t"))
end

-- The global `console` of the code. It is like mGBA's, but its lines are added to the output.
local own_console = {}
for _, level in ipairs { "log", "warn", "error" } do
  own_console[level] = function(_, text)
    write(to_text(text))
  end
end
setmetatable(own_console, {
  __index = function(_, name)
    return function(_, ...)
      return console[name](console, ...)
    end
  end,
})

-- The global `emu` of the code: mGBA's object without the functions in ALTERNATIVES.
local guarded_emu = setmetatable({}, {
  __index = function(_, name)
    if ALTERNATIVES[name] then
      error(format("emu:%s is not available here; use %s", name, ALTERNATIVES[name]), 2)
    end
    local member = emu[name]
    if name == "memory" then
      return member
    end
    return function(_, ...)
      return member(emu, ...)
    end
  end,
})

local remaining, limited, count

-- Counts instructions, and stops code that runs too many, even in coroutines and inside `pcall`.
local function spend(instructions)
  remaining = remaining - instructions
  if remaining <= 0 then
    debug.sethook(count, "", 1) -- if the code catches the error, its next instruction raises it again
    error(format("the code was stopped after %d instructions; do less in one request", INSTRUCTIONS), 0)
  end
end

-- Returns a debug hook that counts instructions. Lua calls the hook after every `period` instructions.
local function counter(period)
  return function()
    if debug.getinfo(2, "f").func == limited then
      debug.sethook() -- the code has ended
    else
      spend(period)
    end
  end
end

count = counter(PERIOD)
local count_in_thread = counter(THREAD_PERIOD)

-- Calls a function, and stops it if it runs too many instructions. Returns what `pcall` returns, as a table.
function limited(run)
  remaining = INSTRUCTIONS
  debug.sethook(count, "", PERIOD)
  local results = table.pack(pcall(run))
  debug.sethook()
  remaining = math.huge -- callbacks that the code has added have no limit, even if they use coroutines
  return results
end

-- A debug hook belongs to one coroutine. So the code gets replacements for the functions that create coroutines, and
-- these set the hook. `result_of` gets the coroutine, and returns what the replaced function would return.
local function counted(result_of)
  return function(body)
    local thread = coroutine.create(body)
    spend(THREAD_PERIOD)
    debug.sethook(thread, count_in_thread, "", THREAD_PERIOD)
    return result_of(thread)
  end
end

local threads = setmetatable({
  create = counted(function(thread)
    return thread
  end),
  wrap = counted(function(thread)
    return function(...)
      local results = table.pack(coroutine.resume(thread, ...))
      if not results[1] then
        error(results[2], 0)
      end
      return table.unpack(results, 2, results.n)
    end
  end),
}, { __index = coroutine })

-- If a debug hook raises an error, Lua calls the message handler before the hook has ended, and meanwhile calls no hook.
-- So a handler could run forever. To prevent this, the handler is not called when the code is stopped.
local function limited_xpcall(body, handler, ...)
  local function guarded(problem)
    if remaining <= 0 then
      return problem
    end
    return handler(problem)
  end
  return xpcall(body, type(handler) == "function" and guarded or handler, ...)
end

-- The globals of the code. They are kept from one request to the next, and other scripts do not see them.
local own = { print = print_line, console = own_console, coroutine = threads, xpcall = limited_xpcall }
setmetatable(own, {
  __index = function(_, name)
    if name == "emu" and emu then
      return guarded_emu
    end
    return _G[name]
  end,
})

local function message(problem)
  local is_text = type(problem) == "string"
  local text = is_text and problem or "the code raised an error that is not text: " .. tostring(problem)
  return #text <= MESSAGE and text or text:sub(1, utf8.offset(text, 0, MESSAGE + 1) - 1)
end

local function reply(values, problem)
  local parts, budget = {}, { entries = ENTRIES, bytes = LENGTH }
  for index = 1, values.n do
    parts[index] = to_json(values[index], 0, budget)
  end
  local lines = {}
  for index, line in ipairs(output.lines) do
    lines[index] = utf8.len(line) and from_text(line) or from_text(gsub(line, "[\128-\255]", "?"))
  end
  local text = '{"values":[' .. concat(parts, ",") .. '],"output":[' .. concat(lines, ",") .. "]"
  if output.is_cut then
    text = text .. ',"cut":true'
  end
  if problem then
    -- Text that is not UTF-8 gets a "?" for each byte from 128 on. "%0" leaves the bytes as they are.
    problem = gsub(problem, "[\128-\255]", utf8.len(problem) and "%0" or "?")
    text = text .. ',"error":' .. from_text(problem)
  end
  return text .. "}"
end

-- Runs code. Returns the reply as JSON. If the code cannot be compiled, returns nil and the reason. An error while the
-- code runs is a part of the reply, because what the code did before the error is not undone.
local function evaluate(source)
  local code, problem = load(source, "=script", "t", own)
  if not code then
    return nil, problem
  end
  output = { lines = {}, bytes = 0 }
  local values = limited(code)
  -- The conversion is limited too: values and errors can have a metamethod `__tostring`, which is code of the client.
  local converted = limited(function()
    if values[1] then
      return reply { n = values.n - 1, table.unpack(values, 2, values.n) }
    end
    return reply({ n = 0 }, message(values[2]))
  end)
  if converted[1] then
    return converted[2]
  end
  local is_text = type(converted[2]) == "string"
  return reply({ n = 0 }, message(is_text and converted[2] or "the code raised an error that cannot be converted to text"))
end

return evaluate
