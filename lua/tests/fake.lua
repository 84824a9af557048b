-- Stand-ins for mGBA's objects, for what plain Lua can test. The real ones run the script in the end-to-end tests.

local memory = require "memory"

local fake = {}

-- What mGBA's functions return unless a test says otherwise: a Game Boy Advance with large memory domains.
local USUAL = { platform = 0, size = 0x40000, name = "WRAM" }

-- An `emu` whose every function notes its call and returns the value of that name in `values`.
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

-- A console that keeps its lines.
function fake.console()
  local lines = {}
  local function write(_, text)
    table.insert(lines, text)
  end
  return { log = write, warn = write, error = write, lines = lines }
end

-- A socket as mGBA's behave on Linux. Its other end is in the test's hand: `arrive` sends bytes to it, `hang_up` closes
-- the other end, `room` is how many bytes it takes. What was written is in `written`.
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
    assert(self.closed == 0, "a closed socket was looked at")
    self.looked = true
    return (self.incoming ~= "" or self.gone) and 1 or 0
  end

  function socket:recv(count)
    assert(self.closed == 0, "a closed socket was read")
    self.looked = self.gone
    local data = self.incoming:sub(1, count)
    self.incoming = self.incoming:sub(count + 1)
    self.error = data == "" and 1 or 0 -- at the end, too, an older error shows
    return data
  end

  function socket:send(data)
    assert(self.closed == 0, "a closed socket was written to")
    assert(not self.reset, "a second write after the other end was gone: SIGPIPE ends mGBA")
    assert(self.looked, "a write without a look right before it")
    self.looked = false
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

  function socket:open()
    assert(self.closed > 0, "an open socket was opened")
    self.forgot = true
    return -1
  end

  return socket
end

-- A listening socket as mGBA's. The test puts sockets of clients that wait into `waiting`; `taken` is whether the port is
-- another's.
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

return fake
