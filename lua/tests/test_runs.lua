local client = require "client"
local emulator = require "emulator"
local fake = require "fake"
local game = require "game"
local harness = require "harness"
local lockstep = require "lockstep"
local runs = require "runs"
local test, eq = harness.test, harness.eq

local FRAME_IS = "\x22\1\0" -- the beginning of the expression `frame == n`; n follows as 8 bytes

local function frame_is(number)
  return FRAME_IS .. ("<i8"):pack(number)
end

-- Encodes a step. With the flag 1, the run continues after a time-out of the step. `keys` is a timeline: offsets in
-- frames, each with the keys that are held from there on.
local function step(count, conditions, keys, flags)
  local parts = { ("<I4I1s4I1"):pack(count, flags or 0, keys or "", #conditions) }
  for _, condition in ipairs(conditions) do
    parts[#parts + 1] = ("<s2"):pack(condition)
  end
  return table.concat(parts)
end

local function steps(list, stop)
  local stops = stop and ("<I1s2"):pack(1, stop) or "\0"
  return stops .. ("<I2"):pack(#list) .. table.concat(list)
end

-- Connects a link. Returns a table with these functions: `frame` runs a frame, `send` sends a request, `send_keyed`
-- sends one with an idempotency key, and `replies` returns, by id, the replies so far. The body of a reply begins with
-- the status of its first result: 0, or a status of refusal.lua. The table also has the results of `client.connect`.
local function link(name)
  local socket, self, take = client.connect()
  local now = 9
  emu.currentFrame = function() return now end
  client.greet(socket, take, name)
  local function frame()
    now = now + 1
    runs.after_frame()
    emulator.advance()
    runs.settle()
    take()
  end
  local function replies()
    return client.replies(socket.written)
  end
  local function send(id, count, ops)
    socket:arrive(client.request(id, ops, 1, count))
    client.settle(take)
  end
  local function send_keyed(id, key, count, ops)
    socket:arrive(client.keyed_request(id, key, ops, 1, count))
    client.settle(take)
  end
  return {
    socket = socket, self = self, frame = frame, replies = replies, send = send, send_keyed = send_keyed, take = take,
  }
end

local function run_op(bytes)
  return ("<I1s4"):pack(0x87, bytes)
end

-- The ends of the steps in the reply to a run, as text: `WHY CONDITION FRAMES FRAME` for each step. WHY is 0 if its
-- frames have run, 1 if one of its conditions held, 2 if it timed out, and 3 if a condition of the whole run held.
local function ends(reply)
  local length, at = string.unpack("<I4", reply.body, 3)
  local list = {}
  for place = at, at + length - 1, 10 do
    list[#list + 1] = table.concat({ string.unpack("<I1I1I4I4", reply.body, place) }, " ", 1, 4)
  end
  return table.concat(list, "; ")
end

-- Makes `emu` record which keys are held. Returns a function that returns their mask.
local function held_keys()
  local held = 0
  emu.addKeys = function(_, keys) held = held | keys end
  emu.clearKeys = function(_, keys) held = held & ~keys end
  return function() return held end
end

test("the operations after a run are performed in the frame in which its condition holds", function()
  local it = link(101)
  it.send(1, 2, run_op(steps { step(100, { frame_is(12) }) }) .. "\x10") -- current_frame
  for _ = 1, 2 do
    it.frame()
    eq(it.replies()[1], nil)
  end
  it.frame()
  local reply = it.replies()[1]
  eq(reply.frame, 12)
  eq(reply.count, 2)
  eq(ends(reply), "1 0 3 12")
  eq(string.unpack("<i8", reply.body, #reply.body - 7), 12)
end)

test("other requests are answered while a run waits", function()
  local it = link(102)
  it.send(1, 1, run_op(steps { step(3, {}) }))
  it.send(2, 1, "\x10")
  eq(it.replies()[1], nil)
  eq(it.replies()[2].frame, 9)
  for _ = 1, 3 do
    it.frame()
  end
  eq(ends(it.replies()[1]), "0 0 3 12")
end)

test("steps follow each other, and hold their keys", function()
  local it = link(103)
  local held = held_keys()
  local hold = ("<I4I2I4I2"):pack(0, 1, 50, 0)
  it.send(1, 1, run_op(steps { step(50, { frame_is(11) }, hold), step(2, {}), step(4, { frame_is(99) }, nil, 1),
    step(4, { frame_is(99) }), step(5, {}) }))
  eq(held(), 1)
  it.frame()
  eq(held(), 1)
  it.frame()
  eq(held(), 0)
  for _ = 1, 10 do
    it.frame()
  end
  eq(ends(it.replies()[1]), "1 0 2 11; 0 0 2 13; 2 0 4 17; 2 0 4 21")
end)

test("a step whose condition holds at once takes no frame and presses no key", function()
  local it = link(104)
  local pressed = false
  emu.addKeys = function() pressed = true end
  it.send(1, 1, run_op(steps { step(50, { frame_is(1), frame_is(9) }, ("<I4I2I4I2"):pack(0, 1, 50, 0)) }))
  eq(ends(it.replies()[1]), "1 1 0 9")
  eq(pressed, false)
end)

test("a condition of the whole run ends it in any step", function()
  local it = link(105)
  it.send(1, 1, run_op(steps({ step(1, {}), step(50, {}) }, frame_is(13))))
  for _ = 1, 4 do
    it.frame()
  end
  eq(ends(it.replies()[1]), "0 0 1 10; 3 0 3 13")
end)

test("a request that is repeated over another connection gets the reply of the same run", function()
  local it = link(106)
  local request = run_op(steps { step(3, {}) })
  it.send(1, 1, request)
  it.frame()
  it.socket:hang_up()
  it.take()
  eq(it.self.socket, nil)
  local again = link(106)
  again.send(1, 1, request)
  eq(again.replies()[1] and again.replies()[1].body, nil)
  again.frame()
  again.frame()
  eq(ends(again.replies()[1]), "0 0 3 11")
end)

test("in lockstep, the frames of a run do not wait, and the next frame waits again", function()
  local it = link(107)
  lockstep.begin(it.self.session, 10)
  eq(lockstep.waits(0), true)
  it.send(1, 1, run_op(steps { step(2, {}) }))
  eq(lockstep.waits(0), false)
  it.frame()
  eq(lockstep.waits(0), false)
  it.frame()
  eq(lockstep.waits(0), true)
  lockstep.stop()
  eq(it.replies()[1].frame, 11)
end)

test("a cancelled run releases its keys and performs nothing more", function()
  local it = link(108)
  local held = held_keys()
  it.send(1, 2, run_op(steps { step(50, {}, ("<I4I2I4I2"):pack(0, 2, 50, 0)) }) .. "\x10")
  it.frame()
  eq(held(), 2)
  it.socket:arrive(client.cancel(1))
  client.settle(it.take)
  eq(held(), 0)
  local reply = it.replies()[1]
  eq(reply.count, 1)
  eq(reply.body:byte(), 4)
end)

test("a run that is not valid is refused", function()
  local it = link(109)
  local wrong = { "", "\0\0\0", steps { step(0, {}) }, steps { step(216000, {}), step(1, {}) }, steps { step(1, {}) } .. "x",
    steps { step(1, { "\3" }) }, steps { step(1, {}, ("<I4I2"):pack(0, 1)) }, steps { step(1, {}, nil, 2) } }
  for index, bytes in ipairs(wrong) do
    it.send(index, 1, run_op(bytes))
    eq(it.replies()[index].body:byte(), 1, ("%d"):format(index))
  end
end)

test("missing memory in an expression is refused before any operation of its batch is performed", function()
  local it = link(110)
  local address = "\0" .. ("<i8"):pack(0x10000000)
  local read = "\2\0\0" .. address -- u8[0x10000000]
  local good = "\0" .. ("<i8"):pack(0x02000000)
  local wrong = {
    run_op(steps { step(5, { read }) }), -- run
    "\xb2" .. ("<s4"):pack(("<s2"):pack(read)), -- evaluate
    "\xb3" .. ("<s4I4"):pack(address, 1), -- read_at
    "\xb4" .. ("<s4s4"):pack(address, "x"), -- write_at
    "\xb5" .. ("<s4s4s4s4"):pack("name", "u8", address, "x"), -- freeze
    "\xb5" .. ("<s4s4s4s4"):pack("", "u8", good, "x"),
  }
  for index, op in ipairs(wrong) do
    it.send(index, 2, "\x24" .. ("<I4I1"):pack(0x02000000, 7) .. op) -- write8
    local reply = it.replies()[index]
    eq(reply.count, 2, ("%d"):format(index))
    eq(reply.body:byte(), 8, ("%d"):format(index))
  end
  eq(fake.count_calls "write8", 0)
end)

test("if two operations of a batch are wrong, the first one is refused", function()
  local it = link(111)
  local read = "\2\0\0\0" .. ("<i8"):pack(0x10000000) -- u8[0x10000000]
  it.send(1, 2, "\xb2" .. ("<s4"):pack(("<s2"):pack(read)) .. "\x24" .. ("<I4I1"):pack(0x10000000, 7))
  local reply = it.replies()[1]
  eq(reply.count, 1)
  assert(reply.body:find("expressions[0]", 1, true), reply.body)
end)

test("no reply is lost if a run ends during the frames of an `advance`", function()
  local it = link(140)
  local advance = "\x85" .. ("<I4"):pack(5)
  it.send(1, 1, "\x86" .. ("<I4"):pack(60000)) -- lockstep
  it.send(2, 1, run_op(steps { step(2, {}) }))
  it.send(3, 2, run_op(steps { step(3, {}) }) .. advance)
  it.send(4, 1, advance)
  for _ = 1, 12 do
    lockstep.run()
    it.frame()
  end
  lockstep.stop()
  local replies = it.replies()
  eq(replies[2] and replies[2].frame, 11, "the run")
  eq(replies[3] and replies[3].frame, 19, "the run with an `advance`")
  eq(replies[4] and replies[4].frame, 14, "the `advance`")
end)

test("a complete `advance` is not refused if lockstep ends during a later one of the same session", function()
  local it = link(141)
  it.send(1, 1, "\x86" .. ("<I4"):pack(60000))
  it.send(2, 2, run_op(steps { step(1, {}) }) .. "\x85" .. ("<I4"):pack(6))
  it.send(3, 1, "\x85" .. ("<I4"):pack(3))
  for _ = 1, 5 do
    lockstep.run()
    it.frame()
  end
  lockstep.stop()
  it.frame()
  local replies = it.replies()
  eq(replies[3].body:byte(), 0, "the complete `advance`")
  eq(ends(replies[2]), "0 0 1 10", "the run before the other `advance`")
  eq(replies[2].body:find("lockstep", 1, true) ~= nil, true, "the other `advance` is refused")
end)

local HOLD_A = ("<I4I2I4I2"):pack(0, 1, 50, 0)

test("a run whose later step cannot begin has failed, and a repeat with its key runs no frame", function()
  local it = link(142)
  local held = held_keys()
  local batch = run_op(steps { step(2, {}), step(5, {}, HOLD_A) }) .. "\x10"
  it.send(1, 1, "\x56" .. ("<s4"):pack(HOLD_A)) -- play_keys
  it.send_keyed(2, "later step", 2, batch)
  it.frame()
  it.frame()
  local reply = it.replies()[2]
  eq(reply.count, 1, "the results")
  eq(reply.body:byte(), 4, "the status")
  assert(reply.body:find("timeline %d+ plays A"), reply.body)
  it.send(3, 1, "\x57" .. ("<I4"):pack(0)) -- cancel_keys
  eq(held(), 0)
  it.frame()
  it.send_keyed(4, "later step", 2, batch)
  for _ = 1, 3 do
    it.frame()
    eq(held(), 0)
  end
  local again = it.replies()[4]
  eq(again and again.body, reply.body, "the repeat")
  eq(again.frame, reply.frame)
end)

test("a run fails and releases its keys if another game is loaded, and is not repeated", function()
  local it = link(143)
  local held = held_keys()
  local batch = run_op(steps { step(50, { frame_is(12) }, HOLD_A) }) .. "\x80"
  game.check()
  lockstep.begin(it.self.session, 10)
  it.send_keyed(1, "other game", 2, batch)
  it.frame()
  eq(held(), 1)
  emu.getGameTitle = function() return "ANOTHER" end
  game.check()
  it.frame()
  eq(held(), 0)
  eq(lockstep.waits(0), true, "no run drives the frames")
  lockstep.stop()
  local reply = it.replies()[1]
  eq(reply.count, 1, "the results")
  eq(reply.body:byte(), 4, "the status")
  assert(reply.body:find("another game was loaded", 1, true), reply.body)
  it.send_keyed(2, "other game", 2, batch)
  eq(it.replies()[2].body, reply.body, "the repeat")
  eq(held(), 0)
  eq(fake.count_calls "reset", 0)
  it.send(3, 1, run_op(steps { step(1, {}) }))
  it.frame()
  eq(ends(it.replies()[3]), "0 0 1 12", "a run in the other game")
end)

test("a run without a connection fails if another game is loaded, and its session remembers that", function()
  local it = link(144)
  local batch = run_op(steps { step(50, {}) })
  game.check()
  it.send(1, 1, batch)
  it.socket:hang_up()
  it.frame()
  eq(it.self.session.connection, nil)
  emu.getGameTitle = function() return "ANOTHER" end
  game.check()
  runs.after_frame()
  runs.settle()
  local again, _, take = client.link(144)
  again:arrive(client.request(1, batch))
  client.settle(take)
  eq(client.read_stream(again.written)[1], 4)
end)
