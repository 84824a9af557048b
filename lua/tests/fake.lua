-- Stand-ins for mGBA's objects, for tests in plain Lua. The end-to-end tests run the script with the real objects.

local memory = require "memory"

local fake = {}

-- What mGBA's functions return unless a test says otherwise: a Game Boy Advance with large memory domains.
local USUAL = { platform = 0, size = 0x40000, name = "WRAM" }

-- Creates an `emu`. Each of its functions records the call, and returns `values[name]`, where `name` is the function's
-- name.
function fake.emu(values)
  values = setmetatable(values or {}, { __index = USUAL })
  memory.forget()
  local emu = { calls = {}, memory = { wram = true, vram = true } }
  for domain in pairs(emu.memory) do
    emu.memory[domain] = setmetatable({}, { __index = function(_, name)
      return function(_, ...)
        table.insert(emu.calls, table.concat({ domain, name, ... }, " "))
        return values[name]
      end
    end })
  end
  return setmetatable(emu, { __index = function(_, name)
    return function(_, ...)
      local words = table.pack(name, ...)
      for index = 1, words.n do
        words[index] = tostring(words[index])
      end
      table.insert(emu.calls, table.concat(words, " "))
      return values[name]
    end
  end })
end

-- How many times the function `name` of mGBA was called.
function fake.count_calls(name)
  local count = 0
  for _, call in ipairs(emu.calls) do
    count = count + (call:match("^%S+") == name and 1 or 0)
  end
  return count
end

-- Creates a script console that records its lines.
function fake.console()
  local lines = {}
  local function write(_, text)
    table.insert(lines, text)
  end
  return { log = write, warn = write, error = write, lines = lines }
end

-- Creates a socket that behaves like mGBA's on Linux. The test controls the other end: `arrive` sends bytes to the
-- script, `hang_up` closes the other end, and `room` is how many bytes the socket accepts. `written` is what the script
-- has written.
function fake.socket()
  local socket = { error = 0, incoming = "", written = "", room = math.huge, gone = false, reset = false, closed = 0,
    writes = 0, largest_write = 0 }

  function socket:arrive(bytes)
    self.incoming = self.incoming .. bytes
  end

  function socket:hang_up()
    self.gone = true
  end

  function socket:select()
    assert(self.closed == 0, "select() was called for a closed socket")
    self.was_checked = true
    return (self.incoming ~= "" or self.gone) and 1 or 0
  end

  function socket:recv(count)
    assert(self.closed == 0, "a closed socket was read")
    -- After a read, a write needs another check, unless the other end is gone: then `send` checks `reset`.
    self.was_checked = self.gone
    local data = self.incoming:sub(1, count)
    self.incoming = self.incoming:sub(count + 1)
    self.error = data == "" and 1 or 0 -- after `hang_up`, mGBA's socket would show an older error
    return data
  end

  function socket:send(data)
    assert(self.closed == 0, "a closed socket was written to")
    assert(not self.reset, "a second write after the other end was gone: SIGPIPE ends mGBA")
    assert(self.was_checked, "a write without a check right before it")
    self.was_checked = false
    self.writes = self.writes + 1
    self.largest_write = math.max(self.largest_write, #data)
    self.reset = self.gone
    local count = math.min(#data, self.room)
    self.room = self.room - count
    self.written = self.written .. data:sub(1, count)
    self.error = count == 0 and 1 or 0
    return count > 0 and count or -1
  end

  function socket:close()
    self.closed = self.closed + 1
  end

  -- After `close`, this makes mGBA's socket forget its file descriptor (connection.lua).
  function socket:open()
    assert(self.closed > 0, "an open socket was opened")
    self.forgot = true
    return -1
  end

  return socket
end

-- Creates a listening socket that behaves like mGBA's. The test puts the sockets of clients that connect into
-- `waiting`. `taken` is whether another program uses the port.
function fake.listener()
  local listener = { waiting = {}, taken = false, closed = 0 }

  function listener:open(address, port)
    self.address, self.port = address, port
    return self.closed > 0 and -1 or 0
  end

  function listener:listen()
    return self.taken and 3 or 0
  end

  function listener:select()
    return #self.waiting > 0 and 1 or 0
  end

  function listener:accept()
    return table.remove(self.waiting, 1) or { error = 1 }
  end

  function listener:close()
    self.closed = self.closed + 1
  end

  return listener
end

-- Loads the server of the script again, together with the parts that know its clients or measure time, and starts it.
-- Only waits take time in this server: its processor time stands still, and it finds no other clock. So no result
-- depends on the speed of this machine.
function fake.server()
  for _, part in ipairs { "stopwatch", "turn", "clients", "listener", "events", "window", "server" } do
    package.loaded[part] = nil
  end
  local real_clock, real_open = os.clock, io.open
  os.clock = function() return 0.0 end -- luacheck: ignore
  io.open = function() return nil end -- luacheck: ignore
  local server = require "server"
  server.address, server.port = "127.0.0.1", 8888
  server.start()
  os.clock, io.open = real_clock, real_open -- luacheck: ignore
  return server
end

return fake
