-- The limits of the script. docs/protocol.md lists the limits that clients can reach, and what happens beyond them.

local MIB = 1024 * 1024

return {
  message = 8 * MIB, -- bytes of a text message
  frame = 24 * MIB, -- bytes of a binary frame, length field excluded
  range = 16 * MIB, -- bytes of memory that one operation reads; optable.lua has this limit too
  write = MIB // 4, -- bytes that one operation writes: no writable memory is larger
  ops = 4096, -- operations in a batch
  trace = 128, -- bytes of a request's name in logs

  -- Bytes of a connection that have arrived but were not used yet. With more, the connection is closed.
  inbox = 64 * MIB,
  read_ahead = MIB, -- bytes in the inbox; with more, the script reads on only if no whole message is there
  queue = 4096, -- requests of a connection that are decoded but not performed yet
  -- Bytes of replies that wait because a client does not read them. With more, its connection is closed.
  outbox = 64 * MIB,
  full_outbox = 8 * MIB, -- bytes of replies that wait to be sent; with more, the connection's next requests wait
  -- At the beginning of a backlog of requests, replies are held back until they have this many bytes. While the backlog
  -- lasts, this number doubles each time that it is reached, up to `full_outbox` (connection.lua).
  first_hold = MIB // 4,
  silent_seconds = 10, -- how long a link may send nothing, once it has sent a ping
  unread_seconds = 10, -- how long a client may read none of its replies
  backlog = 512, -- clients that can connect between two frames; the system's own limit may be lower
  connections = 400, -- at the same time; at file descriptor 1024, select() terminates mGBA

  sessions = 64, -- with more, the script forgets the one without a connection that was used longest ago
  replies = 8192, -- replies that a session keeps for repeated requests
  -- Bytes of these replies. The same limit applies separately to all replies that are kept for idempotency keys.
  reply_bytes = 32 * MIB,
  keyed_keys = 131072, -- idempotency keys that are remembered
  keyed_seconds = 600, -- how long a key is remembered
  waiting_holds = 65536, -- holds that wait for their keys
  steps = 65536, -- steps of a timeline
  waiting_timelines = 1024, -- timelines that were appended and have not begun yet
  ended_timelines = 16384, -- timelines whose end is remembered
  queued_events = 16384, -- items in one event frame, without the items of watches
  runs = 256, -- operations `run` at the same time
  run_steps = 1024, -- steps of a run
  run_frames = 216000, -- frames of all its steps together
  conditions = 16, -- conditions of a step, and conditions that end the whole run
  frozen = 256, -- frozen values
  frozen_length = 64, -- bytes of a frozen value
  frozen_name = 1024, -- bytes of its name

  watch_ranges = 256, -- ranges of a watch
  watch_length = 4096, -- bytes of a range
  watches = 256, -- watches of a connection
  watched_ranges = 2048, -- ranges that a connection watches
  watched_bytes = 65536, -- bytes of all these ranges
  all_ranges = 4096, -- ranges that all connections watch together
  all_bytes = 262144, -- bytes of all these ranges

  frame_bytes = 3 * MIB // 8, -- bytes that requests move in a frame: the size of the GBA's work RAM and video RAM
  read_part = 64 * 1024, -- bytes of a ROM that are read at once for a request that reads more
  -- A *large request* by itself moves more than `frame_bytes`. `large_seconds` is the processor time that large
  -- requests may use in a row.
  large_seconds = 0.1,
  large_share = 0.02, -- the share of all time that they may use in the long run
  large_wait = 1.5, -- seconds that a large request waits at most
  deferred = 64, -- requests of a connection that wait while its later requests are performed
  text_range = MIB, -- bytes of memory in one text message; as text, a byte takes longer (`TEXT_COST` in messages.lua)

  small_read = 4096, -- bytes that are read at once from a connection that sends little
  large_read = 65536, -- the same for a connection that sends much
  -- Bytes that are sent at once. With more, mGBA needs more time between the check of a connection and the write. If
  -- the connection ends in this time, the write can terminate mGBA (connection.lua).
  send_slice = 16 * 1024,
  -- Slices of a reply that are sent immediately. The rest is sent right after the script has slept (connection.lua).
  first_slices = 1,
  rested_slices = 8, -- slices of a reply that are sent after each sleep
  rested_replies = 2, -- connections to which such slices are sent after each sleep
  log_lines = 20, -- lines in a second; more would freeze the window of mGBA's script console

  -- How much the script does for one connection in its turn, before other connections have theirs.
  turn = {
    requests = 64,
    seconds = 0.001, -- of processor time
    reads = 512, -- from the socket
  },
}
