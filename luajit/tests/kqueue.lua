--- Tests the parts of the library that use kqueue, on Linux with libkqueue: `make test-kqueue`, or
-- `luajit luajit/tests/kqueue.lua LIBRARY [WORD]...`. libkqueue has the same `struct kevent` as macOS.

local here = arg[0]:match("^(.*)[/\\]") or "."
package.path = here .. "/../?.lua;" .. package.path

local ffi = require "ffi"
local check = require "tests.support.check"
local client = require "tests.support.client"
local process = require "tests.support.process"
local sys = require "framewire.sys"

check.root, check.file = here .. "/..", "kqueue"

-- Changes the table `sys` so that kqueue seems to be available. Modules that copy a changed value when they are loaded
-- must be loaded afterwards, or loaded again.
local library = ffi.load(assert(table.remove(arg, 1), "give the path of libkqueue.so.0"), true)
local declarations = require "framewire.ffi.kqueue"(false)
for name, value in pairs(declarations.constants) do sys[name] = value end
sys.pollers = { "kqueue", "poll" }
sys.watch_module = "framewire.watch.kqueue"
sys.O_EVTONLY = sys.O_RDONLY
function sys.open(path, flags) return ffi.C.fw_open(path, flags, 0) end

package.loaded["framewire.poller"] = nil
local http = require "framewire.http"
local loops = require "framewire.loop"
local poller = require "framewire.poller"
local pollers = require "tests.support.pollers"
local signal = require "framewire.signal"
local socket = require "framewire.socket"
local time = require "framewire.time"
local unix = require "framewire.unix"
local watch = require "framewire.watch"

check.test("the library is libkqueue, and kqueue is the poller that loops use", function()
  assert(library.kqueue)
  check.equal(poller.names[1], "kqueue")
  local loop = assert(loops.new())
  assert(loop.poller.interests, "not the kqueue poller")
  loop:close()
end)

check.test("kqueue reports ready descriptors and no others", function() pollers.check_poller("kqueue", 1000) end)

check.test("kqueue reports a new descriptor that has the number of one closed without `remove`", function()
  local source = assert(poller.new("kqueue"))
  local one, other = assert(unix.pair())
  local number = other.fd
  assert(source:add(number, poller.READ))
  one:close()
  other:close()
  one, other = assert(unix.pair())
  check.equal(other.fd, number, "the number is used again")
  assert(source:add(number, poller.READ))
  assert(one:write("x", 1))
  check.equal(source:wait(1000), 1)
  check.equal((source:ready(0)), number)
  for _, each in ipairs { one, other, source } do each:close() end
end)

check.test("on kqueue, loops run timers, and callbacks can forget other descriptors", function()
  -- On a busy machine, some ticks are late.
  check.eventually(5, function()
    local loop = assert(loops.new())
    local called, ticks = pollers.watch_readable(loop), 0
    loop:every(0.01, function() ticks = ticks + 1 end)
    loop:after(0.1, function() loop:stop() end)
    assert(loop:run())
    loop:close()
    check.equal(called(), 1)
    return ticks >= 3
  end, "there were three ticks in a tenth of a second")
end)

check.test("on kqueue, the HTTP server serves clients, sends large responses and stops", function()
  local large = ("0123456789"):rep(300000)
  local listener = assert(socket.listen())
  local _, port = listener:name()
  process.run_with(function()
    local loop = assert(loops.new())
    local server
    server = assert(http.new(loop, listener, { handler = function(request, response)
      if request.path == "/stop" then
        loop:after(0, function() server:stop(2, function() loop:stop() end) end)
      end
      response:text(200, request.path == "/large" and large or request.body)
    end }))
    assert(loop:run())
    loop:close()
  end, function()
    listener:close()
    for _ = 1, 20 do
      local connection = client.connect(port)
      for number = 1, 20 do
        check.equal(connection:ask("POST", "/", {}, "body " .. number).body, "body " .. number)
      end
      connection:close()
    end
    local slow = client.connect(port)
    slow:send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
    time.sleep(0.1)
    check.equal(client.ask(port, "POST", "/", {}, "meanwhile").body, "meanwhile")
    check.equal(#assert(slow:receive()).body, #large)
    slow:close()
    check.equal(client.ask(port, "GET", "/stop").status, 200)
  end, true)
end)

-- With libkqueue, a kqueue cannot watch another kqueue, so the test reads the signals' descriptor without a loop. This
-- test must come before the next one: after this process has watched files with libkqueue, its forked children get no
-- events.
check.test("signals are read from a kqueue", function()
  process.run_with(function()
    sys.open_signals, sys.read_signal = declarations.open_signals, declarations.read_signal
    local signals = assert(signal.open { "USR1", "WINCH", "TERM" })
    assert(signals:read() == nil)
    for _, name in ipairs { "USR1", "WINCH", "TERM" } do
      assert(signal.send(ffi.C.getpid(), name))
      check.equal(check.eventually(2, function() return signals:read() end, name .. " arrives"), name)
    end
    signals:close()
  end, function() end, true)
end)

check.test("folders and files are watched with kqueue", function()
  local folder = process.folder()
  process.write(folder .. "/one", "1")
  local changes = assert(watch.new())
  assert(changes:add(folder .. "/one"))
  check.equal(#changes:read(), 0)
  local function expect(kind, path)
    check.eventually(3, function()
      for _, change in ipairs(changes:read()) do
        if change.kind == kind and change.path == path then return true end
      end
    end, path .. " is reported as " .. kind)
  end
  local file = assert(io.open(folder .. "/one", "a"))
  file:write("more")
  file:close()
  expect("changed", folder .. "/one")
  assert(changes:add(folder))
  process.write(folder .. "/two", "2")
  expect("changed", folder)
  os.remove(folder .. "/one")
  expect("deleted", folder .. "/one")
  check.contains(select(2, changes:add(folder .. "/none")), "No such file")
  changes:close()
  changes:close()
  process.remove_folder(folder)
end)

local passed, failed = check.run(arg)
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0 and 0 or 1)
