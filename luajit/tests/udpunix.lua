--- Tests of UDP and unix sockets.

local check = require "tests.support.check"
local http = require "framewire.http"
local loops = require "framewire.loop"
local poller = require "framewire.poller"
local process = require "tests.support.process"
local streams = require "framewire.stream"
local udp = require "framewire.udp"
local unix = require "framewire.unix"

for _, host in ipairs { "127.0.0.1", "::1" } do
  check.test("datagrams arrive separately over " .. host, function()
    local one, other = assert(udp.open { host = host }), assert(udp.open { host = host })
    local _, port = one:name()
    for _, text in ipairs { "", "a", ("x"):rep(60000), "\0\255" } do
      assert(other:send_to(text, host, port))
      local data, address, from = one:read(1)
      check.equal(data, text)
      check.equal(address, host)
      check.equal(from, select(2, other:name()))
    end
    check.equal(select(2, one:receive()), "again")
    check.equal(select(2, one:read(0.02)), "timeout")
    check.contains(select(2, other:send_to(("x"):rep(70000), host, port)), "sendto")
    one:close()
    other:close()
    one:close()
    check.equal(one:receive(), nil)
  end)
end

check.test("UDP refuses wrong addresses and data", function()
  local one = assert(udp.open())
  local _, port = one:name()
  check.contains(select(2, udp.open { port = port }), "in use")
  check.contains(select(2, udp.open { port = -1 }), "is not a port")
  check.contains(select(2, one:send_to("x", "127.0.0.1", 70000)), "is not a port")
  check.contains(select(2, one:send_to("x", "::1", port)), "has no IPv4 address")
  check.contains(select(2, one:send_to("x", "no-such-host.invalid", port)), "cannot find")
  check.contains(select(2, one:send_to(5, "127.0.0.1", port)), "is a string")
  check.equal(one:set("broadcast", true), true)
  local first = assert(udp.open { reuse_port = true })
  local second = assert(udp.open { reuse_port = true, port = select(2, first:name()) })
  first:close()
  second:close()
  for i = 1, 600 do assert(one:send_to("x", "127.0.0.1", port + i > 65535 and i or port + i)) end
  assert(one.known_count <= 256, "cached addresses: " .. one.known_count)
  one:close()
end)

check.test("UDP works in tasks", function()
  local loop = assert(loops.new { log = function(line) error(line) end })
  local one, other = assert(udp.open()), assert(udp.open())
  local got = 0
  loop:spawn(function()
    for _ = 1, 50 do
      local data, address, port = assert(one:read(5))
      assert(one:send_to(data:upper(), address, port))
    end
  end)
  loop:spawn(function()
    for i = 1, 50 do
      assert(other:send_to("m" .. i, one:name()))
      check.equal((other:read(5)), "M" .. i)
      got = got + 1
    end
    loop:stop()
  end)
  assert(loop:run())
  check.equal(got, 50)
end)

local function with_path(body)
  local folder = process.folder()
  local ok, message = xpcall(body, debug.traceback, folder .. "/socket")
  process.remove_folder(folder)
  if not ok then error(message, 0) end
end

check.test("an https URL over a unix socket is refused", function()
  local answer, message = require("framewire.http").client():get("https://localhost/", { unix = "/none" })
  check.equal(answer, nil)
  check.contains(message, "unix needs an http URL")
end)

check.test("unix sockets carry bytes, and replace the file of a dead listener", function()
  with_path(function(path)
    check.contains(select(2, unix.connect(path, 1)), "No such file")
    local listener = assert(unix.listen(path))
    check.contains(select(2, unix.listen(path)), "in use")
    local client = assert(unix.connect(path, 1))
    assert(listener:wait(poller.READ, 1))
    local server = assert(listener:accept(1), "the connection with which the second listen looked for a listener")
    server:close()
    server = assert(listener:accept(1))
    assert(client:write("ping", 1))
    check.equal(server:read(100, 1), "ping")
    check.equal((listener:name()), path)
    check.equal((server:peer()), "")
    client:close()
    check.equal(select(2, server:read(100, 1)), "closed")
    server:close()
    listener:close()
    check.contains(select(2, unix.connect(path, 1)), "refused")
    listener = assert(unix.listen(path), "the file of a listener that has ended")
    listener:close()
    process.write(path .. "-file", "precious")
    check.contains(select(2, unix.listen(path .. "-file")), "in use")
    local file = assert(io.open(path .. "-file"), "a file that is not a socket is not removed")
    check.equal(file:read("*a"), "precious")
    file:close()
  end)
  -- On Linux, a name that begins with a zero byte is not a file.
  local hidden = "\0framewire-test-" .. require("ffi").C.getpid()
  local listener = assert(unix.listen(hidden))
  assert(unix.connect(hidden, 1)):close()
  listener:close()
  for path, part in pairs { [""] = "needs a path", [("x"):rep(108)] = "up to 107 bytes", ["a\0b"] = "zero byte" } do
    check.contains(select(2, unix.listen(path)), part)
    check.contains(select(2, unix.connect(path)), part)
  end
  check.contains(select(2, unix.listen(nil)), "needs a path")
end)

check.test("if unix.connect fails after a wait, it returns the number of that error", function()
  local ffi, sys = require "ffi", require "framewire.sys"
  local net, methods = sys.net, require("framewire.socket").methods
  local connected = methods.connected
  -- On Linux, the system itself never reports EINPROGRESS for a unix socket.
  sys.net = setmetatable({ connect = function()
    ffi.errno(sys.EINPROGRESS)
    return -1
  end }, { __index = net })
  methods.connected = function() return nil, "connect: refused", sys.ECONNREFUSED end
  local called, made, message, number = pcall(unix.connect, "/none", 1)
  sys.net, methods.connected = net, connected
  assert(called, made)
  check.equal(made, nil)
  check.contains(message, "refused")
  check.equal(number, sys.ECONNREFUSED)
end)

check.test("streams work over a pair of unix sockets", function()
  local loop = assert(loops.new())
  local one, other = assert(unix.pair())
  local got, reason = 0, "none"
  assert(streams.new(loop, one, { on_data = function(stream, data)
    if stream:write(data) == false then stream:pause() end
  end, on_drain = function(stream) stream:resume() end }))
  local side = assert(streams.new(loop, other, {
    on_data = function(_, data) got = got + #data end,
    on_close = function(_, why)
      reason = why
      loop:stop()
    end,
  }))
  side:write(("x"):rep(3000000))
  side:finish()
  assert(loop:run())
  check.equal(got, 3000000)
  check.equal(reason, nil)
end)

check.test("a web server listens on a unix socket", function()
  with_path(function(path)
    check.contains(select(2, http.serve { unix = path, workers = 2, handler = print }), "one worker")
    local text
    process.run_with(function()
      assert(http.serve {
        unix = path,
        handler = function(request, response) response:text(200, request.headers.host .. request:peer()) end,
        on_listen = function(where) assert(where == "unix:" .. path) end,
      })
    end, function()
      local client = http.client()
      check.eventually(5, function() return client:get("http://some.host/", { unix = path }) end, "the server listens")
      text = assert(client:get("http://some.host/", { unix = path })).body
      client:close()
    end)
    check.equal(text, "some.host", "the client's address is empty")
  end)
end)

check.test("a request is served although its client has closed the unix socket", function()
  for _, name in ipairs(poller.names) do
    local loop = assert(loops.new { poller = name })
    local server, body
    server = assert(http.new(loop, nil, { handler = function(request, response)
      body = request.body
      response:text(200, "ok")
      server:stop(5, function() loop:stop() end)
    end }))
    local mine, theirs = assert(unix.pair())
    assert(mine:write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 1))
    mine:close()
    server:adopt(theirs.fd)
    loop:after(1, function() loop:stop() end)
    assert(loop:run())
    loop:close()
    check.equal(body, "abc", name)
    check.equal(server.count, 0, "connections with " .. name)
  end
end)
