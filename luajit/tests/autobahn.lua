--- The cases of the Autobahn test suite for WebSockets, sections 1 to 7, 9 and 10, written from the suite's
-- descriptions: the suite itself (autobahntestsuite) needs Python 2. Sections 12 and 13 are about compression, which
-- the library does not support. Each case is sent to a server and to a client; both send every message back.

local bit = require "bit"
local check = require "tests.support.check"
local ffi = require "ffi"
local http = require "framewire.http"
local process = require "tests.support.process"
local socket = require "framewire.socket"
local thread = require "framewire.thread"
local utf8 = require "framewire.utf8"
local websocket = require "framewire.websocket"
local wire = require "tests.support.wire"

local MEGABYTE = 1048576
local options = {
  log = function() end,
  handler = http.routes {
    ["GET /echo"] = function(request, response)
      websocket.accept(request, response, {
        max_message = 16 * MEGABYTE,
        on_message = function(ws, data, is_text) ws:send(data, is_text) end,
      })
    end,
  },
}

local TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

-- A frame to send. With `is_part`, more frames of its message follow. `rsv` has its reserved bits.
local function frame(opcode, data, is_part, rsv)
  return { opcode = opcode, data = data or "", is_part = is_part, rsv = rsv or 0 }
end

local function closing(code, reason)
  return frame(CLOSE, string.char(math.floor(code / 256), code % 256) .. (reason or ""))
end

-- Returns the bytes of a frame. A client masks its frames.
local function encode(one, is_client)
  return wire.encode((one.is_part and 0 or 128) + one.rsv * 16 + one.opcode, one.data, is_client)
end

-- The cases. Each has a number, the frames to send, the frames that must come back (as texts, see `written`), and
-- `cut`: how the bytes are divided into pieces. nil is one piece, "frames" one piece per frame, and a number the bytes
-- per piece. A case can also have `missing`: how many bytes at the end are not sent.
local cases = {}

local function add(number, frames, wanted, cut)
  cases[#cases + 1] = { number = number, frames = frames, wanted = wanted, cut = cut }
end

-- The text for a frame that came back. It contains the payload; if the payload is long, its size and a checksum; for a
-- closing frame, the code.
local function written(opcode, data)
  if opcode == CLOSE then
    data = #data >= 2 and tostring(data:byte(1) * 256 + data:byte(2)) or data
  elseif #data > 200 then
    local sum = 0
    for i = 1, #data, 61 do sum = bit.bxor(bit.rol(sum, 5), data:byte(i)) end
    data = #data .. " bytes, " .. bit.tohex(sum)
  end
  return opcode .. ":" .. data
end

local function text(data) return written(TEXT, data) end
-- The frames that come back if the other side closes the connection with this code: only a closing frame.
local function failed(code) return { written(CLOSE, string.char(math.floor(code / 256), code % 256)) } end

local WRONG, NOT_UTF8 = 1002, 1007

-- Section 1: framing, with texts (1.1) and bytes (1.2).
for group, opcode in ipairs { TEXT, BINARY } do
  for place, size in ipairs { 0, 125, 126, 127, 128, 65535, 65536, 65536 } do
    local data = (opcode == TEXT and "*" or "\254"):rep(size)
    add(("1.%d.%d"):format(group, place), { frame(opcode, data) }, { written(opcode, data) }, place == 8 and 997 or nil)
  end
end

-- Section 2: pings and pongs.
local function pong(data) return written(PONG, data) end
local full = ("\254"):rep(125)
add("2.1", { frame(PING) }, { pong "" })
add("2.2", { frame(PING, "Hello, world!") }, { pong "Hello, world!" })
add("2.3", { frame(PING, "\0\255\254\253\252\251\0\255") }, { pong "\0\255\254\253\252\251\0\255" })
add("2.4", { frame(PING, full) }, { pong(full) })
add("2.5", { frame(PING, full .. "\254") }, failed(WRONG))
add("2.6", { frame(PING, full) }, { pong(full) }, 1)
add("2.7", { frame(PONG) }, {})
add("2.8", { frame(PONG, "unsolicited") }, {})
add("2.9", { frame(PONG, "unsolicited"), frame(PING, "ping") }, { pong "ping" })
local pings, pongs = {}, {}
for i = 1, 10 do
  pings[i], pongs[i] = frame(PING, "payload-" .. i), pong("payload-" .. i)
end
add("2.10", pings, pongs)
add("2.11", pings, pongs, 1)

-- Section 3: reserved bits.
local hello = "Hello, world!"
add("3.1", { frame(TEXT, hello, false, 1) }, failed(WRONG))
for place, cut in ipairs { false, "frames", 1 } do
  add("3." .. place + 1, { frame(TEXT, hello), frame(TEXT, hello, false, place + 1), frame(PING) },
    { text(hello), failed(WRONG)[1] }, cut or nil)
end
add("3.5", { frame(BINARY, "\0\255\254", false, 5) }, failed(WRONG))
add("3.6", { frame(PING, hello, false, 6) }, failed(WRONG))
add("3.7", { frame(CLOSE, "", false, 7) }, failed(WRONG))

-- Section 4: opcodes without a meaning, of data frames (4.1) and of control frames (4.2).
for group, opcodes in ipairs { { 3, 4, 5, 6, 7 }, { 11, 12, 13, 14, 15 } } do
  for place, opcode in ipairs(opcodes) do
    local number = ("4.%d.%d"):format(group, place)
    if place == 1 then
      add(number, { frame(opcode) }, failed(WRONG))
    elseif place == 2 then
      add(number, { frame(opcode, "reserved opcode") }, failed(WRONG))
    else
      add(number, { frame(TEXT, hello), frame(opcode, place == 3 and "" or "reserved opcode"), frame(PING) },
        { text(hello), failed(WRONG)[1] }, place == 5 and 1 or nil)
    end
  end
end

-- Section 5: fragments.
add("5.1", { frame(PING, "fragment1", true), frame(0, "fragment2") }, failed(WRONG))
add("5.2", { frame(PONG, "fragment1", true), frame(0, "fragment2") }, failed(WRONG))
for place, cut in ipairs { false, "frames", 1 } do
  cut = cut or nil
  add("5." .. 2 + place, { frame(TEXT, "fragment1", true), frame(0, "fragment2") }, { text "fragment1fragment2" }, cut)
  add("5." .. 5 + place, { frame(TEXT, "fragment1", true), frame(PING, "ping"), frame(0, "fragment2") },
    { pong "ping", text "fragment1fragment2" }, cut)
  add("5." .. 8 + place, { frame(0, "nothing to continue"), frame(TEXT, hello) }, failed(WRONG), cut)
  add("5." .. 11 + place, { frame(0, "nothing to continue", true), frame(TEXT, hello) }, failed(WRONG), cut)
end
add("5.15", {
  frame(TEXT, "fragment1", true), frame(0, "fragment2"), frame(0, "fragment3", true), frame(TEXT, "fragment4"),
}, { text "fragment1fragment2", failed(WRONG)[1] })
for place, is_part in ipairs { true, false } do
  local again = frame(0, "fragment3", is_part)
  add("5." .. 15 + place, { again, frame(TEXT, "fragment4"), again, frame(TEXT, "fragment5") }, failed(WRONG))
end
add("5.18", { frame(TEXT, "fragment1", true), frame(TEXT, "fragment2") }, failed(WRONG))
for place, cut in ipairs { "frames", false } do
  add("5." .. 18 + place, {
    frame(TEXT, "fragment1", true), frame(0, "fragment2", true), frame(PING, "pongme 1!"),
    frame(0, "fragment3", true), frame(0, "fragment4", true), frame(PING, "pongme 2!"), frame(0, "fragment5"),
  }, { pong "pongme 1!", pong "pongme 2!", text "fragment1fragment2fragment3fragment4fragment5" },
    cut or nil)
end

check.test("text that is not UTF-8 stays so when more bytes arrive", function()
  local state = utf8.START
  for _, piece in ipairs { "\255", "later", "\195", "\164" } do
    state = utf8.check(state, ffi.cast("const uint8_t *", piece), 0, #piece)
    check.equal(state, utf8.INVALID)
  end
end)

-- Section 6: UTF-8.
add("6.1.1", { frame(TEXT) }, { text "" })
add("6.1.2", { frame(TEXT, "", true), frame(0, "", true), frame(0) }, { text "" })
add("6.1.3", { frame(TEXT, "", true), frame(0, "middle", true), frame(0) }, { text "middle" })

-- A text, divided into frames of one byte each.
local function single_bytes(data)
  local frames = {}
  for i = 1, #data do frames[i] = frame(i == 1 and TEXT or 0, data:sub(i, i), i < #data) end
  return frames
end

local KOSME = "\206\186\225\189\185\207\131\206\188\206\181"
local mixed = "Hello-\194\181@\195\159\195\182\195\164\195\188\195\160\195\161-UTF-8!!"
add("6.2.1", { frame(TEXT, mixed) }, { text(mixed) })
add("6.2.2", { frame(TEXT, mixed:sub(1, 8), true), frame(0, mixed:sub(9)) }, { text(mixed) })
add("6.2.3", single_bytes(mixed), { text(mixed) })
add("6.2.4", single_bytes(KOSME), { text(KOSME) })
local broken = KOSME .. "\237\160\128edited"
add("6.3.1", { frame(TEXT, broken) }, failed(NOT_UTF8))
add("6.3.2", single_bytes(broken), failed(NOT_UTF8))
-- The other side must refuse invalid bytes before their message is complete. So these cases do not send the rest.
add("6.4.1", { frame(TEXT, KOSME, true), frame(0, "\244\144\128\128", true) }, failed(NOT_UTF8), "frames")
add("6.4.2", { frame(TEXT, KOSME .. "\244", true), frame(0, "\144", true) }, failed(NOT_UTF8), "frames")
cases[#cases + 1] = { number = "6.4.3", frames = { frame(TEXT, KOSME .. "\244\144\128\128edited") },
  wanted = failed(NOT_UTF8), missing = 6 }
cases[#cases + 1] = { number = "6.4.4", frames = { frame(TEXT, KOSME .. "\244\144\128\128edited") },
  wanted = failed(NOT_UTF8), missing = 8, cut = 1 }

-- Adds the texts of one of the groups 6.5 to 6.23: first those in `order`, which are pairs (a text, and whether it is
-- UTF-8), then those in `right`, which are UTF-8, and then those in `wrong`, which are not.
local function utf8_group(group, right, wrong, order)
  local place = 0
  local function one(data, is_right)
    place = place + 1
    add(("6.%d.%d"):format(group, place), { frame(TEXT, data) }, is_right and { text(data) } or failed(NOT_UTF8))
  end
  if order then
    for _, pair in ipairs(order) do one(pair[1], pair[2]) end
  end
  for _, data in ipairs(right or {}) do one(data, true) end
  for _, data in ipairs(wrong or {}) do one(data, false) end
end

local prefixes = {}
for length = 1, #KOSME do
  local ends_with_character = length == 2 or length == 5 or length == 7 or length == 9 or length == 11
  prefixes[length] = { KOSME:sub(1, length), ends_with_character }
end
utf8_group(5, { "Hello", "\194\181\195\159", KOSME, "\227\129\130\227\129\132", "\240\159\152\128" })
utf8_group(6, nil, nil, prefixes)
utf8_group(7, { "\0", "\194\128", "\224\160\128", "\240\144\128\128" })
utf8_group(8, nil, { "\248\136\128\128\128", "\252\132\128\128\128\128" })
utf8_group(9, { "\127", "\223\191", "\239\191\191", "\244\143\191\191" })
utf8_group(10, nil, { "\247\191\191\191", "\251\191\191\191\191", "\253\191\191\191\191\191" })
utf8_group(11, { "\237\159\191", "\238\128\128", "\239\191\189", "\244\143\191\191" }, { "\244\144\128\128" })
local continuations = ""
for byte = 128, 191 do continuations = continuations .. string.char(byte) end
utf8_group(12, nil, { "\128", "\191", "\128\191", "\128\191\128", "\128\191\128\191", "\128\191\128\191\128",
  "\128\191\128\191\128\191", continuations })
local lonely = {}
for place, range in ipairs { { 192, 223 }, { 224, 239 }, { 240, 247 }, { 248, 251 }, { 252, 253 } } do
  lonely[place] = ""
  for byte = range[1], range[2] do lonely[place] = lonely[place] .. string.char(byte) .. " " end
end
utf8_group(13, nil, lonely)
local incomplete = { "\192", "\224\128", "\240\128\128", "\248\128\128\128", "\252\128\128\128\128", "\223",
  "\239\191", "\247\191\191", "\251\191\191\191", "\253\191\191\191\191" }
utf8_group(14, nil, incomplete)
utf8_group(15, nil, { table.concat(incomplete) })
utf8_group(16, nil, { "\254", "\255", "\254\254\255\255" })
-- One character in 2, 3, 4, 5 and 6 bytes, although fewer bytes suffice. `last` has the last byte of the encoding in 2
-- bytes, and of all longer encodings. `second` has the second bytes of the encodings in 3 to 6 bytes.
local function overlong(last, second)
  return { "\192" .. last[1], "\224" .. second[1] .. last[2], "\240" .. second[2] .. "\128" .. last[2],
    "\248" .. second[3] .. "\128\128" .. last[2], "\252" .. second[4] .. "\128\128\128" .. last[2] }
end
utf8_group(17, nil, overlong({ "\175", "\175" }, { "\128", "\128", "\128", "\128" }))
utf8_group(18, nil, { "\193\191", "\224\159\191", "\240\143\191\191", "\248\135\191\191\191",
  "\252\131\191\191\191\191" })
utf8_group(19, nil, overlong({ "\128", "\128" }, { "\128", "\128", "\128", "\128" }))
local high, low = { "\237\160\128", "\237\173\191", "\237\174\128", "\237\175\191" },
  { "\237\176\128", "\237\190\128", "\237\191\191" }
utf8_group(20, nil, { high[1], high[2], high[3], high[4], low[1], low[2], low[3] })
local pairs_of_surrogates = {}
for _, first in ipairs(high) do
  for _, second in ipairs { low[1], low[3] } do pairs_of_surrogates[#pairs_of_surrogates + 1] = first .. second end
end
utf8_group(21, nil, pairs_of_surrogates)
local non_characters = { "\239\191\190", "\239\191\191" }
for plane = 1, 16 do
  for _, last in ipairs { 190, 191 } do
    non_characters[#non_characters + 1] = string.char(240 + math.floor(plane / 4), 143 + plane % 4 * 16, 191, last)
  end
end
utf8_group(22, non_characters)
utf8_group(23, { "\239\191\185", "\239\191\186", "\239\191\187", "\239\191\188", "\239\191\189", "\239\191\190",
  "\239\191\191" })

-- Section 7: closing.
local bye = closing(1000)
local answered = failed(1000)[1]
add("7.1.1", { frame(TEXT, hello), bye }, { text(hello), answered })
add("7.1.2", { bye, closing(1000) }, { answered })
add("7.1.3", { bye, frame(PING) }, { answered })
add("7.1.4", { bye, frame(TEXT, hello) }, { answered })
add("7.1.5", { frame(TEXT, "fragment1", true), bye, frame(0, "fragment2") }, { answered })
local large = ("BAsd7&jh23"):rep(26214)
add("7.1.6", { frame(TEXT, large), frame(TEXT, hello), bye, frame(PING) }, { text(large), text(hello), answered })
add("7.3.1", { frame(CLOSE) }, { "8:" })
add("7.3.2", { frame(CLOSE, "a") }, failed(WRONG))
add("7.3.3", { bye }, { answered })
add("7.3.4", { closing(1000, "Hello, world!") }, { answered })
add("7.3.5", { closing(1000, ("*"):rep(123)) }, { answered })
add("7.3.6", { closing(1000, ("*"):rep(124)) }, failed(WRONG))
add("7.5.1", { closing(1000, broken) }, failed(NOT_UTF8))
for place, code in ipairs { 1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999 } do
  add("7.7." .. place, { closing(code) }, failed(code))
end
for place, code in ipairs { 0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999 } do
  add("7.9." .. place, { closing(code) }, failed(WRONG))
end
for place, code in ipairs { 5000, 65535 } do add("7.13." .. place, { closing(code) }, failed(WRONG)) end

-- Section 9: limits. Large messages, messages in many fragments, bytes that arrive in small pieces, and many messages.
local function parts_of(opcode, data, size)
  local frames = {}
  for place = 1, #data, size do
    frames[#frames + 1] = frame(place == 1 and opcode or 0, data:sub(place, place + size - 1), place + size <= #data)
  end
  return frames
end
for group, opcode in ipairs { TEXT, BINARY } do
  local byte = opcode == TEXT and "*" or "\254"
  for place, size in ipairs { 65536, 262144, MEGABYTE, 4 * MEGABYTE, 8 * MEGABYTE, 16 * MEGABYTE } do
    local data = byte:rep(size)
    add(("9.%d.%d"):format(group, place), { frame(opcode, data) }, { written(opcode, data) })
  end
  local message = byte:rep(4 * MEGABYTE)
  for place = 1, 9 do
    local size = 16 * 4 ^ place
    add(("9.%d.%d"):format(group + 2, place), parts_of(opcode, message, size), { written(opcode, message) })
  end
  message = byte:rep(MEGABYTE)
  for place = 1, 6 do
    add(("9.%d.%d"):format(group + 4, place), { frame(opcode, message) }, { written(opcode, message) }, 32 * 2 ^ place)
    local frames, wanted = {}, {}
    local data = byte:rep(({ 0, 16, 64, 256, 1024, 4096 })[place])
    for i = 1, 1000 do
      frames[i], wanted[i] = frame(opcode, data), written(opcode, data)
    end
    add(("9.%d.%d"):format(group + 6, place), frames, wanted)
  end
end

-- Section 10: a message in many fragments.
local fragmented = ("*"):rep(65536)
add("10.1.1", parts_of(TEXT, fragmented, 1300), { text(fragmented) })

-- Returns the bytes of a case in the pieces in which they are sent. Unless bytes are missing, the last frame is a ping:
-- its answer shows that all other answers have come back.
local function pieces_of(case, is_client)
  local list = {}
  for place, one in ipairs(case.frames) do list[place] = encode(one, is_client) end
  local last = encode(frame(PING, "last"), is_client)
  if case.missing then
    list[#list] = list[#list]:sub(1, -case.missing - 1)
  else
    list[#list + 1] = last
  end
  if case.cut == "frames" then return list end
  local all = table.concat(list)
  local size = case.cut or #all
  list = {}
  for place = 1, #all, size do list[#list + 1] = all:sub(place, place + size - 1) end
  return list
end

-- Reads the frames in `data` from `place` on, and adds their texts to `found`. Returns whether the last frame has come,
-- and where the rest begins. `is_masked`: whether a client has sent the frames.
local function read_frames(data, place, found, is_masked)
  while true do
    local first, payload, next_place = wire.decode(data, place, is_masked)
    if not first then return false, place end
    place = next_place
    local opcode = first % 16
    if opcode == PONG and payload == "last" then return true, place end
    found[#found + 1] = first < 128 and "a part" or written(opcode, payload)
    if opcode == CLOSE then return true, place end
  end
end

local WAIT = 30 -- seconds

-- Sends a case, and returns the texts of the frames that come back. Reads while it sends: otherwise, the other side
-- could be unable to send, and stop reading.
local function exchange(connection, data, case, is_client)
  local pieces, number, from = pieces_of(case, is_client), 1, 1
  local found, place = {}, 1
  local parts, size, is_closed = { data }, #data, false
  while true do
    if size > 0 then
      local is_done
      -- Pieces are joined only here: otherwise, each piece of a large message would copy all of the message.
      if #parts > 1 then parts = { table.concat(parts) } end
      is_done, place = read_frames(parts[1], place, found, not is_client)
      size = 0
      if is_done or is_closed then return found end
    elseif is_closed then
      found[#found + 1] = "closed without a closing frame"
      return found
    end
    local is_sent = number > #pieces
    -- 1 waits until something has arrived; 3 waits until something has arrived or more can be sent.
    assert(connection:wait(is_sent and 1 or 3, WAIT), case.number .. ": nothing came back")
    if not is_sent then
      local sent = connection:send(pieces[number], from)
      if sent then from = from + sent end
      if sent and from > #pieces[number] then number, from = number + 1, 1 end
    end
    while size < MEGABYTE do
      local more, message = connection:receive()
      if not more then
        is_closed = message ~= "again"
        break
      end
      parts[#parts + 1] = more
      size = size + #more
    end
  end
end

local function compare(case, found)
  check.equal(table.concat(found, " "), table.concat(case.wanted, " "), "case " .. case.number)
end

check.test(("a server passes the %d cases of the Autobahn list"):format(#cases), function()
  assert(#cases >= 300, "too few cases: " .. #cases)
  process.with_server(options, function(port)
    for _, case in ipairs(cases) do
      local raw = wire.open(port, "/echo")
      compare(case, exchange(raw.socket, raw.data, case, true))
      raw:close()
    end
  end)
end)

-- Runs a client on `count` connections, one after the other. The client sends every message back.
local function echo(root, port, count)
  package.path = root .. "/?.lua;" .. package.path
  local connect = require("framewire.websocket").connect
  local loop = assert(require("framewire.loop").new())
  for _ = 1, count do
    assert(connect(("ws://127.0.0.1:%d/"):format(port), {
      loop = loop, max_message = 16777216,
      on_message = function(ws, data, is_text) ws:send(data, is_text) end,
      -- The connection can end with the reply to the handshake, before the loop runs.
      on_close = function() loop:stop() end,
    }))
    assert(loop:run())
  end
  loop:close()
  return count
end

check.test(("a client passes the %d cases of the Autobahn list"):format(#cases), function()
  local listener = assert(socket.listen { port = 0 })
  local _, port = listener:name()
  local worker = assert(thread.start(echo, check.root, port, #cases))
  for _, case in ipairs(cases) do
    local connection = assert(listener:accept(WAIT), case.number)
    wire.accept(connection, WAIT)
    compare(case, exchange(connection, "", case, false))
    connection:close()
  end
  listener:close()
  local ok, count = worker:join()
  check.equal(ok, true, tostring(count))
  check.equal(count, #cases)
end)
