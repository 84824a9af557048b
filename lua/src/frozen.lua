-- Reads and writes memory at addresses that expressions compute, and freezes values there. An expression is evaluated
-- again for each access. A *frozen value* is written again after each frame.

local arguments = require "arguments"
local code = require "code"
local emulator = require "emulator"
local game = require "game"
local limits = require "limits"
local memory = require "memory"
local refusal = require "refusal"

local unpack = string.unpack
local refuse, BAD_ARGUMENT = refusal.refuse, refusal.BAD_ARGUMENT

local frozen = {}

local all = {} -- the frozen values, in the order in which they were frozen

local function current_address(value, length, is_write)
  return code.address(value, emulator.frame(), length, is_write)
end

-- Writes 2 or 4 bytes as a number, other lengths byte by byte.
local function write(address, data)
  if #data == 2 then
    memory.write16(address, (unpack("<I2", data)))
  elseif #data == 4 then
    memory.write32(address, (unpack("<I4", data)))
  else
    memory.write_range(address, data)
  end
end

-- Evaluates an expression to an address, and reads bytes there. Returns one string: the address in 4 bytes, and then
-- the bytes.
function frozen.read_at(expression, length)
  local address = current_address(code.compile(expression, "address"), length)
  return string.pack("<I4", address) .. emu:readRange(address, length)
end

-- Evaluates an expression to an address, and writes bytes there. Returns the address.
function frozen.write_at(expression, data)
  memory.check_size(data)
  local address = current_address(code.compile(expression, "address"), #data, true)
  write(address, data)
  return address
end

local function find(name)
  for index, value in ipairs(all) do
    if value.name == name then
      return index
    end
  end
end

local function check_lengths(name, data)
  if #name < 1 or #name > limits.frozen_name then
    refuse(BAD_ARGUMENT, "name has %d bytes; use 1 to %d", #name, limits.frozen_name)
  elseif #data < 1 or #data > limits.frozen_length then
    refuse(BAD_ARGUMENT, "data has %d bytes; use 1 to %d", #data, limits.frozen_length)
  end
end

-- Checks the arguments of `frozen.freeze` before it is called. Raises a refusal if one of them is not accepted.
function frozen.check(name, _, expression, data)
  check_lengths(name, data)
  code.check_address(expression, #data, true)
end

-- Freezes a value: writes it now, and again after each frame. Replaces a frozen value with the same name.
function frozen.freeze(name, kind, expression, data)
  check_lengths(name, data)
  local known = find(name)
  if not known and #all >= limits.frozen then
    refuse(refusal.BUSY, "%d values are frozen already, which is the limit; unfreeze one first", #all)
  end
  local address = code.compile(expression, "address")
  write(current_address(address, #data, true), data)
  if known then
    table.remove(all, known)
  end
  all[#all + 1] = { name = name, kind = kind, address = address, data = data, games = game.games }
end

-- The name of the first frozen value; nil if there is no frozen value.
function frozen.first()
  return all[1] and all[1].name
end

-- Unfreezes a value, or all values if the name is *. Returns whether there was one.
function frozen.unfreeze(name)
  if name == "*" then
    local any = #all > 0
    all = {}
    return any
  end
  local known = find(name)
  if known then
    table.remove(all, known)
  end
  return known ~= nil
end

-- Returns a list with three texts for each frozen value: its name, its type, and its bytes in hexadecimal, separated by
-- commas.
function frozen.list()
  local texts = {}
  for _, value in ipairs(all) do
    texts[#texts + 1] = value.name
    texts[#texts + 1] = value.kind
    texts[#texts + 1] = arguments.to_hex(value.data)
  end
  return texts
end

-- Called after each frame. Writes all frozen values again, and forgets those that were frozen in another game.
function frozen.keep()
  if not emu or #all == 0 then
    return
  end
  for index = #all, 1, -1 do
    if all[index].games ~= game.games then
      table.remove(all, index)
    end
  end
  -- If values overlap, the one that was frozen last is written last.
  for _, value in ipairs(all) do
    -- If the expression has no value in this frame, or the console has no memory at the address, nothing is written.
    local fine, address = pcall(current_address, value.address, #value.data, true)
    if fine then
      write(address, value.data)
    elseif type(address) ~= "table" then
      error(address, 0)
    end
  end
end

return frozen
