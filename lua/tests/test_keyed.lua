local frames = require "frames"
local harness = require "harness"
local keyed = require "keyed"
local limits = require "limits"
local test, eq = harness.test, harness.eq

test("a key's reply is given again under the new request's id", function()
  keyed.remember("a key", "a batch", frames.encode_reply(7, 100, 1, frames.encode.int(5)))
  eq(keyed.recall("a key", "a batch", 8), frames.encode_reply(8, 100, 1, frames.encode.int(5)))
  eq(keyed.recall("another", "a batch", 8), nil)
end)

test("a key that was used for another request is told apart from one that is new", function()
  keyed.remember("used", "a batch", frames.encode_reply(7, 100, 0, ""))
  local reply, others = keyed.recall("used", "another batch", 8)
  eq(reply, nil)
  eq(others, true)
  eq(select("#", keyed.recall("new", "a batch", 8)), 1)
end)

test("the oldest keys are forgotten first", function()
  for number = 1, limits.keyed_replies do
    keyed.remember("key " .. number, "", frames.encode_reply(number, 0, 0, ""))
  end
  eq(keyed.recall("a key", "a batch", 1), nil)
  eq(keyed.recall("key 1", "", 1) ~= nil, true)
  keyed.remember("one more", "", frames.encode_reply(1, 0, 0, ""))
  eq(keyed.recall("key 1", "", 1), nil)
end)
