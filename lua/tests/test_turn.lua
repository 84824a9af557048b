local client = require "client"
local fake = require "fake"
local frames = require "frames"
local harness = require "harness"
local limits = require "limits"
local log = require "log"
local ticks = require "ticks"
local turn = require "turn"
local test, eq = harness.test, harness.eq
local connect, link, settle = client.connect, client.link, client.settle
local request, cancel, read_stream, END = client.request, client.cancel, client.read_stream, client.END

local RESET = "\x80"

local function resets()
  return fake.count_calls("reset")
end

test("a cancel that comes after more requests than fit into the queue still prevents its request", function()
  local socket, self, take = link(21)
  local count = limits.queue + 100
  local last = count - 50 -- decoded when the queue is filled for the second time; its cancel is decoded later
  local stream = {}
  for id = 1, count do
    stream[id] = request(id, RESET)
  end
  socket:arrive(table.concat(stream) .. cancel(last))
  take()
  eq(self.queue_last - self.queue_first < limits.queue, true, "the queue is bounded")
  settle(take)
  eq(resets(), count - 1)
  local replies = read_stream(socket.written)
  eq(replies[last - 1], 0)
  eq(replies[last], nil)
  eq(replies[last + 1], 0)
end)

-- Connects a link that sends 20 requests whose replies have 5,000 bytes each.
local function many_replies(name)
  local socket, self = link(name)
  emu = fake.emu { readRange = ("x"):rep(5000), currentFrame = 9 }
  for id = 1, 20 do
    socket:arrive(request(id, string.pack("<I1I4I4", 0x23, 0x02000000, 5000)))
  end
  return socket, self
end

test("the replies to many requests are sent in slices during their turn", function()
  local socket, self = many_replies(24)
  turn.take(self, false, math.huge)
  local replies = read_stream(socket.written)
  eq(#replies, 20)
  eq(self.unsent, 0)
  eq(socket.largest_write <= limits.send_slice, true)
end)

test("if a connection is lost while the replies of a turn are sent, it is closed", function()
  local socket, self = many_replies(25)
  function socket.send(which)
    which.error = 2
    return -1
  end
  turn.take(self, false, math.huge)
  eq(self.socket, nil)
  eq(socket.closed, 1)
end)

test("at level debug, log lines have the name of a request that was traced", function()
  local socket, _, take = link(23)
  local function trace(id, name)
    return client.frame(frames.TRACE, string.pack("<I4s4", id, name))
  end
  log.set_level "debug"
  local before = console
  console = fake.console()
  socket:arrive(trace(1, "tool-7") .. request(1, RESET) .. request(2, RESET) .. trace(9, "lost") .. request(3, RESET))
  settle(take)
  log.set_level "info"
  socket:arrive(trace(4, "quiet") .. request(4, RESET))
  settle(take)
  local said = table.concat(console.lines, "\n")
  console = before
  eq(said:find("request tool-7: reset done", 1, true) ~= nil, true, said)
  eq(select(2, said:gsub("request ", "")), 1, said)
  socket:arrive(trace(5, ("x"):rep(limits.trace + 1)))
  settle(take)
  local _, kinds = read_stream(socket.written)
  eq(kinds[frames.GOODBYE], 1)
end)

test("the waiting and later requests of a dismissed link are not performed", function()
  local socket, self, take = link(22)
  socket:arrive(request(1, RESET):rep(limits.turn.requests) .. request(2, RESET))
  take()
  local before = resets()
  eq(self.queue_last >= self.queue_first, true, "one waits")
  turn.dismiss(self, "no reason")
  socket:arrive(request(3, RESET))
  settle(take)
  eq(resets(), before)
  local _, kinds = read_stream(socket.written)
  eq(kinds[frames.GOODBYE], 1)
  eq(self.session, nil)
end)

test("a dismissed client has time to read the reason, and then its connection is closed", function()
  local socket, self, take = link(23)
  turn.dismiss(self, "no reason")
  for _ = 1, 2 * ticks.per_second do
    take()
    ticks.now = ticks.now + 1
  end
  eq(socket.closed, 0)
  take()
  ticks.now = ticks.now + 1
  take()
  eq(socket.closed, 1)
end)

test("if a dismissed client closes its connection, the script closes it at once", function()
  local socket, self, take = link(24)
  turn.dismiss(self, "no reason")
  take()
  socket:hang_up()
  take()
  eq(socket.closed, 1)
end)

-- What a browser sends for a web page that tries to control this script. A page needs no permission to send text/plain.
local HEAD = "Host: 127.0.0.1:8888\r\nContent-Type: text/plain\r\nOrigin: http://evil.example\r\n\r\n"
local BODY = ";" .. END .. "coreAdapter.reset" .. END

-- Connects a client that sends `text` in pieces of `size` bytes, until the script closes the connection. Gives a turn
-- after each piece. Returns what `client.connect` returns.
local function send_in_pieces(text, size)
  local socket, self, take = connect()
  for at = 1, #text, size do
    if self.socket then
      socket:arrive(text:sub(at, at + size - 1))
      take()
    end
  end
  return socket, self, take
end

test("no message in an HTTP request is performed, whatever pieces it arrives in", function()
  local requests = {
    "GET / HTTP/1.1\r\n" .. HEAD,
    "POST /core/step?x=" .. ("y"):rep(100) .. " HTTP/1.1\r\n" .. HEAD .. BODY,
    "POST /" .. ("y"):rep(3 * limits.small_read) .. " HTTP/1.1\r\n" .. HEAD .. BODY,
    "OPTIONS * HTTP/1.0\r\n\r\n" .. BODY,
    "\r\nPOST / HTTP/1.1\r\n" .. BODY,
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" .. BODY,
  }
  log.set_level("warn")
  for index, text in ipairs(requests) do
    for _, size in ipairs { #text, 1000, 7 } do
      local socket = send_in_pieces(text, size)
      local case = ("request %d in pieces of %d"):format(index, size)
      eq(socket.closed, 1, case)
      eq(#emu.calls, 0, case)
      eq(socket.written, "", case)
      eq(#console.lines, 1, case)
      eq(console.lines[1]:find("`framewire serve`", 1, true) ~= nil, true, console.lines[1])
    end
  end
  log.set_level("none")
end)

test("messages that only look a little like HTTP are answered", function()
  local texts = { "framewire.echo,GET / HTTP/1.1", "framewire.echo, / HTTP/1.1\r\n" }
  for _, text in ipairs(texts) do
    local socket, _, take = connect()
    socket:arrive(text .. END)
    settle(take)
    eq(socket.written, text:match(",(.*)") .. END)
  end
  local socket, _, take = connect()
  socket:arrive("framewire.echo,x" .. END .. "GET / HTTP/1.1" .. END .. "framewire.echo,y" .. END)
  settle(take)
  eq(socket.written, "x<|END|><|ERROR|><|END|>y<|END|>", "later in a connection")
end)

-- The beginnings are first bytes of other protocols, and text that only resembles a message. The first one is a TLS 1.2
-- hello as a browser sends it, with a session id that the server of a web page has chosen.
test("no message is performed after first bytes that are not a message, whatever pieces they arrive in", function()
  local beginnings = {
    "\x16\3\1\0\xC8\1\0\0\xC4\3\3" .. ("r"):rep(32) .. "\x20<|END|>core.addKey,0<|END|>pad",
    "\x16\3\1\xFF\xFF\1\0\xFF\xFB\3\3" .. ("r"):rep(32) .. "\0" .. ("t"):rep(60000),
    "SSH-2.0-OpenSSH_9.2\r\n",
    "M-SEARCH * HTTP/1.1\r\n",
    "EHLO example\r\n",
    "\0\1\0\8\x21\x12\xA4\x42",
    "\0",
    ("\r\n"):rep(limits.small_read),
    "core.addKey\0,0",
    "core.addKey <|END|>",
    "core.addKey<|end|>",
    "core.addKey\r\n",
    "<core.addKey",
    ("x"):rep(100),
  }
  for index, beginning in ipairs(beginnings) do
    local text = beginning .. "<|END|>core.addKey,0<|END|>framewire.echo,x<|END|>"
    for _, size in ipairs { #text, 1000, 7, 1 } do
      local socket = send_in_pieces(text, size)
      local case = ("beginning %d in pieces of %d"):format(index, size)
      eq(socket.closed, 1, case)
      eq(#emu.calls, 0, case)
      eq(socket.written, "", case)
    end
  end
end)

test("an unknown first message is answered with an error, and nothing after it is performed", function()
  for _, text in ipairs { "nonsense", "nonsense,1", "core.newInVersion2,0", "", ",0" } do
    local socket, self, take = connect()
    socket:arrive(text .. END .. "core.addKey,0" .. END)
    settle(take)
    socket:arrive("core.addKey,0" .. END)
    settle(take)
    eq(socket.written, "<|ERROR|><|END|>", text)
    eq(#emu.calls, 0, text)
    eq(self.dismissed ~= nil, true, text)
  end
end)

test("a known first message is performed, whatever pieces it arrives in", function()
  for _, text in ipairs { "framewire.echo,x", "\r\n framewire.echo,x" } do
    for size = 1, #text do
      local socket, _, take = send_in_pieces(text .. END, size)
      settle(take)
      eq(socket.written, "x" .. END, ("%q in pieces of %d"):format(text, size))
    end
  end
end)
