--- Tests of the library on Windows or under Wine: `make test-windows`. The arguments select tests by name.

local here = arg[0]:match("^(.*)[/\\]") or "."
local root = here .. "/.."
package.path = root .. "/?.lua;" .. package.path

local ffi = require "ffi"
local check = require "tests.support.check"
local files = require "framewire.files"
local http = require "framewire.http"
local loops = require "framewire.loop"
local poller = require "framewire.poller"
local resolve = require "framewire.resolve"
local shm = require "framewire.shm"
local signal = require "framewire.signal"
local socket = require "framewire.socket"
local sys = require "framewire.sys"
local terminal = require "framewire.terminal"
local thread = require "framewire.thread"
local time = require "framewire.time"
local watch = require "framewire.watch"
local worker = require "framewire.worker"

check.root, check.file = root, "windows"

check.test("this is Windows", function()
  check.equal(ffi.os, "Windows")
  check.equal(sys.name, "windows")
end)

check.test("clocks go forward, and sleep takes as long as requested", function()
  local before = time.monotonic()
  time.sleep(0.05)
  local passed = time.monotonic() - before
  assert(passed >= 0.045 and passed < 2, passed)
  assert(math.abs(time.wall() - os.time()) < 2)
  local used = time.cpu()
  time.sleep(0.5)
  assert(used >= 0 and time.cpu() - used < 0.4, "a process that sleeps uses no processor time")
end)

for _, host in ipairs { "127.0.0.1", "::1" } do
  check.test("a connection to " .. host .. " carries bytes both ways", function()
    local listener = assert(socket.listen { host = host })
    local address, port = listener:name()
    check.equal(address, host)
    local client = assert(socket.connect(host, port, 5))
    local server = assert(listener:accept(5))
    check.equal(server:peer(), host)
    assert(client:write("ping", 5))
    check.equal(server:read(100, 5), "ping")
    check.equal(select(2, server:receive()), "again")
    check.equal(select(2, server:read(1, 0.05)), "timeout")
    local long = ("0123456789"):rep(100000)
    local sent = assert(thread.start(function(name, number, text)
      local sender = assert(require("framewire.socket").connect(name, number, 5))
      return sender:write(text, 10), sender:finish(), sender:close()
    end, host, port, long))
    local other, parts = assert(listener:accept(5)), {}
    local message
    repeat
      local data
      data, message = other:read(65536, 5)
      parts[#parts + 1] = data
    until not data
    check.equal(message, "closed")
    check.equal(#table.concat(parts), #long)
    check.equal(sent:join(), true)
    client:close()
    check.equal(select(2, server:read(1, 5)), "closed")
    for _, one in ipairs { listener, server, other } do one:close() end
    check.contains(select(2, client:send("x")), "send")
  end)
end

check.test("failures say what failed", function()
  local listener = assert(socket.listen())
  local _, port = listener:name()
  check.contains(select(2, socket.listen { port = port }), "cannot listen on 127.0.0.1")
  listener:close()
  check.contains(select(2, socket.connect("127.0.0.1", port, 3)), "cannot connect to 127.0.0.1")
  check.contains(select(2, resolve.addresses("no-such-host.invalid")), "cannot find 'no-such-host.invalid'")
end)

check.test("WSAPoll reports ready descriptors and no others", function()
  local source = assert(poller.new("wsapoll"))
  local listener = assert(socket.listen())
  local client = assert(socket.connect("127.0.0.1", select(2, listener:name()), 5))
  local server = assert(listener:accept(5))
  assert(source:add(server.fd, poller.READ))
  check.equal(source:wait(0), 0)
  client:write("x", 1)
  check.equal(source:wait(1000), 1)
  local fd, readable, writable = source:ready(0)
  check.equal(fd, server.fd)
  check.equal(type(fd), "number")
  check.equal(readable, true)
  check.equal(writable, false)
  assert(source:change(server.fd, poller.WRITE))
  check.equal(source:wait(1000), 1)
  check.equal(select(3, source:ready(0)), true)
  assert(source:remove(server.fd))
  check.equal(source:change(server.fd, poller.READ), nil)
  for _, one in ipairs { client, server, listener, source } do one:close() end
end)

check.test("the HTTP server answers, keeps connections open, and receives bodies", function()
  local loop = assert(loops.new())
  local listener = assert(socket.listen())
  local server = assert(http.new(loop, listener, { handler = http.routes {
    ["GET /hello"] = function(request, response) response:text(200, "hello, " .. request:param("name") .. "\n") end,
    ["POST /length"] = function(request, response) response:text(200, tostring(#request.body)) end,
  } }))
  local results
  assert(thread.start_on(loop, function(...)
    results = { ... }
    server:stop(1, function() loop:stop() end)
  end, function(port)
    local client = assert(require("framewire.socket").connect("127.0.0.1", port, 5))
    local function ask(text, last)
      assert(client:write(text, 5))
      local reply = ""
      repeat reply = reply .. assert(client:read(65536, 5)) until reply:find(last, 1, true)
      return reply
    end
    local first = ask("GET /hello?name=wine HTTP/1.1\r\nHost: a\r\n\r\n", "wine\n")
    local body = ("x"):rep(300000)
    local second = ask("POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body, "300000")
    local third = ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n", "not found\n")
    client:close()
    return first:match("^[^\r]*"), second:match("^[^\r]*"), third:match("^[^\r]*")
  end, (select(2, listener:name()))))
  assert(loop:run())
  loop:close()
  check.equal(results[1], true)
  check.equal(results[2], "HTTP/1.1 200 OK")
  check.equal(results[3], "HTTP/1.1 200 OK")
  check.equal(results[4], "HTTP/1.1 404 Not Found")
end)

check.test("threads get and return values, run at the same time, and report errors", function()
  local one = assert(thread.start(function(a, b, c) return a + 1, b .. "\0x", not c, nil, "last" end, 41, "a", true))
  local results = { one:join() }
  check.equal(results[1], true)
  check.equal(results[2], 42)
  check.equal(results[3], "a\0x")
  check.equal(results[4], false)
  check.equal(results[6], "last")
  check.equal(one:join(), false)
  local ok, message = thread.start(function() error("went wrong") end):join()
  check.equal(ok, false)
  check.contains(message, "went wrong")
  -- If the threads ran one after the other, they would always take longer. A busy machine delays them only sometimes.
  check.eventually(10, function()
    local threads, started = {}, time.monotonic()
    for index = 1, 8 do
      threads[index] = assert(thread.start(function() require("framewire.time").sleep(0.3) end))
    end
    for _, each in ipairs(threads) do check.equal(each:join(), true) end
    return time.monotonic() - started < 1.5
  end, "the threads ran at the same time")
  for index = 1, 50 do
    local fine, value = thread.start(function(n) return n * 2 end, index):join()
    assert(fine and value == index * 2)
  end
  thread.yield()
  assert(worker.cores() >= 1)
  assert(worker.pin(0))
end)

check.test("threads share memory by name, and wait on a word in it", function()
  local block = assert(shm.create("framewire-windows-test", 4096))
  local words = ffi.cast("volatile uint32_t *", block.data)
  check.equal(words[0], 0)
  local _, _, number = shm.create("framewire-windows-test", 4096)
  check.equal(number, sys.EEXIST)
  local other = assert(thread.start(function()
    local their_ffi, memory = require "ffi", require "framewire.shm"
    local same = assert(memory.open("framewire-windows-test"))
    local theirs = their_ffi.cast("volatile uint32_t *", same.data)
    while theirs[0] == 0 do memory.wait(same.data, 0, 1) end
    theirs[1] = theirs[0] * 2
    same:close()
    return same.size
  end))
  words[0] = 21
  shm.wake(block.data)
  local ok, size = other:join()
  check.equal(ok, true)
  check.equal(size, 4096)
  check.equal(words[1], 42)
  block:close()
  block:close()
  check.equal(words[1], 0, "the memory at an address that the program kept after `close`")
  check.equal(select(3, shm.open("framewire-windows-test")), sys.ENOENT, "the name is removed with the last block")
  check.contains(select(2, shm.create("a/b", 1)), "shared memory name")
end)

check.test("two processes share memory", function()
  local block = assert(shm.create("framewire-windows-pair", 65536))
  local words = ffi.cast("volatile uint32_t *", block.data)
  words[0] = 7
  local command = ('%s -e "package.path = [[%s/?.lua;]] .. package.path; '
    .. "local b = assert(require [[framewire.shm]].open [[framewire-windows-pair]]); "
    .. "local w = require [[ffi]].cast([[volatile uint32_t *]], b.data); w[1] = w[0] + 1; print(b.size)\"")
    :format(arg[-1], root)
  local pipe = assert(io.popen(command))
  check.contains(pipe:read("*a"), "65536")
  pipe:close()
  check.equal(words[1], 8)
  block:close()
end)

check.test("a thread reports to the loop, and names are looked up", function()
  local loop = assert(loops.new())
  local seen = {}
  local function done(key)
    return function(value)
      seen[key] = value
      if seen.thread and seen.name then loop:stop() end
    end
  end
  assert(thread.start_on(loop, function(_, value) done "thread"(value) end, function() return "value" end))
  assert(resolve.addresses_on(loop, "localhost", done "name"))
  loop:after(10, function() error("nothing came") end)
  assert(loop:run())
  loop:close()
  check.equal(seen.thread, "value")
  assert(#seen.name >= 1)
  check.equal(resolve.addresses("127.0.0.1")[1], "127.0.0.1")
end)

check.test("folders are listed, and files have facts", function()
  local names = {}
  for _, entry in ipairs(assert(files.list(root .. "/framewire/channel"))) do
    names[#names + 1] = entry.name .. " " .. entry.kind
  end
  check.contains(table.concat(names, ", "), "block.lua file, layout.lua file")
  check.equal(files.facts(root .. "/framewire").kind, "directory")
  local facts = assert(files.facts(arg[0]))
  local file = assert(io.open(arg[0], "rb"))
  check.equal(facts.size, file:seek("end"))
  file:close()
  assert(facts.modified > 1.6e9 and facts.modified < os.time() + 100)
  check.equal(files.exists(root .. "/none"), false)
  check.contains(select(2, files.facts(root .. "/none")), "cannot read the facts of")
  check.contains(select(2, files.list(root .. "/none")), "cannot list")
  assert(files.here():find("[:/\\]"))
end)

check.test("functions that Windows does not support return an error", function()
  for _, result in ipairs {
    { signal.open { "INT" } }, { signal.send(1, "TERM") }, { watch.new() }, { worker.start(function() end) },
    { worker.become { "x" } }, { require("framewire.channel").create("x") },
  } do
    check.equal(result[1], nil)
    assert(type(result[2]) == "string", "no message")
  end
  check.contains(select(2, http.static(root)), "cannot open the folder")
end)

check.test("keys can be read from input that is not a terminal", function()
  -- `make test-windows` writes "k" and the escape sequence of the key Up to the standard input.
  check.equal(terminal.is_terminal(), false)
  check.contains(select(2, terminal.raw()), "not a terminal")
  check.equal(terminal.key(5), "k")
  check.equal(terminal.key(5), "up")
  check.equal(select(2, terminal.key(5)), "closed")
end)

local passed, failed = check.run(arg)
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0 and 0 or 1)
