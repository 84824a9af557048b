-- The LuaJIT side of the tests in channel/lua.rs.
-- `luajit peer.lua ROLE NAME TASK COUNT`: ROLE is "create" or "connect", NAME is the channel's name, TASK is the name
-- of a function in `tasks`, and COUNT is how many messages the task `answer` reads.

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/../../../luajit/?.lua;" .. package.path

local bit = require "bit"
local channel = require "framewire.channel"

local role, name, task, count = arg[1], arg[2], arg[3], tonumber(arg[4])

-- This function and the next three make and check the same messages as channel/support.rs.
local function length_of(number)
  local kind = number % 50
  if kind == 49 then return 1 + number * 7919 % 300000 end
  if kind > 40 then return 1 + number * 31 % 5000 end
  return 1 + number * 13 % 130
end

local function byte_of(number, index)
  return bit.band(number * 31 + index * 7 + bit.rshift(index, 8), 255)
end

local function fill(place, number, length)
  for index = 0, length - 1 do place[index] = byte_of(number, index) end
end

local function check(data, number, length)
  for index = 0, length - 1 do
    if data[index] ~= byte_of(number, index) then error(("byte %d of message %d is wrong"):format(index, number)) end
  end
end

local mine
if role == "create" then
  mine = assert(channel.create(name))
  assert(mine:accept(10))
else
  mine = assert(channel.connect(name, 10))
end
local sender, receiver = mine.sender, mine.receiver

local tasks = {}

-- Checks `count` messages, and answers each with a message that has the same number. Then prints the error that the end
-- of the channel causes.
function tasks.answer()
  for number = 0, count - 1 do
    local data, length = receiver:await(10)
    if data == nil then error(length) end
    assert(length == length_of(number), "length of message " .. number)
    check(data, number, length)
    receiver:release()
    fill(assert(sender:reserve(length, 10)), number, length)
    sender:commit()
  end
  print(select(2, receiver:receive(10)))
end

-- Sends each message back.
function tasks.echo()
  while true do
    local text, problem = mine:receive(10)
    if not text then return print(problem) end
    assert(mine:send(text, 10))
  end
end

-- Sends messages until the test kills this process.
function tasks.send()
  local number = 0
  while true do
    local length = length_of(number)
    local place = sender:reserve(length, 10)
    if place == nil then return end
    fill(place, number, length)
    sender:commit()
    number = number + 1
  end
end

-- Prints a line when the first message arrives, reads until the other side is gone, and prints the error.
function tasks.read_to_the_end()
  local number = 0
  while true do
    local data, length = receiver:await(10)
    if number == 0 then
      print("reading")
      io.stdout:flush()
    end
    if data == nil then return print(length) end
    assert(length == length_of(number), "length of message " .. number)
    check(data, number, length)
    receiver:release()
    number = number + 1
  end
end

tasks[task]()
mine:close()
