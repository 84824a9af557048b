local frames = require "frames"
local eventqueue = require "eventqueue"
local harness = require "harness"
local operations = require "operations"
local test, eq, unhex = harness.test, harness.eq, harness.unhex

-- Decodes a request with this batch.
local function decode(batch, count)
  local data = string.pack("<I4I4I2", 7, 5, count or 1) .. batch
  return frames.decode_request(data, 1, #data + 1)
end

for _, row in ipairs(harness.vectors "ops.tsv") do
  local name, literals, hex = table.unpack(row)
  test(("ops.tsv: %s %s"):format(name, literals), function()
    local bytes = unhex(hex)
    local request = assert(decode(bytes), "it is not decoded")
    eq(request[1], operations.by_name[name])
    local wanted = harness.literals(literals)
    for index = 1, wanted.n do
      local value = wanted[index]
      eq(request[index + 1], type(value) == "boolean" and (value and 1 or 0) or value, "argument " .. index)
    end
    for cut = 0, #bytes - 1 do
      eq(decode(bytes:sub(1, cut)), nil, "cut at " .. cut)
    end
    eq(decode(bytes .. "\0"), nil, "with a byte too many")
  end)
end

for _, row in ipairs(harness.vectors "values.tsv") do
  local tag, literal, hex = table.unpack(row)
  test(("values.tsv: %s %s"):format(tag, literal), function()
    local value = assert(load("return " .. literal))()
    local kind = tag == "list" and "names" or tag
    eq(frames.encode[kind](value), "\0" .. unhex(hex))
  end)
end

test("binary frames are decoded and encoded as in frames.tsv", function()
  local rows = {}
  for _, row in ipairs(harness.vectors "frames.tsv") do
    rows[row[1] .. " " .. row[2]] = unhex(row[3])
  end
  local function request(what)
    local data = assert(rows["request " .. what], what)
    eq(string.unpack("<I4", data), #data - 4)
    eq(data:byte(5), frames.REQUEST)
    return assert(frames.decode_request(data, 6, #data + 1))
  end
  local first = request "id 7, answered 5, read8 0x02000000"
  eq(first.id, 7)
  eq(first.answered, 5)
  eq(first.count, 1)
  eq(first[1].name, "read8")
  eq(first[2], 0x02000000)
  eq(first.change, false)
  local keyed_data = rows['keyed id 7, answered 5, key "k1", reset']
  eq(keyed_data:byte(5), frames.KEYED_REQUEST)
  local keyed = assert(frames.decode_request(keyed_data, 6, #keyed_data + 1, true))
  eq(keyed.key, "k1")
  eq(keyed[1].name, "reset")
  for cut = 6, #keyed_data do
    eq(frames.decode_request(keyed_data:sub(1, cut - 1), 6, cut, true), nil, "cut at " .. cut)
  end
  local second = request "id 4294967295, answered 0, current_frame, get_keys"
  eq(second.id, 0xFFFFFFFF)
  -- Each operation has five elements in a request: the operation and up to four arguments.
  eq(second[1].name, "current_frame")
  eq(second[6].name, "get_keys")
  eq(request "id 1, answered 1, no operation".count, 0)
  local trace_data = rows['trace id 7, "a-1"']
  eq(trace_data:byte(5), frames.TRACE)
  local traced, name = frames.decode_trace(trace_data, 6, #trace_data + 1)
  eq(traced, 7)
  eq(name, "a-1")
  for cut = 6, #trace_data do
    eq(frames.decode_trace(trace_data:sub(1, cut - 1), 6, cut), nil, "cut at " .. cut)
  end

  eq(frames.encode_reply(7, 100, 1, frames.encode.int(255)), rows["reply id 7, frame 100, int 255"])
  eq(frames.encode_reply(8, 100, 1, frames.encode_refusal(1, "no")), rows['reply id 8, frame 100, error 1 "no"'])
  eq(frames.encode_pong(1, 59), rows["pong id 1, frame 59"])
  for what, items in pairs {
    ['frame 60, watch 3 tick 7: range 1 "\\xd3\\x00", keys 1; reset'] =
      { 60, "\1\3\0\0\0\7\0\0\0\2\0" .. "\1\0\2\0\0\0\xd3\0" .. "\xff\xff\2\0\0\0\1\0", eventqueue.RESET },
    ["frame 61, timeline 4 cancelled, timeline 5 over, lockstep over, game"] =
      { 61, eventqueue.timeline_over(4, true), eventqueue.timeline_over(5, false), eventqueue.LOCKSTEP_OVER, eventqueue.GAME },
    ["frame 62, watch 3 tick 9"] = { 62, "\1\3\0\0\0\9\0\0\0\0\0" },
  } do
    eq(frames.encode_event(items[1], #items - 1, table.concat(items, "", 2)), rows["event " .. what], what)
  end
  eq(frames.encode_goodbye "reloaded", rows['goodbye "reloaded"'])
  eq(rows["cancel id 9"]:byte(5), frames.CANCEL)
  eq(rows["ping id 1"]:byte(5), frames.PING)
end)

test("a decoded request says whether it changes something", function()
  eq(decode("\x10\x50", 2).change, false)
  eq(decode("\x10\x80", 2).change, true)
end)

test("a request with too many operations is not decoded", function()
  eq(decode(("\x10"):rep(4096), 4096) ~= nil, true)
  eq(decode(("\x10"):rep(4097), 4097), nil)
end)

test("text that is not UTF-8 is escaped", function()
  eq(frames.encode.text "\xff", "\0" .. string.pack("<I1s4", 4, "\\xff"))
  eq(frames.encode_refusal(1, "\xff"), string.pack("<I1s4", 1, "\\xff"))
end)

test("decoding a million mutated requests raises no error", function()
  math.randomseed(2)
  local seeds = {}
  for _, row in ipairs(harness.vectors "ops.tsv") do
    table.insert(seeds, string.pack("<I4I4I2", 7, 5, 1) .. unhex(row[3]))
  end
  local whole = 0
  for _ = 1, 1000000 do
    local data = seeds[math.random(#seeds)]
    local at = math.random(#data)
    data = data:sub(1, at - 1) .. string.char(math.random(0, 255)) .. data:sub(at + math.random(0, 2))
    local request = frames.decode_request(data, 1, #data + 1)
    whole = whole + (request and 1 or 0)
  end
  eq(whole > 10000, true, "some of them are requests")
end)
