--- Tests of threads, which have their own Lua states.

local check = require "tests.support.check"
local ffi = require "ffi"
local thread = require "framewire.thread"

check.test("values go in and come out", function()
  local worker = assert(thread.start(function(a, b, c, d)
    return a + 1, b .. "\0x", not c, d, nil, "last"
  end, 41, "a\0b", true, nil))
  local results = { worker:join() }
  check.equal(results[1], true)
  check.equal(results[2], 42)
  check.equal(results[3], "a\0b\0x")
  check.equal(results[4], false)
  check.equal(results[5], nil)
  check.equal(results[7], "last")
  check.equal(worker:join(), false, "joined twice")
end)

check.test("threads run at the same time and share memory", function()
  local word = ffi.new("volatile uint32_t[2]")
  local address = tonumber(ffi.cast("intptr_t", word))
  local workers = {}
  -- Each thread waits for the other. So if they did not run at the same time, the first would never end.
  for index = 0, 1 do
    workers[index] = assert(thread.start(function(from, mine)
      local C = require("ffi").C
      require("ffi").cdef "int abs(int);"
      local words = require("ffi").cast("volatile uint32_t *", from)
      words[mine] = 1
      local rounds = 0
      while words[1 - mine] == 0 do
        C.abs(0) -- LuaJIT ignores `volatile`. Without a call, the compiled loop would never read the word again.
        rounds = rounds + 1
      end
      return rounds
    end, address, index))
  end
  check.equal(workers[0]:join(), true)
  check.equal(workers[1]:join(), true)
end)

check.test("the library can be used inside a thread", function()
  local ok, port = thread.start(function()
    local socket = require "framewire.socket"
    local listener = assert(socket.listen { port = 0 })
    return select(2, listener:name())
  end):join()
  check.equal(ok, true)
  assert(port > 0)
end)

check.test("errors are returned as messages", function()
  local ok, message = thread.start(function() error("went wrong") end):join()
  check.equal(ok, false)
  check.contains(message, "went wrong")
  ok, message = thread.start("return +"):join()
  check.equal(ok, false)
  check.contains(message, "unexpected symbol")
end)

check.test("values that cannot be passed to a thread are refused", function()
  local outside = 1
  local _, message = thread.start(function() return outside end)
  check.contains(message, "'outside'")
  _, message = thread.start(function() end, {})
  check.contains(message, "a table cannot be passed")
  _, message = thread.start(print)
  check.contains(message, "written in Lua")
end)

check.test("two hundred threads can run one after the other", function()
  for i = 1, 200 do
    local ok, value = thread.start(function(n) return n * 2 end, i):join()
    assert(ok and value == i * 2)
  end
end)
