--- Checks of pollers and loops, for loop.lua and kqueue.lua.

local check = require "tests.support.check"
local poller = require "framewire.poller"
local process = require "tests.support.process"

local M = {}

--- Fails unless the poller with this name reports ready descriptors and no others.
---@param name string
---@param patience? integer how many milliseconds it may take until a change of the interest is reported; 0 by default
function M.check_poller(name, patience)
  local source = assert(poller.new(name))
  local one, other = process.pair()
  assert(source:add(other.fd, poller.READ))
  check.equal(source:wait(0), 0)
  assert(process.timed(function() check.equal(source:wait(50), 0) end) >= 0.045, "the time-out has passed")
  one:write("x", 1)
  check.equal(source:wait(1000), 1)
  local fd, readable, writable, broken = source:ready(0)
  check.equal(fd, other.fd)
  check.equal(type(fd), "number")
  check.equal(readable, true)
  check.equal(writable, false)
  check.equal(broken, false)
  check.equal(source:wait(0), 1, "reported again: level-triggered")
  assert(source:change(other.fd, poller.WRITE))
  check.equal(source:wait(patience or 0), 1)
  check.equal(select(2, source:ready(0)), false, "readable")
  check.equal(select(3, source:ready(0)), true, "writable")
  assert(source:change(other.fd, 0))
  check.equal(source:wait(0), 0)
  assert(source:change(other.fd, poller.READ))
  assert(source:remove(other.fd))
  check.equal(source:wait(0), 0)
  for _, each in ipairs { one, other, source } do each:close() end
  source:close() -- a second time, which does nothing
end

--- Makes a loop watch twenty sockets that are readable. The first callback makes the loop forget all of them.
---@param loop table
---@return fun(): integer called how many callbacks have been called so far
function M.watch_readable(loop)
  local called, sockets = 0, {}
  for _ = 1, 20 do
    local one, other = process.pair()
    sockets[#sockets + 1] = other
    one:write("x", 1)
    assert(loop:watch(other.fd, loop.READ, function()
      called = called + 1
      for _, each in ipairs(sockets) do loop:forget(each.fd) end
    end))
  end
  return function() return called end
end

return M
