local client = require "client"
local fake = require "fake"
local harness = require "harness"
local limits = require "limits"
local log = require "log"
local ticks = require "ticks"
local test, eq = harness.test, harness.eq
local END = client.END

local MINUTE = 60 * ticks.per_second

local server

-- Starts a new server with this listening socket, calls `run`, and stops the server.
local function serve(run, listener)
  listener = listener or fake.listener()
  emu, console = fake.emu { getGameTitle = "GAME", currentFrame = 9 }, fake.console()
  socket = { tcp = function() return { _s = listener } end, ERRORS = { [3] = "address in use" } }
  log.set_level("warn")
  server = fake.server()
  local fine, problem = xpcall(run, debug.traceback, listener)
  server.stop("the test is over")
  log.set_level("none")
  socket = nil
  assert(fine, problem)
end

-- Defines a test that runs while a new server runs.
local function served(name, run)
  test(name, function() serve(run) end)
end

-- Defines a test that runs while a new server runs. Its function also gets a clock: setting its field `now` sets the
-- time, in seconds.
local function served_by_clock(name, run)
  served(name, function(listener)
    local real_time, clock = os.time, { now = os.time() }
    os.time = function() return clock.now end -- luacheck: ignore
    server.frame()
    local fine, problem = xpcall(run, debug.traceback, listener, clock)
    os.time = real_time -- luacheck: ignore
    assert(fine, problem)
  end)
end

-- Adds a client that waits to be accepted, and has sent `bytes`.
local function arrives(listener, bytes)
  local new = fake.socket()
  table.insert(listener.waiting, new)
  new:arrive(bytes or "")
  return new
end

-- Connects this many clients, each of which has sent a request.
local function fill(listener, count)
  local list = {}
  for index = 1, count do
    list[index] = arrives(listener, "framewire.echo,x" .. END)
  end
  server.frame()
  return list
end

local function with_connections(count, run)
  local real = limits.connections
  limits.connections = count
  serve(run)
  limits.connections = real
end

-- Runs this many seconds with ten frames each. Calls `each_second` at the beginning of each second.
local function pass(clock, seconds, each_second)
  for _ = 1, seconds do
    clock.now = clock.now + 1
    each_second()
    for _ = 1, 10 do
      server.frame()
    end
  end
end

local PING = client.ping(1)

local STOPPED = "a link that has stopped sending pings is disconnected, one that sends them or never did is not"
served_by_clock(STOPPED, function(listener, clock)
  local links = {}
  for name = 1, 3 do
    links[name] = arrives(listener, client.hello(name))
  end
  server.frame()
  links[1]:arrive(PING)
  pass(clock, limits.silent_seconds, function() links[2]:arrive(PING) end)
  eq(links[1].closed, 0, "not too early")
  pass(clock, 2, function() links[2]:arrive(PING) end)
  eq(links[1].closed, 1)
  pass(clock, 3 * limits.silent_seconds, function() links[2]:arrive(PING) end)
  eq(links[2].closed, 0)
  eq(links[3].closed, 0)
end)

served_by_clock("hours in which mGBA was paused do not count as silence", function(listener, clock)
  local link = arrives(listener, client.hello(1) .. PING)
  server.frame()
  for _ = 1, 5 do
    clock.now = clock.now + 3600
    server.frame()
  end
  eq(link.closed, 0)
end)

served("a client is accepted and answered within the frame", function(listener)
  local new = arrives(listener, "core.getGameTitle" .. END)
  server.frame()
  eq(new.written, "GAME" .. END)
end)

test("a new client replaces the client that was silent for longest, if that was more than a minute", function()
  with_connections(3, function(listener)
    local list = fill(listener, 3)
    ticks.now = ticks.now + MINUTE
    for _, index in ipairs { 1, 3 } do
      list[index]:arrive("framewire.echo,again" .. END)
    end
    server.frame()
    local new = arrives(listener, "framewire.echo,new" .. END)
    server.frame()
    eq(list[1].closed + list[3].closed, 0, "those that asked")
    eq(list[2].closed, 1, "the one that was silent")
    eq(new.written, "new" .. END)
  end)
end)

test("clients that have disconnected do not count, even if the script has not noticed it yet", function()
  with_connections(3, function(listener)
    for _ = 1, 3 do
      arrives(listener):hang_up()
    end
    local new = arrives(listener, "framewire.echo,new" .. END)
    server.frame()
    eq(new.written, "new" .. END)
  end)
end)

test("a new client is turned away if there are too many clients that have sent requests recently", function()
  with_connections(3, function(listener)
    local list = fill(listener, 3)
    ticks.now = ticks.now + MINUTE - 2
    local new = arrives(listener, "framewire.echo,new" .. END)
    server.frame()
    eq(new.closed, 1)
    eq(new.forgot, true, "its descriptor")
    eq(console.lines[1], "Framewire: a client is turned away, 3 are connected")
    for _, each in ipairs(list) do
      eq(each.closed, 0)
    end
  end)
end)

served("an error in a client's turn closes only that connection", function(listener)
  local list = fill(listener, 2)
  list[1].recv = function() error("out of luck") end
  list[1]:arrive("x")
  list[2]:arrive("framewire.echo,y" .. END)
  server.frame()
  eq(list[1].closed, 1)
  eq(list[2].written, "x<|END|>y<|END|>")
  eq(console.lines[1]:find("out of luck", 1, true) ~= nil, true, console.lines[1])
end)

test("if the port is in use, the script tries again each second, and reports the problem once", function()
  local listener = fake.listener()
  listener.taken = true
  listener.close = function() end -- because the real script uses a new socket for each attempt
  serve(function()
    for _ = 1, 3 * ticks.per_second do
      server.frame()
    end
    eq(#console.lines, 1)
    eq(console.lines[1]:find("cannot listen on 127.0.0.1:8888: address in use", 1, true) ~= nil, true, console.lines[1])
    listener.taken = false
    for _ = 1, ticks.per_second do
      server.frame()
    end
    local new = arrives(listener, "framewire.echo,x" .. END)
    server.frame()
    eq(new.written, "x" .. END)
  end, listener)
end)

test("the error about an address of another machine does not blame only the port", function()
  local listener = fake.listener()
  listener.open = function() return -2 end
  serve(function()
    local text = "cannot listen on 127.0.0.1:8888: error -2. The address must belong to this machine"
    eq(console.lines[1]:find(text, 1, true) ~= nil, true, console.lines[1])
  end, listener)
end)

test("stopping sends the reason to links, closes all connections and releases keys", function()
  local link, texter, listening
  serve(function(listener)
    listening = listener
    link = arrives(listener, client.hello(31))
    texter = arrives(listener, "mgba-http.button.hold,L,1000" .. END)
    server.frame()
    link.written = ""
    server.stop("loaded again")
    local keys = emu.calls[#emu.calls]:match("^clearKeys (%d+)$")
    eq(tonumber(keys) & 0x200, 0x200, "the key that is released")
  end)
  eq(link.written:find("loaded again", 1, true) ~= nil, true, "the goodbye")
  eq(link.closed, 1)
  eq(texter.closed, 1)
  eq(listening.closed, 1)
end)

served("a client whose messages end every wait early still gets its long replies in the same frame", function(listener)
  local message = "framewire.echo," .. ("x"):rep(5000) .. END
  local new, asked = arrives(listener, "framewire.echo,x" .. END), 0
  server.frame()
  local look, before = new.select, #new.written
  -- One more message arrives in each wait.
  function new.select(self, milliseconds)
    if milliseconds > 0 and self.incoming == "" then
      self:arrive(message)
      asked = asked + 1
    end
    return look(self)
  end
  local first = 60
  new:arrive(message:rep(first))
  server.frame()
  assert(asked > 2, "the script did not wait for more")
  local unsent = (first + asked) * 5000 - (#new.written - before)
  assert(unsent < 10000, ("%d bytes of %d messages were not sent"):format(unsent, first + asked))
end)

served_by_clock("the request after a run is performed in the frame in which the run ends", function(listener, clock)
  local frame = 9
  emu.currentFrame = function() return frame end
  local link = arrives(listener, client.hello(71))
  -- Frames without a request let the budget (see steering.lua) grow.
  for _ = 1, 3 * ticks.per_second do
    frame = frame + 1
    server.frame()
    clock.now = clock.now + (frame % 60 == 0 and 1 or 0)
  end
  local count = 2 * ticks.per_second
  local steps = ("<I1I2I4I1s4I1"):pack(0, 1, count, 0, "", 0)
  link:arrive(client.request(1, ("<I1s4"):pack(0x87, steps)))
  server.frame()
  local look = link.select
  -- The client reads the reply and asks in the next wait.
  function link.select(self, milliseconds)
    local replies = client.read_stream(link.written:sub(link.written:find(END, 1, true) + #END))
    if milliseconds > 0 and replies[1] and not replies[2] and self.incoming == "" then
      self:arrive(client.request(2, "\x10"))
    end
    return look(self)
  end
  for _ = 1, count do
    frame = frame + 1
    server.frame()
  end
  local replies = client.read_stream(link.written:sub(link.written:find(END, 1, true) + #END))
  eq(replies[1], 0, "the run's reply")
  eq(replies[2], 0, "the reply to the request after it")
end)

-- Connects a link whose session has the number `name`.
local function link(listener, name)
  local new = arrives(listener, client.hello(name))
  server.frame()
  new.written = ""
  return new
end

-- A request that resets the console, and has at least `size` bytes.
local function long_request(id, size)
  return client.request(id, "\1" .. ("<s4"):pack(("x"):rep(size)) .. "\x80", 1, 2)
end

local PAUSED = 10 -- seconds

served_by_clock("a paused mGBA performs no withdrawn request later, however much was sent", function(listener, clock)
  -- `room` is how many bytes the system can hold until the script reads them.
  for name, room in pairs { [81] = math.huge, [82] = 512 * 1024 } do
    local new, sent = link(listener, name), {}
    emu.calls = {}
    for id = 1, 4 do
      sent[id] = long_request(id, 600 * 1024)
      sent[4 + id] = client.cancel(id)
    end
    local stream = table.concat(sent) .. client.request(5, "\x10")
    clock.now = clock.now + PAUSED
    for _ = 1, 10 do
      local count = math.min(#stream, room - #new.incoming)
      new:arrive(stream:sub(1, count))
      stream = stream:sub(count + 1)
      server.frame()
    end
    eq(fake.count_calls "reset", 0, ("resets with room for %s"):format(room))
    local replies = client.read_stream(new.written)
    eq(replies[1], nil)
    eq(replies[5], 0, "the request after the cancels")
  end
end)

served_by_clock("after a pause, a link that never stops sending is served", function(listener, clock)
  local new, id = link(listener, 83), 0
  clock.now = clock.now + PAUSED
  for _ = 1, 20 do
    id = id + 1
    new:arrive(long_request(id, 100 * 1024))
    server.frame()
  end
  eq(new.closed, 0)
  eq(fake.count_calls "reset", id)
end)

served_by_clock("after a pause, usual requests are performed in the first frame", function(listener, clock)
  local new, text = link(listener, 84), arrives(listener, "framewire.echo,x" .. END)
  server.frame()
  clock.now = clock.now + PAUSED
  new:arrive(PING .. client.request(1, "\x10"))
  text:arrive("framewire.echo," .. ("y"):rep(100 * 1024) .. END .. "coreAdapter.reset" .. END)
  server.frame()
  eq(client.read_stream(new.written)[1], 0)
  eq(fake.count_calls "reset", 1)
end)

served_by_clock("frames that take almost a second do not count as a pause", function(listener, clock)
  local new = link(listener, 85)
  for id = 1, 5 do
    clock.now = clock.now + 1
    new:arrive(long_request(id, 100 * 1024))
    server.frame()
    eq(fake.count_calls "reset", id)
  end
end)

served_by_clock("a user who runs single frames of a paused mGBA gets requests performed", function(listener, clock)
  local new = link(listener, 86)
  for id = 1, 30 do
    clock.now = clock.now + PAUSED
    new:arrive(long_request(id, 100 * 1024))
    server.frame()
  end
  assert(fake.count_calls "reset" >= 20, "too few requests were performed")
end)
