local fake = require "fake"
local frames = require "frames"
local harness = require "harness"
local limits = require "limits"
local refusal = require "refusal"
local sessions = require "sessions"
local test, eq = harness.test, harness.eq

-- A request with a batch of `count` operations (1 by default).
local function request(id, answered, batch, count)
  local data = string.pack("<I4I4I2", id, answered, count or 1) .. batch
  return frames.decode_request(data, 1, #data + 1)
end

local function keyed_request(id, key, batch)
  local data = string.pack("<I4I4s1I2", id, id, key, 1) .. batch
  return frames.decode_request(data, 1, #data + 1, true)
end

local RESET, READ = "\x80", "\x20\0\0\0\2"
local WORK_RAM = 0x02000000

local function begin(values)
  values = values or { read8 = 1, currentFrame = 1 }
  emu, console = fake.emu(values), fake.console()
  return sessions.new()
end

local done = fake.count_calls

local function status(reply)
  return reply:byte(16)
end

test("a repeat is answered from memory and not performed again", function()
  local session = begin()
  local reply = sessions.answer(session, request(1, 1, RESET))
  eq(sessions.answer(session, request(1, 1, RESET)), reply)
  eq(done "reset", 1)
end)

test("a request that only reads is performed again when it is repeated", function()
  local session = begin()
  sessions.answer(session, request(1, 1, READ))
  sessions.answer(session, request(1, 1, READ))
  eq(done "read8", 2)
  eq(session.last, 0, "kept replies")
end)

test("a request whose reply was acknowledged is forgotten, and never performed again", function()
  local session = begin()
  for id = 1, 100 do
    sessions.answer(session, request(id, math.max(1, id - 10), RESET))
  end
  eq(session.last - session.first + 1, 11)
  eq(status(sessions.answer(session, request(50, 90, RESET))), refusal.LOST)
  eq(done "reset", 100)
end)

test("ids wrap to 0", function()
  local session = begin()
  for count = 0, 20 do
    local id = 0xFFFFFFF5 + count & 0xFFFFFFFF
    eq(status(sessions.answer(session, request(id, id - 3 & 0xFFFFFFFF, RESET))), 0, "id " .. id)
  end
  eq(done "reset", 21)
  eq(session.last - session.first + 1, 4)
end)

test("an `answered` that is lower than before is ignored", function()
  local session = begin()
  sessions.answer(session, request(10, 10, RESET))
  sessions.answer(session, request(11, 3, RESET))
  eq(session.answered, 10)
end)

test("if a link acknowledges too few replies, the oldest are dropped, and their requests are not performed again", function()
  local session = begin()
  for id = 1, limits.replies + 2 do
    eq(status(sessions.answer(session, request(id, 1, RESET))), 0, "id " .. id)
  end
  eq(session.last - session.first + 1, limits.replies)
  eq(status(sessions.answer(session, request(2, 1, RESET))), refusal.LOST)
  eq(status(sessions.answer(session, request(3, 1, RESET))), 0)
  eq(done "reset", limits.replies + 2)
end)

test("replies that are too large to keep are dropped, and their requests are not performed again", function()
  local session = begin { readRange = ("x"):rep(limits.range), currentFrame = 1 }
  local batch = string.pack("<I1I1I4I4", 0x80, 0x23, WORK_RAM, limits.range)
  for id = 1, 4 do
    sessions.answer(session, request(id, 1, batch, 2))
  end
  eq(session.bytes <= limits.reply_bytes, true, "the bytes kept are bounded")
  eq(status(sessions.answer(session, request(1, 1, RESET))), refusal.LOST)
  eq(status(sessions.answer(session, request(4, 1, RESET))), 0)
  eq(done "reset", 4)
end)

test("a batch stops at the first operation that fails", function()
  local session = begin()
  -- The second operation, "\x51\x0a", asks for key 10, which does not exist.
  local reply = sessions.answer(session, request(1, 1, READ .. "\x51\x0a" .. RESET, 3))
  local _, _, id, _, count = string.unpack("<I4I1I4I4I2", reply)
  eq(id, 1)
  eq(count, 2)
  eq(done "reset", 0)
end)

test("a batch that uses memory that does not exist is refused before any operation is performed", function()
  local session = begin { currentFrame = 1, platform = 1 }
  -- `flag` is a bit that is added to the count of operations. With 0x8000, the batch is not checked before it begins.
  local function reply(flag)
    return sessions.answer(session, request(1, 1, RESET .. string.pack("<I1I4", 0x20, 0x10000), flag | 2))
  end
  local refused = reply(0)
  eq(status(refused), refusal.NOT_DONE)
  eq(refused:find("address is 0x10000, which is not on the bus of the Game Boy", 1, true) ~= nil, true)
  eq(done "reset", 0)
  session = begin { currentFrame = 1, platform = 1, read8 = 255 }
  eq(status(reply(0x8000)), 0, "an unchecked batch")
  eq(done "read8", 1)
end)

test("a reply larger than a frame is refused", function()
  local session = begin { readRange = ("x"):rep(limits.range), currentFrame = 1 }
  local reply = sessions.answer(session, request(1, 1, string.pack("<I1I4I4", 0x23, WORK_RAM, limits.range):rep(2), 2))
  eq(#reply < limits.frame, true)
  -- Before the bytes of the first result are its status (1 byte), its tag (1 byte) and its length (4 bytes).
  eq(reply:byte(16 + 6 + limits.range), refusal.TOO_LARGE, "the second result")
end)

test("sessions are found by name, and the oldest are forgotten if there are too many", function()
  begin()
  local open = sessions.named("open")
  open.connection = {}
  for number = 1, limits.sessions do
    local _, known = sessions.named("session " .. number)
    eq(known, false)
  end
  eq(select(2, sessions.named "session 1"), false, "the oldest")
  eq(select(2, sessions.named("session " .. limits.sessions)), true, "the latest")
  eq(sessions.named "open", open, "the session with a connection")
end)

test("a session that has just answered a request is not forgotten before one that was used earlier", function()
  begin()
  local session = sessions.named("busy")
  for number = 1, limits.sessions - 2 do
    sessions.named("idle " .. number)
  end
  sessions.answer(session, request(1, 1, RESET))
  sessions.named("new")
  eq(select(2, sessions.named "busy"), true, "the session with the request")
  eq(select(2, sessions.named "idle 1"), false, "the session that was used longest ago")
end)

test("a keyed request that was refused without a game can be performed when there is a game", function()
  local session = begin()
  local game = emu
  emu = nil
  eq(status(sessions.answer(session, keyed_request(1, "refused once", RESET))), refusal.NO_GAME)
  emu = game
  eq(status(sessions.answer(session, keyed_request(2, "refused once", RESET))), 0)
  eq(status(sessions.answer(session, keyed_request(3, "refused once", RESET))), 0)
  eq(done "reset", 1)
end)

test("a key that was used for another request is refused, and nothing is performed", function()
  local session = begin()
  sessions.answer(session, keyed_request(1, "used", RESET))
  local write = "\x24" .. string.pack("<I4I1", 0x02000000, 1)
  eq(status(sessions.answer(session, keyed_request(2, "used", write))), refusal.BAD_ARGUMENT)
  eq(done "write8", 0)
end)

test("a timeline that was refused while another one played can be played later with the same key", function()
  local session = begin()
  local function play(keys)
    return "\x56" .. string.pack("<s4", string.pack("<I4I2I4I2", 0, keys, 5, 0))
  end
  eq(status(sessions.answer(session, keyed_request(1, "first", play(1)))), 0)
  eq(status(sessions.answer(session, keyed_request(2, "second", play(1)))), refusal.BAD_ARGUMENT)
  local cancel_all = "\x57" .. string.pack("<I4", 0)
  sessions.answer(session, request(3, 3, cancel_all))
  eq(status(sessions.answer(session, keyed_request(4, "second", play(1)))), 0)
  sessions.answer(session, request(5, 5, cancel_all))
end)
