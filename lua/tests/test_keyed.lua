local frames = require "frames"
local harness = require "harness"
local keyed = require "keyed"
local limits = require "limits"
local refusal = require "refusal"
local test, eq = harness.test, harness.eq

test("a repeat with the same key gets the same reply with the new request's id", function()
  keyed.remember("a key", "a batch", frames.encode_reply(7, 100, 1, frames.encode.int(5)))
  eq(keyed.recall("a key", "a batch", 8), frames.encode_reply(8, 100, 1, frames.encode.int(5)))
  eq(keyed.recall("another", "a batch", 8), nil)
end)

test("a key that was used for another request is refused, unlike a new key", function()
  keyed.remember("used", "a batch", frames.encode_reply(7, 100, 0, ""))
  local reply, status = keyed.recall("used", "another batch", 8)
  eq(reply, nil)
  eq(status, refusal.BAD_ARGUMENT)
  eq(select("#", keyed.recall("new", "a batch", 8)), 1)
end)

test("large batches with the same key are distinguished, wherever they differ", function()
  for _, length in ipairs { 65, 96, 100, 127, 128, 1000 } do
    local batch = string.rep("x", length)
    keyed.remember("large " .. length, batch, "reply to it")
    for at = 1, length do
      local other = batch:sub(1, at - 1) .. "y" .. batch:sub(at + 1)
      eq(select(2, keyed.recall("large " .. length, other, 1)), refusal.BAD_ARGUMENT, length .. " bytes, at " .. at)
    end
    eq(select(2, keyed.recall("large " .. length, batch .. "x", 1)), refusal.BAD_ARGUMENT)
    eq(keyed.recall("large " .. length, batch, 1) ~= nil, true)
  end
end)

-- Sets the system's time forward by a number of seconds. Returns a function that undoes this. The time of a key is
-- measured with the system's time only if `stopwatch` has no clock, as in most of these tests.
local function later(by)
  local time = os.time
  os.time = function() return time() + by end -- luacheck: ignore
  return function() os.time = time end -- luacheck: ignore
end

test("a key is remembered for its full time, however many keys come after it", function()
  local undo = later(limits.keyed_seconds)
  eq(keyed.recall("a key", "a batch", 1), nil, "the keys of earlier tests")
  for number = 1, limits.keyed_keys do
    eq(select("#", keyed.recall("key " .. number, "", 1)), 1)
    keyed.remember("key " .. number, "", frames.encode_reply(number, 0, 0, ""))
  end
  eq(select(2, keyed.recall("one more", "", 1)), refusal.BUSY)
  eq(keyed.recall("key 1", "", 1), frames.encode_reply(1, 0, 0, ""))
  local undo_more = later(limits.keyed_seconds)
  eq(select("#", keyed.recall("one more", "", 1)), 1)
  undo_more()
  undo()
end)

test("a key is remembered for its full time even if the system's time is set forward", function()
  -- Give the machine a clock that is independent of the system's time.
  local stopwatch = require "stopwatch"
  local seconds = stopwatch.seconds
  local uptime = 1000000
  stopwatch.seconds = function() return uptime end
  local undo = later(10 * limits.keyed_seconds)
  keyed.remember("before", "press A", "reply to it")
  undo()
  undo = later(100 * limits.keyed_seconds)
  eq(keyed.recall("before", "press A", 1) ~= nil, true)
  uptime = uptime + limits.keyed_seconds
  eq(keyed.recall("before", "press A", 1), nil, "its time is over")
  undo()
  stopwatch.seconds = seconds
end)

test("the full time of a key whose request takes long begins at the end of the request", function()
  local undo = later(20 * limits.keyed_seconds)
  keyed.remember("run", "run", "", true)
  local undo_end = later(2 * limits.keyed_seconds)
  eq(select(2, keyed.recall("run", "run", 1)), refusal.BUSY, "it is still under way")
  keyed.replace("run", frames.encode_reply(7, 100, 0, ""))
  local undo_almost = later(limits.keyed_seconds - 10)
  eq(keyed.recall("run", "run", 1) ~= nil, true, "its time is not over")
  local undo_over = later(limits.keyed_seconds)
  eq(keyed.recall("run", "run", 1), nil, "its time is over")
  undo_over()
  undo_almost()
  undo_end()
  undo()
end)

test("a key whose request took long is forgotten when its own time is over, not with later keys", function()
  local undo = later(30 * limits.keyed_seconds)
  keyed.remember("first", "run", "", true)
  keyed.replace("first", frames.encode_reply(7, 100, 0, ""))
  local undo_next = later(limits.keyed_seconds - 1)
  keyed.remember("next", "a batch", frames.encode_reply(8, 100, 0, ""))
  local undo_over = later(2)
  eq(keyed.recall("first", "run", 1), nil, "its time is over")
  eq(keyed.recall("next", "a batch", 1) ~= nil, true, "the time of the next is not over")
  undo_over()
  undo_next()
  undo()
end)

test("large writes with keys do not cause other keys to be forgotten", function()
  keyed.remember("tap", "press A", "reply to it")
  local write = string.rep("w", 200000)
  for number = 1, 400 do
    keyed.remember("write " .. number, write, "reply to it")
  end
  eq(keyed.recall("tap", "press A", 1) ~= nil, true)
end)

test("a batch whose large reply was dropped is refused and not performed again", function()
  local large = string.rep("r", limits.reply_bytes // 2)
  for _, key in ipairs { "a", "b", "c" } do
    keyed.remember(key, "save", large)
  end
  eq(select(2, keyed.recall("a", "save", 1)), refusal.LOST)
  eq(keyed.recall("c", "save", 1) ~= nil, true)
end)

test("the outcome of a run is kept even if large outcomes came during the run", function()
  keyed.remember("long run", "run", "", true)
  local large = string.rep("r", limits.reply_bytes // 2)
  for _, key in ipairs { "d", "e", "f" } do
    keyed.remember(key, "save", large)
  end
  keyed.replace("long run", frames.encode_reply(7, 100, 0, ""))
  eq(keyed.recall("long run", "run", 8), frames.encode_reply(8, 100, 0, ""))
end)
