local client = require "client"
local fake = require "fake"
local frames = require "frames"
local harness = require "harness"
local keyboard = require "keyboard"
local limits = require "limits"
local log = require "log"
local steering = require "steering"
local ticks = require "ticks"
local test, eq = harness.test, harness.eq
local END = client.END

local server, listener

-- Runs a frame of the game.
local function next_frame()
  emu.frame = emu.frame + 1
  server.frame()
end

-- Starts a new server, calls `run`, and stops the server.
local function serve(run)
  listener = fake.listener()
  emu, console = fake.emu { getKeys = 0, read8 = 1 }, fake.console()
  rawset(emu, "value", "\0")
  rawset(emu, "frame", 9)
  rawset(emu, "currentFrame", function() return emu.frame end)
  rawset(emu, "readRange", function(_, _, length) return emu.value:rep(length) end)
  socket = { tcp = function() return { _s = listener } end, ERRORS = {} }
  server = fake.server()
  next_frame()
  local fine, problem = xpcall(run, debug.traceback)
  server.stop("the test is over")
  socket = nil
  assert(fine, problem)
end

-- Defines a test that runs while a new server runs.
local function served(name, run)
  test(name, function() serve(run) end)
end

-- Connects a link.
local function link(name)
  local new = fake.socket()
  table.insert(listener.waiting, new)
  new:arrive(client.hello(name))
  next_frame()
  new.written = ""
  return new
end

-- Decodes the binary frames that a link has received since the last call. Returns them as text: `reply ID STATUS`;
-- `event COUNT` and the bytes of the items, each of which begins with its kind (docs/protocol.md, section 6); or
-- `kind KIND` for any other frame.
local function received(socket)
  local list, stream = {}, socket.written
  socket.written = ""
  for kind, body in client.each_frame(stream) do
    if kind == frames.REPLY then
      table.insert(list, ("reply %d %d"):format(string.unpack("<I4", body), body:byte(11)))
    elseif kind == frames.EVENT then
      local frame, count, items = string.unpack("<I4I2", body)
      eq(frame, emu.frame)
      table.insert(list, ("event %d"):format(count))
      for index = items, #body do
        list[#list] = list[#list] .. (" %d"):format(body:byte(index))
      end
    else
      table.insert(list, "kind " .. kind)
    end
  end
  return table.concat(list, ", ")
end

local function ask(socket, id, ...)
  socket:arrive(client.request(id, string.pack(...), id))
end

-- Codes of operations. The tests also use others by their number, such as 0x20, which is `read8`; docs/operations.md
-- lists all of them.
local WATCH, PLAY, CANCEL, LOCKSTEP, ADVANCE, RESUME, RESET = 0xb0, 0x56, 0x57, 0x86, 0x85, 0x83, 0x80

served("a link gets the changes of its watches and all other events, a text client gets nothing", function()
  local new, other, texter = link(201), link(202), fake.socket()
  table.insert(listener.waiting, texter)
  ask(new, 1, "<I1I4I4I1s4", WATCH, 5, 0, 0, string.pack("<s1I4I2", "", 16, 2))
  next_frame()
  eq(received(new), "reply 1 0")
  next_frame()
  eq(received(new), "")
  emu.value, emu.frame = "\7", 0
  rawset(emu, "getGameTitle", function() return "ANOTHER" end)
  next_frame()
  eq(received(new), "event 3 1 5 0 0 0 2 0 0 0 2 0 0 0 2 0 0 0 7 7 254 255 1 0 0 0 3 2 5")
  next_frame()
  eq(received(new), "")
  emu.frame = 1 -- `received` expects events from this frame; those of `other` are one frame old
  eq(received(other), "event 2 2 5")
  eq(texter.written, "")
end)

served("a reset and a loaded state of another frame are reported", function()
  local new = link(211)
  local function after(frame)
    emu.frame = frame
    server.frame()
    return received(new)
  end
  local now = emu.frame
  eq(after(now + 1), "")
  eq(after(now + 2), "")
  eq(after(5), "event 1 6", "a state")
  eq(after(1), "event 1 2")
  eq(after(2), "")
  eq(after(0), "event 1 2")
  eq(after(1), "")
end)

served("another game that was loaded together with a state is noticed in its first frame", function()
  local new, FREEZE = link(230), 0xb5
  ask(new, 1, "<I1s4s4s4s4", FREEZE, "lives", "u8", "\0" .. ("<i8"):pack(0x02000000), "\9")
  next_frame()
  ask(new, 2, "<I1I4I4I1s4", WATCH, 5, 0, 0, "")
  next_frame()
  received(new)
  emu.calls, emu.frame = {}, 700
  rawset(emu, "getGameTitle", function() return "ANOTHER" end)
  next_frame()
  eq(received(new), "event 3 1 5 0 0 0 1 0 0 0 1 0 254 255 1 0 0 0 3 6 5")
  eq(fake.count_calls "write8", 0, "the frozen value")
end)

served("a watch ends with its connection", function()
  local first = link(203)
  ask(first, 1, "<I1I4I4I1s4", WATCH, 5, 1, 0, "")
  next_frame()
  first:hang_up()
  next_frame()
  local second = link(203)
  emu.frame = 0
  server.frame()
  eq(received(second), "event 1 2")
end)

served("the end of a timeline is reported with the frame after which its keys are released", function()
  local new = link(204)
  ask(new, 1, "<I1s4", PLAY, keyboard.steps "0:1,2:0")
  next_frame()
  eq(received(new), "reply 1 0")
  emu.calls = {}
  next_frame()
  eq(received(new), "")
  next_frame()
  eq(table.concat(emu.calls, ","):match "clearKeys 1" ~= nil, true)
  eq(received(new):match "^event 1 3 %d+ 0 0 0 0$" ~= nil, true)
  ask(new, 2, "<I1s4", PLAY, keyboard.steps "0:1,900:0")
  ask(new, 3, "<I1I4", CANCEL, 0)
  next_frame()
  eq(received(new), "reply 2 0, reply 3 0")
  next_frame()
  eq(received(new):match "^event 1 3 %d+ 0 0 0 1$" ~= nil, true)
end)

served("a link that does not read its events is disconnected, and other links get theirs", function()
  local deaf, other = link(205), link(206)
  for _, each in ipairs { deaf, other } do
    ask(each, 1, "<I1I4I4I1s4", WATCH, 1, 0, 0, string.pack("<s1I4I2", "", 16, limits.watch_length):rep(16))
  end
  next_frame()
  deaf.room, deaf.written = 0, ""
  local real_time, now = os.time, os.time()
  os.time = function() return now end -- luacheck: ignore
  for frame = 1, 60 * ticks.per_second do
    now = now + (frame % 60 == 0 and 1 or 0)
    emu.value = string.char(frame % 256)
    other.written = ""
    if deaf.closed == 0 then
      next_frame()
    end
  end
  os.time = real_time -- luacheck: ignore
  eq(deaf.closed, 1)
  eq(deaf.written, "")
  eq(other.closed, 0)
  emu.value, other.written = "z", ""
  next_frame()
  eq(#other.written > limits.watched_bytes, true)
end)

served("the refusal of an operation that mGBA's Lua cannot perform says what to do instead", function()
  local new = link(207)
  local cases = { { "<I1", 0x82 }, { "<I1I4", 0x84, 1000 }, { "<I1I4", ADVANCE, 1 } }
  for id, case in ipairs(cases) do
    ask(new, id, table.unpack(case))
    next_frame()
    eq(new.written:byte(16), 2, "unsupported")
    eq(new.written:find("lockstep", 1, true) ~= nil or new.written:find("window", 1, true) ~= nil, true, new.written)
    new.written = ""
  end
  ask(new, 4, "<I1I4", ADVANCE, 0)
  ask(new, 5, "<I1I4", ADVANCE, 3601)
  ask(new, 6, "<I1I4", LOCKSTEP, 60001)
  ask(new, 7, "<I1", RESUME)
  next_frame()
  eq(received(new), "reply 4 1, reply 5 1, reply 6 1, reply 7 0")
end)

-- Calls `run` each time the script begins to wait for this socket in select(), as it does in lockstep.
local function on_each_wait(socket, run)
  local real = socket.select
  function socket.select(self, milliseconds)
    if milliseconds > 0 then
      run()
    end
    return real(self, milliseconds)
  end
end

served("in lockstep, a frame runs when a link asks for it, and later requests wait for it", function()
  local new = link(208)
  local waits = 0
  ask(new, 1, "<I1I4", LOCKSTEP, 60000)
  on_each_wait(new, function()
    waits = waits + 1
    if waits == 5 then
      ask(new, 2, "<I1I4", 0x20, 16)
    elseif waits == 10 then
      ask(new, 3, "<I1I4", ADVANCE, 2)
      ask(new, 4, "<I1", 0x10)
      new:arrive(client.ping(1))
    elseif waits == 20 then
      ask(new, 5, "<I1", RESUME)
    end
  end)
  next_frame()
  eq(waits, 10)
  eq(received(new), "reply 1 0, reply 2 0, kind 5", "a ping is answered at once")
  next_frame()
  eq(waits, 10, "the second frame does not wait")
  eq(received(new), "", "`advance` is answered when its frames have run")
  next_frame()
  eq(waits, 20)
  eq(received(new), "reply 3 0, reply 4 0, reply 5 0")
end)

-- The number at the end of the reply that a link has received.
local function value(socket)
  local number = string.unpack("<i8", socket.written, -8)
  socket.written = ""
  return number
end

served("`advance` returns the frame that was reached, even after a reset or if the request is repeated", function()
  local new = link(213)
  ask(new, 1, "<I1I4", LOCKSTEP, 60000)
  ask(new, 2, "<I1I4", ADVANCE, 2)
  next_frame()
  next_frame()
  new.written = ""
  emu.frame = 11
  ask(new, 3, "<I1I4", ADVANCE, 2)
  server.frame()
  eq(value(new), 11)
  emu.frame = 12
  server.frame()
  emu.frame = 1
  new:hang_up()
  server.frame()
  local again = fake.socket()
  table.insert(listener.waiting, again)
  again:arrive(client.hello(213))
  again:arrive(client.request(3, string.pack("<I1I4", ADVANCE, 2), 3))
  again:arrive(client.request(4, string.pack("<I1", RESUME), 3))
  server.frame()
  local _, _, number = again.written:find("\3\0\0\0\1\0\0\0\1\0\0\3(.)\0\0\0\0\0\0\0")
  eq(number, "\1", "one reply, with the frame that was reached")
end)

served("pings and version messages do not extend the time-out of lockstep", function()
  local new, prober = link(214), fake.socket()
  table.insert(listener.waiting, prober)
  ask(new, 1, "<I1I4", LOCKSTEP, 40)
  for _, each in ipairs { new, prober } do
    on_each_wait(each, function()
      new:arrive(client.ping(1))
      prober:arrive("framewire.version" .. END)
    end)
  end
  local began = os.time()
  next_frame()
  eq(os.time() - began < 5, true)
  eq(prober.written:sub(1, 12), "framewire 0.")
  next_frame()
  eq(received(new):find("event 1 4", 1, true) ~= nil, true)
end)

served("lockstep ends after its time-out if the link that began it sends nothing more", function()
  local new = link(209)
  ask(new, 1, "<I1I4", LOCKSTEP, 40)
  next_frame()
  eq(received(new), "reply 1 0")
  next_frame()
  eq(received(new), "event 1 4")
end)

test("seconds with lockstep in them do not change the serving time", function()
  local steered = 0
  local real_steer, real_time, now = steering.steer, os.time, 1000
  steering.steer = function() steered = steered + 1 end
  os.time = function() return now end -- luacheck: ignore
  local function seconds(count)
    steered = 0
    for _ = 1, count do
      now = now + 1
      for _ = 1, 10 do
        next_frame()
      end
    end
    return steered
  end
  local fine, problem = pcall(serve, function()
    local new = link(212)
    seconds(2)
    eq(seconds(3), 3)
    ask(new, 1, "<I1I4", LOCKSTEP, 60000)
    ask(new, 2, "<I1I4", ADVANCE, 25)
    eq(seconds(2), 1, "the second before it began")
    ask(new, 3, "<I1", RESUME)
    eq(seconds(1), 0)
    eq(seconds(1), 0, "the second in which it ended")
    eq(seconds(3), 3)
  end)
  steering.steer, os.time = real_steer, real_time -- luacheck: ignore
  assert(fine, problem)
end)

local function keyed(id, key, batch)
  return client.keyed_request(id, key, batch, id)
end

served("a repeat of a keyed `advance` is busy until its frames have run, and then returns the frame reached", function()
  local new, other = link(215), link(216)
  local advance = string.pack("<I1I4", ADVANCE, 3)
  ask(new, 1, "<I1I4", LOCKSTEP, 60000)
  new:arrive(keyed(2, "advance", advance))
  next_frame()
  new:hang_up()
  other:arrive(keyed(1, "advance", advance))
  next_frame()
  eq(received(other), "reply 1 5", "the frames are still to run")
  emu.frame = 1 -- the console was reset in the meantime
  server.frame()
  other.written = ""
  other:arrive(keyed(2, "advance", advance))
  ask(other, 3, "<I1", RESUME)
  next_frame()
  local _, _, number = other.written:find("\2\2\0\0\0\2\0\0\0\1\0\0\3(.)\0\0\0\0\0\0\0")
  eq(number, "\2", "the frame that was reached")
end)

served("`advance` and its repeat fail if lockstep ends before all of its frames have run", function()
  local new, other = link(217), link(218)
  local advance = string.pack("<I1I4", ADVANCE, 5)
  ask(new, 1, "<I1I4", LOCKSTEP, 60000)
  new:arrive(keyed(2, "cut short", advance))
  next_frame()
  next_frame()
  eq(received(new), "reply 1 0")
  ask(other, 1, "<I1", RESUME)
  next_frame()
  next_frame()
  eq(new.written:find("lockstep ended after 2 of 5 frames", 1, true) ~= nil, true, new.written)
  eq(received(new), "reply 2 4")
  other:arrive(keyed(2, "cut short", advance))
  next_frame()
  eq(other.written:find("lockstep ended after 2 of 5 frames", 1, true) ~= nil, true, other.written)
end)

served("an error while a long reply is sent closes only its connection", function()
  local new, other = link(219), link(220)
  local sends, send = 0, new.send
  function new.send(...)
    sends = sends + 1
    assert(sends == 1, "mGBA raised an error")
    return send(...)
  end
  ask(new, 1, "<I1I4I4", 0x23, 0x02000000, 100000)
  ask(other, 1, "<I1", 0x10)
  next_frame()
  next_frame()
  eq(sends, 2)
  eq(new.closed, 1)
  eq(received(other), "reply 1 0")
end)

served("a batch in which `advance` is not the last operation is refused as a whole", function()
  local new = link(210)
  ask(new, 1, "<I1I4", LOCKSTEP, 20)
  next_frame()
  new.written = ""
  new:arrive(client.request(2, string.pack("<I1I1I4I1", RESET, ADVANCE, 1, RESUME), 2, 3))
  next_frame()
  eq(new.written:find("`advance` must be the last operation of its batch", 1, true) ~= nil, true, new.written)
  eq(table.concat(emu.calls, " "):find("reset", 1, true), nil, "the reset")
end)

log.set_level "none"
