--- The layout of a channel's block; docs/channel.md describes it. All offsets are in bytes.

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
  -- The mailbox, one half per side.
  AT_HALF = { [0] = 128, 160 },
  -- In a half.
  HALF_DATA = 8, HALF_LENGTH = 27, HALF_CONSUMED = 28,
  -- Words that a side sleeps on.
  AT_READER = { [0] = 256, 260 }, AT_WRITER = { [0] = 264, 268 },
  -- In a slot.
  SLOT_LENGTH = 8, SLOT_BULK = 12, SLOT_DATA = 16,

  -- Default sizes.
  SLOTS = 4096,
  BULK = 2097152,
}
