local client = require "client"
local frames = require "frames"
local harness = require "harness"
local limits = require "limits"
local log = require "log"
local ticks = require "ticks"
local test, eq = harness.test, harness.eq
local connect, link, settle, greet = client.connect, client.link, client.settle, client.greet
local request, read_stream, END = client.request, client.read_stream, client.END

-- The encoded operations in these tests: "\x10" is current_frame, and "\x80" is reset.

test("messages that arrive together are answered together and in order", function()
  local socket, _, take = connect()
  socket:arrive("core.getGameTitle" .. END .. "nonsense" .. END .. "framewire.echo,x" .. END)
  settle(take)
  eq(socket.written, "GAME<|END|><|ERROR|><|END|>x<|END|>")
end)

test("a turn that performs as many messages as allowed does not shorten the next turn", function()
  local socket, _, take = connect()
  for _ = 1, 3 do
    socket:arrive(("coreAdapter.reset" .. END):rep(limits.turn.requests))
    take()
  end
  eq(#emu.calls, 3 * limits.turn.requests)
end)

test("a reply that the client reads in parts arrives completely", function()
  local socket, self, take = connect()
  local text = ("0123456789"):rep(200000)
  socket.room = 1000
  socket:arrive("framewire.echo," .. text .. END)
  for _ = 1, 20000 do
    take()
    socket.room = socket.room + 777
    if self.unsent == 0 and #socket.written > 0 then
      break
    end
  end
  eq(socket.written == text .. END, true, "the reply")
end)

test("if a client closes its connection, the socket is closed once and forgets its descriptor", function()
  local socket, self, take = connect()
  socket:hang_up()
  take()
  eq(socket.closed, 1)
  eq(socket.forgot, true)
  eq(self.socket, nil)
end)

test("if a client closes its sending side, its messages are performed but get no reply", function()
  local socket, _, take = connect()
  socket:arrive("coreAdapter.reset" .. END .. "core.getGameTitle" .. END)
  socket:hang_up()
  settle(take)
  eq(#emu.calls, 2)
  eq(socket.writes, 0)
  eq(socket.closed, 1)
end)

test("each write is small, and its bytes are prepared before the check that allows it", function()
  local socket, self, take = connect()
  local real_select, real_send, seen = socket.select, socket.send, nil
  function socket.select(...)
    seen = self.slice
    return real_select(...)
  end
  function socket.send(which, data)
    assert(rawequal(data, seen), "the bytes were made after the check")
    return real_send(which, data)
  end
  socket:arrive("framewire.echo," .. ("x"):rep(1000000) .. END)
  settle(take)
  socket:arrive(("framewire.echo,abc" .. END):rep(100))
  settle(take)
  eq(#socket.written, 1000000 + #END + 100 * (3 + #END))
  eq(socket.largest_write, limits.send_slice)
end)

-- The fake socket fails the test at a second write after the other end has gone.
test("after a write to a client that was killed, nothing is written to it", function()
  for sent = 1, 40 do
    local socket, self, take = connect()
    for index = 1, 400 do
      socket:arrive("framewire.echo," .. index .. END)
      if index % 10 == 0 and self.socket then
        take()
      end
      if index == sent * 10 then
        socket:hang_up()
      end
    end
    if self.socket then
      settle(take)
    end
    eq(socket.closed, 1)
  end
end)

test("the requests of a client that was killed are performed", function()
  local socket, _, take = connect()
  socket:arrive("core.getGameTitle" .. END)
  take()
  socket:arrive("core.step" .. END .. "core.step" .. END .. "core.st")
  socket:hang_up()
  settle(take)
  local _, steps = table.concat(emu.calls, " "):gsub("step", "")
  eq(steps, 2)
end)

test("if a client does not read its replies, its requests wait, and later its connection is closed", function()
  local socket, self, take = connect()
  socket.room = 0
  local message = "framewire.echo," .. ("x"):rep(100000) .. END
  for _ = 1, 100 do
    socket:arrive(message)
  end
  local real_time, now = os.time, os.time()
  os.time = function() return now end -- luacheck: ignore
  for _ = 1, 20 * 60 do
    if self.socket then
      take()
      eq(self.unsent < 2 * limits.full_outbox, true, "the replies are bounded")
    end
    ticks.now = ticks.now + 1
    now = now + (ticks.now % 60 == 0 and 1 or 0)
  end
  os.time = real_time -- luacheck: ignore
  eq(self.socket, nil)
end)

test("a message that is too long gets an error, and the connection is closed", function()
  local socket, self, take = connect()
  local piece = ("x"):rep(1024 * 1024)
  socket:arrive("framewire.echo,")
  for _ = 1, 10 do
    socket:arrive(piece)
    take()
  end
  eq(socket.written, "<|ERROR|><|END|>")
  for _ = 1, 200 do
    ticks.now = ticks.now + 1
    if self.socket then
      take()
    end
  end
  eq(self.socket, nil)
end)

test("a link gets a welcome, which says after a reconnection that its session is known", function()
  local socket, _, take = connect()
  local first = greet(socket, take, 77)
  eq(first:match("^framewire%.welcome,1,[%d.]+,%x+,0,9,%d+$") ~= nil, true, first)
  socket:hang_up()
  take()
  local again, _, take_again = connect()
  eq(greet(again, take_again, 77), (first:gsub(",0,9,", ",1,9,")))
end)

test("a hello with wrong arguments is an error", function()
  for _, text in ipairs { "", ",1", ",1,12", ",0,0123456789abcdef", ",1,0123456789abcdeg", ",x,0123456789abcdef" } do
    local socket, self, take = connect()
    socket:arrive("framewire.hello" .. text .. END)
    settle(take)
    eq(socket.written, "<|ERROR|><|END|>", text)
    eq(self.binary, false)
  end
end)

test("a link with an older protocol learns this script's protocol", function()
  local version = require "version"
  local protocol = version.protocol
  version.protocol = protocol + 1
  local socket, _, take = connect()
  local welcome = greet(socket, take, 78)
  version.protocol = protocol
  eq(welcome:match("^framewire%.welcome,(%d+),"), tostring(protocol + 1))
end)

test("binary frames in the same packet as the hello are read", function()
  local socket, _, take = connect()
  socket:arrive(client.hello(5) .. request(1, "\x10"))
  settle(take)
  local _, stop = socket.written:find(END, 1, true)
  eq(read_stream(socket.written:sub(stop + 1))[1], 0)
end)

test("a cancel prevents a request that waits, and does nothing for one that was performed", function()
  local socket, _, take = link(1)
  socket:arrive(request(1, "\x80") .. request(2, "\x80") .. client.cancel(2))
  settle(take)
  local replies = read_stream(socket.written)
  eq(replies[1], 0)
  eq(replies[2], nil)
  socket:arrive(client.cancel(1) .. request(3, "\x80"))
  settle(take)
  eq(read_stream(socket.written)[3], 0)
end)

test("a ping is answered", function()
  local socket, _, take = link(1)
  socket:arrive(client.ping(3))
  settle(take)
  eq(socket.written, frames.encode_pong(3, 9))
end)

test("bytes that are not a frame end the link with a goodbye", function()
  local bad = {
    string.pack("<I4", 0), string.pack("<I4", 0xFFFFFFFF), "\1\0\0\0\9", "\1\0\0\0\1",
    request(1, "\xff"), request(1, "\x20\0\0"), request(1, "\x10\x10"), client.frame(frames.PING, "\1\0"),
  }
  for index, bytes in ipairs(bad) do
    local socket, self, take = link(1)
    socket:arrive(request(1, "\x10"))
    settle(take)
    socket:arrive(bytes)
    settle(take)
    local replies, kinds = read_stream(socket.written)
    eq(replies[1], 0, "the reply before, in case " .. index)
    eq(kinds[frames.GOODBYE], 1, "the goodbyes in case " .. index)
    eq(self.session, nil)
  end
end)

test("a link that connects again takes over its session", function()
  local socket, old, take = link(9)
  local _, new = link(9)
  settle(take)
  local _, kinds = read_stream(socket.written)
  eq(kinds[frames.GOODBYE], 1)
  eq(old.session, nil)
  eq(new.session.connection, new)
end)

test("a request that was performed before a reconnection is not performed after it", function()
  local socket, _, take = link(11)
  socket:arrive(request(1, "\x80"))
  settle(take)
  socket:hang_up()
  take()
  local again, _, take_again = link(11) -- also creates a new `emu`, which has no calls yet
  again:arrive(request(1, "\x80") .. request(2, "\x80"))
  settle(take_again)
  eq(read_stream(again.written)[1], 0)
  eq(read_stream(again.written)[2], 0)
  local _, count = table.concat(emu.calls, " "):gsub("reset", "")
  eq(count, 1, "the resets after the reconnection")
end)

test("no stream of bytes raises an error", function()
  math.randomseed(3)
  for _ = 1, 3000 do
    local socket, self, take = connect()
    if math.random(2) == 1 then
      greet(socket, take, math.random(5))
    end
    for _ = 1, 5 do
      local bytes = request(math.random(9), "\x10") .. "core.step" .. END .. client.cancel(1)
      local from = math.random(#bytes)
      socket:arrive(bytes:sub(from, math.random(from, #bytes)) .. string.char(math.random(0, 255)))
      if self.socket then
        take()
      end
    end
    socket:hang_up()
    if self.socket then
      settle(take)
    end
    eq(self.socket, nil)
  end
end)

test("a reply is sent while only a part of a large request has arrived", function()
  local socket, _, take = client.link(901)
  local large = client.request(2, "\1" .. string.pack("<s4", ("x"):rep(2 * limits.read_ahead)))
  socket:arrive(client.request(1, "\x10") .. large:sub(1, limits.read_ahead + 100))
  client.settle(take)
  eq(client.read_stream(socket.written)[1], 0)
end)

log.set_level("none")
