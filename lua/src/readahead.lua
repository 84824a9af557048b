-- Reads the ROM for a request in small parts, a few in each frame, before the request is performed. A batch is performed
-- between two frames, because most memory changes from frame to frame. A ROM does not change, so its bytes can be read earlier.
-- Some cartridges have ports in the first bytes of the ROM, such as those of a clock, which do change: these bytes are read
-- last, with the rest of the batch.

local limits = require "limits"
local memory = require "memory"
local operations = require "operations"

local GAME_BOY_ADVANCE = 0
local ROM_START, ROM_END = 0x08000000, 0x0E000000 -- on the bus of the Game Boy Advance
local ROM_DOMAINS = { cart0 = true, cart1 = true, cart2 = true }

local read_range, domain_read_range = operations.by_name.read_range, operations.by_name.domain_read_range

local readahead = {}

-- The places of the address and the length of an operation that reads much of the ROM, counted from its place in a
-- request; nil for other operations.
local function address_place(request, place)
  local op, a, b, c = request[place], request[place + 1], request[place + 2], request[place + 3]
  local base, length
  if op == read_range then
    base, length = a - ROM_START, b
  elseif op == domain_read_range and ROM_DOMAINS[a] then
    base, length = b, c
  end
  if not base or length <= limits.read_part or base < 0 or base + length > ROM_END - ROM_START then
    return nil
  end
  return op == read_range and 1 or 2
end

-- Begins to read ahead for a request, if that helps. Does nothing for a request that changes something, because its reply is
-- remembered in one piece.
function readahead.begin(request)
  if request.change or request.moved <= limits.frame_bytes or not emu or emu:platform() ~= GAME_BOY_ADVANCE then
    return false
  end
  local list, rest = {}, request.moved
  for place = 1, 5 * request.count, 5 do
    local at = address_place(request, place)
    if at then
      local length = request[place + at + 1]
      table.insert(list, 1, { place = place, at = at, length = length, parts = {}, rest = length })
      rest = rest - length
    end
  end
  if rest > limits.frame_bytes then
    return false
  end
  request.ahead, request.ahead_index = list, 1
  request.ahead_game, request.ahead_writes = emu:checksum(), memory.rom_writes
  request.moved = rest
  return true
end

local function give_up(request)
  for _, each in ipairs(request.ahead) do
    request.moved = request.moved + each.length
  end
  request.ahead = nil
end

-- Reads the last part that is missing.
local function read_part(request, each)
  local op, a, b = request[each.place], request[each.place + 1], request[each.place + 2]
  local index = (each.rest - 1) // limits.read_part
  local offset = index * limits.read_part
  local count = each.rest - offset
  local fine, part
  if each.at == 1 then
    fine, part = pcall(op.run, a + offset, count)
  else
    fine, part = pcall(op.run, a, b + offset, count)
  end
  each.parts[index + 1], each.rest = part, offset
  return fine and type(part) == "string" and #part == count
end

-- Whether the ROM has changed since the request began to read.
local function is_changed(request)
  return not emu or emu:checksum() ~= request.ahead_game or memory.rom_writes ~= request.ahead_writes
end

-- Reads a part. True if there is nothing more to read ahead; then the request must be performed immediately.
function readahead.go_on(request)
  local each = request.ahead[request.ahead_index]
  if is_changed(request) or not read_part(request, each) then
    give_up(request)
    return true
  elseif each.rest == 0 then
    request.ahead_index = request.ahead_index + 1
  end
  return request.ahead_index > #request.ahead
end

-- The parts that were read for the operation at a place of a request; or nil.
function readahead.parts(request, place)
  local ahead = request.ahead
  if not ahead then
    return nil
  end
  for _, each in ipairs(ahead) do
    if each.place == place then
      return each.parts, each.length
    end
  end
  return nil
end

return readahead
