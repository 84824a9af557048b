local client = require "client"
local fake = require "fake"
local harness = require "harness"
local limits = require "limits"
local ticks = require "ticks"
local test, eq = harness.test, harness.eq
local connect, link, settle, END = client.connect, client.link, client.settle, client.END

local function read_range(length)
  return string.pack("<I1I4I4", 0x23, 0x02000000, length)
end

local calls = fake.count_calls

-- Lets a minute pass, after which large requests may use all of their time again.
local function rest()
  ticks.now = ticks.now + 60 * ticks.per_second
end

-- Loads throttle.lua again, with a processor time that stands still. Also returns a function that uses some seconds of
-- this time.
local function fresh()
  local others, real_clock, now = package.loaded.throttle, os.clock, 0
  package.loaded.throttle = nil
  os.clock = function() return now end -- luacheck: ignore
  local throttle = require "throttle"
  os.clock = real_clock -- luacheck: ignore
  package.loaded.throttle = others
  return throttle, function(seconds)
    now = now + seconds
  end
end

test("large requests get a small share of the time", function()
  rest()
  local throttle, work = fresh()
  eq(throttle.admits(limits.range), true)
  throttle.run(limits.range, work, limits.large_seconds + 0.01)
  eq(throttle.admits(limits.range), false, "right after a request that took long")
  ticks.now = ticks.now + 1
  eq(throttle.admits(limits.frame_bytes), true, "a smaller request in the next frame")
  ticks.now = ticks.now + ticks.per_second
  eq(throttle.admits(limits.range), true, "when there is enough time again")
end)

test("after a slow large request, the next one waits only for a short time", function()
  rest()
  local throttle, work = fresh()
  throttle.run(limits.range, work, 0.4)
  ticks.now = ticks.now + limits.large_wait * ticks.per_second - 10
  eq(throttle.admits(limits.range), false)
  ticks.now = ticks.now + 11
  eq(throttle.admits(limits.range), true)
end)

test("a write of more bytes than any memory has is refused before anything is written", function()
  rest()
  local socket, _, take = link(712)
  socket:arrive(client.request(1, string.pack("<I1I4s4", 0x27, 0x02000000, ("x"):rep(limits.write + 1))))
  settle(take)
  eq(client.read_stream(socket.written)[1], 1)
  eq(calls("write8"), 0)
end)

test("if four clients read too much for one frame, the rest is read in the next frames", function()
  rest()
  local list = {}
  for index = 1, 4 do
    local socket, self, take = link(700 + index)
    list[index] = { socket = socket, self = self, take = take }
  end
  emu.calls = {}
  for _, each in ipairs(list) do
    for id = 1, 4 do
      each.socket:arrive(client.request(id, read_range(limits.frame_bytes // 2)))
    end
  end
  for frame = 1, 8 do
    ticks.now = ticks.now + 1
    for _, each in ipairs(list) do
      settle(each.take)
    end
    eq(calls("readRange"), 2 * frame, "reads after frame " .. frame)
  end
  for _, each in ipairs(list) do
    eq(#client.read_stream(each.socket.written), 4)
  end
end)

test("a read that waits for a frame does not delay later requests, but a write does", function()
  rest()
  local socket, _, take = link(710)
  socket:arrive(client.request(1, read_range(limits.frame_bytes)) .. client.request(2, read_range(1000))
    .. client.request(3, "\x10"))
  settle(take)
  local replies = client.read_stream(socket.written)
  eq(replies[1], 0)
  eq(replies[2], nil, "the read that waits")
  eq(replies[3], 0, "the request after it")
  -- A byte that is written counts as 64 bytes (`WRITE_COST` in operations.lua), so this write takes all of a frame.
  socket:arrive(client.request(4, string.pack("<I1I4s4", 0x27, 0x02000000, ("x"):rep(limits.frame_bytes // 64)))
    .. client.request(5, "\x10"))
  settle(take)
  eq(client.read_stream(socket.written)[5], nil, "the request after a write")
  ticks.now = ticks.now + 1
  settle(take)
  eq(client.read_stream(socket.written)[2], 0)
  for _ = 1, 3 do
    ticks.now = ticks.now + 1
    settle(take)
  end
  replies = client.read_stream(socket.written)
  eq(replies[4], 0)
  eq(replies[5], 0)
end)

test("a request that is cancelled while it waits for a frame is not performed", function()
  rest()
  local socket, self, take = link(711)
  socket:arrive(client.request(1, read_range(limits.frame_bytes)) .. client.request(2, read_range(2000))
    .. client.request(3, read_range(3000)))
  settle(take)
  eq(#self.deferred, 2)
  socket:arrive(client.cancel(3))
  settle(take)
  ticks.now = ticks.now + 1
  settle(take)
  eq(calls("readRange"), 2)
  eq(client.read_stream(socket.written)[2], 0)
end)

test("a text message that reads a lot waits for a frame, and later messages wait for it", function()
  rest()
  local socket, _, take = connect()
  -- In a text message, a byte counts as 4 bytes (`TEXT_COST` in messages.lua), so each message takes all of a frame.
  local message = ("core.readRange,0x02000000,%d%s"):format(limits.frame_bytes // 4, END)
  socket:arrive(message .. message .. "framewire.echo,x" .. END)
  settle(take)
  eq(socket.written, "00" .. END)
  ticks.now = ticks.now + 1
  settle(take)
  eq(socket.written, "00" .. END .. "00" .. END .. "x" .. END)
end)

test("a text message may not read 16 MiB", function()
  local socket, _, take = connect()
  socket:arrive("core.readRange,0x08000000," .. limits.range .. END)
  settle(take)
  eq(socket.written, "<|ERROR|>" .. END)
  eq(calls("readRange"), 0)
end)
