--- The layout of a channel's block; docs/channel.md describes it. All offsets are in bytes. Fields with two offsets
-- have one for side 0, the creator, and one for side 1.

return {
  MAGIC = "FWCHAN1\0",
  VERSION = 1,
  --- The longest message.
  MAX_MESSAGE = 1048576,
  --- The longest message that fits the mailbox.
  MAILBOX_MAX = 19,
  --- The longest message that fits its slot.
  INLINE_MAX = 112,
  SLOT = 128,
  --- Bytes before the first slot.
  HEADER = 4096,

  -- Header fields, u32 each.
  AT_VERSION = 8, AT_SLOTS = 12, AT_BULK = 16, AT_EXTRA = 20,
  AT_CREATOR = 64, AT_ATTACHED = 68, AT_CLOSED = { [0] = 72, 76 },
  -- The mailbox: a cache line for a single short message in each direction. Each side writes one half.
  AT_HALF = { [0] = 128, 160 },
  -- Offsets in a half. HALF_CONSUMED: how many messages the side that writes this half has read.
  HALF_DATA = 8, HALF_LENGTH = 27, HALF_CONSUMED = 28,
  -- Sleep words. AT_READER: 1 while a side sleeps until a message arrives. AT_WRITER: 1 while a side sleeps until there
  -- is room for a message.
  AT_READER = { [0] = 256, 260 }, AT_WRITER = { [0] = 264, 268 },
  -- Offsets in a slot. SLOT_BULK: where a long message begins in the memory for long messages.
  SLOT_LENGTH = 8, SLOT_BULK = 12, SLOT_DATA = 16,

  -- Defaults: number of slots, and bytes for long messages.
  SLOTS = 4096,
  BULK = 2097152,
}
