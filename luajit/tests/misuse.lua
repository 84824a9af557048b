--- Calls every public function and method with arguments that make no sense. Every method is also called on a closed
-- object. Each call must return or raise an error, and must not crash the process. The test finds the functions and
-- classes in the modules. A new class needs an entry in `objects`, which says how to create an object of it.

local ffi = require "ffi"
local channel = require "framewire.channel"
local check = require "tests.support.check"
local emulator = require "framewire.emulator"
local files = require "framewire.files"
local http = require "framewire.http"
local loops = require "framewire.loop"
local poller = require "framewire.poller"
local process = require "tests.support.process"
local shm = require "framewire.shm"
local signal = require "framewire.signal"
local socket = require "framewire.socket"
local stream = require "framewire.stream"
local task = require "framewire.task"
local textlink = require "framewire.textlink"
local thread = require "framewire.thread"
local time = require "framewire.time"
local timer = require "framewire.timer"
local watch = require "framewire.watch"
local websocket = require "framewire.websocket"
local worker = require "framewire.worker"

-- Modules that are not tested: the functions in `sys` are as unsafe as C, and `closed` is used only inside the library.
local RAW = { ["framewire.sys"] = true, ["framewire.closed"] = true }

-- Functions that are not tested, and why.
local LEFT_OUT = {
  ["framewire.options.read"] = "ends the program if the command line is wrong, as it should",
  ["framewire.signal.send"] = "could end another program; has a test below",
  ["framewire.worker.become"] = "replaces the process; has a test below",
  ["framewire.worker.group"] = "starts processes; has a test below",
}

-- Functions that may wait. Their calls get a short time; a call that is still waiting after this time counts as
-- successful.
local WAITS = {
  ["Endpoint.accept"] = true, ["Endpoint.receive"] = true, ["Endpoint.send"] = true,
  ["Receiver.await"] = true, ["Receiver.receive"] = true, ["Sender.reserve"] = true, ["Sender.send"] = true,
  ["Loop.run"] = true, ["Epoll.wait"] = true, ["Poll.wait"] = true,
  ["Socket.wait"] = true, ["Socket.read"] = true, ["Socket.write"] = true, ["Worker.wait"] = true,
  ["Socket.accept"] = true,
  ["framewire.time.sleep"] = true, ["framewire.terminal.key"] = true,
  ["framewire.channel.connect"] = true, ["framewire.channel.block.attach"] = true,
  ["WebSocket.receive"] = true, ["Udp.read"] = true, ["Udp.wait"] = true, ["framewire.websocket.connect"] = true,
  ["framewire.channel.wait.spin"] = true, ["framewire.channel.wait.sleep"] = true,
  ["framewire.emulator.connect"] = true, ["framewire.socket.connect"] = true,
}

local name = "misuse-" .. ffi.C.getpid()

local function endpoints()
  local here = assert(channel.create(name, { slots = 8, extra = 16384 }))
  return here, assert(channel.connect(name, 1))
end

-- An emulator whose other side never answers.
local function game()
  local here = assert(channel.create(name, { slots = 8, extra = 16384 }))
  local screen = ffi.cast("struct fw_screen *", here.extra)
  screen.version, screen.width, screen.height, screen.stride, screen.picture = 1, 4, 4, 16, 4096
  ffi.copy(here.extra, "FWFRAME1", 8)
  return assert(emulator.connect(name, { patience = 1e-3, spin = 1e-4 })), here
end

-- A server, and a connection to it with one request, for which the server's handler has called `response:later()`.
local function web()
  local loop = assert(loops.new())
  local listener = assert(socket.listen())
  local request, late
  local server = assert(http.new(loop, listener, { log = function() end, handler = function(given, response)
    request, late = given, response:later()
    loop:stop()
  end }))
  local client = assert(socket.connect("127.0.0.1", select(2, listener:name()), 1))
  client:write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
  assert(loop:run())
  return { loop = loop, server = server, request = request, late = late, connection = late.connection, client = client }
end

-- A WebSocket to a server that sends nothing after the handshake.
local function web_socket()
  local loop = assert(loops.new())
  local listener = assert(socket.listen())
  loop:spawn(function()
    local client = assert(listener:accept(5))
    require("tests.support.wire").accept(client, 5)
  end)
  local url = "ws://127.0.0.1:" .. select(2, listener:name()) .. "/"
  local opening = loop:spawn(function()
    local one, message = websocket.connect(url, { close_timeout = 0.01, timeout = 10 })
    loop:stop()
    return assert(one, message)
  end)
  assert(loop:run())
  local _, one = assert(opening:join())
  return one, listener
end

-- For each class, `make` creates an object. `close` gets all results of `make`; an entry does not need it if the
-- object's own method `close` is enough. `private` classes are not tested, because only the library calls their
-- methods, some with addresses as arguments.
local objects = {
  ["framewire.channel.block.Block"] = { make = function() return (endpoints()).block end },
  ["framewire.shm.Block"] = { make = function()
    shm.remove(name)
    return assert(shm.create(name, 4096))
  end },
  Buffer = { make = function() return require("framewire.buffer").new(16) end },
  Pool = { make = function() return require("framewire.buffer").pool(16, 4) end },
  Connection = { make = function() return web().connection end },
  Decoder = { private = true },
  Cache = { private = true },
  Emulator = { make = game, close = function(one, here)
    one:close()
    here:close()
  end },
  Endpoint = { make = endpoints },
  Epoll = { make = function() return assert(poller.new("epoll")) end },
  Link = { make = function() return textlink.new(assert(loops.new()), "127.0.0.1", 1) end },
  Form = { make = function() return require("framewire.http.form").parse_urlencoded("a=1") end },
  Loop = { make = function() return assert(loops.new()) end },
  Poll = { make = function() return assert(poller.new("poll")) end },
  Receiver = { make = function()
    local here, there = endpoints()
    return here.receiver, here, there
  end, close = function(_, here) here:close() end },
  Request = { make = function()
    local all = web()
    return all.request, all
  end, close = function(_, all) all.connection:close() end },
  Response = { make = function()
    local all = web()
    return all.late, all
  end, close = function(_, all) all.connection:close() end },
  Sender = { make = function()
    local here, there = endpoints()
    return here.sender, here, there
  end, close = function(_, here) here:close() end },
  Server = { make = function() return web().server end, close = function(server) server:stop(0) end },
  Signals = { make = function() return assert(signal.open { "USR2" }) end },
  Socket = { make = process.pair },
  Stream = { make = function()
    local loop = assert(loops.new())
    return assert(stream.new(loop, (process.pair()), { on_data = function() end })), loop
  end },
  Task = { make = function() return assert(loops.new()):spawn(function() task.sleep(60) end) end,
    close = function(one) one:cancel() end },
  Thread = { make = function() return assert(thread.start(function() end)) end, close = function(one) one:join() end },
  Timer = { make = function() return timer.new():add(0, print) end, close = function(one) one:cancel() end },
  Timers = { make = timer.new },
  Watch = { make = function() return assert(watch.new()) end },
  Answer = { private = true },
  Client = { make = function() return http.client { timeout = 0.01 } end },
  Owner = { private = true },
  Protocol = { private = true },
  WebSocket = { make = web_socket },
  Context = { make = function() return assert(require("framewire.tls").client { verify = false }) end },
  Secure = { private = true },
  Udp = { make = function() return assert(require("framewire.udp").open()) end },
  Wait = { private = true },
  Joiners = { private = true },
  Watcher = { private = true },
  Worker = {
    make = function() return assert(worker.start(function() time.sleep(60) end)) end,
    close = function(one)
      one:signal("KILL")
      one:wait()
    end,
  },
}

local function module_names()
  local list = {}
  local pipe = assert(io.popen(("cd '%s' && find framewire -name '*.lua'"):format(check.root)))
  for line in pipe:lines() do
    local module = line:gsub("%.lua$", ""):gsub("/", ".")
    -- Modules for other systems cannot be loaded here.
    local elsewhere = module:find("^framewire%.ffi%.") or module:find("kqueue") or module:find("wsapoll")
      or module:find("%.windows$")
    if not elsewhere and not RAW[module] then list[#list + 1] = module end
  end
  pipe:close()
  table.sort(list)
  return list
end

-- Finds classes (tables that are their own `__index`) among the upvalues of a function. Searches the functions among
-- the upvalues, and the methods of the classes, in the same way.
local function find_classes(value, module, found, seen)
  if seen[value] then return end
  seen[value] = true
  if type(value) == "function" then
    for index = 1, 200 do
      local label, used = debug.getupvalue(value, index)
      if not label then break end
      local kind = type(used)
      if kind == "table" and rawget(used, "__index") == used then
        found[used] = found[used] or { name = label, module = module }
        for _, method in pairs(used) do
          if type(method) == "function" then find_classes(method, module, found, seen) end
        end
      elseif kind == "function" then
        find_classes(used, module, found, seen)
      end
    end
  end
end

-- Returns a list of the public functions, each as { label, f }, and a list of the classes, each as { name, module,
-- class }.
local function everything()
  local functions, classes = {}, {}
  for _, module in ipairs(module_names()) do
    local loaded, found, seen = require(module), {}, {}
    if type(loaded) == "table" then
      for key, value in pairs(loaded) do
        if type(key) == "string" and type(value) == "function" then
          functions[#functions + 1] = { label = module .. "." .. key, f = value }
          find_classes(value, module, found, seen)
        end
      end
      for class, about in pairs(found) do
        -- A class belongs to the module that defines its methods. Some classes also have methods of other modules.
        local path = module:gsub("%.", "/") .. ".lua"
        for _, method in pairs(class) do
          if type(method) == "function" and debug.getinfo(method, "S").source:find(path, 1, true) then
            classes[#classes + 1] = { name = about.name, module = module, class = class }
            break
          end
        end
      end
    end
  end
  table.sort(functions, function(a, b) return a.label < b.label end)
  table.sort(classes, function(a, b) return a.module .. a.name < b.module .. b.name end)
  return functions, classes
end

local NOTHING = {}
local hostile = {
  NOTHING, -1, 0, 0.5, 65536, 2 ^ 31, 2 ^ 53, 1e300, -1 / 0, 1 / 0, 0 / 0, "", "x", ("x"):rep(70000), true, {}, { 1 },
  coroutine.create(function() end), ffi.new("int[4]"),
}

-- An empty argument list, and four lists for each of the hostile values.
local function argument_lists()
  local lists = { { n = 0 } }
  for _, value in ipairs(hostile) do
    if value == NOTHING then value = nil end
    lists[#lists + 1] = { value, n = 1 }
    lists[#lists + 1] = { value, value, value, n = 3 }
    lists[#lists + 1] = { "x", value, n = 2 }
    lists[#lists + 1] = { 1, value, value, n = 3 }
  end
  return lists
end

local lists = argument_lists()

local function has_address(list)
  for index = 1, list.n do
    if type(list[index]) == "cdata" then return true end
  end
  return false
end

ffi.cdef [[ int fw_setitimer(int, const long *, void *) __asm__("setitimer"); ]]

-- Makes the kernel end this process with ALRM after a time, unless this function is called again before then.
local function set_alarm(seconds)
  ffi.C.fw_setitimer(0, ffi.new("long[4]", 0, 0, math.floor(seconds), seconds % 1 * 1e6), nil)
end

-- The number of the current call, in memory that is shared with the child processes.
local at = process.shared_words()

-- Makes the calls from number `from` on in a child process. If a call ends the child, returns how the child ended.
local function run_child(calls, from)
  at[0] = from
  local child = assert(worker.start(function()
    for number = from, #calls do
      at[0] = number
      local call = calls[number]
      local object = call.prepare()
      set_alarm(call.waits and 0.02 or 30) -- some calls look up the name "x", which can take ten seconds
      pcall(call.run, object)
      set_alarm(30)
    end
    ffi.C._exit(0)
  end))
  local code, reason = child:wait(120)
  if code ~= 0 then return reason or "exit code " .. code end
end

local function make_calls(calls)
  local from = 1
  while from <= #calls do
    local ending = run_child(calls, from)
    if not ending then return end
    local call = calls[at[0]]
    if not (ending == "ALRM" and call.waits) then
      error(("%s ended the process: %s"):format(call.label, ending), 0)
    end
    from = at[0] + 1
  end
end

-- Makes all calls, and removes shared memory that the child processes have left.
local function run_all(calls)
  local ok, message = pcall(make_calls, calls)
  for _, left in ipairs { name, "framewire." .. name } do shm.remove(left) end
  if not ok then error(message, 0) end
end

local function show(list)
  local parts = {}
  for index = 1, list.n do
    local value = list[index]
    parts[index] = type(value) == "string" and ("%q"):format(value:sub(1, 8)) or tostring(value)
  end
  return table.concat(parts, ", ")
end

local functions, classes = everything()

local function entry_of(class)
  return objects[class.module .. "." .. class.name] or objects[class.name]
end

check.test("each class has an entry in `objects`", function()
  assert(#classes >= 20, "too few classes found: " .. #classes)
  for _, class in ipairs(classes) do
    if not entry_of(class) then
      error(("tests/misuse.lua: add %s of %s to `objects`"):format(class.name, class.module), 0)
    end
  end
  assert(#functions >= 60, "too few functions found: " .. #functions)
end)

for _, each in ipairs(functions) do
  if not LEFT_OUT[each.label] then
    check.test(each.label .. " does not crash with arguments that make no sense", function()
      local calls = {}
      for _, list in ipairs(lists) do
        -- Functions that take an address cannot check it, so no addresses are passed.
        if not has_address(list) then
          calls[#calls + 1] = {
            label = ("%s(%s)"):format(each.label, show(list)),
            waits = WAITS[each.label],
            prepare = function() end,
            run = function() each.f(unpack(list, 1, list.n)) end,
          }
        end
      end
      local was_there = files.exists("x")
      run_all(calls)
      -- Some functions have created a file or shared memory with the name "x".
      for _, left in ipairs { "x", "framewire.x" } do shm.remove(left) end
      if not was_there then os.remove("x") end
    end)
  end
end

local function methods_of(class)
  local list = {}
  for key, value in pairs(class) do
    if type(value) == "function" and key:sub(1, 2) ~= "__" then list[#list + 1] = key end
  end
  table.sort(list)
  return list
end

local function close(entry, object, ...)
  if entry.close then return entry.close(object, ...) end
  if object.close then object:close() end
end

-- The states in which methods are called. In "kept", the object is closed too, but the called method is that of an open
-- object. A program can keep it in a local variable.
local states = { "open", "closed", "closed twice", "kept" }

-- Describes a call of a method of a new object.
local function call_of(class, entry, method, state, list)
  local kept = class.class[method]
  return {
    label = ("%s:%s(%s), %s"):format(class.name, method, show(list), state),
    waits = state == "open" and WAITS[class.name .. "." .. method],
    prepare = function()
      local all = { entry.make() }
      if state ~= "open" then close(entry, unpack(all)) end
      if state == "closed twice" then close(entry, unpack(all)) end
      return all
    end,
    run = function(all)
      local f = state == "kept" and kept or all[1][method]
      pcall(f, all[1], unpack(list, 1, list.n))
      close(entry, unpack(all))
    end,
  }
end

for _, class in ipairs(classes) do
  local entry = entry_of(class)
  for _, method in ipairs(entry and not entry.private and methods_of(class.class) or {}) do
    check.test(("%s:%s of %s does not crash when it is misused"):format(class.name, method, class.module), function()
      local calls = {}
      for number, list in ipairs(lists) do
        for _, state in ipairs(states) do
          -- Most methods of closed objects fail before they use their arguments, so a few lists are enough.
          if state == "open" or number % 7 == 1 then
            calls[#calls + 1] = call_of(class, entry, method, state, list)
          end
        end
      end
      run_all(calls)
    end)
  end
end

check.test("methods of closed channels and emulators report that they are closed", function()
  local here, there = endpoints()
  local place = here.sender:reserve(10)
  here:close()
  for _, result in ipairs {
    { here:send("x") }, { here:receive(1) }, { here:accept(1) }, { here.sender:reserve(1) }, { here.receiver:await(1) },
  } do
    check.equal(result[1], nil)
    check.contains(result[2], "the channel is closed")
  end
  check.contains(select(2, pcall(here.sender.commit, here.sender)), "the channel is closed")
  check.equal(place[0], 0, "an address that the program has kept")
  there:close()
  local one, other = game()
  local pixels = one:picture()
  one:close()
  for _, method in ipairs { "step", "run", "look", "call", "watch", "batch", "sequence" } do
    check.contains(select(2, one[method](one, 1, 1)), "the emulator is closed", method)
  end
  for _, method in ipairs { "pixel", "picture" } do
    check.contains(select(2, pcall(one[method], one, 0, 0)), "the emulator is closed", method)
  end
  check.equal(pixels[0], 0)
  other:close()
end)

check.test("time-outs can be left out", function()
  local server, client = process.pair()
  assert(client:write("ping"))
  check.equal(server:read(), "ping")
  assert(client:write("pong"))
  check.equal(server:wait(poller.READ), true)
  check.equal(server:read(2), "po")
  for _, one in ipairs { server, client } do one:close() end
end)

check.test("the error about an argument that makes no sense says what is wrong with it", function()
  local server, client = process.pair()
  for wanted, f in pairs {
    ["sends strings, not a number"] = function() client:send(5) end,
    ["no byte 3 in 1 bytes"] = function() client:send("x", 3) end,
    ["at least one byte, not 0"] = function() client:receive(0) end,
    ["not 'soon'"] = function() client:read(1, "soon") end,
    ["'99999' is not a port"] = function() assert(socket.connect("127.0.0.1", 99999)) end,
    ["1.5 is not a size"] = function() assert(shm.create(name, 1.5)) end,
    ["a worker runs a function, not a string"] = function() worker.start("x") end,
    ["0 is not a number of workers"] = function() assert(worker.group(0, print)) end,
    ["-1 is not a process"] = function() assert(signal.send(-1, "CONT")) end,
    ["0 is not a process"] = function() assert(signal.send(0, "CONT")) end,
    ["no signal 'NONE'"] = function() assert(signal.send(ffi.C.getpid(), "NONE")) end,
    ["name a program"] = function() assert(worker.become {}) end,
    ["every 0 seconds"] = function() assert(loops.new()):every(0, print) end,
    ["a function, or an object with the method on_ready"] = function() assert(loops.new()):watch(0, 1, 5) end,
  } do
    check.contains(select(2, pcall(f)), wanted)
  end
  for _, one in ipairs { server, client } do one:close() end
end)
