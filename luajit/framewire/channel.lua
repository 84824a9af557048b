--- Messages between two processes of one user through shared memory. Linux on x86-64.
--
--   local here = assert(channel.create("demo"))        -- in one process
--   local there = assert(channel.connect("demo", 1))   -- in the other; waits up to a second for the channel
--   there:send("hello")
--   print(here:receive())                              -- hello
--
-- A message is 1 byte to 1 MiB long. Messages arrive complete and in order, and none is lost. A waiting side polls for
-- `spin` seconds and then sleeps in the kernel. If one side ends, for any reason, the other side's wait ends within a
-- tenth of a second. docs/channel.md describes the memory; crates/channel implements the same channels in Rust.
--
-- Open channels after forking: a child that inherits an endpoint keeps its side alive.

local ffi = require "ffi"
local sys = require "framewire.sys"

-- Channels need loads and stores that the processor does not reorder. LuaJIT has only plain loads and stores, and only
-- x86-64 keeps the necessary order for these.
if sys.name ~= "linux" or ffi.arch ~= "x64" then
  local function refuse()
    return nil, "channels need Linux on x86-64, and this is " .. sys.name .. " on " .. ffi.arch
  end
  return { create = refuse, connect = refuse }
end

local closed = require "framewire.closed"
local blocks = require "framewire.channel.block"
local layout = require "framewire.channel.layout"
local receivers = require "framewire.channel.receiver"
local senders = require "framewire.channel.sender"
local settings = require "framewire.settings"
local shm = require "framewire.shm"
local time = require "framewire.time"
local waiting = require "framewire.channel.wait"

local M = { MAX_MESSAGE = layout.MAX_MESSAGE }

local Endpoint = {}
Endpoint.__index = Endpoint

local function word(self, offset)
  return ffi.cast("volatile int32_t *", self.block.data + offset)
end

local function check_spin(options)
  return settings("a channel", { spin = options and options.spin }, { spin = "amount" })
end

local function new(block, options)
  local self = setmetatable({ block = block, spin = options and options.spin or 50e-6 }, Endpoint)
  local rings = block.data + layout.HEADER
  local ring_size = block.slots * layout.SLOT
  local bulks = rings + 2 * ring_size
  local mine, other = block.side, 1 - block.side
  self.receiver = receivers.new(self, rings + other * ring_size, bulks + other * block.bulk)
  self.sender = senders.new(self, self.receiver.state, rings + mine * ring_size, bulks + mine * block.bulk)
  --- The extra memory at the end of the block. Both sides see it and can use it for any purpose that they agree on.
  self.extra, self.extra_size = bulks + 2 * block.bulk, block.extra
  return self
end

--- Creates a channel. One other process can attach to it.
---@param name string 1 to 200 letters, digits, `-`, `_` and `.`, with no `.` at the beginning
---@param options? table `spin`: seconds to poll before sleeping (default 50e-6). `slots` and `bulk` set the room for
--- messages in each direction. `slots`: a power of two from 8 to 65,536 (default 4,096). `bulk`: bytes for long
--- messages; a multiple of 4,096, from 2 MiB (the default) to 1 GiB. `extra`: bytes of memory that both sides can use
--- for any purpose; a multiple of 4,096, up to 1 GiB (default 0)
---@return table|nil endpoint
---@return string? message
function M.create(name, options)
  local ok, problem = check_spin(options)
  if not ok then return nil, problem end
  local block, message = blocks.create(name, {
    slots = options and options.slots or layout.SLOTS,
    bulk = options and options.bulk or layout.BULK,
    extra = options and options.extra or 0,
  })
  if not block then return nil, message end
  return new(block, options)
end

--- Attaches to a channel that another process has created.
---@param name string
---@param timeout? number seconds to wait until the channel exists and has no client, 0 by default
---@param options? table `spin`, as for `create`
---@return table|nil endpoint
---@return string? message
function M.connect(name, timeout, options)
  local ok, problem = check_spin(options)
  if not ok then return nil, problem end
  local block, message = blocks.attach(name, timeout or 0)
  if not block then return nil, message end
  shm.wake(block.data + layout.AT_ATTACHED)
  return new(block, options)
end

--- Waits until the other process has attached.
---@param timeout? number seconds; forever if left out
---@return true|nil ok
---@return string? message "timeout", or how the channel is damaged
function Endpoint:accept(timeout)
  local deadline = time.deadline(timeout)
  while true do
    local damage = self.block:damage()
    if damage then return nil, damage end
    if word(self, layout.AT_ATTACHED)[0] ~= 0 then return true end
    local rest = deadline - time.monotonic()
    if rest <= 0 then return nil, "timeout" end
    shm.wait(self.block.data + layout.AT_ATTACHED, 0, math.min(rest, 1))
  end
end

--- Sends a string. Results as for `Sender:send`.
function Endpoint:send(data, timeout)
  return self.sender:send(data, timeout)
end

--- Waits for a message and returns it as a string. Results as for `Receiver:receive`.
function Endpoint:receive(timeout)
  return self.receiver:receive(timeout)
end

local Closed = closed.of(Endpoint, "the channel is closed")

--- Closes the channel. The other side still gets the messages that were sent, and then "closed". Addresses from
--- `reserve` and `await` are no longer useful: the memory there now reads as zeros.
function Endpoint:close()
  local block = self.block
  -- If another program has made the file shorter, this replaces the missing pages, so the accesses below are safe.
  block:damage()
  local side = block.side
  block:mark_closed()
  -- SYNC POINT (sleep): see wait.lua. Either the other side sees the mark, or this side wakes it.
  if block.barriers then sys.barrier() end
  waiting.wake(word(self, layout.AT_READER[1 - side]))
  waiting.wake(word(self, layout.AT_WRITER[1 - side]))
  block:close()
  senders.close(self.sender)
  receivers.close(self.receiver)
  self.extra, self.extra_size = nil, 0
  setmetatable(self, Closed)
end

return M
