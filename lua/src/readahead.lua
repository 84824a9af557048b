-- Reads the ROM in advance for requests that read a lot of it: a few small parts in each frame. Other memory changes
-- from frame to frame, so all operations of a batch have to read it between the same two frames. A ROM does not change,
-- so the script can read it earlier. But some cartridges have ports within the first bytes of the ROM, for example to a
-- clock, and these bytes do change. So they are read last, together with the rest of the batch. If a batch has several
-- ranges with such bytes, only the first of these ranges is read ahead.

local limits = require "limits"
local memory = require "memory"
local operations = require "operations"

local ROM_START, ROM_END = 0x08000000, 0x0E000000 -- on the bus of the Game Boy Advance
local ROM_SIZE = 0x2000000 -- of the largest ROM; after it, the bus has the same ROM again

local read_range, domain_read_range = operations.by_name.read_range, operations.by_name.domain_read_range

local readahead = {}

-- A request has 5 entries for each operation: the operation and up to 4 arguments. Its field `moved` is the number of
-- bytes of memory that its operations read or write (frames.lua).

-- For an operation at `place` that reads much of the ROM, returns the position of its address in the request, relative
-- to `place`, and whether the first part that it reads may have ports. The length is at the position after the
-- address. Returns nil for other operations.
local function address_place(request, place)
  local op, a, b, c = request[place], request[place + 1], request[place + 2], request[place + 3]
  local base, length
  if op == read_range then
    base, length = a - ROM_START, b
  elseif op == domain_read_range and memory.ROM_DOMAINS[a] then
    base, length = b, c
  end
  if not base or length <= limits.read_part or base < 0 or base + length > ROM_END - ROM_START then
    return nil
  end
  return op == read_range and 1 or 2, base % ROM_SIZE < limits.read_part
end

-- Begins to read ahead for a request if that helps; returns whether it does. It does not help a request that changes
-- something, because such a request's reply is remembered in one piece.
function readahead.begin(request)
  if request.change or request.moved <= limits.frame_bytes or not emu or not memory.is_advance() then
    return false
  end
  local list, rest, ports = {}, request.moved, nil
  local ahead = 0 -- how many bytes will be read ahead
  for place = 1, 5 * request.count, 5 do
    local at, has_ports = address_place(request, place)
    if at and not (has_ports and ports) then
      local length = request[place + at + 1]
      ahead = ahead + length
      if length > limits.range or ahead > limits.frame then
        return false -- the request is refused, or cut short, when it is performed
      end
      -- The field `rest` counts down to 0, because the parts are read from the last to the first.
      local each = { place = place, at = at, length = length, parts = {}, rest = length }
      if has_ports then
        ports = each
      else
        list[#list + 1] = each
      end
      rest = rest - length
    end
  end
  list[#list + 1] = ports -- so their bytes are read last of all
  if rest > limits.frame_bytes then
    return false
  end
  request.ahead, request.ahead_index = list, 1
  request.ahead_game, request.ahead_writes = emu:checksum(), memory.rom_writes
  request.moved = rest
  return true
end

-- Stops reading ahead for a request. The request will then read everything when it is performed.
local function give_up(request)
  for _, each in ipairs(request.ahead) do
    request.moved = request.moved + each.length
  end
  request.ahead = nil
end

-- Reads one part: the last one that is still missing. Returns whether that worked.
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

-- Whether the ROM has changed since the script began to read it for this request.
local function is_changed(request)
  return not emu or emu:checksum() ~= request.ahead_game or memory.rom_writes ~= request.ahead_writes
end

-- Reads one part for a request. Returns true if there is nothing more to read ahead; then the request must be performed
-- immediately.
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

-- Returns the parts that were read for the operation at `place`, and the number of bytes that it reads; nil if nothing
-- was read ahead for it.
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
