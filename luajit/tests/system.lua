--- Tests of host names, files, the terminal, threads on a loop, signals, and numbers and other values as text.

local bit = require "bit"
local ffi = require "ffi"
local check = require "tests.support.check"
local files = require "framewire.files"
local loops = require "framewire.loop"
local num = require "framewire.num"
local process = require "tests.support.process"
local resolve = require "framewire.resolve"
local show = require "framewire.show"
local signal = require "framewire.signal"
local socket = require "framewire.socket"
local sys = require "framewire.sys"
local terminal = require "framewire.terminal"
local thread = require "framewire.thread"
local time = require "framewire.time"
local worker = require "framewire.worker"

check.test("names have addresses, and addresses have names", function()
  check.equal(check.holds(assert(resolve.addresses("localhost")), "127.0.0.1"), true)
  check.equal(table.concat(assert(resolve.addresses("127.0.0.1"))), "127.0.0.1")
  check.equal(table.concat(assert(resolve.addresses("::1"))), "::1")
  check.equal(resolve.name("127.0.0.1"), "localhost")
  check.contains(select(2, resolve.addresses("no-such-host.invalid")), "cannot find 'no-such-host.invalid'")
  check.contains(select(2, resolve.name("localhost")), "'localhost' is not an address")
  check.contains(select(2, resolve.name("192.0.2.1")), "cannot find the name of 192.0.2.1")
end)

check.test("a look-up leaves the loop free, with a callback and in a task", function()
  local loop = assert(loops.new())
  local seen, left = {}, 4
  local function done(key)
    return function(value, message)
      seen[key] = value or message
      left = left - 1
      if left == 0 then loop:stop() end
    end
  end
  assert(resolve.addresses_on(loop, "localhost", done "addresses"))
  assert(resolve.addresses_on(loop, "no-such-host.invalid", done "missing"))
  assert(resolve.name_on(loop, "127.0.0.1", done "name"))
  loop:spawn(function()
    done "task"(resolve.addresses("localhost"))
  end)
  check.equal(left, 4, "no callback is called before the loop runs")
  loop:after(60, function() error("no answer") end) -- without an answer, a look-up ends after ten seconds or more
  assert(loop:run())
  loop:close()
  check.equal(check.holds(seen.addresses, "127.0.0.1"), true)
  check.equal(check.holds(seen.task, "127.0.0.1"), true)
  check.equal(seen.name, "localhost")
  check.contains(seen.missing, "no-such-host.invalid")
end)

check.test("a task connects to a name", function()
  local loop = assert(loops.new())
  local listener = assert(socket.listen())
  local peer
  loop:spawn(function()
    local client = assert(socket.connect("localhost", select(2, listener:name()), 5))
    peer = client:peer()
    client:close()
    loop:stop()
  end)
  assert(loop:run())
  check.equal(peer, "127.0.0.1")
  listener:close()
  loop:close()
end)

check.test("a thread's results come to the loop, which runs meanwhile", function()
  local loop = assert(loops.new())
  local ticks, results = 0, nil
  loop:every(0.01, function() ticks = ticks + 1 end)
  -- On a busy machine, some ticks are late.
  check.eventually(5, function()
    ticks = 0
    assert(thread.start_on(loop, function(...)
      results = { ... }
      loop:stop()
    end, function(a)
      require("framewire.time").sleep(0.2)
      return a * 2, "end"
    end, 21))
    assert(loop:run())
    check.equal(results[1], true)
    check.equal(results[2], 42)
    check.equal(results[3], "end")
    return ticks >= 5
  end, "there were five ticks in a fifth of a second")
  assert(thread.start_on(loop, function(ok, message)
    results = { ok, message }
    loop:stop()
  end, function() error("went wrong") end))
  assert(loop:run())
  check.equal(results[1], false)
  check.contains(results[2], "went wrong")
  check.contains(select(2, thread.start_on(loop, print, function() return ticks end)), "'ticks'")
  loop:close()
  thread.yield()
end)

check.test("folders are listed, and files have facts", function()
  local folder = process.folder()
  process.write(folder .. "/b.txt", "12345")
  assert(os.execute(("mkdir '%s/a' && ln -s b.txt '%s/link' && ln -s none '%s/lost' && mkfifo '%s/pipe'")
    :format(folder, folder, folder, folder)) == 0)
  local found = {}
  for _, entry in ipairs(assert(files.list(folder))) do found[#found + 1] = entry.name .. " " .. entry.kind end
  check.equal(table.concat(found, ", "), "a directory, b.txt file, link link, lost link, pipe other")
  local facts = assert(files.facts(folder .. "/b.txt"))
  check.equal(facts.kind, "file")
  check.equal(facts.size, 5)
  assert(math.abs(facts.modified - os.time()) < 10)
  check.equal(facts.owner, ffi.C.geteuid())
  check.equal(files.facts(folder .. "/link").kind, "file")
  check.equal(files.facts(folder .. "/link", { follow = false }).kind, "link")
  local _, message, number = files.facts(folder .. "/lost")
  check.contains(message, "/lost': No such file")
  check.equal(number, sys.ENOENT)
  check.equal(files.exists(folder .. "/lost"), true)
  check.equal(files.exists(folder .. "/none"), false)
  check.contains(select(2, files.list(folder .. "/none")), "No such file")
  check.contains(select(2, files.list(folder .. "/b.txt")), "Not a directory")
  check.equal(files.home(), os.getenv("HOME"))
  check.equal(files.here() .. "\n", process.output("pwd -P"))
  process.remove_folder(folder)
end)

ffi.cdef [[
int posix_openpt(int); int grantpt(int); int unlockpt(int); char *ptsname(int); int setsid(void); int dup2(int, int);
]]

-- Runs `main` in a process with a new terminal. Calls `body` with a function that types keys, a function that returns
-- the output so far, the terminal's descriptor, and the process.
local function with_terminal(main, body)
  local master = ffi.C.posix_openpt(sys.O_RDWR)
  assert(master >= 0 and ffi.C.grantpt(master) == 0 and ffi.C.unlockpt(master) == 0)
  local path = ffi.string(ffi.C.ptsname(master))
  local child = assert(worker.start(function()
    ffi.C.setsid()
    local slave = ffi.C.fw_open(path, sys.O_RDWR, 0)
    for fd = 0, 2 do ffi.C.dup2(slave, fd) end
    io.stdout:setvbuf("no")
    main()
  end))
  -- While this descriptor is open, the terminal exists even after the end of the program, and its settings can be read.
  local slave = ffi.C.fw_open(path, sys.O_RDWR, 0)
  local output, bytes = "", ffi.new("char[4096]")
  local one = ffi.new("struct fw_pollfd[1]")
  local function printed()
    one[0].fd, one[0].events = master, sys.POLLIN
    while ffi.C.poll(one, 1, 0) > 0 do
      local got = tonumber(ffi.C.read(master, bytes, 4096))
      if got <= 0 then break end
      output = output .. ffi.string(bytes, got)
    end
    return output
  end
  local function type_keys(text) ffi.C.write(master, text, #text) end
  local ok, message = xpcall(body, debug.traceback, type_keys, printed, slave, child)
  child:signal("KILL")
  child:wait()
  ffi.C.close(slave)
  ffi.C.close(master)
  if not ok then error(message .. "\nprinted: " .. output, 0) end
end

local function is_raw(fd)
  local now = ffi.new("struct fw_termios")
  assert(ffi.C.tcgetattr(fd, now) == 0)
  return bit.band(now.lflag, 2) == 0 -- ICANON
end

local function read_keys()
  assert(terminal.is_terminal())
  assert(terminal.raw { signals = false })
  print("ready")
  while true do
    local key, problem = terminal.key()
    print("[" .. tostring(key or problem) .. "]")
    if key == "q" then break end
  end
end

check.test("keys arrive one by one, with their names", function()
  with_terminal(read_keys, function(type_keys, printed, slave, child)
    check.eventually(5, function() return printed():find("ready") end, "the program is ready")
    check.equal(is_raw(slave), true)
    for bytes, name in pairs {
      a = "a", ["\27[A"] = "up", ["\27OD"] = "left", ["\27[1;5C"] = "ctrl+right", ["\27[3~"] = "delete",
      ["\27[15~"] = "f5", ["\27[Z"] = "shift+tab", ["\3"] = "ctrl+c", ["\r"] = "enter", ["\27x"] = "alt+x",
      ["\27O"] = "alt+O", ["\27["] = "alt+[", ["\27ü"] = "alt+ü", ["\27\1"] = "ctrl+alt+a", ["\27[[B"] = "f2",
      ["\127"] = "backspace", ["\27"] = "escape", ["ü"] = "ü", ["€"] = "€", ["\28"] = "ctrl+\\",
    } do
      local before = #printed()
      type_keys(bytes)
      check.eventually(5, function() return printed():sub(before + 1):find("[" .. name .. "]", 1, true) end, name)
    end
    type_keys("q")
    check.equal(child:wait(5), 0)
    check.eventually(5, function() return not is_raw(slave) end, "the terminal is restored")
  end)
end)

for how, signal_name in pairs { ["an error"] = false, ["os.exit"] = false, KILL = "KILL", TERM = "TERM" } do
  check.test("the terminal is restored after " .. how, function()
    with_terminal(function()
      assert(terminal.raw())
      print("ready")
      terminal.key()
      if how == "os.exit" then os.exit(0) end
      error("a mistake")
    end, function(type_keys, printed, slave, child)
      check.eventually(5, function() return printed():find("ready") end, "the program is ready")
      check.equal(is_raw(slave), true)
      if signal_name then child:signal(signal_name) else type_keys("x") end
      check.eventually(5, function() return not is_raw(slave) end, "the terminal is restored")
    end)
  end)
end

check.test("the terminal is restored after KILL although /dev/fd does not list all descriptors", function()
  with_terminal(function()
    sys.list = function() return true end -- FreeBSD without fdescfs lists only 0, 1 and 2
    assert(terminal.raw())
    print("ready")
    time.sleep(60)
  end, function(_, printed, slave, child)
    check.eventually(5, function() return printed():find("ready") end, "the program is ready")
    check.equal(is_raw(slave), true)
    child:signal("KILL")
    check.eventually(5, function() return not is_raw(slave) end, "the terminal is restored")
  end)
end)

check.test("outside of raw mode, the terminal is restored after a key or a time-out", function()
  with_terminal(function()
    print("ready " .. tostring(select(2, terminal.key(0.05))))
    print("key " .. terminal.key())
    local columns, rows = terminal.size()
    print("size " .. tostring(columns) .. " " .. tostring(rows))
    time.sleep(60)
  end, function(type_keys, printed, slave)
    check.eventually(5, function() return printed():find("ready timeout", 1, true) end, "the wait has ended")
    check.eventually(5, function() return is_raw(slave) end, "it waits for a key")
    type_keys("k")
    check.eventually(5, function() return printed():find("size") end, "the key has arrived")
    check.contains(printed(), "key k")
    check.equal(is_raw(slave), false)
  end)
end)

check.test("if a connection is closed in raw mode, the other side sees its end", function()
  local client, server = process.pair()
  with_terminal(function()
    server:close()
    assert(terminal.raw())
    client:close()
    time.sleep(60)
  end, function()
    client:close()
    check.equal(select(2, server:read(1, 5)), "closed")
    server:close()
  end)
end)

ffi.cdef [[
struct fw_input_record {
  uint16_t type, padding; int32_t is_down; uint16_t repeats, key, scan_code, unit; uint32_t modifiers;
};
]]

-- Loads the module for the console of Windows, with a fake console from which it reads these records. Each record is a
-- list: `type`, `is_down`, `repeats`, `key`, `unit`, `modifiers`.
local function windows_console(records)
  local C = {
    GetStdHandle = function() return nil end,
    GetConsoleMode = function() return 1 end,
    WaitForSingleObject = function() return records[1] and 0 or 258 end, -- 258 is WAIT_TIMEOUT
    VkKeyScanW = function() return 0x332 end, -- the keys that type the character NUL: Ctrl, Shift and 2
  }
  function C.ReadConsoleInputW(_, record)
    local one = assert(table.remove(records, 1), "Windows would wait for a record")
    record.type, record.is_down, record.repeats, record.key, record.unit, record.modifiers = unpack(one)
    return 1
  end
  function C.WideCharToMultiByte(_, _, units, length, bytes)
    local text = length == 2 and "😀" or units[0] == 0xfc and "ü" or string.char(units[0])
    ffi.copy(bytes, text, #text)
    return #text
  end
  local load_console = assert(loadfile(check.root .. "/framewire/ffi/console.lua"))
  setfenv(load_console, setmetatable({
    require = function(name) return name == "ffi" and setmetatable({ C = C }, { __index = ffi }) or require(name) end,
  }, { __index = _G }))
  return load_console()({ monotonic = time.monotonic })
end

check.test("on Windows, released keys and changes of the window do not block", function()
  local console = windows_console {
    { 1, 1, 1, 0x41, 0x61, 0 }, { 1, 0, 1, 0x41, 0x61, 0 }, -- "a" is pressed and released
    { 16, 1, 0, 0, 0, 0 }, -- the window gets the focus
    { 1, 1, 1, 0x10, 0, 16 }, { 1, 1, 2, 0x42, 0x42, 16 }, -- Shift and "B", for so long that it is repeated
    { 1, 0, 1, 0x12, 0xfc, 0 }, -- Alt is released after the number of "ü" was typed
    { 1, 1, 1, 0, 0xd83d, 0 }, { 1, 1, 1, 0, 0xde00, 0 },
    { 1, 1, 1, 0x32, 0, 8 }, -- Ctrl and 2, which type the character NUL
    { 1, 1, 1, 0x32, 0, 9 }, -- AltGr and 2, which begins an accent on some keyboards
    { 1, 0, 1, 0x11, 0, 0 },
  }
  local text = ""
  while console.wait(1) do text = text .. string.char(console.read()) end
  check.equal(text, "aBBü😀\0")
end)

check.test("keys can be read from input that is not a terminal", function()
  local path = os.tmpname()
  process.write(path, ([[package.path = %q .. "/?.lua;" .. package.path
    local terminal = require "framewire.terminal"
    print(terminal.is_terminal(), select(2, terminal.raw()))
    print(terminal.key(), terminal.key(), terminal.key())]]):format(check.root))
  local output = process.output("printf 'x\\n' | luajit " .. path)
  check.equal(output, "false\tthe input is not a terminal\nx\tenter\tnil\tclosed\n")
  os.remove(path)
end)

check.test("WINCH arrives when the size of the terminal changes", function()
  with_terminal(function()
    local loop = assert(loops.new())
    ffi.C.fw_ioctl(0, 0x540e, ffi.cast("void *", 0)) -- TIOCSCTTY
    assert(loop:on_signal({ "WINCH" }, function() print("size " .. table.concat({ terminal.size() }, "x")) end))
    print("ready")
    assert(loop:run())
  end, function(_, printed, slave)
    check.eventually(5, function() return printed():find("ready") end, "the program is ready")
    local size = ffi.new("struct fw_winsize")
    size.columns, size.rows = 132, 43
    assert(ffi.C.fw_ioctl(slave, 0x5414, size) == 0) -- TIOCSWINSZ
    check.eventually(5, function() return printed():find("size 132x43", 1, true) end, "the new size is printed")
  end)
end)

check.test("numbers are rounded and grouped", function()
  for _, row in ipairs {
    { 2.5, 0, 3 }, { -2.5, 0, -3 }, { 1.005, 2, 1.01 }, { 1234, -2, 1200 }, { 1e300, 2, 1e300 }, { 0.1 + 0.2, 1, 0.3 },
  } do
    check.equal(num.round(row[1], row[2]), row[3], row[1])
  end
  for _, row in ipairs {
    { "0", 0 }, { "999", 999 }, { "1,000", 1000 }, { "-1,234,567.89", -1234567.89 }, { "1,234.50", 1234.5, 2 },
    { "12 345", 12345, 0, " " }, { "0.00", -0.001, 2 }, { "9,007,199,254,740,992", 2 ^ 53 }, { "inf", math.huge },
    { "0.5", 0.5 }, { "100,000", 99999.6, 0 }, { "0.00005", 5e-5 }, { "-0.000000123456789", -1.23456789e-7 },
  } do
    check.equal(num.group(row[2], row[3], row[4]), row[1])
  end
end)

check.test("values are shown as Lua", function()
  check.equal(show("a\nb"), [["a\nb"]])
  check.equal(show {}, "{}")
  check.equal(show { 1, "two", { x = true } }, [[{ 1, "two", { x = true } }]])
  check.equal(show { b = 1, a = 2, ["end"] = 3, ["a b"] = 4, [10] = 5, [0.5] = 6 },
    [[{ [0.5] = 6, [10] = 5, a = 2, ["a b"] = 4, b = 1, ["end"] = 3 }]])
  local loop = { name = "x" }
  loop.me = loop
  check.equal(show(loop), [[{ me = <contains itself>, name = "x" }]])
  check.equal(show({ { { 1 } } }, 2), "{ { { ... } } }")
  local long = {}
  for index = 1, 40 do long[index] = { index, text = "\0\1\r\n\"\\" } end
  local same = assert(loadstring("return " .. show(long)))()
  check.equal(show(same), show(long))
  check.equal(same[40].text, "\0\1\r\n\"\\")
  check.contains(show { f = print }, "f = function: builtin")
end)

check.test("a signal arrives at a process that waits for it", function()
  process.run_with(function()
    local loop = assert(loops.new())
    assert(loop:on_signal({ "CONT", "ALRM", "QUIT" }, function(name)
      if name == "QUIT" then loop:stop() end
    end))
    assert(signal.send(ffi.C.getpid(), "ALRM"))
    loop:after(0.01, function() signal.send(ffi.C.getpid(), "QUIT") end)
    assert(loop:run())
  end, function() end, true)
end)
