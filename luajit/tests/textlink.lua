--- Tests of bridge.lua and framewire.textlink. Most tests use a stand-in for the script, which can misbehave.

local check = require "tests.support.check"
local client = require "tests.support.client"
local framewire = require "tests.support.framewire"
local loops = require "framewire.loop"
local process = require "tests.support.process"
local socket = require "framewire.socket"
local time = require "framewire.time"
local url = require "framewire.http.url"

-- The reaction of the stand-in to one message. It can write to the socket `connection`, and can return "close".
local function react(loop, connection, message, counters)
  local function say(text) connection:write(text, 1) end
  counters[message] = (counters[message] or 0) + 1
  if message == "silent" then return end
  if message == "late" then return loop:after(2, function() say("too late<|END|>") end) end
  if message == "hang up" then return "close" end
  if message == "half" then
    say("half a reply")
    return "close"
  end
  if message == "success" then return say("<|SUCCESS|><|END|>") end
  if message == "error" then return say("<|ERROR|><|END|>") end
  if message == "empty" then return say("<|END|>") end
  if message == "two" then return say("one<|END|>two<|END|>") end
  if message == "large" then return say(("d3,"):rep(100000) .. "<|END|>") end
  if message == "count hang up" then return say((counters["hang up"] or 0) .. "<|END|>") end
  if message:find("^framewire%.echo,") then return say(message:match(",(.*)") .. "<|END|>") end
  if message == "trickle" then
    local text = "a <|EN not the end <|END|>"
    for i = 1, #text do loop:after(i * 0.002, function() say(text:sub(i, i)) end) end
    return
  end
  say(message .. "<|END|>")
end

-- Runs the stand-in for the script, with real sockets and the real text protocol. Ends after TERM.
local function run_script(listener)
  local loop = assert(loops.new())
  local counters = {}
  assert(loop:on_signal({ "TERM" }, function() loop:stop() end))
  assert(loop:watch(listener.fd, loop.READ, function()
    local connection = listener:accept()
    if not connection then return end
    local text = ""
    local function close()
      loop:forget(connection.fd)
      connection:close()
    end
    assert(loop:watch(connection.fd, loop.READ, function()
      local data, message = connection:receive()
      if not data then
        if message ~= "again" then close() end
        return
      end
      text = text .. data
      while true do
        local first, last = text:find("<|END|>", 1, true)
        if not first then return end
        local one = text:sub(1, first - 1)
        text = text:sub(last + 1)
        if react(loop, connection, one, counters) == "close" then return close() end
      end
    end))
  end))
  assert(loop:run())
end

-- Milliseconds for which the bridge waits for a reply, unless a test needs a shorter time. Even on a busy machine,
-- replies are delayed by less than this.
local PATIENT = 4000

-- Runs the bridge for a script at a port. Calls `body` with the bridge's port, and a function that sends it a message
-- and returns the status and the body of its answer. `timeout` is the bridge's time-out in milliseconds.
local function with_bridge(script_port, body, arguments, timeout)
  local bridge = process.start(("luajit \"%s/bridge.lua\" --attach 127.0.0.1:%d --port 0 --timeout %d %s")
    :format(check.root, script_port, timeout or PATIENT, arguments or ""))
  local port = tonumber((bridge.line() or ""):match("^listening on http://127%.0%.0%.1:(%d+)$"))
  local ok, message = xpcall(function()
    assert(port, "the bridge did not start")
    body(port, function(text, path)
      local method = path and "GET" or "POST"
      local answer = client.ask(port, method, (path or "/command") .. "?message=" .. url.encode(text))
      return answer.status, answer.body
    end)
  end, debug.traceback)
  bridge.signal("TERM")
  local code, output = bridge.finish()
  if not ok then error(message .. "\n" .. output, 0) end
  check.equal(code, 0, "the bridge's exit code")
end

-- Registers a test that uses a bridge for the stand-in. The other arguments are those of `with_bridge`.
local function test(what, body, arguments, timeout)
  check.test(what, function()
    local listener = assert(socket.listen { port = 0 })
    local _, port = listener:name()
    process.run_with(function() run_script(listener) end, function()
      listener:close()
      with_bridge(port, body, arguments, timeout)
    end)
  end)
end

test("the bridge answers with the script's replies", function(port, ask)
  for _, case in ipairs {
    { "core.read8,0x02000000", 200, "core.read8,0x02000000" },
    { "success", 200, "" }, { "empty", 200, "" }, { "ü, and spaces", 200, "ü, and spaces" },
    { "large", 200, ("d3,"):rep(100000) }, { "trickle", 200, "a <|EN not the end " },
  } do
    local status, body = ask(case[1])
    check.equal(status, case[2], case[1])
    check.equal(body == case[3], true, case[1])
  end
  check.equal(select(2, ask("fa1e7-guid", "/mgbaendpoint")), "fa1e7-guid")
  check.equal(select(2, ask("framewire.echo,x")), "x")
  check.equal(client.ask(port, "POST", "/command", nil, "by body").body, "by body")
end)

test("every failure has its status, and the next message gets its own reply", function(port, ask)
  for _, case in ipairs {
    { "error", 502, "the script could not" }, { "hang up", 502, "closed the connection" },
    { "half", 502, "closed the connection" }, { "silent", 504, "paused" }, { "late", 504, "no reply in time" },
    { "a<|END|>b", 400, "must not contain" }, { "", 400, "say what to send" },
  } do
    local status, body = ask(case[1])
    check.equal(status, case[2], case[1])
    check.contains(body, case[3], case[1])
    check.equal(select(2, ask("after " .. case[1]:gsub("<.*", ""))), "after " .. case[1]:gsub("<.*", ""))
  end
  time.sleep(1.2) -- until the late reply, which comes a second after the time-out
  check.equal(select(2, ask("after the late reply")), "after the late reply")
  check.equal(select(2, ask("two")), "one")
  check.equal(select(2, ask("after two")), "after two")
  check.equal(select(2, ask("count hang up")), "1", "a message that may have been performed is not repeated")
  check.equal(client.ask(port, "GET", "/other").status, 404)
  check.equal(client.ask(port, "DELETE", "/command").status, 405)
end, nil, 1000)

test("fifty clients at once get their own replies", function(port)
  local all = {}
  for round = 1, 5 do
    for i = 1, 50 do
      all[i] = all[i] or client.connect(port)
      all[i]:send(("GET /mgbaendpoint?message=%d-%d HTTP/1.1\r\nHost: localhost\r\n\r\n"):format(round, i))
    end
    for i = 1, 50 do check.equal(assert(all[i]:receive()).body, round .. "-" .. i) end
  end
end)

test("messages beyond the limit of waiting messages are refused immediately", function(port)
  -- On a busy machine, the first messages can time out before the last ones arrive.
  check.eventually(10, function()
    local all, statuses = {}, { [503] = 0, [504] = 0 }
    for i = 1, 80 do
      all[i] = client.connect(port)
      all[i]:send("POST /command?message=silent HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    end
    for i = 1, 80 do
      local status = assert(all[i]:receive()).status
      statuses[status] = statuses[status] + 1
      all[i]:close()
    end
    assert(statuses[503] <= 16, "too many messages were refused: " .. statuses[503])
    return statuses[503] == 16 and statuses[504] == 64
  end, "16 of 80 messages were refused, and 64 timed out")
end, nil, 400)

check.test("the bridge finds a script again after the script was restarted", function()
  local port = process.free_port()
  with_bridge(port, function(_, ask)
    local status, body = ask("hello")
    check.equal(status, 502)
    check.contains(body, "Start mGBA")
    for round = 1, 2 do
      local listener = assert(socket.listen { port = port })
      process.run_with(function() run_script(listener) end, function()
        listener:close()
        check.eventually(2, function() return select(2, ask("round " .. round)) == "round " .. round end, "it replies")
      end)
      check.eventually(2, function() return ask("gone") == 502 end, "the bridge notices that the script has ended")
    end
  end, nil, 400)
end)

check.test("a message that a callback sends after a failure gets a connection of its own", function()
  local port = process.free_port()
  local loop = assert(loops.new())
  local link = require("framewire.textlink").new(loop, "127.0.0.1", port, { timeout = 1 })
  local listener, first, second
  loop:after(0, function()
    link:ask("one", function(_, kind)
      first = kind
      listener = assert(socket.listen { port = port })
      link:ask("two", function(_, again)
        second = again
        loop:stop()
      end)
    end)
  end)
  assert(loop:run())
  check.equal(first, "unreachable")
  check.equal(second, "timeout", "the listener does not answer")
  link:close()
  listener:close()
  loop:close()
end)

check.test("a message times out if no script accepts the connection", function()
  -- The system accepts the connection, but nothing reads from it. The same happens while mGBA is paused.
  local listener = assert(socket.listen { port = 0 })
  with_bridge(select(2, listener:name()), function(_, ask)
    -- With the bridge's default, the answer would take 3 s each time. A busy machine delays only some answers.
    check.eventually(5, function()
      local seconds = process.timed(function() check.equal(ask("hello"), 504) end)
      assert(seconds >= 0.4, "took " .. seconds)
      return seconds < 1.5
    end, "the message timed out in time")
  end, nil, 400)
  listener:close()
end)

test("web pages of other sites cannot send messages through the bridge", function(port)
  local own = "http://127.0.0.1:" .. port
  local foreign = {
    { Origin = "http://evil.example" }, { Origin = "null" }, { Origin = "https://127.0.0.1:" .. port },
    { Origin = "http://127.0.0.1:1" }, { ["Sec-Fetch-Site"] = "cross-site" }, { ["Sec-Fetch-Site"] = "same-site" },
    { Host = "evil.example" }, { Host = "evil.example:" .. port }, { Host = "" }, { Host = "localhost.evil.example" },
    { Host = "evil.example:" .. port, Origin = "http://evil.example:" .. port, ["Sec-Fetch-Site"] = "same-origin" },
  }
  local routes = { { "POST", "/command" }, { "GET", "/mgbaendpoint" }, { "GET", "/command" }, { "GET", "/other" } }
  for _, headers in ipairs(foreign) do
    for _, route in ipairs(routes) do
      local answer = client.ask(port, route[1], route[2] .. "?message=a", headers)
      check.equal(answer.status, 403, route[1] .. " " .. route[2] .. " of " .. next(headers))
    end
  end
  check.equal(client.ask(port, "GET", "/command?message=a").status, 405, "an image in a page could cause a GET")
  local mine = { Host = "127.0.0.1:" .. port, Origin = own, ["Sec-Fetch-Site"] = "same-origin" }
  check.equal(client.ask(port, "POST", "/command?message=a", mine).body, "a")
  for _, host in ipairs { "localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8080", "192.168.0.7:80" } do
    check.equal(client.ask(port, "POST", "/command?message=a", { Host = host }).body, "a", host)
  end
end)

test("with --echo-key none, messages need POST", function(port, ask)
  check.equal(ask("core.reset", "/mgbaendpoint"), 405)
  local answer = client.ask(port, "POST", "/mgbaendpoint?message=text")
  check.equal(answer.status, 200)
  check.equal(answer.body, "text")
end, "--echo-key none")

check.test("after an unknown first command, the next command gets its own answer", function()
  local folder = process.folder()
  local port = process.free_port()
  process.write(folder .. "/settings.lua", ("framewire = {port = %d}"):format(port))
  local script = folder .. "/framewire.lua"
  assert(os.execute(("%s script --output %s 2>/dev/null"):format(framewire.program(), script)) == 0)
  framewire.run_with("textlink" .. port, function()
    with_bridge(port, function(_, ask)
      check.eventually(10, function() return ask("core.platform") == 200 end, "the script answers")
    end)
    for _ = 1, 3 do
      -- Start another bridge each time, so that its connection is new.
      with_bridge(port, function(_, ask)
        local status, body = ask("core.typo")
        check.equal(status, 502)
        check.contains(body, "the script could not")
        status, body = ask("core.getGameTitle")
        check.equal(status, 200, body)
        check.equal(body, "FRAMEWIRE")
        check.equal(ask("core.typo"), 502)
        check.equal(select(2, ask("core.getGameTitle")), "FRAMEWIRE")
      end)
    end
  end, "--lua", folder .. "/settings.lua", "--lua", script)
  process.remove_folder(folder)
end)

test("the bridge does not pass on framewire.hello, which would make its connection binary", function(_, ask)
  for _, text in ipairs { "framewire.hello,1,0123456789abcdef", " framewire.hello", "\r\n framewire.hello,1" } do
    local status, body = ask(text)
    check.equal(status, 400, text)
    check.contains(body, "framewire.hello")
  end
  check.equal(select(2, ask("after it")), "after it")
end)
