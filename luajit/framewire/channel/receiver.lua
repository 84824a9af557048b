--- The receiving half of a channel's endpoint. docs/channel.md describes the mailbox, the slots and the memory for long
-- messages (its "bulk room").

local bit = require "bit"
local closed = require "framewire.closed"
local ffi = require "ffi"
local layout = require "framewire.channel.layout"
local waiting = require "framewire.channel.wait"

local C = ffi.C
local band, tobit = bit.band, bit.tobit
local pause = waiting.pause

local INLINE_MAX, MAILBOX_MAX, MAX_MESSAGE = layout.INLINE_MAX, layout.MAILBOX_MAX, layout.MAX_MESSAGE
local SLOT, SLOT_DATA, HALF_DATA, HALF_LENGTH = layout.SLOT, layout.SLOT_DATA, layout.HALF_DATA, layout.HALF_LENGTH
local CONSUMED = layout.HALF_CONSUMED / 4

ffi.cdef [[
struct fw_channel_receiver {
  int64_t stamp;            // the next message's stamp: its number plus 1
  int32_t next;             // the next message's number: the low 32 bits
  int32_t published;        // how many messages were reported to the other side as read
  int32_t slots;
  int32_t batch;            // how many messages to read before the next report
  volatile int32_t *own;    // this side's half of the mailbox
  uint8_t *mailbox;         // the other side's half of the mailbox
  uint8_t *ring, *bulk;     // the other side's slots, and its memory for long messages
  volatile int32_t *writer; // set while the other side waits for room
  double bulk_size;
  bool eager;               // the current message is in the memory for long messages: report it as read at once
  bool mailbox_unreported;  // a message in the mailbox was read, but not yet reported as read
};
]]

local M = {}

local Receiver = {}
Receiver.__index = Receiver

function M.new(endpoint, ring, bulk)
  local block = endpoint.block
  local side = block.side
  local state = ffi.new("struct fw_channel_receiver")
  state.stamp, state.slots, state.batch, state.bulk_size = 1, block.slots, block.slots / 8, block.bulk
  state.own = ffi.cast("volatile int32_t *", block.data + layout.AT_HALF[side])
  state.mailbox = block.data + layout.AT_HALF[1 - side]
  state.ring, state.bulk = ring, bulk
  state.writer = ffi.cast("volatile int32_t *", block.data + layout.AT_WRITER[1 - side])
  return setmetatable({
    state = state,
    endpoint = endpoint,
    word = ffi.cast("volatile int32_t *", block.data + layout.AT_READER[side]),
  }, Receiver)
end

-- Reports to the other side how many messages were read. (The sender's `commit` can do this too.)
local function publish(s)
  s.published = s.next
  s.mailbox_unreported = false
  -- SYNC POINT (room): x86-64 never moves a store before earlier reads. A side that sees this store can use the room
  -- again, because our reads are complete.
  s.own[CONSUMED] = s.next
  -- The call keeps the compiler from reading `writer` earlier.
  C.abs(0)
  if s.writer[0] ~= 0 then waiting.wake(s.writer) end
end

--- Whether there is a message to read.
---@param s ffi.cdata* a receiver's state
---@return boolean
function M.has_message(s)
  local slot = s.ring + band(s.next, s.slots - 1) * SLOT
  return ffi.cast("volatile int64_t *", slot)[0] == s.stamp
    or ffi.cast("volatile int64_t *", s.mailbox)[0] == s.stamp
end

-- Returns an error text if a stamp is impossible, or if this side's count of read messages was overwritten. Without
-- this check, a wait might never end.
local function damage(s)
  local slot = ffi.cast("volatile int64_t *", s.ring + band(s.next, s.slots - 1) * SLOT)[0]
  local mailbox = ffi.cast("volatile int64_t *", s.mailbox)[0]
  -- The numbers of the messages in one slot differ by multiples of the number of slots. The other side does not write
  -- to a slot again until the message in it has been read.
  local fits = slot == 0 or slot > 0 and slot <= s.stamp and (s.stamp - slot) % s.slots == 0
  if not fits or mailbox < 0 or mailbox > s.stamp then
    return "the channel is damaged: a message has a wrong number"
  end
  if s.own[CONSUMED] ~= s.published then
    return "the channel is damaged: another program has overwritten the count of messages that this side has read"
  end
end

local function in_bulk(s, slot, length)
  local offset = ffi.cast("uint32_t *", slot + layout.SLOT_BULK)[0]
  if length > MAX_MESSAGE or offset + length > s.bulk_size then
    error("the channel is damaged: a message lies outside of the memory for messages", 0)
  end
  s.eager = true
  return s.bulk + offset, length
end

local function peek(s)
  local slot = s.ring + band(s.next, s.slots - 1) * SLOT
  -- SYNC POINT (message): the processor loads in order, so reads after the read of the stamp see everything that was
  -- written before the stamp.
  if ffi.cast("volatile int64_t *", slot)[0] == s.stamp then
    local length = ffi.cast("uint32_t *", slot)[layout.SLOT_LENGTH / 4]
    if length > INLINE_MAX then return in_bulk(s, slot, length) end
    return slot + SLOT_DATA, length
  end
  local mailbox = s.mailbox
  if ffi.cast("volatile int64_t *", mailbox)[0] == s.stamp then
    s.mailbox_unreported = true
    local length = mailbox[HALF_LENGTH]
    if length > MAILBOX_MAX then length = MAILBOX_MAX end
    return mailbox + HALF_DATA, length
  end
end

--- The address of the next message in shared memory, if there is one. The message stays there until `release`. Until
--- then, every call returns the same message. Raises an error if a long message is not inside the memory for long
--- messages.
---@return ffi.cdata*|nil data uint8_t *
---@return integer? length
function Receiver:peek()
  return peek(self.state)
end

local function await_slow(self, timeout)
  local s, endpoint = self.state, self.endpoint
  local spin_seconds = endpoint.spin
  if timeout and timeout < spin_seconds then spin_seconds = timeout end
  if not waiting.spin(M.has_message, s, spin_seconds) then
    if s.published ~= s.next then publish(s) end
    local rest = timeout and timeout - spin_seconds
    local ok, message = waiting.sleep(endpoint, self.word, M.has_message, damage, s, rest)
    if not ok then return nil, message end
  end
  return peek(s)
end

--- Waits for the next message. Raises the same error as `peek`.
---@param timeout? number seconds; forever if left out
---@return ffi.cdata*|nil data the message's address, as from `peek`
---@return integer|string length, or "timeout", "closed", or why no further message can arrive
function Receiver:await(timeout)
  local s = self.state
  -- These checks are not a loop, because LuaJIT would compile an inner loop separately from the caller's loop.
  local data, length = peek(s)
  if data ~= nil then return data, length end
  -- The other side can use the mailbox only after this side has reported that it has read everything.
  if s.mailbox_unreported and s.published ~= s.next then publish(s) end
  pause()
  data, length = peek(s)
  if data ~= nil then return data, length end
  pause()
  data, length = peek(s)
  if data ~= nil then return data, length end
  pause()
  data, length = peek(s)
  if data ~= nil then return data, length end
  pause()
  data, length = peek(s)
  if data ~= nil then return data, length end
  return await_slow(self, timeout)
end

--- Releases the message from `peek` or `await`: the other side can use its memory for another message. Raises an error
--- if there is no message.
function Receiver:release()
  local s = self.state
  if not M.has_message(s) then error("there is no message to release", 2) end
  s.stamp = s.stamp + 1
  s.next = tobit(s.next + 1)
  if s.eager or tobit(s.next - s.published) >= s.batch then
    s.eager = false
    publish(s)
  end
end

--- Waits for the next message and returns it as a string.
---@param timeout? number seconds; forever if left out
---@return string|nil data
---@return string? message if there is no data: the error, as from `await`
function Receiver:receive(timeout)
  local data, length = self:await(timeout)
  if data == nil then return nil, length end
  local text = ffi.string(data, length)
  self:release()
  return text
end

local Closed = closed.of(Receiver, "the channel is closed", { release = true })

--- Called by the endpoint when it closes.
---@param receiver table
function M.close(receiver)
  receiver.state = nil
  setmetatable(receiver, Closed)
end

return M
