--- Tests of TLS: which certificates are trusted, and streams, HTTP and WebSockets over TLS. The program `openssl`
-- creates the certificates.

local check = require "tests.support.check"
local http = require "framewire.http"
local loops = require "framewire.loop"
local process = require "tests.support.process"
local socket = require "framewire.socket"
local streams = require "framewire.stream"
local tls = require "framewire.tls"
local websocket = require "framewire.websocket"
local worker = require "framewire.worker"

local folder

local function run(command)
  local output = process.output(("cd '%s' && %s 2>&1; echo \"exit $?\""):format(folder, command))
  assert(output:find("exit 0%s*$"), command .. "\n" .. output)
end

-- Creates a certificate authority, certificates from it for several names, and a self-signed certificate.
local function make_certificates()
  if folder then return end
  folder = process.folder()
  local new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
  run(new .. " -keyout ca.key -out ca.pem -subj /CN=test-authority")
  for name, names in pairs {
    localhost = "DNS:localhost,IP:127.0.0.1", other = "DNS:other.test", wild = "DNS:*.wild.test", client = "DNS:client",
  } do
    process.write(folder .. "/ext", "subjectAltName=" .. names .. "\n")
    run(("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout %s.key -out %s.csr -subj /CN=%s")
      :format(name, name, name))
    run(("openssl x509 -req -in %s.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out %s.pem")
      :format(name, name))
  end
  run(new .. " -keyout self.key -out self.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost")
end

local function pair_of(name)
  return { certificate = folder .. "/" .. name .. ".pem", key = folder .. "/" .. name .. ".key" }
end

-- Runs `body`, a client, as a task on the same loop as a server with these settings. Passes it the port, a list of the
-- server's failed handshakes, and the loop. For each text that the server receives, it sends back the server name that
-- the client asked for, a colon, and the text in upper case.
local function with_echo(settings, body)
  local context = assert(tls.server(settings))
  local lines = {}
  local loop = assert(loops.new { log = function(line) lines[#lines + 1] = line end })
  local listener = assert(socket.listen())
  local refusals = {}
  loop:spawn(function()
    while true do
      local accepted = assert(listener:accept(20))
      loop:spawn(function()
        local secure, message = context:accept(accepted, 2)
        if not secure then
          refusals[#refusals + 1] = message
          return
        end
        while true do
          local data = secure:read(65536, 5)
          if not data then break end
          assert(secure:write((secure:server_name() or "no name") .. ":" .. data:upper(), 5))
        end
        secure:close()
      end)
    end
  end)
  local client = loop:spawn(function() body(select(2, listener:name()), refusals, loop) end)
  loop:spawn(function()
    client:join()
    loop:stop()
  end)
  loop:after(20, function() error("the test takes too long") end)
  assert(loop:run())
  listener:close()
  local ok, message = client:join()
  assert(ok, message)
  check.equal(table.concat(lines, "\n"), "")
end

check.test("the constants agree with OpenSSL's headers", function()
  local source, ours = { "#include <stdio.h>\n#include <openssl/ssl.h>\nint main(void) {" }, {}
  for name, value in pairs(tls.constants) do
    source[#source + 1] = ('printf("%s %%ld\\n", (long)%s);'):format(name, name)
    ours[#ours + 1] = name .. " " .. value
  end
  source[#source + 1] = "return 0; }"
  local place = process.folder()
  process.write(place .. "/c.c", table.concat(source, "\n"))
  local output = process.output(("cc -o '%s/run' '%s/c.c' 2>&1 && '%s/run'"):format(place, place, place))
  process.remove_folder(place)
  if output:find("openssl/ssl.h", 1, true) then return end -- the headers are not installed
  check.equal(output, table.concat(ours, "\n") .. "\n")
end)

check.test("clients check the authority and the name in a server's certificate", function()
  make_certificates()
  local trusting = { ca = folder .. "/ca.pem" }
  with_echo(pair_of "localhost", function(port, refusals, loop)
    local secure = assert(tls.connect("localhost", port, trusting, 5))
    assert(secure:write("hello", 5))
    check.equal(secure:read(100, 5), "localhost:HELLO")
    check.equal(secure:version(), "TLSv1.3")
    check.equal(select(2, secure:read(100, 0.05)), "timeout")
    secure:close()
    secure:close()
    check.contains(select(2, secure:read(1, 1)), "closed")
    check.contains(select(2, secure:write("x", 1)), "closed")
    check.equal(secure:version(), nil)
    check.equal(secure:server_name(), nil)

    secure = assert(tls.connect("127.0.0.1", port, trusting, 5), "the address in the certificate")
    assert(secure:write("x", 5))
    check.equal(secure:read(100, 5), "no name:X", "an address is not sent as a name")
    secure:close()

    check.contains(select(2, tls.connect("localhost", port, nil, 5)), "certificate", "the system's authorities")
    loop:sleep(0.1)
    check.equal(#refusals, 1)
    local context = assert(tls.client(trusting))
    local _, message = context:connect(assert(socket.connect("127.0.0.1", port, 5)), "other.test", 5)
    check.contains(message, "mismatch", "a certificate for another name")
    _, message = context:connect(assert(socket.connect("127.0.0.1", port, 5)), "127.0.0.2", 5)
    check.contains(message, "mismatch", "a certificate for another address")
    secure = assert(tls.connect("localhost", port, { verify = false }, 5))
    secure:close()
  end)
  with_echo(pair_of "self", function(port)
    check.contains(select(2, tls.connect("localhost", port, trusting, 5)), "self")
    assert(tls.connect("localhost", port, { ca = folder .. "/self.pem" }, 5)):close()
  end)
end)

check.test("a server can have a certificate for each name", function()
  make_certificates()
  local settings = pair_of "localhost"
  settings.names = { ["other.test"] = pair_of "other", ["*.wild.test"] = pair_of "wild" }
  with_echo(settings, function(port)
    local context = assert(tls.client { ca = folder .. "/ca.pem" })
    for _, name in ipairs { "other.test", "Other.Test", "a.wild.test", "localhost" } do
      local secure = assert(context:connect(assert(socket.connect("127.0.0.1", port, 5)), name, 5), name)
      assert(secure:write("x", 5))
      check.equal(secure:read(100, 5), name .. ":X")
      secure:close()
    end
    check.equal(context:connect(assert(socket.connect("127.0.0.1", port, 5)), "unknown.test", 5), nil)
  end)
end)

check.test("a server can ask for a client's certificate", function()
  make_certificates()
  local settings = pair_of "localhost"
  settings.ca = folder .. "/ca.pem"
  settings.names = { ["other.test"] = pair_of "other" }
  with_echo(settings, function(port, refusals)
    local known = pair_of "client"
    known.ca = folder .. "/ca.pem"
    local secure = assert(tls.connect("localhost", port, known, 5))
    assert(secure:write("x", 5))
    check.equal(secure:read(100, 5), "localhost:X")
    secure:close()
    local plain = assert(socket.connect("127.0.0.1", port, 5))
    secure = assert(assert(tls.client(known)):connect(plain, "other.test", 5))
    assert(secure:write("x", 5))
    check.equal(secure:read(100, 5), "other.test:X", "a client is also accepted for another name")
    secure:close()
    secure = tls.connect("localhost", port, { ca = folder .. "/ca.pem" }, 5)
    -- With TLS 1.3, the client gets the refusal only when it reads.
    if secure then check.equal(secure:read(100, 5), nil) end
    check.equal(#refusals, 1)
    check.contains(refusals[1], "certificate")
  end)
end)

check.test("a server that asks for a client's certificate accepts a resumed session", function()
  make_certificates()
  local settings = pair_of "localhost"
  settings.ca = folder .. "/ca.pem"
  process.with_server({
    tls = settings, log = function() end, handler = function(_, response) response:text(200, "hello") end,
  }, function(port)
    local command = "cd '%s' && printf 'GET / HTTP/1.0\\r\\n\\r\\n' | openssl s_client -connect 127.0.0.1:%d "
      .. "-ign_eof -CAfile ca.pem -cert client.pem -key client.key %s session.pem 2>&1"
    check.contains(process.output(command:format(folder, port, "-sess_out")), "hello")
    local output = process.output(command:format(folder, port, "-sess_in"))
    check.contains(output, "Reused")
    check.contains(output, "hello")
  end)
end)

check.test("connections that do not use TLS, or end early, are refused", function()
  make_certificates()
  with_echo(pair_of "localhost", function(port, refusals, loop)
    for _, bytes in ipairs { "GET / HTTP/1.0\r\n\r\n", "\22\3\1\2\0\1", ("\255"):rep(1000), "" } do
      local plain = assert(socket.connect("127.0.0.1", port, 5))
      assert(plain:write(bytes, 5))
      plain:finish()
      plain:read(1000, 5)
      plain:close()
    end
    loop:sleep(0.05)
    check.equal(#refusals, 4)
    local silent = assert(socket.connect("127.0.0.1", port, 5))
    check.equal(select(2, silent:read(10, 5)), "closed", "a client that sends nothing")
    check.contains(refusals[5], "timeout")
    local secure = assert(tls.connect("localhost", port, { ca = folder .. "/ca.pem" }, 5))
    secure.socket:finish() -- without the message that ends TLS
    local data, problem = secure:read(10, 5)
    check.equal(data, nil)
    assert(problem ~= "timeout", "the server did not end the connection")
    secure:close()
  end)
  local listener = assert(socket.listen())
  check.contains(select(2, tls.connect("127.0.0.1", select(2, listener:name()), nil, 0.1)), "timeout")
  listener:close()
  for wrong, part in pairs {
    [{ ca = "/none.pem" }] = "cannot use the authorities", [{ certificate = "x" }] = "both certificate and key",
    [{ veriy = true }] = "no option 'veriy'", [{ verify = 1 }] = "must be a boolean",
    [{ certificate = folder .. "/ca.pem", key = folder .. "/client.key" }] = "cannot use the key",
    [{ certificate = "/none.pem", key = "/none.key" }] = "cannot use the certificate",
  } do check.contains(select(2, tls.client(wrong)), part) end
  check.contains(select(2, tls.server {}), "needs a certificate")
  check.contains(select(2, tls.server()), "needs a certificate")
  -- Options that would have no effect.
  check.contains(select(2, tls.client { names = {} }), "a TLS client has no option 'names'")
  check.contains(select(2, tls.server { verify = true }), "a TLS server has no option 'verify'")
  local settings, other = pair_of("localhost"), pair_of("other")
  settings.names, other.ca = { ["other.test"] = other }, folder .. "/ca.pem"
  check.contains(select(2, tls.server(settings)), "the certificate of other.test has no option 'ca'")
  for _, make in ipairs { tls.client, tls.server } do check.contains(select(2, make(true)), "must be a table") end
  check.contains(select(2, http.serve { handler = print, tls = true }), "must be a table, not a boolean")
end)

check.test("streams transfer a lot of data over TLS in both directions", function()
  make_certificates()
  local loop = assert(loops.new { log = function(line) error(line) end })
  local listener = assert(socket.listen())
  local context = assert(tls.server(pair_of "localhost"))
  loop:spawn(function()
    local secure = assert(context:accept(assert(listener:accept(5)), 5))
    assert(streams.new(loop, secure, {
      on_data = function(stream, data)
        if stream:write(data) == false then stream:pause() end
      end,
      on_drain = function(stream) stream:resume() end,
    }))
  end)
  local got, reason = 0, "none"
  loop:spawn(function()
    local secure = assert(tls.connect("localhost", select(2, listener:name()), { ca = folder .. "/ca.pem" }, 5))
    local side = assert(streams.new(loop, secure, {
      on_data = function(_, data) got = got + #data end,
      on_close = function(_, why)
        reason = why
        loop:stop()
      end,
    }))
    side:write(("0123456789"):rep(1000000))
    side:finish()
  end)
  loop:after(20, function() error("the test takes too long") end)
  assert(loop:run())
  check.equal(got, 10000000)
  check.equal(reason, nil)
  listener:close()
end)

check.test("a worker that closes its parent's HTTPS client does not end the parent's connection", function()
  make_certificates()
  process.with_server({
    tls = pair_of "localhost",
    log = function() end,
    handler = function(request, response) response:text(200, "hello from " .. select(2, request:peer())) end,
  }, function(port)
    local base = "https://localhost:" .. port
    local client = http.client { tls = { ca = folder .. "/ca.pem" } }
    local mine = assert(client:get(base)).body
    for _, use in ipairs { function() end, function() assert(assert(client:get(base)).body ~= mine) end } do
      local child = assert(worker.start(function()
        use()
        client:close()
      end))
      check.equal(child:wait(5), 0)
      check.equal(assert(client:get(base)).body, mine, "the same client port, so the same connection")
    end
    client:close()
  end)
end)

check.test("over HTTPS, web pages of this server can use it, and other pages cannot", function()
  make_certificates()
  process.with_server({
    tls = pair_of "localhost",
    log = function() end,
    handler = http.guard(function(_, response) response:text(200, "hello") end),
  }, function(port)
    local client = http.client { tls = { ca = folder .. "/ca.pem" } }
    local here = "localhost:" .. port
    for origin, status in pairs {
      ["https://" .. here] = 200, ["HTTPS://LOCALHOST:" .. port] = 200, ["http://" .. here] = 403,
      ["https://localhost:1"] = 403, ["https://evil.example"] = 403,
    } do
      local answer = assert(client:get("https://" .. here .. "/", { headers = { Origin = origin } }))
      check.equal(answer.status, status, origin)
    end
    client:close()
  end)
end)

check.test("over HTTPS, a stopping server sends the responses in progress", function()
  make_certificates()
  local port = process.free_port()
  process.run_with(function()
    assert(http.serve {
      port = port,
      tls = pair_of "localhost",
      handler = http.task(function(_, response)
        require("framewire.task").sleep(0.4)
        response:text(200, ("x"):rep(2000000))
      end),
    })
  end, function(child)
    process.wait_for_port(port)
    local secure = assert(tls.connect("localhost", port, { ca = folder .. "/ca.pem" }, 5))
    assert(secure:write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 5))
    require("framewire.time").sleep(0.2)
    child:signal("TERM")
    local parts = {}
    repeat
      local data = secure:read(65536, 5)
      parts[#parts + 1] = data
    until not data
    secure:close()
    check.equal(#(table.concat(parts):match("\r\n\r\n(x*)$") or ""), 2000000)
  end, true)
end)

check.test("over HTTPS, a connection counts until it is closed, which a client cannot prevent", function()
  make_certificates()
  process.in_task(function(loop)
    local listener = assert(socket.listen())
    local server = assert(http.new(loop, nil, { handler = function(_, response) response:text(200, "hello") end }))
    assert(require("framewire.http.secure").start(loop, server, listener, assert(tls.server(pair_of "localhost"))))
    local descriptors = require("framewire.sys").descriptor_limit()
    assert(server.limits.max_connections * 3 < descriptors, "a connection needs three descriptors")
    local port = select(2, listener:name())
    local secure = assert(tls.connect("localhost", port, { ca = folder .. "/ca.pem" }, 5))
    assert(secure:write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 5))
    check.contains(secure:read(1000, 5), "200")
    loop:sleep(0.1)
    check.equal(server.relay_count, 1)
    for _ = 1, 30 do
      if server.relay_count == 0 then break end
      loop:sleep(0.1)
      secure:send("x")
    end
    check.equal(server.relay_count, 0)
    secure:close()
    listener:close()
  end)
end)

-- Runs `body` as a task, with an HTTPS server on the same loop. Passes the server and a client that has sent a GET.
local function with_request(handler, limits, body)
  make_certificates()
  process.in_task(function(loop)
    local listener = assert(socket.listen())
    local server = assert(http.new(loop, nil, { handler = handler, limits = limits, log = function() end }))
    assert(require("framewire.http.secure").start(loop, server, listener, assert(tls.server(pair_of "localhost"))))
    local secure = assert(tls.connect("localhost", select(2, listener:name()), { ca = folder .. "/ca.pem" }, 5))
    assert(secure:write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 5))
    body(loop, server, secure)
    secure:close()
    listener:close()
  end)
end

check.test("over HTTPS, a response in parts ends when its client has gone", function()
  local has_ended = false
  with_request(http.task(function(_, response)
    response:start(200, "text/event-stream")
    while response:write("data: tick\n\n") do require("framewire.task").sleep(0.02) end
    has_ended = true
  end), {}, function(loop, server, secure)
    check.contains(secure:read(1000, 5), "200 OK")
    secure:close()
    for _ = 1, 500 do
      if has_ended and server.count == 0 then break end
      loop:sleep(0.01)
    end
    check.equal(has_ended, true, "the handler has ended")
    check.equal(server.count, 0, "connections")
  end)
end)

check.test("over HTTPS, a client that reads slowly, but all the time, gets the whole response", function()
  -- On a busy machine, the client can pause for longer than `write_timeout`.
  check.eventually(15, function()
    local got
    with_request(function(_, response) response:text(200, ("x"):rep(8000000)) end, { write_timeout = 0.5 },
      function(loop, _, secure) got = process.read_slowly(loop, secure, 1.5) end)
    return got > 8000000
  end, "a slow client got the whole response")
end)

check.test("HTTPS and secure WebSockets work in the server and in the client", function()
  make_certificates()
  process.with_server({
    tls = pair_of "localhost",
    log = function() end,
    handler = http.routes {
      ["GET /"] = function(request, response) response:text(200, "hello " .. request:peer()) end,
      ["GET /big"] = function(_, response) response:text(200, ("x"):rep(5000000)) end,
      ["POST /echo"] = function(request, response) response:text(200, request.body) end,
      ["GET /ws"] = function(request, response)
        websocket.accept(request, response, { on_message = function(ws, data) ws:send(data:upper()) end })
      end,
    },
  }, function(port)
    local base = "https://localhost:" .. port
    local client = http.client { tls = { ca = folder .. "/ca.pem" } }
    for _ = 1, 3 do check.equal(assert(client:get(base .. "/")).body, "hello 127.0.0.1") end
    check.equal(#assert(client:get(base .. "/big")).body, 5000000)
    local body = ("y"):rep(500000)
    check.equal(assert(client:post(base .. "/echo", { body = body })).body, body)
    client:close()
    check.contains(select(2, http.client():get(base .. "/")), "certificate")
    local size = process.output(("curl -s --cacert '%s/ca.pem' %s/big | wc -c"):format(folder, base))
    check.equal(tonumber(size), 5000000)
    local ws = assert(websocket.connect("wss://localhost:" .. port .. "/ws", { tls = { ca = folder .. "/ca.pem" } }))
    ws:send("secret")
    check.equal((ws:receive(5)), "SECRET")
    ws:close()
  end)
  process.with_server({
    tls = pair_of "localhost",
    log = function() end,
    handler = function(_, response) response:text(200, "hello") end,
    limits = { max_connections = 1 },
  }, function(port)
    local url = "https://localhost:" .. port .. "/"
    local options = { tls = { ca = folder .. "/ca.pem" } }
    local first, second = http.client(options), http.client(options)
    check.eventually(2, function()
      -- The connection with which `with_server` waited for the server may still count.
      local answer = first:get(url)
      return answer and answer.status == 200
    end, "the first connection is served")
    check.equal(assert(second:get(url)).status, 503, "a connection beyond the limit")
    first:close()
    check.eventually(2, function()
      local answer = second:get(url)
      return answer and answer.status == 200
    end, "there is room again")
    second:close()
  end)
  check.contains(select(2, http.serve { handler = print, tls = {} }), "needs a certificate")
  process.remove_folder(folder)
  folder = nil
end)
