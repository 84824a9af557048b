--- Tests of WebSockets: the handshake, valid and invalid frames, and use with and without callbacks. The frames follow
-- sections 1 to 7 of the Autobahn test suite: framing, pings, reserved bits, opcodes, fragmentation, UTF-8, closing.

local ffi = require "ffi"

local check = require "tests.support.check"
local client = require "tests.support.client"
local handshake = require "framewire.websocket.handshake"
local http = require "framewire.http"
local loops = require "framewire.loop"
local num = require "framewire.num"
local process = require "tests.support.process"
local socket = require "framewire.socket"
local tasks = require "framewire.task"
local time = require "framewire.time"
local websocket = require "framewire.websocket"
local wire = require "tests.support.wire"
local worker = require "framewire.worker"

-- The results of the task of "GET /late".
local late = {}
-- The code that `on_close` of /accept-and-fail got.
local end_of_failed

local options = {
  log = function() end,
  handler = http.routes {
    ["GET /echo"] = function(request, response)
      websocket.accept(request, response, {
        max_message = 1000000, protocols = { "b", "c" },
        on_message = function(ws, data, is_text) ws:send(data, is_text) end,
      })
    end,
    ["GET /task"] = http.task(function(request, response)
      local ws = assert(websocket.accept(request, response))
      for number = 1, 3 do
        local data = ws:receive(5)
        if not data then return end
        ws:send(number .. " " .. data)
      end
    end),
    ["GET /pinged"] = function(request, response)
      websocket.accept(request, response, { ping_interval = 0.1, on_message = function() end })
    end,
    ["GET /echo/no-pings"] = function(request, response)
      websocket.accept(request, response, { ping_interval = 0, on_message = function() end })
    end,
    ["GET /slow"] = function(request, response)
      websocket.accept(request, response, {
        on_open = function(ws)
          local sent = 0
          while ws:send(("x"):rep(100000)) do sent = sent + 1 end
          ws.sent = sent
        end,
        on_drain = function(ws) ws:send("drained after " .. ws.sent) end,
        on_message = function() end,
      })
    end,
    ["GET /failing"] = function(request, response)
      websocket.accept(request, response, { on_message = function() error("as asked") end })
    end,
    ["GET /late"] = http.task(function(request, response)
      -- The client does not read this, so the response cannot be sent in time.
      response:header("X-Filler", ("x"):rep(33554432))
      late[1] = select(2, websocket.accept(request, response, { timeout = 0.1 })) or "opened"
      local begin = time.monotonic()
      tasks.sleep(1)
      late[2] = ("slept %.1f s"):format(time.monotonic() - begin)
    end),
    ["GET /late/state"] = function(_, response) response:text(200, table.concat(late, " ")) end,
    ["GET /no-callback"] = function(request, response) websocket.accept(request, response) end,
    ["GET /accept-and-fail"] = function(request, response)
      local ws = websocket.accept(request, response, {
        on_message = function() end,
        on_close = function(_, code) end_of_failed = code end,
      })
      end_of_failed = ws and "not called"
      error("as asked")
    end,
    ["GET /accept-and-fail/end"] = function(_, response) response:text(200, tostring(end_of_failed)) end,
    ["GET /task/callbacks"] = http.task(function(request, response)
      if request:param("wait") then tasks.sleep(0.01) end
      local sent
      local ws = assert(websocket.accept(request, response, {
        on_message = function(ws, data) ws:send(data .. ": " .. sent) end,
      }))
      sent = tostring(select(2, ws:send("at once")) or "open")
      if request:param("fail") then error("as asked") end
    end),
    ["GET /invalid-limit"] = function(request, response)
      websocket.accept(request, response, { stall_timeout = -1, on_message = function() end })
    end,
  },
}

-- A frame of a client. `first` is its first byte. With `fields.plain`, it is not masked. `fields.length` replaces its
-- length field.
local function frame(first, data, fields)
  return wire.encode(first, data, not (fields and fields.plain), fields and fields.length)
end

local function closing(code, reason)
  return frame(0x88, string.char(math.floor(code / 256), code % 256) .. (reason or ""))
end

-- Sends frames and then a last ping, `step` bytes at a time; without `step`, all at once. Returns the frames that the
-- server sends before it closes the connection or answers that ping, written as in `cases` below.
local function answers(port, sent, step)
  local connection, opened = wire.open(port, "/echo")
  check.equal(opened.headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
  sent = sent .. frame(0x89, "last")
  step = step or #sent
  for place = 1, #sent, step do connection:send(sent:sub(place, place + step - 1)) end
  local data, place, parts = connection.data, 1, {}
  while true do
    local first, payload, next_place = wire.decode(data, place, false)
    if first == 0x8a and payload == "last" then break end
    if not first then
      local more = connection.socket:read(65536, 5)
      if not more then break end
      data = data .. more
    else
      place = next_place
      if first == 0x88 then
        payload = #payload >= 2 and tostring(payload:byte(1) * 256 + payload:byte(2)) or payload
      elseif #payload > 100 then
        payload = #payload .. " bytes"
      end
      parts[#parts + 1] = ("%x:%s"):format(first, payload)
    end
  end
  connection:close()
  return table.concat(parts, " ")
end

local UTF8 = "\206\186\225\189\185\207\131\206\188\206\181"

-- Frames to send, and the frames that must come back. Each of the latter is written as its first byte in hex, a colon,
-- and its payload. A payload of more than 100 bytes is written as its length, and that of a closing frame as its code.
local cases = {
  -- Section 1: messages of all sizes.
  { frame(0x81, ""), "81:" }, { frame(0x82, ""), "82:" }, { frame(0x81, "a"), "81:a" },
  { frame(0x82, "\0\255"), "82:\0\255" },
}
for _, size in ipairs { 125, 126, 127, 128, 65535, 65536, 200000 } do
  cases[#cases + 1] = { frame(0x81, ("*"):rep(size)), ("81:%d bytes"):format(size) }
  cases[#cases + 1] = { frame(0x82, ("\254"):rep(size)), ("82:%d bytes"):format(size) }
end
for _, case in ipairs {
  -- Section 2: pings and pongs.
  { frame(0x89, ""), "8a:" }, { frame(0x89, "hello"), "8a:hello" }, { frame(0x89, "\0\255"), "8a:\0\255" },
  { frame(0x89, ("p"):rep(125)), "8a:125 bytes" }, { frame(0x89, ("p"):rep(126)), "88:1002" }, { frame(0x8a, "x"), "" },
  { frame(0x89, "a"):rep(3), "8a:a 8a:a 8a:a" }, { frame(0x8a, "x") .. frame(0x81, "m"), "81:m" },
  -- Section 3: reserved bits.
  { frame(0x81, "m") .. frame(0xc1, "n"), "81:m 88:1002" }, { frame(0xa1, "n"), "88:1002" },
  { frame(0x91, "n"), "88:1002" },
  { frame(0xf2, ""), "88:1002" }, { frame(0xd9, "n"), "88:1002" }, { frame(0xf8, ""), "88:1002" },
  -- Section 4: opcodes.
  { frame(0x83, ""), "88:1002" }, { frame(0x84, "x"), "88:1002" }, { frame(0x87, "x"), "88:1002" },
  { frame(0x8b, ""), "88:1002" }, { frame(0x8c, "x"), "88:1002" },
  { frame(0x81, "m") .. frame(0x8f, ""), "81:m 88:1002" },
  -- Section 5: fragments.
  { frame(0x09, "x"), "88:1002" }, { frame(0x0a, "x"), "88:1002" }, { frame(0x08, ""), "88:1002" },
  { frame(0x01, "a") .. frame(0x80, "b"), "81:ab" }, { frame(0x02, "a") .. frame(0x00, "") .. frame(0x80, ""), "82:a" },
  { frame(0x01, "a") .. frame(0x89, "p") .. frame(0x80, "b"), "8a:p 81:ab" },
  { frame(0x01, "") .. frame(0x00, "") .. frame(0x80, ""), "81:" },
  { frame(0x80, "x"), "88:1002" }, { frame(0x00, "x"), "88:1002" },
  { frame(0x81, "m") .. frame(0x80, "x"), "81:m 88:1002" },
  { frame(0x01, "a") .. frame(0x81, "b"), "88:1002" }, { frame(0x01, "a") .. frame(0x02, "b"), "88:1002" },
  { frame(0x01, "a") .. frame(0x00, "b"):rep(200) .. frame(0x80, "c"), "81:202 bytes" },
  { frame(0x01, "a") .. closing(1000), "88:1000" },
  -- Section 6: UTF-8.
  { frame(0x81, UTF8), "81:" .. UTF8 }, { frame(0x81, "\244\143\191\191"), "81:\244\143\191\191" },
  { frame(0x81, UTF8 .. "\237\160\128"), "88:1007" }, { frame(0x81, "\244\144\128\128"), "88:1007" },
  { frame(0x81, "\192\128"), "88:1007" }, { frame(0x81, "\206"), "88:1007" }, { frame(0x81, "\254"), "88:1007" },
  { frame(0x01, "\206") .. frame(0x80, "\186"), "81:\206\186" }, { frame(0x01, "\206") .. frame(0x80, ""), "88:1007" },
  { frame(0x01, "\240\144") .. frame(0x89, "") .. frame(0x80, "\141\136"), "8a: 81:\240\144\141\136" },
  { frame(0x01, UTF8 .. "\244\144") .. frame(0x00, "x"), "88:1007" }, { frame(0x82, "\255\254"), "82:\255\254" },
  -- The text is already invalid before the frame is complete.
  { frame(0x81, UTF8 .. "\255" .. ("x"):rep(1000)):sub(1, 100), "88:1007" },
  -- Section 7: closing.
  { frame(0x88, ""), "88:" }, { closing(1000), "88:1000" }, { closing(1000, "bye"), "88:1000" },
  { closing(1000, ("x"):rep(123)), "88:1000" }, { closing(1000, ("x"):rep(124)), "88:1002" },
  { frame(0x88, "\3"), "88:1002" }, { closing(1000, "\206"), "88:1007" },
  { closing(1000) .. frame(0x81, "m"), "88:1000" },
  { closing(1000) .. closing(1001), "88:1000" },
  { frame(0x81, "m") .. closing(3000, "r"), "81:m 88:3000" },
  -- Lengths and masks.
  { frame(0x81, "abc", { plain = true }), "88:1002" }, { frame(0x89, "", { plain = true }), "88:1002" },
  { frame(0x81, "abc", { length = "\126\0\3" }), "88:1002" },
  { frame(0x81, "x", { length = "\127\0\0\0\0\0\0\0\1" }), "88:1002" },
  { frame(0x82, "x", { length = "\127\128\0\0\0\0\0\0\1" }), "88:1002" },
  { frame(0x89, "x", { length = "\126\0\126" }), "88:1002" },
  -- The largest message.
  { frame(0x82, "x", { length = "\127\0\0\0\0\0\16\0\0" }), "88:1009" },
  { frame(0x82, "x", { length = "\127\127\255\255\255\255\255\255\255" }), "88:1009" },
  { frame(0x02, ("x"):rep(600000)) .. frame(0x80, ("x"):rep(600000)), "88:1009" },
} do cases[#cases + 1] = case end
for _, code in ipairs { 1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999 } do
  cases[#cases + 1] = { closing(code), "88:" .. code }
end
for _, code in ipairs { 0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535 } do
  cases[#cases + 1] = { closing(code), "88:1002" }
end

check.test("a server answers every kind of frame, in one piece and byte by byte", function()
  process.with_server(options, function(port)
    for number, case in ipairs(cases) do
      check.equal(answers(port, case[1]), case[2], "case " .. number .. " " .. num.hex(case[1]:sub(1, 30)))
      if #case[1] < 300 then check.equal(answers(port, case[1], 1), case[2], "case " .. number .. " byte by byte") end
    end
    assert(#cases > 100, #cases .. " cases")
  end)
end)

check.test("only valid handshakes open a WebSocket", function()
  process.with_server(options, function(port)
    local good = wire.OPENING:format("/echo")
    for change, status in pairs {
      [{ "Upgrade: websocket\r\n", "" }] = 426, [{ "Connection: Upgrade\r\n", "" }] = 426,
      [{ "Upgrade: websocket", "Upgrade: h2c" }] = 426, [{ "Version: 13", "Version: 12" }] = 426,
      [{ "Sec%-WebSocket%-Version: 13\r\n", "" }] = 426, [{ "==", "" }] = 400,
      [{ "Sec%-WebSocket%-Key: [^\r]*\r\n", "" }] = 400,
      [{ "dGhl", "dGhlAAAA" }] = 400, [{ "HTTP/1.1", "HTTP/1.0" }] = 400,
      [{ "Upgrade: websocket", "Upgrade: WebSocket, other" }] = 101,
      [{ "Connection: Upgrade", "Connection: keep-alive, upgrade" }] = 101,
    } do
      local connection = client.connect(port)
      connection:send((good:gsub(change[1], change[2])))
      local answer = assert(connection:receive())
      check.equal(answer.status, status, change[1])
      if status == 426 then
        check.equal(answer.headers["sec-websocket-version"], "13")
        check.equal(answer.reason, "Upgrade Required")
      end
      connection:close()
    end
    check.equal(client.ask(port, "POST", "/echo").status, 405)
    check.equal(client.ask(port, "GET", "/no-callback").status, 500)
  end)
end)

check.test("clients send, receive, ping and close", function()
  process.with_server(options, function(port)
    local url = ("ws://127.0.0.1:%d/echo"):format(port)
    local ws = assert(websocket.connect(url, { protocols = { "a", "b" }, headers = { Origin = "http://x" } }))
    check.equal(ws.subprotocol, "b")
    for _, size in ipairs { 0, 1, 125, 126, 65535, 65536, 300000 } do
      local text = ("é"):rep(size / 2)
      assert(ws:send(text))
      local data, is_text = ws:receive(5)
      check.equal(data, text)
      check.equal(is_text, true)
      assert(ws:send("\0\255" .. text, false))
      data, is_text = ws:receive(5)
      check.equal(data, "\0\255" .. text)
      check.equal(is_text, false)
    end
    assert(ws:ping("p"))
    check.equal(select(2, ws:receive(0.05)), "timeout")
    check.contains(select(2, ws:ping(("x"):rep(126))), "125")
    check.contains(select(2, ws:close(1005)), "not a closing code")
    check.contains(select(2, ws:close(1000, ("x"):rep(124))), "123")
    for _, value in ipairs { 1, {}, false } do check.contains(select(2, ws:send(value)), "sends strings") end
    assert(ws:close(3001, "done"))
    check.equal(ws.code, 3001)
    check.equal(select(2, ws:send("x")), "closed")
    local _, message, code = ws:receive()
    assert(message == "closed" and code == 3001)
    assert(ws:close())

    ws = assert(websocket.connect(url))
    ws:send(("x"):rep(1000001), false)
    _, message, code = ws:receive(5)
    assert(message == "closed" and code == 1009, "a message beyond the limit")
    check.contains(ws.reason, "1000000")

    for wrong, part in pairs {
      ["http://127.0.0.1/"] = "is not a URL", ["ws://"] = "is not a URL", ["ws://a b/"] = "is not a URL",
      ["ws://127.0.0.1:" .. process.free_port()] = "refused", [url .. "x"] = "404",
      [url .. "\r\nX: y"] = "is not a URL",
    } do
      check.contains(select(2, websocket.connect(wrong, { timeout = 2 })), part, wrong)
    end
    check.contains(select(2, websocket.connect(url, { on_message = print })), "needs a loop")
    check.contains(select(2, websocket.connect(url, { onmessage = print })), "no option 'onmessage'")
    check.contains(select(2, websocket.connect(url, { timeout = "x" })), "must be a number")
    check.contains(select(2, websocket.connect(url, { headers = { A = "b\r\nC: d" } })), "line break")
    check.contains(select(2, websocket.connect(url, { headers = { A = true } })), "not A = true")
    check.contains(select(2, websocket.connect(url, { headers = { "A: b" } })), "not 1 = A: b")
    for _, interval in ipairs { 0, -1, 0 / 0 } do
      check.contains(select(2, websocket.connect(url, { ping_interval = interval })), "use more than 0")
    end
    check.contains(select(2, websocket.connect(url .. "/no-pings")), "500")
    assert(websocket.connect(url), "the server still runs"):close()
  end)
end)

check.test("no frame follows a frame of which only a part was sent", function()
  local loop = assert(loops.new())
  local listener = assert(socket.listen())
  local url = "ws://127.0.0.1:" .. select(2, listener:name())
  local large = ("x"):rep(20000000)
  loop:spawn(function()
    for _ = 1, 2 do
      local one = assert(listener:accept(5))
      wire.accept(one, 5)
      loop:sleep(0.5) -- reads nothing meanwhile
      local count = 0
      while true do
        local data = one:read(1000000, 5)
        if not data or data == "" then break end
        count = count + #data
      end
      assert(count < #large, "the frame is not complete, and nothing follows it")
      one:close()
    end
  end)
  local passed = false
  loop:after(20, function() loop:stop() end)
  loop:spawn(function()
    local is_open
    local ws = assert(websocket.connect(url, {
      timeout = 0.2,
      -- Only records the state: if this function failed while the socket is open, a closing frame would be sent.
      on_close = function(ended) is_open = ended.socket.fd >= 0 end,
    }))
    check.equal(select(2, ws:send(large)), "timeout")
    check.equal(is_open, false)
    check.equal(select(2, ws:send("again")), "closed")
    local _, message, code = ws:receive()
    assert(message == "closed" and code == 1006, message)

    ws = assert(websocket.connect(url))
    local sender = loop:spawn(function() ws:send(large) end)
    loop:sleep(0.1)
    sender:cancel()
    loop:sleep(0.1)
    check.equal(select(2, ws:send("again")), "closed")
    passed = true
    loop:stop()
  end)
  assert(loop:run())
  listener:close()
  assert(passed)
end)

check.test("WebSockets work on a loop, in tasks of a server, and in tasks of a client", function()
  process.with_server(options, function(port)
    local url = ("ws://127.0.0.1:%d/"):format(port)
    local loop = assert(loops.new { log = function(line) error(line) end })
    local got, closed_with = {}, nil
    local ws = assert(websocket.connect(url .. "echo", {
      loop = loop,
      on_message = function(ws, data)
        got[#got + 1] = data
        if #got == 100 then ws:close(1000, "enough") end
      end,
      on_close = function(_, code, reason)
        closed_with = code .. reason
        loop:stop()
      end,
    }))
    for i = 1, 100 do ws:send("message " .. i) end
    check.contains(select(2, ws:receive(1)), "has callbacks")
    loop:after(10, function() error("the test takes too long") end)
    assert(loop:run())
    check.equal(#got, 100)
    check.equal(got[100], "message 100")
    check.equal(closed_with, "1000")

    local all = {}
    for i = 1, 10 do
      all[i] = loop:spawn(function()
        local one = assert(websocket.connect(url .. "task"))
        for number = 1, 3 do
          one:send("from " .. i)
          check.equal(one:receive(5), number .. " from " .. i)
        end
        local data, message, code = one:receive(5)
        assert(data == nil and message == "closed" and code == 1000, "the handler has returned")
      end)
    end
    loop:spawn(function()
      for i = 1, 10 do assert(all[i]:join()) end
      loop:stop()
    end)
    assert(loop:run())
  end)
end)

check.test("silent clients are disconnected, slow clients are not, and a stopping server sends 1001", function()
  process.with_server(options, function(port)
    local connection = wire.open(port, "/pinged")
    check.equal(connection:is_closed(2), true)
    connection:close()

    local url = ("ws://127.0.0.1:%d/"):format(port)
    -- On a busy machine, the answer to a ping can come too late.
    check.eventually(5, function()
      local pinged = assert(websocket.connect(url .. "pinged"))
      local _, message = pinged:receive(0.5)
      pinged:close()
      return message == "timeout"
    end, "a client that answers pings stayed connected")

    local ws = assert(websocket.connect(url .. "slow"))
    local count, data = 0
    repeat
      data = assert(ws:receive(5))
      count = count + 1
    until #data ~= 100000
    -- The server counted neither this text nor the last message before it, for which `send` returned false.
    check.equal(data, "drained after " .. count - 2)
    ws:close()
  end)
  local ws
  process.with_server(options,
    function(port) ws = assert(websocket.connect(("ws://127.0.0.1:%d/echo"):format(port))) end)
  local _, message, code = ws:receive(5)
  assert(message == "closed" and code == 1001, "after the server has stopped: " .. tostring(code))
end)

check.test("a callback that fails closes its WebSocket, but does not stop the server", function()
  process.with_server(options, function(port)
    for _ = 1, 3 do
      local ws = assert(websocket.connect(("ws://127.0.0.1:%d/failing"):format(port)))
      ws:send("x")
      ws:send("y")
      check.equal(select(3, ws:receive(5)), 1011)
      ws:close()
    end
    local ws = assert(websocket.connect(("ws://127.0.0.1:%d/echo"):format(port)))
    ws:send("alive")
    check.equal((ws:receive(5)), "alive")
    ws:close()
  end)
end)

check.test("WebSockets count as connections of the server", function()
  local limited = { log = options.log, handler = options.handler, limits = { max_connections = 3 } }
  process.with_server(limited, function(port)
    local url = ("ws://127.0.0.1:%d/echo"):format(port)
    local all = {}
    for i = 1, 3 do
      all[i] = check.eventually(5, function() return websocket.connect(url) end, "there is room")
    end
    check.contains(select(2, websocket.connect(url)), "503")
    all[1]:close()
    check.eventually(5, function() return websocket.connect(url) end, "there is room again")
  end)
end)

check.test("a WebSocket that cannot open does not count as a connection of the server", function()
  local limited = { log = options.log, handler = options.handler, limits = { max_connections = 3 } }
  process.with_server(limited, function(port)
    local url = ("ws://127.0.0.1:%d/invalid-limit"):format(port)
    for _ = 1, 5 do
      local ws = check.eventually(5, function() return websocket.connect(url) end, "there is room")
      check.equal(select(2, ws:receive(5)), "closed")
    end
  end)
end)

check.test("no WebSocket opens if the handler fails after accept", function()
  process.with_server(options, function(port)
    local connection = client.connect(port)
    connection:send(wire.OPENING:format("/accept-and-fail"))
    check.equal(assert(connection:receive()).status, 500)
    check.equal(connection:is_closed(), true)
    connection:close()
    check.equal(client.ask(port, "GET", "/accept-and-fail/end").body, "1006", "the code that on_close got")
  end)
end)

check.test("a WebSocket with callbacks stays open after its task, unless the task failed", function()
  process.with_server(options, function(port)
    local url = ("ws://127.0.0.1:%d/task/callbacks"):format(port)
    local ws = assert(websocket.connect(url))
    ws:send("one")
    check.equal((ws:receive(5)), "one: the WebSocket is not open yet; send in on_open or later")
    ws:close()
    -- If the task has already waited when it calls `accept`, the WebSocket is open when `accept` returns.
    ws = assert(websocket.connect(url .. "?wait=1"))
    check.equal((ws:receive(5)), "at once")
    ws:send("two")
    check.equal((ws:receive(5)), "two: open")
    ws:close()
    for query, code in pairs { ["?fail=1"] = 1006, ["?fail=1&wait=1"] = 1011 } do
      ws = assert(websocket.connect(url .. query))
      local _, message, got
      repeat _, message, got = ws:receive(5) until got or message == "timeout"
      check.equal(message, "closed", query)
      check.equal(got, code, query)
    end
  end)
end)

check.test("a WebSocket that opens after accept has timed out is closed, and does not wake the task", function()
  process.with_server(options, function(port)
    local slow = assert(socket.connect("127.0.0.1", port, 5))
    assert(slow:write(wire.OPENING:format("/late"), 5))
    local function reaches(state)
      check.eventually(5, function() return client.ask(port, "GET", "/late/state").body:find(state) end, state)
    end
    reaches("^timeout")
    local data, message, status
    repeat
      data, message = slow:read(1048576, 5)
      status = status or data and data:match("^HTTP/1.1 (%d+)")
    until not data
    check.equal(status, "101")
    check.equal(message, "closed")
    slow:close()
    reaches("^timeout slept [1-9]") -- on a busy machine, it sleeps for longer than 1 s
  end)
end)

check.test("an early wake is kept for the next suspend and does not end accept", function()
  process.in_task(function(loop)
    local kept
    local port = process.serve_on(loop, http.task(function(request, response)
      tasks.current():wake("early")
      -- With the time-out 0, the WebSocket opens in the loop's next round.
      local ws = assert(websocket.accept(request, response, { timeout = request.path == "/now" and 0 or nil }))
      check.equal(ws:receive(5), "hello")
      kept = tasks.current():suspend(1)
      ws:send("done")
    end))
    for _, path in ipairs { "/", "/now" } do
      local ws = assert(websocket.connect(("ws://127.0.0.1:%d%s"):format(port, path)))
      assert(ws:send("hello"))
      check.equal(ws:receive(5), "done", path)
      check.equal(kept, "early")
      ws:close()
    end
  end)
end)

check.test("a server ends the connection of a closed WebSocket, and counts it until then", function()
  process.in_task(function(loop)
    local port, server = process.serve_on(loop, function(request, response)
      websocket.accept(request, response, { close_timeout = 0.5, on_message = function() end })
    end)
    local connection = wire.open(port, "/")
    connection:send(closing(1000))
    loop:sleep(0.1)
    check.equal(server.upgraded_count, 1)
    -- A client that does not stop sending.
    for _ = 1, 10 do
      loop:sleep(0.1)
      connection.socket:send("x")
    end
    check.equal(server.upgraded_count, 0)
    check.equal(connection.socket:send("x"), nil)
  end)
end)

check.test("without callbacks, a client that reads too slowly is disconnected", function()
  process.in_task(function(loop)
    local ws
    local port = process.serve_on(loop, http.task(function(request, response)
      ws = assert(websocket.accept(request, response, { max_unsent = 1000000 }))
      ws:receive()
    end))
    wire.open(port, "/")
    loop:sleep(0.05) -- now the task has the WebSocket
    local sender = loop:spawn(function() return ws:send(("x"):rep(20000000)) end)
    check.equal(ws:send(("x"):rep(500000)), true)
    check.equal(ws:send(("x"):rep(400000)), true)
    check.equal(select(2, ws:send(("x"):rep(100000))), "too much unsent")
    check.equal(ws.code, 1006)
    check.equal(select(3, sender:join()), "closed", "the send that waits")
  end)
end)

check.test("a task can close a WebSocket while another one receives", function()
  process.in_task(function(loop)
    local seen
    local port = process.serve_on(loop, function(request, response)
      websocket.accept(request, response, {
        on_message = function() end, on_close = function(_, code, reason) seen = code .. reason end,
      })
    end)
    local ws = assert(websocket.connect(("ws://127.0.0.1:%d/"):format(port)))
    local reader = loop:spawn(function() return ws:receive(5) end)
    loop:sleep(0.05)
    check.contains(select(2, ws:receive(5)), "another task waits")
    check.equal(ws:close(1000, "bye"), true)
    check.equal(seen, "1000bye")
    check.equal(select(4, reader:join()), 1000)
  end)
end)

check.test("a stopping server ends WebSockets whose clients do not answer", function()
  process.in_task(function(loop)
    local codes = {}
    local on_task = http.task(function(request, response)
      local ws = assert(websocket.accept(request, response, { close_timeout = 0.2 }))
      codes.task = select(3, ws:receive())
    end)
    local port, server = process.serve_on(loop, function(request, response)
      if request.path == "/task" then return on_task(request, response) end
      websocket.accept(request, response, {
        close_timeout = 0.2, on_message = function() end, on_close = function(_, code) codes.callbacks = code end,
      })
    end)
    for _, path in ipairs { "/task", "/callbacks" } do wire.open(port, path) end
    server:stop(1, function() end)
    loop:sleep(0.5)
    check.equal(codes.task, 1006)
    check.equal(codes.callbacks, 1006)
    check.equal(server.upgraded_count, 0)
  end)
end)

check.test("a client that sends faster than a task receives does not hold up the loop or the time-out", function()
  process.in_task(function(loop)
    local port = process.serve_on(loop, http.task(function(request, response)
      websocket.accept(request, response):receive()
    end))
    local ws = assert(websocket.connect(("ws://127.0.0.1:%d/"):format(port)))
    local reads, ticks = 0, 0
    loop:every(0.01, function() ticks = ticks + 1 end)
    -- This `read` never waits, as if bytes had always arrived already.
    ws.socket = setmetatable({
      read = function()
        reads = reads + 1
        assert(reads < 1e7, "the time-out is over")
        return ""
      end,
    }, { __index = ws.socket })
    check.equal(select(2, ws:receive(0.2)), "timeout")
    assert(ticks > 1, "ticks: " .. ticks)
  end)
end)

check.test("SHA-1 and base64 are right", function()
  check.equal(num.hex(handshake.sha1("")), "da39a3ee5e6b4b0d3255bfef95601890afd80709")
  check.equal(num.hex(handshake.sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d")
  check.equal(num.hex(handshake.sha1(("a"):rep(1000))), "291e9a6c66994949b57ba5e650361e98fc36b1ba")
  for text, wanted in pairs {
    [""] = "", f = "Zg==", fo = "Zm8=", foo = "Zm9v", foob = "Zm9vYg==", ["\255\254\0"] = "//4A",
  } do
    check.equal(handshake.base64(text), wanted)
  end
  assert(handshake.random(16) ~= handshake.random(16))
  check.equal(#handshake.random(1024), 1024)
end)

check.test("workers do not use the random bytes that their parent has read", function()
  handshake.random(4)
  local words = process.shared_words()
  local function draw(index) words[index] = num.read_u32(ffi.cast("const uint8_t *", handshake.random(4))) end
  for index = 1, 2 do check.equal(assert(worker.start(function() draw(index) end)):wait(5), 0) end
  draw(3)
  assert(words[1] ~= words[2] and words[1] ~= words[3] and words[2] ~= words[3], "the same bytes in two processes")
end)
