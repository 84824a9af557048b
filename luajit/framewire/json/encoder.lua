--- Writes JSON.
--
-- Each writing function appends to the buffer `out`. It returns true; or nil, the reason, and where in the value it
-- failed.

local bit = require "bit"
local ffi = require "ffi"
local buffer = require "framewire.buffer"
local utf8 = require "framewire.utf8"
local values = require "framewire.json.values"

local copy = ffi.copy
local null, Array = values.null, values.Array
local type, getmetatable, pairs, next = type, getmetatable, pairs, next
local int64, uint64 = ffi.typeof("int64_t"), ffi.typeof("uint64_t")

local QUOTE = 34
-- A buffer that has grown larger than this is replaced by a small one.
local MAX_KEPT_OUTPUT = 1048576

-- The escapes for bytes that strings cannot contain directly.
local escapes = {
  [8] = "\\b", [9] = "\\t", [10] = "\\n", [12] = "\\f", [13] = "\\r", [34] = '\\"', [92] = "\\\\",
}
for byte = 0, 31 do escapes[byte] = escapes[byte] or ("\\u%04x"):format(byte) end
-- Kinds of bytes. 0: written unchanged; 1: needs an escape; 2: part of a character of several bytes.
local class = ffi.new("uint8_t[256]")
for byte in pairs(escapes) do class[byte] = 1 end
for byte = 128, 255 do class[byte] = 2 end

local out = buffer.new(4096)

-- Writes one byte. The callers use these ASCII codes: 32 space, 44 comma, 58 colon, 91 and 93 brackets, 123 and 125
-- braces.
local function write_byte(byte)
  if out.size == out.stop then out:reserve(1) end
  out.data[out.stop] = byte
  out.stop = out.stop + 1
end

local function write_escaped(text)
  for i = 1, #text do
    local byte = text:byte(i)
    local escape = escapes[byte]
    if escape then out:append(escape) else write_byte(byte) end
  end
end

local function write_string(text)
  local length = #text
  out:reserve(length + 2)
  local data, stop = out.data, out.stop
  data[stop] = QUOTE
  copy(data + stop + 1, text, length)
  local place, last, seen = stop + 1, stop + 1 + length, 0
  while place < last do
    seen = bit.bor(seen, class[data[place]])
    place = place + 1
  end
  if seen >= 2 and utf8.check(utf8.START, data, stop + 1, last) ~= utf8.START then
    return nil, "a string that is not UTF-8", ""
  end
  if seen % 2 == 0 then
    data[last] = QUOTE
    out.stop = last + 1
    return true
  end
  out.stop = stop + 1
  write_escaped(text)
  write_byte(QUOTE)
  return true
end

-- Caches of the texts that were written for numbers, names and strings. Each cache is emptied when it is full.
local REMEMBERED, LONGEST_REMEMBERED = 1024, 64
local number_texts, number_count = {}, 0
local name_texts, name_count = {}, 0
local string_texts, string_count = {}, 0

-- The text that has been written since `start`.
local function written(start)
  return ffi.string(out.data + start, out.stop - start)
end

-- Writes a string, and puts it into the cache if it is short. Only `write_flat` takes texts from this cache. Elsewhere,
-- most look-ups would find nothing, because many strings are written only once.
local function write_new_string(text)
  local start = out.stop
  local done, reason, where = write_string(text)
  if not done then return nil, reason, where end
  if #text <= LONGEST_REMEMBERED and not string_texts[text] then
    if string_count == REMEMBERED then string_texts, string_count = {}, 0 end
    string_texts[text] = written(start)
    string_count = string_count + 1
  end
  return true
end

local function remember_number(value, text)
  if number_count == REMEMBERED then number_texts, number_count = {}, 0 end
  number_texts[value] = text
  number_count = number_count + 1
end

local function write_number(value)
  if value == 0 then
    -- 0 and -0 are the same key in a table, so their texts are not in the cache.
    out:append(1 / value < 0 and "-0" or "0")
    return true
  end
  local known = number_texts[value]
  if known then
    out:append(known)
    return true
  end
  if value % 1 == 0 and value > -9007199254740992 and value < 9007199254740992 then
    local text = ("%d"):format(value)
    remember_number(value, text)
    out:append(text)
    return true
  end
  if value - value ~= 0 then return nil, "the number " .. tostring(value) .. ", which JSON does not have", "" end
  local text = ("%.15g"):format(value)
  if tonumber(text) ~= value then
    text = ("%.16g"):format(value)
    if tonumber(text) ~= value then text = ("%.17g"):format(value) end
  end
  -- With ".0", a reader gets a double again, and not a 64-bit integer.
  if not (text:find(".", 1, true) or text:find("e", 1, true)) then text = text .. ".0" end
  remember_number(value, text)
  out:append(text)
  return true
end

local function write_cdata(value)
  if ffi.istype(int64, value) or ffi.istype(uint64, value) then
    out:append(tostring(value):match("^-?%d+"))
    return true
  end
  return nil, "a C value of type " .. tostring(ffi.typeof(value)), ""
end

-- Writes the line break and the indentation before a value.
local function new_line(indent, level)
  out:append("\n" .. indent:rep(level))
end

local write_value

local function write_list(list, settings, level)
  local indent = settings.indent
  local count = #list
  if count == 0 then
    out:append("[]")
    return true
  end
  write_byte(91)
  for i = 1, count do
    if i > 1 then write_byte(44) end
    if indent then new_line(indent, level) end
    local ok, reason, where = write_value(list[i], settings, level)
    if not ok then return nil, reason, "[" .. i .. "]" .. where end
  end
  if indent then new_line(indent, level - 1) end
  write_byte(93)
  return true
end

-- Writes a name and a colon.
local function write_name(name)
  local known = name_texts[name]
  if known then
    out:append(known)
    return true
  end
  if type(name) ~= "string" then
    return nil, ("a key of type %s; the keys of an object must be strings"):format(type(name))
  end
  local start = out.stop
  if not write_string(name) then return nil, "a name that is not UTF-8" end
  write_byte(58)
  if #name <= LONGEST_REMEMBERED then
    if name_count == REMEMBERED then name_texts, name_count = {}, 0 end
    name_texts[name] = written(start)
    name_count = name_count + 1
  end
  return true
end

local function write_member(name, value, settings, level, is_first)
  if not is_first then write_byte(44) end
  if settings.indent then new_line(settings.indent, level) end
  local named, problem = write_name(name)
  if not named then return nil, problem, "" end
  if settings.indent then write_byte(32) end
  local ok, reason, where
  -- `write_flat` writes only outermost objects, so only their strings are put into the cache.
  if level == 1 and type(value) == "string" then
    ok, reason, where = write_new_string(value)
  else
    ok, reason, where = write_value(value, settings, level)
  end
  if not ok then return nil, reason, "." .. name .. where end
  return true
end

local function sorted_names(object)
  local names = {}
  for name in pairs(object) do
    if type(name) ~= "string" then
      return nil, ("a key of type %s; the keys of an object must be strings"):format(type(name))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function write_object(object, settings, level)
  if next(object) == nil then
    out:append("{}")
    return true
  end
  write_byte(123)
  local is_first = true
  if settings.sort then
    local names, problem = sorted_names(object)
    if not names then return nil, problem, "" end
    for _, name in ipairs(names) do
      local ok, reason, where = write_member(name, object[name], settings, level, is_first)
      if not ok then return nil, reason, where end
      is_first = false
    end
  else
    for name, value in pairs(object) do
      local ok, reason, where = write_member(name, value, settings, level, is_first)
      if not ok then return nil, reason, where end
      is_first = false
    end
  end
  if settings.indent then new_line(settings.indent, level - 1) end
  write_byte(125)
  return true
end

-- Whether a table is an array. Returns nil and a reason if the table has the mark of an array or the key 1, but also
-- holes or other keys.
local function is_list(value)
  local has_mark = getmetatable(value) == Array
  if value[1] == nil then
    if has_mark and next(value) ~= nil then return nil, "an array with keys other than 1, 2, 3 and so on", "" end
    return has_mark
  end
  local count, entries = #value, 0
  for _ in pairs(value) do entries = entries + 1 end
  if count ~= entries then return nil, "a table with holes, or with keys other than 1 to " .. count, "" end
  return true
end

local function write_table(value, settings, level)
  if level > settings.depth then
    return nil, ("a value nested deeper than %d levels; it may contain itself"):format(settings.depth), ""
  end
  local is_array, reason, where = is_list(value)
  if is_array == nil then return nil, reason, where end
  if is_array then return write_list(value, settings, level) end
  return write_object(value, settings, level)
end

-- `level` says how deeply the value that contains this one is nested.
function write_value(value, settings, level)
  local kind = type(value)
  if kind == "string" then return write_string(value) end
  if kind == "number" then return write_number(value) end
  if kind == "table" then
    if value == null then
      out:append("null")
      return true
    end
    return write_table(value, settings, level + 1)
  end
  if kind == "boolean" then
    out:append(value and "true" or "false")
    return true
  end
  if kind == "cdata" then return write_cdata(value) end
  if kind == "nil" then return nil, "nil; use json.null", "" end
  return nil, "a value of type " .. kind, ""
end

local plain = { sort = false, indent = nil, depth = values.DEPTH }

local function read_settings(options)
  if not options then return plain end
  local depth, message = values.read_depth(options)
  if not depth then return nil, message end
  local indent = options.indent
  if type(indent) == "number" and indent >= 0 and indent <= 64 then indent = (" "):rep(indent) end
  if indent ~= nil and (type(indent) ~= "string" or indent:find("[^ \t]")) then
    return nil, ("indent is %s; use a number of spaces up to 64, or spaces and tabs"):format(tostring(indent))
  end
  return { sort = options.sort, indent = indent, depth = depth }
end

-- Arguments and results of `work`. `gsub`, which calls `work`, cannot pass them.
local given, given_settings, ok, reason, where

local function work()
  ok, reason, where = write_value(given, given_settings, 0)
end

local gsub = string.gsub

-- The largest number of members that `write_flat` writes. LuaJIT compiles up to 15 tail calls of one function.
local MOST_FLAT = 12

-- Writes the members of an object after `name`. It can write only booleans, and names, strings and numbers that are in
-- a cache; for other objects, it returns false. It uses recursion and not a loop, so that LuaJIT compiles it as part of
-- the server's loop.
local function write_flat(object, name, count)
  local value
  name, value = next(object, name)
  if name == nil then
    write_byte(125)
    return true
  end
  local known, text = name_texts[name], nil
  if not known or count == MOST_FLAT then return false end
  if type(value) == "string" then
    text = string_texts[value]
  elseif type(value) == "number" then
    text = value ~= 0 and number_texts[value]
  elseif type(value) == "boolean" then
    text = value and "true" or "false"
  end
  if not text then return false end
  if count > 0 then write_byte(44) end
  out:append(known)
  out:append(text)
  return write_flat(object, name, count + 1)
end

local M = {}

--- Writes a value as JSON into a buffer. The buffer's bytes are valid until the next call.
---@param value any
---@param options? table as for json.encode
---@return table|nil buffer
---@return string? message
function M.encode_bytes(value, options)
  local settings, message = read_settings(options)
  if not settings then return nil, message end
  if out.size > MAX_KEPT_OUTPUT then out = buffer.new(4096) end
  out:clear()
  if not options and type(value) == "table" and getmetatable(value) == nil then
    write_byte(123)
    if write_flat(value, nil, 0) then return out end
    out:clear()
  end
  given, given_settings = value, settings
  -- If `gsub` calls a function, LuaJIT compiles the function separately from the code around it. Without this, the
  -- loops over values would be part of a server's loop, which LuaJIT then could not compile.
  gsub("x", "x", work)
  given = nil
  if not ok then return nil, ("cannot encode %s, at value%s"):format(reason, where) end
  return out
end

--- See framewire.json.
function M.encode(value, options)
  local bytes, message = M.encode_bytes(value, options)
  if not bytes then return nil, message end
  return bytes:text()
end

return M
