--- The sending half of a channel's endpoint. docs/channel.md describes the mailbox, the slots and the memory for long
-- messages (its "bulk room").

local bit = require "bit"
local closed = require "framewire.closed"
local ffi = require "ffi"
local layout = require "framewire.channel.layout"
local receivers = require "framewire.channel.receiver"
local waiting = require "framewire.channel.wait"

local C = ffi.C
local band, tobit = bit.band, bit.tobit
local has_message = receivers.has_message

local INLINE_MAX, MAILBOX_MAX, MAX_MESSAGE = layout.INLINE_MAX, layout.MAILBOX_MAX, layout.MAX_MESSAGE
local SLOT, SLOT_DATA, HALF_DATA, HALF_LENGTH = layout.SLOT, layout.SLOT_DATA, layout.HALF_DATA, layout.HALF_LENGTH
local CONSUMED = layout.HALF_CONSUMED / 4

ffi.cdef [[
struct fw_channel_sender {
  int64_t stamp;              // the next message's stamp: its number plus 1
  int32_t head;               // the next message's number: the low 32 bits
  int32_t slots;
  uint8_t *mailbox;           // this side's half of the mailbox
  volatile int32_t *own;      // the same address
  volatile int32_t *writer;   // set while the other side waits for room
  volatile int32_t *theirs;   // the other side's half of the mailbox
  uint8_t *ring, *bulk;       // this side's slots, and its memory for long messages
  uint8_t *place;             // the slot or the mailbox of the reserved message
  volatile int32_t *reader;   // set while the other side sleeps until a message arrives
  int32_t length;             // length of the reserved message; 0 if none is reserved
  int32_t oldest, newest;     // the long messages that may be unread: `pending` from `oldest` to just before `newest`
  double bulk_size;           // bytes of the memory for long messages
  // Where the free part and the used part of this memory begin. Both keep counting beyond its end, so an offset in it
  // is the remainder of a division by `bulk_size`.
  double bulk_head, bulk_tail;
};
// A long message: its number, and the end of its room.
struct fw_channel_pending { double ends; int32_t number; };
]]

local M = {}

local Sender = {}
Sender.__index = Sender

function M.new(endpoint, reader, ring, bulk)
  local block = endpoint.block
  local side = block.side
  local state = ffi.new("struct fw_channel_sender")
  state.stamp, state.slots, state.bulk_size = 1, block.slots, block.bulk
  state.mailbox = block.data + layout.AT_HALF[side]
  state.own = ffi.cast("volatile int32_t *", state.mailbox)
  state.writer = ffi.cast("volatile int32_t *", block.data + layout.AT_WRITER[1 - side])
  state.theirs = ffi.cast("volatile int32_t *", block.data + layout.AT_HALF[1 - side])
  state.ring, state.bulk = ring, bulk
  state.reader = ffi.cast("volatile int32_t *", block.data + layout.AT_READER[1 - side])
  return setmetatable({
    state = state,
    reader = reader, -- the state of the receiving half
    endpoint = endpoint,
    pending = ffi.new("struct fw_channel_pending[?]", block.slots),
    word = ffi.cast("volatile int32_t *", block.data + layout.AT_WRITER[side]),
  }, Sender)
end

-- Frees the room of long messages that have been read.
local function reclaim(self)
  local s, pending = self.state, self.pending
  local unread = tobit(s.head - s.theirs[CONSUMED])
  while s.oldest ~= s.newest do
    local first = pending[band(s.oldest, s.slots - 1)]
    -- Many short messages may have been sent since, so the difference can be greater than 2^31.
    if unread ~= 0 and (s.head - first.number) % 2 ^ 32 <= unread then break end
    s.bulk_tail = first.ends
    s.oldest = tobit(s.oldest + 1)
  end
end

-- Where the next long message would begin. It must be in one piece, so the end of the memory may stay unused.
local function bulk_start(s, length)
  local offset = s.bulk_head % s.bulk_size
  if offset + length > s.bulk_size then return s.bulk_head - offset + s.bulk_size end
  return s.bulk_head
end

local function has_room(self)
  local s = self.state
  local unread = tobit(s.head - s.theirs[CONSUMED])
  -- If this number is negative, the count is damaged, and the unread messages must not be overwritten.
  if unread < 0 or unread >= s.slots then return false end
  if s.length <= INLINE_MAX then return true end
  reclaim(self)
  return bulk_start(s, s.length) + s.length - s.bulk_tail <= s.bulk_size
end

-- Returns an error text if the other side's count of read messages is impossible. Without this check, a wait for room
-- might never end.
local function damage(self)
  local s = self.state
  local unread = tobit(s.head - s.theirs[CONSUMED])
  if unread < 0 or unread > s.slots then
    return "the channel is damaged: the other side has read messages that were not sent"
  end
end

local function reserve_slow(self, length, timeout)
  local s = self.state
  if length < 1 or length > MAX_MESSAGE or length % 1 ~= 0 then
    return nil, "a message has 1 to " .. MAX_MESSAGE .. " bytes, not " .. tostring(length)
  end
  s.length = length
  if not has_room(self) then
    local ok, message = waiting.wait(self.endpoint, self.word, has_room, damage, self, timeout)
    if not ok then
      s.length = 0
      return nil, message
    end
  end
  local slot = s.ring + band(s.head, s.slots - 1) * SLOT
  if length <= INLINE_MAX then
    s.place = slot
    return slot + SLOT_DATA
  end
  local start = bulk_start(s, length)
  local offset = start % s.bulk_size
  s.bulk_head = start + math.ceil(length / 64) * 64
  local entry = self.pending[band(s.newest, s.slots - 1)]
  entry.number, entry.ends = s.head, s.bulk_head
  s.newest = tobit(s.newest + 1)
  ffi.cast("uint32_t *", slot + layout.SLOT_BULK)[0] = offset
  s.place = slot
  return s.bulk + offset
end

--- Reserves room for a message in shared memory, where the other side will read it. Write the message there, then send
--- it with `commit`.
---@param length integer bytes, 1 to 1 MiB
---@param timeout? number seconds to wait for room; forever if left out
---@return ffi.cdata*|nil place uint8_t *
---@return string? message if there is no room: "timeout", "closed", or why the other side cannot get messages any more;
--- otherwise what is wrong with the length
function Sender:reserve(length, timeout)
  local s = self.state
  local unread = tobit(s.head - s.theirs[CONSUMED])
  if length >= 1 and length % 1 == 0 then
    if unread == 0 and length <= MAILBOX_MAX then
      s.length, s.place = length, s.mailbox
      return s.mailbox + HALF_DATA
    elseif length <= INLINE_MAX and unread >= 0 and unread < s.slots then
      local slot = s.ring + band(s.head, s.slots - 1) * SLOT
      s.length, s.place = length, slot
      return slot + SLOT_DATA
    end
  end
  return reserve_slow(self, length, timeout)
end

--- Sends the message that was reserved. Raises an error if there is none.
function Sender:commit()
  local s = self.state
  local length = s.length
  if length == 0 then error("nothing is reserved", 2) end
  local place, stamp = s.place, s.stamp
  local reader = self.reader
  if place == s.mailbox then
    -- SYNC POINT (room): the message also reports how many messages this side has read, which saves a transfer of the
    -- cache line.
    reader.published = reader.next
    s.own[CONSUMED] = reader.next
    place[HALF_LENGTH] = length
  else
    if reader.published ~= reader.next and not has_message(reader) then
      -- SYNC POINT (room): this side has read everything, as in a dialogue of requests and replies. After this report,
      -- the other side can use the mailbox.
      reader.published = reader.next
      s.own[CONSUMED] = reader.next
    end
    ffi.cast("uint32_t *", place)[layout.SLOT_LENGTH / 4] = length
  end
  -- SYNC POINT (message): x86-64 makes stores visible in order, so a side that sees the stamp sees the rest.
  ffi.cast("volatile int64_t *", place)[0] = stamp
  s.stamp = stamp + 1
  s.head = tobit(s.head + 1)
  s.length = 0
  -- SYNC POINT (sleep): see wait.lua. The call keeps the compiler from reading the word earlier.
  C.abs(0)
  if s.reader[0] ~= 0 then waiting.wake(s.reader) end
  if s.writer[0] ~= 0 then waiting.wake(s.writer) end
end

--- Sends a string. If there is room for it, the result is true, even if the other side has ended.
---@param data string 1 byte to 1 MiB
---@param timeout? number seconds to wait for room; forever if left out
---@return true|nil ok
---@return string? message as from `reserve`
function Sender:send(data, timeout)
  local place, message = self:reserve(#data, timeout)
  if place == nil then return nil, message end
  ffi.copy(place, data, #data)
  self:commit()
  return true
end

local Closed = closed.of(Sender, "the channel is closed", { commit = true })

--- Called by the endpoint when it closes.
---@param sender table
function M.close(sender)
  sender.state, sender.reader = nil, nil
  setmetatable(sender, Closed)
end

return M
