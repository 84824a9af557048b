-- Limits. What goes beyond them is refused or cut off; docs/protocol.md lists those that clients meet.

local MIB = 1024 * 1024

local limits = {
  message = 8 * MIB, -- bytes of a text message
  frame = 24 * MIB, -- bytes of a binary frame, length field excluded
  range = 16 * MIB, -- bytes of memory that one operation reads
  write = MIB // 4, -- bytes that one operation writes: no writable memory is larger
  ops = 4096, -- operations in a batch
  trace = 128, -- bytes of a request's name in logs

  inbox = 64 * MIB, -- bytes of a connection that have arrived and were not used yet
  read_ahead = MIB, -- bytes in the inbox; beyond them more are read only if needed
  queue = 4096, -- requests of a connection that are decoded and not performed yet
  outbox = 64 * MIB, -- bytes of replies that a client does not take
  full_outbox = 8 * MIB, -- bytes of replies; beyond them a connection's next requests wait
  first_hold = MIB // 4, -- bytes of replies that are held back at first while there is a backlog
  silent_seconds = 10, -- for which a link that has pinged may send nothing
  unread_seconds = 10, -- for which a client may take none of its replies
  backlog = 512, -- clients that connect within one frame; the system's own limit may be lower
  connections = 400, -- select() in mGBA ends the whole program at file descriptor 1024

  sessions = 64, -- remembered after their connection is gone
  replies = 8192, -- kept in a session for repeats
  reply_bytes = 32 * MIB, -- in those
  keyed_replies = 131072, -- kept by the keys of their requests
  keyed_seconds = 600, -- for which a key is remembered
  waiting_holds = 65536, -- for an earlier one of the same key
  steps = 65536, -- of a timeline
  waiting_timelines = 1024, -- that were appended and have not begun
  ended_timelines = 16384, -- whose end is remembered
  happenings = 16384, -- in a frame
  runs = 256, -- at once
  run_steps = 1024, -- of a run
  run_frames = 216000, -- of all its steps
  conditions = 16, -- of a step, and that end a run
  frozen = 256, -- values that are kept
  frozen_length = 64, -- bytes of one of them
  frozen_name = 1024, -- bytes of its name

  watch_ranges = 256, -- of a watch
  watch_length = 4096, -- bytes of a range
  watches = 256, -- of a connection
  watched_ranges = 2048, -- of a connection, and their bytes
  watched_bytes = 65536,
  all_ranges = 4096, -- of all connections, and their bytes
  all_bytes = 262144,

  frame_bytes = 3 * MIB // 8, -- of memory that requests read and write in a frame: the GBA's work RAM and video RAM
  read_part = 64 * 1024, -- bytes of a ROM that are read at once for a request that reads more
  large_seconds = 0.1, -- of processor time that requests for more memory may take in a row
  large_share = 0.02, -- the share of all time that such requests take in the long run
  large_wait = 1.5, -- seconds that one of them waits at most
  deferred = 64, -- such requests that wait while later ones of their connection are performed
  text_range = MIB, -- bytes of memory in one text message: a byte as text takes 20 times as long

  small_read = 4096, -- bytes read at once from a connection that sends little
  large_read = 65536, -- and from one that sends much
  send_slice = 16 * 1024, -- bytes sent at once: with more, mGBA takes longer between the check of a connection and the write
  first_slices = 1, -- of a reply that are sent at once; the rest follows right after the script has slept
  rested_slices = 8, -- of a reply that are sent then
  rested_replies = 2, -- replies of which this much is sent then
  log_lines = 20, -- in a second; more would freeze the console's window
}

-- What one connection may do before the others have their turn.
limits.turn = {
  requests = 64,
  seconds = 0.001, -- of processor time
  reads = 512,
}

return limits
