--- Tests of shared memory and buffers.

local ffi = require "ffi"
local buffer = require "framewire.buffer"
local check = require "tests.support.check"
local process = require "tests.support.process"
local shm = require "framewire.shm"
local sys = require "framewire.sys"

local name = "framewire-test-" .. ffi.C.getpid()

check.test("another process sees written values", function()
  shm.remove(name)
  local block = assert(shm.create(name, 4096))
  local words = ffi.cast("volatile uint32_t *", block.data)
  process.run_with(function()
    local theirs = assert(shm.open(name))
    assert(theirs.size == 4096)
    local other = ffi.cast("volatile uint32_t *", theirs.data)
    while other[0] == 0 do shm.wait(theirs.data, 0, 1) end
    other[1] = other[0] + 1
    shm.wake(theirs.data + 4)
    theirs:close()
  end, function()
    words[0] = 41
    shm.wake(block.data)
    check.eventually(5, function()
      shm.wait(block.data + 4, 0, 1)
      return words[1] ~= 0
    end, "the other process has written its word")
    check.equal(words[1], 42)
  end, true) -- the other process ends by itself
  block:close()
  assert(shm.remove(name))
end)

check.test("a wait returns if the value is different, and after the time-out", function()
  local word = ffi.new("uint32_t[1]", 5)
  check.equal(shm.wait(word, 4, 10), true)
  -- On a busy machine, the wait can take longer.
  check.eventually(5, function()
    local seconds = process.timed(function() check.equal(shm.wait(word, 5, 0.03), false) end)
    assert(seconds >= 0.03, "seconds of the wait: " .. seconds)
    return seconds < 1
  end, "the wait ended in time")
end)

check.test("names are exclusive, checked, and can be removed", function()
  shm.remove(name)
  local block = assert(shm.create(name, 10))
  local _, _, number = shm.create(name, 10)
  check.equal(number, sys.EEXIST)
  assert(shm.remove(name))
  _, _, number = shm.open(name)
  check.equal(number, sys.ENOENT)
  for _, bad in ipairs { "", "a/b", "../x", ".x", "a b", ("x"):rep(300) } do
    local made, message = shm.create(bad, 10)
    check.equal(made, nil)
    check.contains(message, "shared memory name")
  end
  block.data[9] = 1
  block:close()
  block:close()
end)

check.test("only the owner can open a block", function()
  shm.remove(name)
  local block = assert(shm.create(name, 10))
  check.equal(process.output("stat -c %a /dev/shm/" .. name), "600\n")
  block:close()
  shm.remove(name)
end)

check.test("buffers grow and keep their bytes", function()
  local one = buffer.new(4)
  one:append("hello ")
  one:append_bytes(ffi.cast("const uint8_t *", "world!"), 5)
  check.equal(one:text(), "hello world")
  one.start = 6
  check.equal(one:length(), 5)
  local pool = buffer.pool(64, 1)
  local first, second = pool:take(), pool:take()
  first:append("x")
  pool:give(first)
  pool:give(second)
  check.equal(pool.count, 1)
  check.equal(pool:take():length(), 0)
end)
