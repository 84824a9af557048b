-- Watches: after each frame, links get the changes of the memory and of the keys that they watch. A watch belongs to a
-- connection.

local code = require "code"
local connection = require "connection"
local game = require "game"
local limits = require "limits"
local memory = require "memory"
local refusal = require "refusal"

local concat, find, pack, unpack = table.concat, string.find, string.pack, string.unpack
local refuse, BAD_ARGUMENT, BUSY = refusal.refuse, refusal.BAD_ARGUMENT, refusal.BUSY

local WATCH_KEYS, WATCH_HASHES, WATCH_CLOCK = 1, 2, 4 -- flags
local CHANGED = 1 -- the kind of an event item that reports changes
local KEYS = 0xFFFF -- in place of a range's number: the held keys have changed
local DISCONTINUITY = 0xFFFE -- in place of a range's number: this frame does not follow from the last
local VALUE = 9 -- bytes of the value of an expression, in the form of `evaluate`
local NO_CHANGES = {}

local watches = {
  FLAG_KEYS = WATCH_KEYS, -- the flag of a watch that also reports the keys
}

local watching = {} -- connections with watches; closed ones stay in it until the next frame
local held = 0 -- the keys that were held when the last frame began, if keys are watched

-- Decodes the range at `at`, which has the index `number`. Returns the range, the position of the next one, and the
-- length of the range's value in bytes. A range with an empty name and the length 0 is an expression instead of memory;
-- its address is then the number of bytes of the expression.
local function read_range(bytes, at, number)
  local fine, name, address, length, next_at = pcall(unpack, "<s1I4I2", bytes, at)
  local is_expression = fine and length == 0 and name == ""
  if not fine or is_expression and next_at + address - 1 > #bytes then
    refuse(BAD_ARGUMENT, "`ranges` ends within its range %d", number)
  elseif is_expression then
    local value = code.compile(bytes:sub(next_at, next_at + address - 1), ("ranges[%d]"):format(number))
    return { value = value }, next_at + address, VALUE
  elseif length == 0 or length > limits.watch_length then
    refuse(BAD_ARGUMENT, "a range of `ranges` must have 1 to %d bytes, not %d", limits.watch_length, length)
  elseif find(name, "\0", 1, true) then
    refuse(BAD_ARGUMENT, "a domain of `ranges` holds a NUL character")
  end
  memory.check(("ranges[%d]"):format(number), name, address, length)
  return { domain = name ~= "" and name, address = address, length = length }, next_at, length
end

local function read_ranges(bytes)
  local ranges, at, size = {}, 1, 0
  while at <= #bytes do
    if #ranges == limits.watch_ranges then
      refuse(BAD_ARGUMENT, "`ranges` holds more than %d; watch fewer, or longer ones", limits.watch_ranges)
    end
    local range, next_at, length = read_range(bytes, at, #ranges)
    ranges[#ranges + 1] = range
    at, size = next_at, size + length
  end
  return ranges, size
end

-- Reads the value of a range; nil if its domain does not exist any more because another game was loaded.
local function read(core, range)
  local name = range.domain
  if range.value then
    local value = range.value(core:currentFrame() & 0xFFFFFFFF)
    return pack("<I1i8", value and 1 or 0, value or 0)
  elseif not name then
    return core:readRange(range.address, range.length)
  end
  local domain = memory.find(name)
  return domain and domain:readRange(range.address, range.length) or nil
end

-- How many ranges, bytes and watches a connection has, without the watch with this id.
local function watched(client, id)
  local ranges, size, count = 0, 0, 0
  for _, watch in ipairs(client.watches) do
    if watch.id ~= id then
      ranges, size, count = ranges + #watch.ranges, size + watch.size, count + 1
    end
  end
  return ranges, size, count
end

-- Raises a refusal if there is too much to watch: mGBA must have enough time for its frames.
local function check_room(client, id, ranges, size)
  local own_ranges, own_size, count = watched(client, id)
  if count >= limits.watches then
    refuse(BUSY, "this connection has %d watches already", count)
  elseif own_size + size > limits.watched_bytes then
    refuse(BUSY, "this connection watches %d bytes already; the limit is %d", own_size, limits.watched_bytes)
  elseif own_ranges + ranges > limits.watched_ranges then
    refuse(BUSY, "this connection watches %d ranges already; the limit is %d", own_ranges, limits.watched_ranges)
  end
  local all_ranges, all_size = own_ranges + ranges, own_size + size
  for _, other in ipairs(watching) do
    if other ~= client and other.socket then
      local more_ranges, more_size = watched(other)
      all_ranges, all_size = all_ranges + more_ranges, all_size + more_size
    end
  end
  if all_ranges > limits.all_ranges or all_size > limits.all_bytes then
    refuse(BUSY, "other connections watch too much already")
  end
end

-- Whether any connection watches the keys, as recordings do.
function watches.report_keys()
  for _, client in ipairs(watching) do
    for _, watch in ipairs(client.watches) do
      if watch.keys and client.socket then
        return true
      end
    end
  end
  return false
end

-- Ends a watch, if there is one with that id.
function watches.unwatch(client, id)
  for index, watch in ipairs(client.watches) do
    if watch.id == id then
      table.remove(client.watches, index)
      return
    end
  end
end

-- Begins a watch. Replaces a watch with the same id. Returns the bytes of its ranges, joined.
function watches.watch(client, id, every, flags, bytes)
  if flags & ~(WATCH_KEYS | WATCH_HASHES | WATCH_CLOCK) ~= 0 then
    refuse(BAD_ARGUMENT, "`flags` must be from 0 to 7, not %d", flags)
  elseif flags & WATCH_HASHES ~= 0 then
    refuse(refusal.UNSUPPORTED, "mGBA's Lua gives no hash of a picture; watch without that flag")
  elseif flags & WATCH_CLOCK ~= 0 then
    refuse(refusal.UNSUPPORTED, "mGBA's Lua cannot set the console's clock; watch without that flag")
  end
  local ranges, size = read_ranges(bytes)
  check_room(client, id, #ranges, size)
  local values = {}
  for index, range in ipairs(ranges) do
    values[index] = read(emu, range) or refuse(refusal.FAILED, "mGBA gave no answer")
  end
  watches.unwatch(client, id)
  if not client.is_watching then
    client.is_watching = true
    watching[#watching + 1] = client
  end
  table.insert(client.watches, {
    id = id,
    every = every,
    ranges = ranges,
    size = size,
    values = values, -- the values that the client got last
    keys = flags & WATCH_KEYS ~= 0,
    mask = nil, -- the keys that the client got last
    ticks = 0,
    breaks = game.breaks, -- the value of `game.breaks` when it was last reported to the client
    games = game.games, -- the value of `game.games` when it was last reported to the client
  })
  return concat(values)
end

-- Returns an item with the changes of a watch in the last frame; nil if there is nothing to report.
local function compare(core, watch)
  watch.ticks = watch.ticks + 1 & 0xFFFFFFFF
  local values, changes, count = watch.values, NO_CHANGES, 0
  for index, range in ipairs(watch.ranges) do
    local value = read(core, range)
    if value and value ~= values[index] then
      values[index] = value
      changes, count = count > 0 and changes or {}, count + 1
      changes[count] = pack("<I2s4", index - 1, value)
    end
  end
  local other_game = watch.games ~= game.games
  if watch.keys and watch.breaks ~= game.breaks or other_game then
    watch.breaks, watch.games = game.breaks, game.games
    changes, count = count > 0 and changes or {}, count + 1
    changes[count] = pack("<I2s4", DISCONTINUITY, string.char(other_game and game.GAME or game.broken_by))
  end
  if watch.keys and watch.mask ~= held then
    watch.mask = held
    changes, count = count > 0 and changes or {}, count + 1
    changes[count] = pack("<I2I4I2", KEYS, 2, held)
  end
  if count > 0 or watch.every > 0 and watch.ticks % watch.every == 0 then
    return pack("<I1I4I4I2", CHANGED, watch.id, watch.ticks, count) .. concat(changes)
  end
end

local function compare_all(client, core)
  for _, watch in ipairs(client.watches) do
    local item = compare(core, watch)
    if item then
      client.changes = client.changes or {}
      table.insert(client.changes, item)
    end
  end
end

-- Called after each frame, before this script changes anything. Finds what has changed in the frame, and puts it into
-- `changes` of each connection. Returns whether any connection has something to report.
function watches.after_frame()
  local core = emu
  if not core or #watching == 0 then
    return false
  end
  local kept, any = 0, false
  for index = 1, #watching do
    local client = watching[index]
    watching[index] = nil
    client.is_watching = client.socket ~= nil and client.session ~= nil and #client.watches > 0
    if client.is_watching then
      kept = kept + 1
      watching[kept] = client
      connection.call_guarded(compare_all, client, core)
      any = any or client.changes ~= nil
    end
  end
  return any
end

-- Called at the end of the frame callback, to note the keys of the next frame. Keys that mGBA adds for the keyboard
-- before the next callback do not belong to that frame: the game sees them only in the frame after it.
function watches.before_frame()
  if emu and watches.report_keys() then
    held = emu:getKeys() & 0x3FF
  end
end

return watches
