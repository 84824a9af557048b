-- The limits of the script. Beyond a limit, a request is refused or text is cut off. docs/protocol.md lists the limits that
-- clients can reach.

local MIB = 1024 * 1024

local limits = {
  message = 8 * MIB, -- bytes of a text message
  frame = 24 * MIB, -- bytes of a binary frame, length field excluded
  range = 16 * MIB, -- bytes of memory that one operation reads
  write = MIB // 4, -- bytes that one operation writes: no writable memory is larger
  ops = 4096, -- operations in a batch
  trace = 128, -- bytes of a request's name in logs

  inbox = 64 * MIB, -- bytes of a connection that have arrived but were not used yet
  read_ahead = MIB, -- bytes in the inbox; with more than this, the script reads only what it needs
  queue = 4096, -- requests of a connection that are decoded but not performed yet
  outbox = 64 * MIB, -- bytes of replies that a client does not take
  full_outbox = 8 * MIB, -- bytes of replies that wait to be sent; with more, the connection's next requests wait
  first_hold = MIB // 4, -- bytes of replies that are held back at first while there is a backlog
  silent_seconds = 10, -- how long a link that has sent pings may send nothing
  unread_seconds = 10, -- how long a client may take none of its replies
  backlog = 512, -- clients that connect within one frame; the system's own limit may be lower
  connections = 400, -- select() in mGBA ends the whole program at file descriptor 1024

  sessions = 64, -- sessions that are remembered after their connection is gone
  replies = 8192, -- replies that a session keeps for repeated requests
  reply_bytes = 32 * MIB, -- bytes of these replies
  keyed_replies = 131072, -- replies that are kept by the idempotency keys of their requests
  keyed_seconds = 600, -- how long a key is remembered
  waiting_holds = 65536, -- holds that wait for an earlier one of the same key
  steps = 65536, -- steps of a timeline
  waiting_timelines = 1024, -- timelines that were appended and have not begun
  ended_timelines = 16384, -- timelines whose end is remembered
  happenings = 16384, -- items for events in a frame
  runs = 256, -- runs at the same time
  run_steps = 1024, -- steps of a run
  run_frames = 216000, -- frames of all its steps
  conditions = 16, -- conditions of a step; also the conditions that end a whole run
  frozen = 256, -- frozen values
  frozen_length = 64, -- bytes of a frozen value
  frozen_name = 1024, -- bytes of its name

  watch_ranges = 256, -- ranges of a watch
  watch_length = 4096, -- bytes of a range
  watches = 256, -- watches of a connection
  watched_ranges = 2048, -- ranges that a connection watches, and their bytes
  watched_bytes = 65536,
  all_ranges = 4096, -- ranges that all connections watch together, and their bytes
  all_bytes = 262144,

  frame_bytes = 3 * MIB // 8, -- bytes that requests read and write in a frame: the size of the GBA's work RAM and video RAM
  read_part = 64 * 1024, -- bytes of a ROM that are read at once for a request that reads more
  large_seconds = 0.1, -- seconds of processor time that requests for more memory (large requests) may take in a row
  large_share = 0.02, -- the share of all time that large requests take in the long run
  large_wait = 1.5, -- seconds that a large request waits at most
  deferred = 64, -- requests that wait while later requests of their connection are performed
  text_range = MIB, -- bytes of memory in one text message: a byte as text takes 20 times as long

  small_read = 4096, -- bytes read at once from a connection that sends little
  large_read = 65536, -- the same for a connection that sends much
  send_slice = 16 * 1024, -- bytes sent at once: with more, mGBA takes longer between the check of a connection and the write
  first_slices = 1, -- slices of a reply that are sent immediately; the rest follows right after the script has slept
  rested_slices = 8, -- slices of a reply that are sent after a sleep
  rested_replies = 2, -- replies of which slices are sent after a sleep
  log_lines = 20, -- lines in a second; more would freeze the window of mGBA's script console
}

-- How much one connection may do in its turn, before the others have theirs.
limits.turn = {
  requests = 64,
  seconds = 0.001, -- of processor time
  reads = 512,
}

return limits
