-- Framewire's script: lets other programs drive this mGBA (0.10.1 or newer).
--
-- Load it in mGBA: Tools > Scripting... > File > Load script. Loaded again, it replaces the one that runs.
-- It speaks mGBA-http's text messages and Framewire's binary frames on one port; docs/protocol.md describes both.
--
-- The settings below can be changed here. Or, without touching this file, in a global table that is set before it is
-- loaded, `framewire = {port = 8889}`, or by FRAMEWIRE_SCRIPT_PORT, FRAMEWIRE_SCRIPT_ADDRESS and
-- FRAMEWIRE_SCRIPT_LOG_LEVEL in mGBA's environment.

local SETTINGS = {
  address = "127.0.0.1", -- where to listen; "" is every interface, and lets the whole network in
  port = 8888,
  log_level = "info", -- debug, info, warn, error or none
}

-- This file is made from lua/src by lua/bundle.lua: change the parts there, not here.

local parts = {}

local function require(name)
  return parts[name]
end

---- version -----------------------------------------------------------------------------------------------------------

parts.version = (function()
  -- Of this script, the same as the program's, and of the binary protocol it speaks.

  return { script = "0.1.0", protocol = 1 }
end)()

---- ticks -------------------------------------------------------------------------------------------------------------

parts.ticks = (function()
  -- Time as this script sees it: frames since it was loaded. Unlike the emulator's own counter it never goes back.

  return { now = 0, per_second = 60 }
end)()

---- limits ------------------------------------------------------------------------------------------------------------

parts.limits = (function()
  -- What is too much. Reached, it is refused or cut off; see docs/protocol.md for those that clients meet.

  local MIB = 1024 * 1024

  local limits = {
    message = 8 * MIB, -- bytes of a text message
    frame = 24 * MIB, -- bytes of a binary frame, length field excluded
    range = 16 * MIB, -- bytes of memory that one operation reads
    write = MIB // 4, -- bytes that one writes: no memory that can be written is larger
    ops = 4096, -- operations in a batch
    trace = 128, -- bytes of what logs call a request

    inbox = 64 * MIB, -- bytes of a connection that arrived and were not used yet
    read_ahead = MIB, -- bytes in the inbox from which on no more are read without need
    queue = 4096, -- requests of a connection that are decoded and not done yet
    outbox = 64 * MIB, -- bytes of replies that a client does not take
    full_outbox = 8 * MIB, -- bytes of replies from which on a connection's next requests wait
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
    ended_timelines = 16384, -- whose end is remembered
    happenings = 16384, -- in a frame

    watch_ranges = 256, -- of a watch
    watch_length = 4096, -- bytes of a range
    watches = 256, -- of a connection
    watched_ranges = 2048, -- of a connection, and their bytes
    watched_bytes = 65536,
    all_ranges = 4096, -- of all connections, and their bytes
    all_bytes = 262144,

    frame_bytes = 3 * MIB // 8, -- of memory that requests read and write in a frame: the GBA's work RAM and video RAM
    read_part = 64 * 1024, -- bytes of a ROM that are read at once for a request that reads more
    large_seconds = 0.1, -- of processor time that requests for more than that may take one after the other
    large_share = 0.02, -- of all time, which such requests take in the long run
    large_wait = 1.5, -- seconds that one of them waits for its share at most
    deferred = 64, -- of these that wait while later requests of their connection are done
    text_range = MIB, -- bytes of memory in one text message: as text each takes 20 times as long

    small_read = 4096, -- bytes read at once from a connection that sends little
    large_read = 65536, -- and from one that sends much
    send_slice = 16 * 1024, -- bytes sent at once: more take mGBA longer between a look at a connection and the write
    first_slices = 1, -- of a reply that are sent at once; the rest goes out right after the script has slept
    rested_slices = 8, -- of a reply that are sent then
    rested_replies = 2, -- replies of which so much is sent then
    log_lines = 20, -- in a second; more would freeze the console's window
  }

  -- What one connection may do before the others have their turn.
  limits.turn = {
    requests = 64,
    seconds = 0.001, -- of processor time
    reads = 512,
  }

  return limits
end)()

---- stopwatch ---------------------------------------------------------------------------------------------------------

parts.stopwatch = (function()
  -- Time spent serving clients. os.clock() is processor time: it stands still while this script is blocked in select().
  -- A wait that runs its full length took what was asked for, but how long one took that ended early cannot be seen. So
  -- that is estimated, from the whole length of some windows where there is a clock for that.

  local MILLISECOND = 0.001
  local SHORTEST, LONGEST = MILLISECOND / 100, MILLISECOND
  local WINDOWS = 16 -- for one estimate

  local stopwatch = {
    gap = LONGEST / 2, -- seconds that a wait is taken to last when it ends early; without a clock it stays, to be safe
  }

  local windows, early, known, whole = 0, 0, 0, 0
  local wall -- a clock that goes on while this script is blocked, coarse but right on average; nil if there is none
  local began

  -- Finds a clock that Lua can read on this machine.
  function stopwatch.find_clock()
    if package.config:sub(1, 1) == "\\" then
      wall = os.clock -- counts all time on Windows
      return
    end
    local file = io.open("/proc/uptime") -- Linux
    if file then
      file:setvbuf("no") -- or the same bytes would be read again
      wall = function()
        file:seek("set")
        return tonumber(file:read(12):match("^[%d.]+"))
      end
    end
  end

  -- Seconds by that clock, which nobody can set; nil without one.
  function stopwatch.seconds()
    return wall and wall()
  end

  -- Waits up to a millisecond for a socket to have something to read. Whether it has, and the seconds that passed.
  function stopwatch.wait(socket)
    if socket:select(1) == 0 then
      known = known + MILLISECOND
      return false, MILLISECOND
    end
    early = early + 1
    return true, stopwatch.gap
  end

  -- As `wait`, outside of windows: it counts for no estimate.
  function stopwatch.wait_aside(socket)
    local ready = socket:select(1) ~= 0
    return ready, ready and stopwatch.gap or MILLISECOND
  end

  -- A function that gives the seconds since it was called last, at first since now: by the clock if there is one, or else
  -- by what it is told was `spent` so far.
  function stopwatch.lap()
    local before = wall and wall() or 0
    return function(spent)
      local now = wall and wall() or spent
      local passed = now - before
      before = now
      return passed
    end
  end

  function stopwatch.begin_window()
    began = wall and wall()
  end

  -- `busy` is the processor time of this window.
  function stopwatch.end_window(busy)
    if not began then
      return
    end
    windows, known, whole = windows + 1, known + busy, whole + wall() - began
    if windows < WINDOWS then
      return
    end
    if early >= WINDOWS then
      local mean = (whole - known) / early
      stopwatch.gap = (stopwatch.gap + math.max(SHORTEST, math.min(LONGEST, mean))) / 2
    end
    windows, early, known, whole = 0, 0, 0, 0
  end

  return stopwatch
end)()

---- log ---------------------------------------------------------------------------------------------------------------

parts.log = (function()
  -- Lines in mGBA's script console.

  local limits = require "limits"

  local LEVELS = { debug = 1, info = 2, warn = 3, error = 4, none = 5 }
  local METHODS = { debug = "log", info = "log", warn = "warn", error = "error" }

  local log = {}

  local threshold = LEVELS.info
  local second, lines = 0, 0

  -- Shows lines of this level and above; false if there is no such level.
  function log.set_level(name)
    threshold = LEVELS[name] or threshold
    return LEVELS[name] ~= nil
  end

  local function write(level, text, ...)
    if LEVELS[level] < threshold then
      return
    end
    local now = os.time()
    if now ~= second then
      local hidden = lines - limits.log_lines
      second, lines = now, 0
      if hidden > 0 then
        console:warn("Framewire: " .. hidden .. " more lines in one second are not shown")
      end
    end
    lines = lines + 1
    if lines <= limits.log_lines then
      console[METHODS[level]](console, "Framewire: " .. string.format(text, ...))
    end
  end

  for level in pairs(METHODS) do
    log[level] = function(text, ...)
      write(level, text, ...)
    end
  end

  return log
end)()

---- refusal -----------------------------------------------------------------------------------------------------------

parts.refusal = (function()
  -- Why an operation is not done: a status, docs/protocol.md lists them, and a sentence for people.

  local format, gsub, sub = string.format, string.gsub, string.sub

  local refusal = {
    BAD_ARGUMENT = 1,
    UNSUPPORTED = 2,
    NO_GAME = 3,
    FAILED = 4,
    BUSY = 5,
    TOO_LARGE = 6,
    LOST = 7,
    NOT_DONE = 8,
  }

  -- Raises a refusal.
  function refusal.refuse(status, text, ...)
    error({ status = status, text = format(text, ...) }, 0)
  end

  -- Text that other programs can read: UTF-8, whatever a game's header or a path holds.
  function refusal.printable(text)
    if utf8.len(text) then
      return text
    end
    return (gsub(text, "[\128-\255]", function(char)
      return format("\\x%02x", char:byte())
    end))
  end

  -- Other people's text for a line of our own: its first line, not too long.
  function refusal.sentence(text)
    text = gsub(refusal.printable(tostring(text)), "\n.*", "")
    return #text > 300 and refusal.printable(sub(text, 1, 300)) .. "..." or text
  end

  return refusal
end)()

---- happenings --------------------------------------------------------------------------------------------------------

parts.happenings = (function()
  -- What happened since events were sent last, as items of event frames; docs/protocol.md describes them.

  local limits = require "limits"

  local pack = string.pack

  local happenings = {
    RESET = "\2",
    LOCKSTEP_OVER = "\4",
    GAME = "\5",
    STATE = "\6",
    sent = 0, -- how many were taken so far: a link that comes back learns by it how many it has missed
  }

  local items, count = {}, 0

  -- Notes one. The same thing twice in a row is noted once.
  function happenings.add(item)
    if count < limits.happenings and items[count] ~= item then
      count = count + 1
      items[count] = item
    end
  end

  -- What is noted of a timeline's end.
  function happenings.timeline_over(id, cancelled)
    return pack("<I1I4I1", 3, id, cancelled and 1 or 0)
  end

  -- All of them, joined, and how many they are; none from then on.
  function happenings.take()
    if count == 0 then
      return "", 0
    end
    local joined, taken = table.concat(items), count
    items, count = {}, 0
    happenings.sent = happenings.sent + taken
    return joined, taken
  end

  return happenings
end)()

---- inbox -------------------------------------------------------------------------------------------------------------

parts.inbox = (function()
  -- Bytes of a connection that arrived and were not used yet. They are joined only when something is known to be whole, so
  -- that a large message that arrives in many pieces costs no more than its size.

  local limits = require "limits"

  local find, sub, unpack, concat = string.find, string.sub, string.unpack, table.concat

  local END = "<|END|>" -- of a text message

  local inbox = {}

  function inbox.new()
    return {
      data = "", -- used from `at` on
      at = 1,
      pieces = {}, -- what arrived behind `data`
      count = 0,
      size = 0, -- bytes in all that are not used yet
      needed = 4, -- binary: bytes from which on there may be a whole frame
      ended = false, -- text: whether there may be a whole message
    }
  end

  -- Adds bytes as they arrived.
  function inbox.push(box, chunk)
    if box.size == 0 then
      box.data, box.at, box.size = chunk, 1, #chunk
      box.ended = find(chunk, END, 1, true) ~= nil
      return
    end
    box.size = box.size + #chunk
    local pieces, count = box.pieces, box.count
    local tail = box.tail
    if count == 0 then
      tail = sub(box.data, math.max(box.at, #box.data - #END + 2))
    end
    local seam = tail .. sub(chunk, 1, #END - 1)
    box.ended = box.ended or find(chunk, END, 1, true) ~= nil or find(seam, END, 1, true) ~= nil
    box.tail = sub(#chunk < #END and tail .. chunk or chunk, 1 - #END)
    -- Many small pieces would be many strings: each is joined to those before it that are no larger.
    while count > 0 and #chunk < limits.large_read and #pieces[count] <= #chunk do
      chunk = pieces[count] .. chunk
      pieces[count] = nil
      count = count - 1
    end
    pieces[count + 1] = chunk
    box.count = count + 1
  end

  local function join(box)
    box.data = sub(box.data, box.at) .. concat(box.pieces, "", 1, box.count)
    box.at, box.pieces, box.count = 1, {}, 0
  end

  -- The first bytes of a stream of which nothing was used yet: all that have arrived, or enough of them for a key.
  function inbox.beginning(box)
    if box.count > 0 and #box.data <= limits.small_read then
      join(box)
    end
    return sub(box.data, 1, limits.small_read + 1)
  end

  -- The next whole text message, or nil. Its second result is true if it is too long.
  function inbox.next_message(box)
    if not box.ended then
      return nil
    end
    local first, last = find(box.data, END, box.at, true)
    if not first and box.count > 0 then
      join(box)
      first, last = find(box.data, END, 1, true)
    end
    if not first then
      box.ended = false
      return nil
    end
    local start = find(box.data, "%S", box.at)
    box.size = box.size - (last + 1 - box.at)
    box.at = last + 1
    box.ended = box.size > 0
    if first - start > limits.message then
      return nil, true
    end
    return sub(box.data, start, first - 1)
  end

  -- Where the next whole binary frame begins, behind its length, and where it ends; nil if there is none yet, false if
  -- its length cannot be.
  function inbox.next_frame(box)
    if box.size < box.needed then
      return nil
    end
    if #box.data - box.at + 1 < 4 then
      join(box)
    end
    local length, start = unpack("<I4", box.data, box.at)
    if length == 0 or length > limits.frame then
      return false
    end
    if box.size < 4 + length then
      box.needed = 4 + length
      return nil
    end
    if #box.data - box.at + 1 < 4 + length then
      join(box)
      start = 5
    end
    box.needed = 4
    box.size = box.size - 4 - length
    box.at = start + length
    return start, start + length
  end

  inbox.END = END

  return inbox
end)()

---- connection --------------------------------------------------------------------------------------------------------

parts.connection = (function()
  -- One client's connection: bytes in and out, nothing of what they mean.
  --
  -- mGBA does not ignore SIGPIPE: a write to a connection that its other end has reset ends the emulator with all that is in
  -- it. So each write comes right after a look at the connection that found nothing to read, because the end of a connection,
  -- too, is something to read. Nothing slow stands between the look and the write: what is written is ready before the look,
  -- and small, as mGBA copies it. A reset alone is harmless, it is an error of the write; only an end and a reset that both
  -- arrive within these few microseconds are not. After an end no look finds a reset any more, so nothing is written then: a
  -- client that closes its sending side has its messages done and gets no reply.
  --
  -- On a busy machine another process may have its turn just in these, and that may be the client. Right after a sleep that is
  -- unlikely, so most of a long reply is sent then.
  --
  -- What else a look finds is read ahead into the inbox. From a client that sends faster than it can be served that would be
  -- more and more, so its replies are held back for a while.

  local inbox = require "inbox"
  local limits = require "limits"
  local log = require "log"
  local ticks = require "ticks"

  local concat, sub = table.concat, string.sub

  local AGAIN = C and C.SOCKERR.AGAIN or 1

  local connection = {
    closed = 0, -- how many were closed so far
  }

  function connection.new(socket)
    return {
      socket = socket, -- nil once it is closed
      inbox = inbox.new(),
      read_size = limits.small_read, -- how much to read at once; grows while reads come back full
      outbox = {}, -- replies to be sent, from `outbox_first` to `outbox_last`
      outbox_first = 1,
      outbox_last = 0,
      taken = 0, -- bytes of the first of them that are in slices already
      slice = nil, -- the bytes to be sent next
      burst = 0, -- slices sent since the script has slept
      unsent = 0, -- bytes in all that wait to be sent, those of the slice included
      hold = limits.first_hold, -- bytes of replies to hold back while there is a backlog
      stuck_time = nil, -- since when nothing could be sent, by the clock and by ticks
      stuck_tick = nil,
      ended = false, -- the client sends no more, and gets nothing any more: do what has arrived, then close
      dismissed = nil, -- the tick from which on it is kept only for its client to read why
      active = ticks.now, -- the tick of the last request
      fresh = true, -- whether it is not known yet that its first message has a known key

      waiting = nil, -- a text message that has to wait for another frame

      -- Of a link, which speaks frames:
      session = nil,
      binary = false,
      pinged = false, -- whether it has a heartbeat
      silent = 0, -- seconds in which nothing was heard of it
      heard = true, -- whether anything was since lockstep looked last
      queue = {}, -- requests decoded and not done yet, from `queue_first` to `queue_last`
      queue_first = 1,
      queue_last = 0,
      deferred = {}, -- those that have to wait for another frame
      cancelled = nil, -- ids of requests not to be done
      watches = {}, -- in the order they began
      is_watching = false, -- whether it is known that there may be some
      news = nil, -- items of those for the next event frame
    }
  end

  -- Closes a socket of mGBA's. They do not know that they are closed: collected as garbage, one closes its file descriptor
  -- again, which by then may be another connection's. Opened anew at an address that no machine has, it forgets it.
  function connection.shut(socket)
    socket:close()
    socket:open("192.0.2.1", 1)
  end

  function connection.close(self, why)
    if not self.socket then
      return
    end
    connection.shut(self.socket)
    self.socket = nil
    connection.closed = connection.closed + 1
    if self.session then
      self.session.connection = nil
      log.info("a link disconnected (%s)", why)
    else
      log.debug("a client disconnected (%s)", why)
    end
  end

  -- Adds to what is to be sent.
  function connection.put(self, bytes)
    local last = self.outbox_last + 1
    self.outbox[last] = bytes
    self.outbox_last = last
    self.unsent = self.unsent + #bytes
  end

  -- Reads once. What is ready but gives nothing is at its end; the error says nothing reliable about it.
  function connection.receive(self)
    local data = self.socket:recv(self.read_size)
    if data and #data > 0 then
      self.silent, self.heard = 0, true
      self.read_size = #data == self.read_size and limits.large_read or limits.small_read
      if not self.dismissed then
        inbox.push(self.inbox, data)
      end
      return
    end
    self.ended = true
  end

  -- Reads all that has arrived. True if the other end is there and waits: only then may be written.
  function connection.drain(self)
    for _ = 1, limits.turn.reads do
      if self.ended then
        return false
      end
      if self.socket:select(0) == 0 then
        return true
      end
      if self.inbox.size >= limits.inbox then
        connection.close(self, "it sends faster than it can be served")
        return false
      end
      connection.receive(self)
    end
    return false
  end

  -- Takes the next slice out of the outbox: a part of a long reply, or as many short ones as fit.
  local function cut_slice(self)
    local outbox, first = self.outbox, self.outbox_first
    local reply, taken = outbox[first], self.taken
    if #reply - taken > limits.send_slice then
      self.taken = taken + limits.send_slice
      return sub(reply, taken + 1, self.taken)
    end
    if taken > 0 then
      reply = sub(reply, taken + 1)
      outbox[first] = reply
    end
    local stop, size = first, #reply
    while stop < self.outbox_last and size + #outbox[stop + 1] <= limits.send_slice do
      stop = stop + 1
      size = size + #outbox[stop]
    end
    local slice = stop == first and reply or concat(outbox, "", first, stop)
    self.taken, self.outbox_first = 0, stop + 1
    if stop == self.outbox_last then
      self.outbox, self.outbox_first, self.outbox_last = {}, 1, 0
    else
      for index = first, stop do
        outbox[index] = nil
      end
    end
    return slice
  end

  -- Sends the slice. The look that allows it comes right before. True if more could be sent at once.
  local function send_slice(self, slice)
    local socket = self.socket
    local count = socket:send(slice)
    local code = socket.error -- a failure may give any count, even 1
    if code == AGAIN then
      return false
    elseif code ~= 0 or count < 0 then
      connection.close(self, "lost")
      return false
    end
    self.stuck_time = nil
    self.unsent = self.unsent - count
    self.slice = count < #slice and sub(slice, count + 1) or nil
    return not self.slice and self.unsent > 0
  end

  -- Whether there is a backlog, for whose sake replies wait until there are more.
  local function holds_back(self)
    if self.inbox.size < limits.read_ahead then
      self.hold = limits.first_hold
      return false
    end
    if self.unsent < self.hold then
      return true
    end
    self.hold = math.min(2 * self.hold, limits.full_outbox)
    return false
  end

  -- Closes a connection whose client takes nothing for too long.
  local function close_if_stuck(self)
    local now = os.time()
    if not self.stuck_time then
      self.stuck_time, self.stuck_tick = now, ticks.now
    end
    -- Ticks count too: while mGBA is paused it is not the client's fault.
    local too_long = now - self.stuck_time > limits.unread_seconds and ticks.now - self.stuck_tick > ticks.per_second
    if too_long or self.unsent > limits.outbox then
      connection.close(self, "it does not read its replies")
    end
  end

  -- Sends what waits, as far as the client takes it now, and at most this number of slices since the script has slept. True if
  -- one was sent.
  local function send(self, slices)
    if holds_back(self) then
      return false
    end
    local before = self.unsent
    while self.unsent > 0 and self.burst < slices do
      self.slice = self.slice or cut_slice(self)
      if not connection.drain(self) then
        break
      end
      self.burst = self.burst + 1
      if not send_slice(self, self.slice) then
        break
      end
    end
    local any = self.unsent < before
    if self.unsent == 0 then
      self.burst = 0
    elseif self.socket and self.burst < slices then
      close_if_stuck(self)
    end
    return any
  end

  -- Sends a short reply, and the beginning of a long one.
  function connection.flush(self)
    send(self, limits.first_slices)
  end

  -- Sends more of a long reply, right after the script has slept.
  function connection.flush_rested(self)
    self.burst = 0
    return send(self, limits.rested_slices)
  end

  -- Whether there is more to send than may be sent without a sleep.
  function connection.has_long_reply(self)
    return self.unsent > 0 and self.burst >= limits.first_slices and not self.ended
  end

  return connection
end)()

---- arguments ---------------------------------------------------------------------------------------------------------

parts.arguments = (function()
  -- The types of arguments: their binary form, their text form, and what is accepted. A type has these fields:
  --
  --   format      its form in string.pack; without one it is for text messages only
  --   read        from text; nil if the text cannot be read as that type
  --   expected    what `read` accepts, for people
  --   low, high   the numbers that are accepted
  --   check       any other test of a value; raises what is wrong
  --   narrow      whether its binary form can hold values that are refused
  --   free        whether it may hold commas in a text message, where it takes all that no other argument claims

  local limits = require "limits"
  local refusal = require "refusal"

  local find, format, gsub, sub = string.find, string.format, string.gsub, string.sub
  local refuse, sentence, BAD_ARGUMENT = refusal.refuse, refusal.sentence, refusal.BAD_ARGUMENT

  local function integer(binary, low, high, narrow)
    return {
      format = binary,
      read = function(text)
        return math.tointeger(tonumber(text))
      end,
      expected = format("a whole number from %d to %d", low, high),
      low = low,
      high = high,
      narrow = narrow,
    }
  end

  local function narrow_integer(binary, high)
    return integer(binary, 0, high, true)
  end

  -- A text that is handed to mGBA as a C string.
  local function filled(value, name)
    if value == "" then
      refuse(BAD_ARGUMENT, "`%s` is missing", name)
    end
    if find(value, "\0", 1, true) then
      refuse(BAD_ARGUMENT, "`%s` holds a NUL character", name)
    end
  end

  local function as_it_is(text)
    return text
  end

  -- Pairs of hexadecimal digits to bytes, filled as pairs are met.
  local no_pair_met
  local FROM_HEX = setmetatable({}, {
    __index = function(known, digits)
      if not find(digits, "^%x%x?$") then
        no_pair_met = true
        return ""
      end
      known[digits] = string.char(tonumber(digits, 16))
      return known[digits]
    end,
  })
  local TO_HEX = {}
  for value = 0, 255 do
    TO_HEX[string.char(value)] = format("%02x,", value)
  end

  local function from_hex(text)
    text = gsub(text, "%s+", "")
    no_pair_met = sub(text, -1) == ","
    local bytes = gsub(text, "([^,]+),?", FROM_HEX)
    if no_pair_met or find(text, ",,", 1, true) or sub(text, 1, 1) == "," then
      return nil
    end
    return bytes
  end

  local function to_hex(bytes)
    return sub(gsub(bytes, ".", TO_HEX), 1, -2)
  end

  local types = {
    u8 = integer("I1", 0, 0xFF),
    u16 = integer("I2", 0, 0xFFFF),
    u32 = integer("I4", 0, 0xFFFFFFFF),
    i32 = integer("i4", -0x80000000, 0x7FFFFFFF),
    key = narrow_integer("I1", 9),
    keys = narrow_integer("I2", 0x3FF),
    flags = narrow_integer("I1", 31),
    length = narrow_integer("I4", limits.range),
    slot = narrow_integer("I4", 0x7FFFFFFF),
    frames = integer("I4", 1, 3600, true),
    timeout = narrow_integer("I4", 60000),
    boolean = narrow_integer("I1", 1),
    bytes = { format = "s4", read = from_hex, expected = "pairs of hexadecimal digits in brackets, such as [d3,00,ea]" },
    name = { format = "s4", read = as_it_is, check = filled, narrow = true },
    path = { format = "s4", read = as_it_is, check = filled, narrow = true, free = true },
    text = { format = "s4", read = as_it_is, free = true },
  }

  function types.boolean.read(text)
    local word = text:lower():match("^%s*(%a+)%s*$")
    return word == "true" and 1 or word == "false" and 0 or nil
  end
  types.boolean.expected = "true or false"

  -- The other types are met in text messages only.

  local BUTTONS = { "A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L" }
  local BUTTON_NUMBER = {}
  for index, name in ipairs(BUTTONS) do
    BUTTON_NUMBER[name] = index - 1
  end

  -- The names of a mask's keys, joined.
  local function names(mask, separator)
    local list = {}
    for key, name in ipairs(BUTTONS) do
      if mask & 1 << key - 1 ~= 0 then
        list[#list + 1] = name
      end
    end
    return table.concat(list, separator)
  end

  local function button_number(name)
    return BUTTON_NUMBER[name]
      or refuse(BAD_ARGUMENT, "unknown button %q; buttons are %s, spelled so", sentence(name), table.concat(BUTTONS, ", "))
  end

  types.key_mask = { -- a key's number
    read = function(text)
      local key = types.key.read(text)
      return key and key >= 0 and key <= 9 and 1 << key or nil
    end,
    expected = types.key.expected,
  }
  types.button_key = { read = button_number }
  types.button = {
    read = function(text)
      return 1 << button_number(text)
    end,
  }
  types.buttons = {
    read = function(text)
      local mask = 0
      for name in text:gmatch("[^;]+") do
        mask = mask | 1 << button_number(name)
      end
      return mask ~= 0 and mask or refuse(BAD_ARGUMENT, "no button is named; join them by `;`")
    end,
  }

  -- Raises a refusal unless `value` may be used for an argument.
  local function check(spec, value)
    local kind = spec.kind
    if kind.low and (value < kind.low or value > kind.high) then
      refuse(BAD_ARGUMENT, "`%s` must be from %d to %d, not %d", spec.name, kind.low, kind.high, value)
    end
    if kind.check then
      kind.check(value, spec.name)
    end
  end

  return {
    types = types,
    check = check,
    to_hex = to_hex,
    from_hex = from_hex,
    as_it_is = as_it_is,
    names = names,
  }
end)()

---- holds -------------------------------------------------------------------------------------------------------------

parts.holds = (function()
  -- Keys held for a number of frames. Time is counted in ticks, frames seen by this script: the emulator's own counter goes
  -- back on a reset. As each key has a queue, the game sees a press for every hold. Timelines own keys as holds do.

  local limits = require "limits"
  local refusal = require "refusal"

  -- Holds whose keys go down by `press` and up by `release`, which take a mask of keys.
  local function new(press, release)
    local holds = { tick = 0, waiting = 0 }
    local owner = {} -- key to the hold that keeps it down, or to the timeline that plays it
    local free_at = {} -- key to the first tick at which it may be pressed anew
    local queues = {} -- key to the holds that wait for it, in order; a hold of several keys is in several queues
    local ends = {} -- tick to the holds that end then
    for key = 0, 9 do
      free_at[key] = 0
      queues[key] = { first = 1, last = 0 }
    end

    local function begin(hold)
      for key = 0, 9 do
        if hold.keys & 1 << key ~= 0 then
          owner[key] = hold
        end
      end
      local stop = holds.tick + hold.frames + 2 -- mGBA-http's count
      ends[stop] = ends[stop] or {}
      table.insert(ends[stop], hold)
      press(hold.keys)
    end

    local function is_next(hold)
      for key = 0, 9 do
        if hold.keys & 1 << key ~= 0 then
          local queue = queues[key]
          if owner[key] or free_at[key] > holds.tick or queue[queue.first] ~= hold then
            return false
          end
        end
      end
      return true
    end

    local function leave_queues(hold)
      for key = 0, 9 do
        if hold.keys & 1 << key ~= 0 then
          local queue = queues[key]
          queue[queue.first] = nil
          queue.first = queue.first + 1
        end
      end
      holds.waiting = holds.waiting - 1
    end

    local function begin_waiting()
      for key = 0, 9 do
        local queue = queues[key]
        local hold = queue[queue.first]
        if hold and is_next(hold) then
          leave_queues(hold)
          begin(hold)
        end
      end
    end

    -- The keys that are `whose`.
    function holds.owned(whose)
      local keys = 0
      for key = 0, 9 do
        if owner[key] == whose then
          keys = keys | 1 << key
        end
      end
      return keys
    end

    -- A timeline takes keys: the holds of them that run have no say in them any more. Gives the keys that those kept down.
    function holds.take(keys, timeline)
      local kept = 0
      for key = 0, 9 do
        if keys & 1 << key ~= 0 then
          kept = kept | (owner[key] and 1 << key or 0)
          owner[key] = timeline
        end
      end
      return kept
    end

    -- Whoever owns keys is over: they are let go of, and free from the next frame on.
    function holds.finish(whose)
      local keys = holds.owned(whose)
      holds.let_go(keys, 0)
      if keys ~= 0 then
        release(keys)
      end
    end

    -- Holds `keys`, at once or when earlier holds of them have ended, so that the game sees a press for each.
    function holds.hold(keys, frames)
      if holds.waiting >= limits.waiting_holds then
        refusal.refuse(refusal.BUSY, "%d holds of keys wait already", holds.waiting)
      end
      local hold = { keys = keys, frames = frames }
      for key = 0, 9 do
        if keys & 1 << key ~= 0 then
          local queue = queues[key]
          queue.last = queue.last + 1
          queue[queue.last] = hold
        end
      end
      holds.waiting = holds.waiting + 1
      if is_next(hold) then
        leave_queues(hold)
        begin(hold)
      end
    end

    -- These keys are set by hand: a hold of them that runs has no say in them any more. Those that wait keep waiting. Of all
    -- keys, those in `up` were down and go up: pressed anew in the same frame, they would never have been up for the game.
    function holds.let_go(keys, up)
      for key = 0, 9 do
        local owned = keys & 1 << key ~= 0 and owner[key]
        if owned then
          owner[key] = nil
        end
        if owned or up & 1 << key ~= 0 then
          free_at[key] = holds.tick + 1
        end
      end
    end

    -- A frame was run.
    function holds.advance()
      local tick = holds.tick + 1
      holds.tick = tick
      local over = ends[tick]
      if over then
        ends[tick] = nil
        for _, hold in ipairs(over) do
          holds.finish(hold)
        end
      end
      if holds.waiting > 0 then
        begin_waiting()
      end
    end

    -- Ends all holds, those that wait too. Whether there was any.
    function holds.cancel()
      local any = holds.waiting > 0
      holds.waiting = 0
      for key = 0, 9 do
        queues[key] = { first = 1, last = 0 }
        if owner[key] then
          any = true
          holds.finish(owner[key])
        end
      end
      return any
    end

    -- The keys that are down because of a hold, or play in a timeline.
    function holds.down()
      local keys = 0
      for key in pairs(owner) do
        keys = keys | 1 << key
      end
      return keys
    end

    return holds
  end

  return { new = new }
end)()

---- timelines ---------------------------------------------------------------------------------------------------------

parts.timelines = (function()
  -- Timelines: keys by frame, so that no network can move them. Each owns its keys as a hold does, in the ticks of the holds.

  local arguments = require "arguments"
  local limits = require "limits"
  local refusal = require "refusal"

  local unpack = string.unpack
  local refuse, BAD_ARGUMENT = refusal.refuse, refusal.BAD_ARGUMENT

  local STEP = 6 -- bytes: an offset and a mask
  local ALL_KEYS = 0x3FF

  local function read_step(steps, at)
    return unpack("<I4I2", steps, at)
  end

  -- The keys that steps name. Raises a refusal of what is no timeline.
  local function keys_of(steps)
    if #steps % STEP ~= 0 then
      refuse(BAD_ARGUMENT, "`steps` has %d bytes; a step has %d", #steps, STEP)
    elseif #steps > STEP * limits.steps then
      refuse(BAD_ARGUMENT, "`steps` has %d steps; at most %d are accepted", #steps // STEP, limits.steps)
    elseif steps == "" then
      refuse(BAD_ARGUMENT, "`steps` is empty")
    end
    local all, mask, before = 0, 0, -1
    for at = 1, #steps, STEP do
      local offset
      offset, mask = read_step(steps, at)
      if mask > ALL_KEYS then
        refuse(BAD_ARGUMENT, "`steps` holds keys %d at offset %d; a mask from 0 to %d is accepted", mask, offset, ALL_KEYS)
      elseif offset <= before then
        refuse(BAD_ARGUMENT, "`steps` has offset %d behind %d; offsets must rise", offset, before)
      end
      all, before = all | mask, offset
    end
    if mask ~= 0 then
      refuse(BAD_ARGUMENT, "the last of `steps` must let go of all keys")
    elseif all == 0 then
      refuse(BAD_ARGUMENT, "`steps` names no key")
    end
    return all
  end

  -- Timelines beside `holds`, whose keys go down by `press` and up by `release`. `over` is told the id of each that ends,
  -- and whether that was before its last step. `frame` returns the frame counter.
  local function new(holds, press, release, over, frame)
    local timelines = {}
    local running = {} -- in the order they began
    local last_id = 0
    local ended, ended_order, ended_count = {}, {}, 0 -- id to how it ended, the ids in a ring, and how many there were

    local function set(keys, mask)
      if keys & mask ~= 0 then
        press(keys & mask)
      end
      if keys & ~mask ~= 0 then
        release(keys & ~mask)
      end
    end

    local function remember(id, cancelled)
      local place = ended_count % limits.ended_timelines
      if ended_order[place] then
        ended[ended_order[place]] = nil
      end
      ended[id], ended_order[place], ended_count = (cancelled and "cancelled " or "over ") .. frame(), id, ended_count + 1
    end

    local function finish(index, cancelled)
      local timeline = table.remove(running, index)
      holds.finish(timeline)
      remember(timeline.id, cancelled)
      over(timeline.id, cancelled)
    end

    local function when_next(timeline)
      timeline.due = timeline.start + read_step(timeline.steps, timeline.at)
    end

    -- Does the step that is due, and sees to the next one. True if it was the last.
    local function step(timeline)
      local _, mask = read_step(timeline.steps, timeline.at)
      set(holds.owned(timeline), mask)
      timeline.at = timeline.at + STEP
      if timeline.at > #timeline.steps then
        return true
      end
      when_next(timeline)
      return false
    end

    -- Plays steps, the first of them at offset 0 now, for the frame that comes. Gives the timeline's id.
    function timelines.play(steps)
      local keys = keys_of(steps)
      for _, other in ipairs(running) do
        local both = holds.owned(other) & keys
        if both ~= 0 then
          refuse(BAD_ARGUMENT, "timeline %d plays %s; cancel it first, or wait for its end", other.id,
            arguments.names(both, ", "))
        end
      end
      last_id = last_id + 1
      local timeline = { id = last_id, steps = steps, at = 1, start = holds.tick, due = nil }
      local kept = holds.take(keys, timeline)
      when_next(timeline)
      if timeline.due == holds.tick then
        step(timeline)
      else
        set(kept, 0)
      end
      table.insert(running, timeline)
      return last_id
    end

    -- Keys are set by hand, as `holds.let_go` is told. A timeline that is left without keys is over.
    function timelines.let_go(keys, up)
      holds.let_go(keys, up)
      for index = #running, 1, -1 do
        if holds.owned(running[index]) == 0 then
          finish(index, true)
        end
      end
    end

    -- Ends the timeline with an id, or with 0 all of them and all holds. Whether there was any.
    function timelines.cancel(id)
      local any = false
      for index = #running, 1, -1 do
        if id == 0 or running[index].id == id then
          any = true
          finish(index, true)
        end
      end
      return id == 0 and holds.cancel() or any
    end

    -- Whether the timeline with an id plays, or how and in which frame it ended.
    function timelines.describe(id)
      for _, timeline in ipairs(running) do
        if timeline.id == id then
          return { "playing" }
        end
      end
      local how, at = (ended[id] or ""):match("^(%a+) (%d+)$")
      if not how then
        refuse(BAD_ARGUMENT, "timeline %d is not known: none had this number, or it ended too long ago", id)
      end
      return { how, at }
    end

    -- A frame was run, and the holds were told.
    function timelines.advance()
      for index = #running, 1, -1 do
        local timeline = running[index]
        if timeline.due == holds.tick and step(timeline) then
          finish(index, false)
        end
      end
    end

    return timelines
  end

  return { new = new }
end)()

---- files -------------------------------------------------------------------------------------------------------------

parts.files = (function()
  -- What files and bytes are, before mGBA is given them: it lets go of the running game before it looks at the new one.

  local byte, find, rep, sub, unpack = string.byte, string.find, string.rep, string.sub, string.unpack

  local files = {}

  local WINDOWS = package.config:sub(1, 1) == "\\"
  local SYSTEM_FOLDERS = { "/dev/", "/proc/", "/sys/" }
  -- Errors of Linux.
  local NO_SUCH_FILE, NO_ACCESS, NOT_PERMITTED, IS_FOLDER, READ_ONLY_DISK, IN_USE = 2, 13, 1, 21, 30, 26

  -- An absolute path without `//`, `.` and `..`.
  local function cleaned(path)
    local names = {}
    for name in path:gmatch("[^/]+") do
      if name == ".." then
        names[#names] = nil
      elseif name ~= "." then
        names[#names + 1] = name
      end
    end
    return "/" .. table.concat(names, "/")
  end

  local function is_of_system(path)
    if sub(path, 1, 1) ~= "/" then
      return false
    end
    local name = cleaned(path) .. "/"
    for _, folder in ipairs(SYSTEM_FOLDERS) do
      if sub(name, 1, #folder) == folder then
        return sub(name, 1, 9) ~= "/dev/shm/"
      end
    end
    return false
  end

  -- Asks the system's shell, as Lua has no way to look at a file without opening it.
  local function shell_says_regular(path)
    return os.execute("[ -f '" .. path:gsub("'", "'\\''") .. "' ]") == true
  end

  -- Whether an open file has a size that is true: files of the kernel have none, and yet can be read.
  local function has_size(file)
    local size = file:seek("end")
    return size and (size > 0 or file:seek("set", 0) == 0 and file:read(1) == nil), size
  end

  -- Whether mGBA may be given this path: it names a regular file, or nothing yet, or a folder, which mGBA itself refuses. mGBA
  -- waits for the other end of a FIFO for ever, and ends when it cannot map a save. A FIFO that is opened for reading and
  -- writing keeps nobody waiting.
  function files.may_open(path)
    if WINDOWS then
      return true
    elseif is_of_system(path) then
      return false
    end
    local file, _, code = io.open(path, "r+b")
    if file then
      local true_size, size = has_size(file)
      file:close()
      return true_size and (size > 0 or shell_says_regular(path)) or false
    elseif code == NO_SUCH_FILE or code == IS_FOLDER then
      return true
    elseif code == READ_ONLY_DISK or code == IN_USE then
      return true -- a FIFO or a device gives neither
    elseif code ~= NO_ACCESS and code ~= NOT_PERMITTED or not shell_says_regular(path) then
      return false
    end
    file = io.open(path, "rb")
    local true_size = file == nil or has_size(file)
    if file then
      file:close()
    end
    return true_size and true or false
  end

  local function is_gba_elf(head)
    if #head < 28 then
      return false
    end
    local machine, _, entry = unpack("<I2I4I4", head, 19)
    return machine == 40 and (entry == 0x08000000 or entry == 0x02000000 or entry == 0x020000C0)
  end

  local GBA_HEADER = 0xC0

  -- The tests of libmgba's GBAIsROM and GBIsROM, and that the header is whole: mGBA reads on behind it.
  local function is_gba_rom(head)
    if sub(head, 1, 4) == "\127ELF" then
      return is_gba_elf(head)
    end
    if byte(head, 4) ~= 0xEA or #head < GBA_HEADER then
      return false
    end
    if byte(head, 0xB3) ~= 0x96 and sub(head, 5, 0xA0) ~= rep("\0", 0x9C) then
      return false
    end
    for vector = 0, 6 do
      if byte(head, 4 * vector + 4) ~= 0xEA or byte(head, 4 * vector + 3) ~= 0 then
        return true
      end
    end
    return false -- all seven vectors are branches: the BIOS itself
  end

  local GB_LOGOS = { "\xCE\xED\x66\x66", "\x7C\xE7\xC0\x00" }

  local function is_gb_rom(head, tail)
    if #head < 0x200 then
      return false
    end
    local plain = sub(head, 0x105, 0x108)
    local scrambled = sub(head, 0x105, 0x105) .. sub(head, 0x145, 0x145) .. sub(head, 0x115, 0x115) .. sub(head, 0x155, 0x155)
    for _, logo in ipairs(GB_LOGOS) do
      if plain == logo or scrambled == logo then
        return true
      end
    end
    return sub(tail, -16, -9) == "\0\0\0\64\0\0\0\1" and sub(tail, -4) == "GBX!"
  end

  local ROM_NAMES = {
    [true] = { gba = true, agb = true, mb = true, elf = true, bin = true },
    [false] = { gb = true, gbc = true, sgb = true, bin = true },
  }

  -- Whether a zip's directory, at its end, names a ROM. Its content cannot be looked at without unpacking it.
  local function zip_names_rom(tail, names)
    local at = 1
    while true do
      at = find(tail, "PK\1\2", at, true)
      if not at or at + 45 > #tail then
        return false
      end
      local name = sub(tail, at + 46, at + 45 + unpack("<I2", tail, at + 28))
      local ending = name:lower():match("%.(%w+)$")
      if ending and names[ending] then
        return true
      end
      at = at + 46
    end
  end

  -- True if the file is a ROM of the running console, the Game Boy Advance or not; else false or nil, and why not.
  function files.check_rom(path, advance)
    local file, problem = io.open(path, "rb")
    if not file then
      return nil, problem
    end
    local head = file:read(0x200)
    local size = head and file:seek("end")
    if not size then
      file:close()
      return nil, "it is empty or cannot be read"
    end
    file:seek("set", math.max(0, size - 65536))
    local tail = file:read(65536) or ""
    file:close()
    local console_name = advance and "Game Boy Advance" or "Game Boy"
    local good
    if sub(head, 1, 4) == "PK\3\4" then
      good = zip_names_rom(tail, ROM_NAMES[advance])
    elseif sub(head, 1, 6) == "7z\xBC\xAF\x27\x1C" then
      return nil, "what is in a 7z archive cannot be checked before the running game is given up; unpack it first"
    elseif advance then
      good = is_gba_rom(head)
    else
      good = is_gb_rom(head, tail)
    end
    return good, "it is no ROM of the running console, the " .. console_name
  end

  -- Savestates begin with a magic number that names the console; its low byte is a version.
  local STATES = {
    [true] = { magic = 0x01000000, size = 0x61000 },
    [false] = { magic = 0x00400000, size = 0x11800 },
  }

  function files.is_state(data, advance)
    if sub(data, 1, 8) == "\x89PNG\r\n\26\n" then
      return find(data, "gbAs", 1, true) ~= nil
    end
    local state = STATES[advance]
    return #data >= state.size and unpack("<I4", data) & ~0xFF == state.magic
  end

  -- Writes a file, and says whether it did.
  function files.write(path, bytes)
    local file = io.open(path, "wb")
    local written = file and file:write(bytes)
    return file and file:close() and written ~= nil or false
  end

  -- Whether a file that mGBA was to write is there, may be written and begins so; if not, why.
  function files.is_written(path, beginning)
    if package.config:sub(1, 1) == "\\" and find(path, "[\128-\255]") then
      return true -- Windows: mGBA takes paths as UTF-8, Lua does not
    end
    local file, problem = io.open(path, "r+b")
    local head = file and file:read(#beginning)
    if file then
      file:close()
    end
    return file ~= nil and head == beginning, problem or path .. " holds something else"
  end

  return files
end)()

---- cartridgeram ------------------------------------------------------------------------------------------------------

parts.cartridgeram = (function()
  -- The RAM of a Game Boy's cartridge as a memory domain. mGBA's own reads 0xFF while the game has the RAM locked, and
  -- writes the bank that the game has mapped, whichever is meant.

  local refusal = require "refusal"

  local byte, pack, rep, unpack = string.byte, string.pack, string.rep, string.unpack

  local BASE, BANK, PAST = 0xA000, 0x2000, 0xC000
  local KIND = 0x147 -- where the ROM says what controller the cartridge has
  local LOCK, UNLOCKED, LOCKED = 0, 0x0A, 0 -- the register that unlocks the RAM, and its values

  local CartridgeRam = {}
  CartridgeRam.__index = CartridgeRam

  function CartridgeRam:base() return self.domain:base() end
  function CartridgeRam.bound() return PAST end
  function CartridgeRam:name() return self.domain:name() end
  function CartridgeRam:size() return self.domain:size() end

  -- Whether the cartridge's controller has the common lock (MBC1, MBC3, MBC5), and nothing but RAM happens on writes to it.
  local function has_lock(kind)
    return kind >= 0x02 and kind <= 0x03 or kind >= 0x0F and kind <= 0x13 or kind >= 0x19 and kind <= 0x1E
  end

  -- Whether the bus shows the RAM: then a byte can be changed there. It is put back; no time passes in the console.
  local function is_unlocked()
    local before = emu:read8(BASE)
    local other = before ~ 0x5A
    emu:write8(BASE, other)
    local changed = emu:read8(BASE) == other
    if changed then
      emu:write8(BASE, before)
    end
    return changed
  end

  function CartridgeRam:readRange(offset, length)
    local bytes = self.domain:readRange(offset, length)
    if bytes ~= rep("\xFF", length) or not self.has_lock or is_unlocked() then
      return bytes
    end
    emu:write8(LOCK, UNLOCKED)
    bytes = self.domain:readRange(offset, length)
    emu:write8(LOCK, LOCKED)
    return bytes
  end

  function CartridgeRam:read8(offset)
    return byte(self:readRange(offset, 1))
  end

  function CartridgeRam:read16(offset)
    return (unpack("<I2", self:readRange(offset, 2)))
  end

  function CartridgeRam:read32(offset)
    return (unpack("<I4", self:readRange(offset, 4)))
  end

  -- Writes a byte; false, and nothing is changed, if mGBA writes another one.
  local function write_byte(self, offset, value)
    local mapped = BASE + offset % BANK
    local before = emu:read8(mapped)
    self.domain:write8(offset, value)
    if self:read8(offset) == value then
      return true
    elseif emu:read8(mapped) ~= before then
      self.domain:write8(offset, before)
    end
    return false
  end

  -- Writes a number of some bytes, all or none of them.
  function CartridgeRam:write(offset, count, value)
    local before = self:readRange(offset, count)
    local after = pack("<I" .. count, value)
    if after == before then
      return
    end
    for index = 1, count do
      local old, new = byte(before, index), byte(after, index)
      if old ~= new and not write_byte(self, offset + index - 1, new) then
        for earlier = 1, index - 1 do
          write_byte(self, offset + earlier - 1, byte(before, earlier))
        end
        refusal.refuse(refusal.UNSUPPORTED, "mGBA's Lua writes only the bank of cartridge RAM that the game has mapped "
          .. "and unlocked, and offset %d is not in it", offset + index - 1)
      end
    end
  end

  function CartridgeRam:write8(offset, value)
    self:write(offset, 1, value)
  end

  -- The cartridge RAM of which this is mGBA's domain.
  return {
    new = function(domain)
      local kind = emu.memory.cart0:read8(KIND)
      return setmetatable({ domain = domain, has_lock = has_lock(kind) }, CartridgeRam)
    end,
  }
end)()

---- videoram ----------------------------------------------------------------------------------------------------------

parts.videoram = (function()
  -- The video RAM of a Game Boy as a memory domain: its banks of 8 KiB, one after the other. mGBA's own domain counts the
  -- cartridge's RAM behind it into each bank, and counts banks from the one that the game has mapped when it writes: with the
  -- second one mapped it would write outside of its memory.

  local concat, unpack = table.concat, string.unpack

  local BANK, PAST = 0x2000, 0xA000
  local THEIR_BANK = 0x4000 -- the distance of banks in mGBA's domain
  local SELECT = 0xFF4F -- the register that maps a bank, in a Game Boy Color

  local VideoRam = {}
  VideoRam.__index = VideoRam

  function VideoRam:base() return self.domain:base() end
  function VideoRam.bound() return PAST end
  function VideoRam:name() return self.domain:name() end
  function VideoRam:size() return self.bytes end

  function VideoRam:readRange(offset, length)
    local pieces, count = {}, 0
    while length > 0 do
      local at = offset % self.bytes
      local bank, within = at // BANK, at % BANK
      local piece = math.min(length, BANK - within)
      count = count + 1
      pieces[count] = self.domain:readRange(bank * THEIR_BANK + within, piece)
      offset, length = offset + piece, length - piece
    end
    return concat(pieces)
  end

  function VideoRam:read8(offset)
    return self:readRange(offset, 1):byte()
  end

  function VideoRam:read16(offset)
    return (unpack("<I2", self:readRange(offset, 2)))
  end

  function VideoRam:read32(offset)
    return (unpack("<I4", self:readRange(offset, 4)))
  end

  function VideoRam:write8(offset, value)
    local at = offset % self.bytes
    local bank, within = at // BANK, at % BANK
    local mapped = self.bytes > BANK and emu:read8(SELECT) & 1 or 0
    if bank == mapped then
      self.domain:write8(within, value)
    elseif bank > mapped then
      self.domain:write8(THEIR_BANK + within, value)
    else
      -- No time passes in the console between these.
      emu:write8(SELECT, bank)
      self.domain:write8(within, value)
      emu:write8(SELECT, mapped)
    end
  end

  -- The video RAM of which this is mGBA's domain.
  return {
    new = function(domain)
      return setmetatable({ domain = domain, bytes = domain:size() // 2 }, VideoRam)
    end,
  }
end)()

---- memory ------------------------------------------------------------------------------------------------------------

parts.memory = (function()
  -- Memory: which of it the console has, and numbers made of its bytes. crates/protocol/src/access.rs has the same rules.
  --
  -- A number means the bytes from its address on. An aligned one is one access of mGBA's; any other is made of bytes, because
  -- mGBA turns those around or drops their lowest bits.

  local cartridgeram = require "cartridgeram"
  local refusal = require "refusal"
  local videoram = require "videoram"

  local byte, concat, format, unpack = string.byte, table.concat, string.format, string.unpack
  local refuse, sentence = refusal.refuse, refusal.sentence
  local BAD_ARGUMENT, UNSUPPORTED = refusal.BAD_ARGUMENT, refusal.UNSUPPORTED

  local memory = {
    rom_writes = 0, -- how often the ROM in memory was patched
  }

  local GAME_BOY_ADVANCE = 0

  -- Stretches of the bus, each with its first address and the one past its last.
  local BUS = {
    [true] = { -- the Game Boy Advance
      name = "Game Boy Advance",
      { 0, 0x4000 },
      { 0x02000000, 0x10000000 },
      writable = { { 0x02000000, 0x08000000 }, { 0x080000C4, 0x080000CA }, { 0x0E000000, 0x10000000 } },
    },
    [false] = { name = "Game Boy", { 0, 0x10000 }, writable = { { 0, 0x10000 } } },
  }
  -- From here on numbers on the bus are made of bytes: the memory for saves has 8 bits.
  local SAVE = 0x0E000000
  -- Video memory, which takes no single bytes.
  local VIDEO, PAST_VIDEO = 0x05000000, 0x08000000
  local ROM_DOMAINS = { cart0 = true, cart1 = true, cart2 = true }
  local VIDEO_DOMAINS = { palette = true, vram = true, oam = true }

  -- What is known of the console, until the next frame.
  local advance
  local domains, sizes = {}, {}

  -- Another game may be there.
  function memory.forget()
    advance = nil
    domains, sizes = {}, {}
  end

  -- Whether the console is a Game Boy Advance.
  local function is_advance()
    if advance == nil then
      advance = emu:platform() == GAME_BOY_ADVANCE
    end
    return advance
  end

  local function lies_in(stretches, address, length)
    for index = 1, #stretches do
      local stretch = stretches[index]
      if address >= stretch[1] and address < stretch[2] and address + length <= stretch[2] then
        return true
      end
    end
    return false
  end

  local function accepted(stretches)
    local texts = {}
    for index, stretch in ipairs(stretches) do
      texts[index] = format("%#x to %#x", stretch[1], stretch[2] - 1)
    end
    return (concat(texts, ", "):gsub("^0 ", "0x0 "))
  end

  local function hex(address)
    return address == 0 and "0x0" or format("%#x", address)
  end

  -- Raises a refusal unless the bus has these bytes, and takes them if they are to be written.
  function memory.check_bus(address, length, change)
    local bus = BUS[is_advance()]
    if not lies_in(bus, address, length) then
      local problem = length < 2 and format("which is not on the bus of the %s", bus.name)
        or format("and %d bytes from there go beyond what the %s has on its bus", length, bus.name)
      refuse(BAD_ARGUMENT, "address is %s, %s; accepted is %s", hex(address), problem, accepted(bus))
    elseif change and not lies_in(bus.writable, address, length) then
      local what = address < 0x4000 and "the BIOS" or "the cartridge's ROM"
      local problem = length < 2 and format("where %s is, which the bus does not write", what)
        or format("and %d bytes from there reach %s, which the bus does not write", length, what)
      refuse(BAD_ARGUMENT, "address is %s, %s; accepted is %s; the domain cart0 takes patches of the ROM", hex(address),
        problem, accepted(bus.writable))
    end
  end

  -- mGBA's domain of this name, with what is wrong with it put right; nil if there is none.
  function memory.find(name)
    local found = domains[name]
    if found == nil then
      found = emu.memory[name]
      local better = name == "vram" and videoram or name == "sram" and cartridgeram
      if found and better and not is_advance() then
        found = better.new(found)
      end
      domains[name] = found or false
    end
    return found or nil
  end

  -- The domain of this name, or a refusal.
  function memory.domain(name)
    local found = memory.find(name)
    if found then
      return found
    end
    local names = {}
    for each in pairs(emu.memory) do
      names[#names + 1] = each
    end
    table.sort(names)
    refuse(BAD_ARGUMENT, "unknown memory domain %q; this console has %s", sentence(name), concat(names, ", "))
  end

  -- Raises a refusal unless a domain has these bytes, and takes them if they are to be written.
  function memory.check_domain(name, offset, length, change)
    local found = memory.domain(name)
    local size = sizes[name]
    if not size then
      size = found:size()
      sizes[name] = size
    end
    if offset >= size or offset + length > size then
      local bytes = length == 1 and "1 byte" or format("%d bytes", length)
      local least = length > 1 and length or 1
      local range = size >= least and format("0 to %d for %s", size - least, bytes) or format("at most %d bytes", size)
      refuse(BAD_ARGUMENT, "address is %d, and %s from there go beyond the domain %q, which has %d bytes; accepted is %s",
        offset, bytes, name, size, range)
    elseif name == "eeprom" then
      refuse(UNSUPPORTED, "mGBA's Lua shows the BIOS in place of an EEPROM; save a state with flag 2, which holds it")
    elseif change and (name == "bios" or name == "io") then
      refuse(BAD_ARGUMENT, "address is %d, in the domain %q, which takes no writes; accepted is a write on the bus, if that "
        .. "part of it takes any", offset, name)
    elseif name == "sram" and is_advance() and found:name() ~= "SRAM" and (change or offset + length > 0x10000) then
      refuse(UNSUPPORTED, "mGBA's Lua reads only the bank of flash memory that the game has chosen, and writes none")
    end
  end

  -- Numbers on the bus.

  function memory.read8(address)
    return emu:read8(address)
  end

  function memory.read16(address)
    if address & 1 == 0 and address < SAVE then
      -- Past the end of a ROM mGBA gives more than 16 bits.
      return emu:read16(address) & 0xFFFF
    end
    return (unpack("<I2", emu:readRange(address, 2)))
  end

  function memory.read32(address)
    if address & 3 == 0 and address < SAVE then
      return emu:read32(address)
    end
    return (unpack("<I4", emu:readRange(address, 4)))
  end

  local function write_byte(address, value)
    if address < VIDEO or address >= PAST_VIDEO then
      emu:write8(address, value)
      return
    end
    -- Together with its neighbour.
    local even, shift = address & ~1, 8 * (address & 1)
    emu:write16(even, emu:read16(even) & ~(0xFF << shift) | value << shift)
  end
  memory.write8 = write_byte

  -- Writes a number of some bytes, lowest first, by a function for one of them.
  local function write_bytes(write, address, count, value)
    for index = 0, count - 1 do
      write(address + index & 0xFFFFFFFF, value >> 8 * index & 0xFF)
    end
  end

  function memory.write16(address, value)
    if address & 1 == 0 and address < SAVE then
      emu:write16(address, value)
    else
      write_bytes(write_byte, address, 2, value)
    end
  end

  function memory.write32(address, value)
    if address & 3 == 0 and address < SAVE then
      emu:write32(address, value)
    else
      write_bytes(write_byte, address, 4, value)
    end
  end

  function memory.write_range(address, data)
    local core, write8, write = emu, emu.write8, write_byte
    if address >= PAST_VIDEO or address + #data <= VIDEO then
      function write(at, value)
        write8(core, at, value)
      end
    end
    for index = 1, #data do
      write(address + index - 1 & 0xFFFFFFFF, byte(data, index))
    end
  end

  -- Numbers in domains.

  function memory.domain_read16(name, offset)
    local found = memory.domain(name)
    if offset & 1 == 0 then
      return found:read16(offset) & 0xFFFF
    end
    return (unpack("<I2", found:readRange(offset, 2)))
  end

  function memory.domain_read32(name, offset)
    local found = memory.domain(name)
    if offset & 3 == 0 then
      return found:read32(offset)
    end
    return (unpack("<I4", found:readRange(offset, 4)))
  end

  -- Writes a number of some bytes to a domain.
  local function domain_write(name, offset, count, value)
    local found = memory.domain(name)
    if ROM_DOMAINS[name] then
      memory.rom_writes = memory.rom_writes + 1
    end
    if is_advance() then
      if VIDEO_DOMAINS[name] then
        -- Past the bus mGBA writes no single bytes there.
        local address = found:base() + offset % found:size()
        local write = count == 1 and memory.write8 or count == 2 and memory.write16 or memory.write32
        write(address, value)
      elseif count == 2 and offset & 1 == 0 then
        found:write16(offset, value)
      elseif count == 4 and offset & 3 == 0 then
        found:write32(offset, value)
      else
        write_bytes(function(at, each) found:write8(at, each) end, offset, count, value)
      end
    elseif name == "sram" then
      found:write(offset, count, value)
    else
      write_bytes(function(at, each) found:write8(at, each) end, offset, count, value)
    end
  end

  function memory.domain_write8(name, offset, value)
    domain_write(name, offset, 1, value)
  end

  function memory.domain_write16(name, offset, value)
    domain_write(name, offset, 2, value)
  end

  function memory.domain_write32(name, offset, value)
    domain_write(name, offset, 4, value)
  end

  return memory
end)()

---- game --------------------------------------------------------------------------------------------------------------

parts.game = (function()
  -- Whether the console was reset, a state loaded, or another game put in. This script has no callback for that: any there is
  -- ends the frame callback in which a script resets, see `emulator.reset`. What operations do is noted at once, what
  -- anybody else does is known by the frame counter.

  local happenings = require "happenings"

  local game = {
    RESET = 1, -- what breaks the order of frames, as watches tell it
    STATE = 2,
    GAME = 3,
    breaks = 0, -- how often the order of frames was broken
    broken_by = nil, -- by what the last time
  }

  local FIRST = 1 -- the highest number that the first frame behind a reset may have
  local last_frame -- the number of the last frame; nil before the first
  local identity -- of the game
  local noted = false -- whether an operation has broken the order since the last frame

  local function broken(by)
    game.breaks, game.broken_by = game.breaks + 1, by
    if by == game.RESET then
      happenings.add(happenings.RESET)
    elseif by == game.STATE then
      happenings.add(happenings.STATE)
    end
  end

  -- Notes it if this is another game than the last time. Whether it is.
  function game.check()
    if not emu then
      return false
    end
    local before = identity
    identity = table.concat({ emu:getGameTitle() or "", emu:getGameCode() or "", emu:checksum() or "" }, "\0")
    local other = before ~= nil and identity ~= before
    if other then
      happenings.add(happenings.GAME)
    end
    return other
  end

  -- As `check`, after a reset: another game is what broke the order of frames, then.
  function game.check_break()
    if game.check() then
      game.broken_by = game.GAME
    end
  end

  -- An operation has reset the console, loaded a state or put in a game.
  function game.note(by)
    noted = true
    broken(by)
  end

  -- As `note`, for a state that an operation may have loaded. Passes on whether it has.
  function game.note_state(loaded)
    if loaded then
      game.note(game.STATE)
    end
    return loaded
  end

  -- A frame was run. One that does not follow the last is a reset's if it is one of the first, and otherwise a state's.
  function game.advance()
    local frame = emu and emu:currentFrame()
    if last_frame and frame and frame ~= last_frame + 1 then
      if not noted then
        broken(frame <= FIRST and game.RESET or game.STATE)
      end
      if frame <= FIRST then
        game.check_break()
      end
    end
    last_frame, noted = frame, false
  end

  return game
end)()

---- emulator ----------------------------------------------------------------------------------------------------------

parts.emulator = (function()
  -- What operations are made of: mGBA's own functions, with what they lack around them.

  local files = require "files"
  local game = require "game"
  local happenings = require "happenings"
  local holds = require "holds"
  local log = require "log"
  local memory = require "memory"
  local refusal = require "refusal"
  local timelines = require "timelines"

  local refuse, sentence = refusal.refuse, refusal.sentence
  local BAD_ARGUMENT, FAILED, UNSUPPORTED = refusal.BAD_ARGUMENT, refusal.FAILED, refusal.UNSUPPORTED
  local unpack = string.unpack

  local emulator = {}

  local GAME_BOY_ADVANCE = 0

  -- The number of the last frame, which goes back on a reset; 0 without a game.
  function emulator.frame()
    return emu and emu:currentFrame() & 0xFFFFFFFF or 0
  end

  local function press(keys)
    if emu then
      emu:addKeys(keys)
    end
  end

  local function release(keys)
    if emu then
      emu:clearKeys(keys)
    end
  end

  -- The holds of this emulator's keys, and the timelines.
  emulator.holds = holds.new(press, release)
  emulator.timelines = timelines.new(emulator.holds, press, release, function(id, cancelled)
    happenings.add(happenings.timeline_over(id, cancelled))
  end, emulator.frame)

  -- A frame was run: moves on what holds keys by frames.
  function emulator.advance()
    emulator.holds.advance()
    emulator.timelines.advance()
  end

  -- What a function of mGBA says: true and false, on some versions 1 and 0.
  function emulator.yes(value)
    return value == true or type(value) == "number" and value ~= 0
  end

  -- The value of a register. The Game Boy's have 8 bits, pairs of them 16; mGBA sets just these and leaves the rest to
  -- chance.
  function emulator.register(name)
    local value = emu:readRegister(name)
    if not value then
      refuse(BAD_ARGUMENT, "unknown register %q; there are r0 to r15 and cpsr, on the Game Boy a, b, c, d, e, f, h, l, af, "
        .. "bc, de, hl, pc and sp", sentence(name))
    end
    if emu:platform() == GAME_BOY_ADVANCE then
      return value
    end
    return value & (#name == 1 and 0xFF or 0xFFFF)
  end

  local THUMB = 0x20

  -- Sets a register that there is. Between ARM and Thumb, mGBA keeps the instructions that it has fetched already, and ends
  -- with a crash when it runs them as the other kind; a jump to the next one fetches anew.
  function emulator.write_register(name, value)
    local before = emulator.register(name)
    local pc = name == "cpsr" and emu:readRegister("pc")
    emu:writeRegister(name, value)
    if pc and (before ~ emu:readRegister(name)) & THUMB ~= 0 then
      emu:writeRegister("pc", pc - (before & THUMB ~= 0 and 2 or 4)) -- it is one instruction ahead
    end
  end

  -- Refuses a path that must not be given to mGBA.
  local function check_path(path)
    if not files.may_open(path) then
      refuse(BAD_ARGUMENT, "`path` must name a regular file, or a new one; %q is a device, a FIFO or a file of the "
        .. "kernel", sentence(path))
    end
  end

  -- Loads a ROM if it is one. Raises a refusal that says why not otherwise.
  function emulator.load_rom(path)
    check_path(path)
    local advance = emu:platform() == GAME_BOY_ADVANCE
    local good, problem = files.check_rom(path, advance)
    if not good then
      refuse(FAILED, "%s is not loaded: %s; the game goes on as before", sentence(path), sentence(problem))
    end
    memory.forget()
    if not emulator.yes(emu:loadFile(path)) then
      local text = "mGBA could not load %s and has given up the running game; load one in its window"
      log.error(text, sentence(path))
      refuse(FAILED, text, sentence(path))
    end
  end

  -- Resets the console. mGBA calls the "reset" callbacks of scripts in the middle of that, and then takes the call that is
  -- under way for over: none of its functions works in it any more, unless it is told which call that is.
  function emulator.reset()
    local registry = debug and debug.getregistry() or {}
    local context = registry.mCtx
    emu:reset()
    registry.mCtx = context
    memory.forget()
    game.note(game.RESET)
  end

  local CPU_FLAGS, HALTED = 0x44, 0x10 -- in a Game Boy's savestate
  local IE, IF, LCDC, STAT, LYC, TAC, SC = 0xFFFF, 0xFF0F, 0xFF40, 0xFF41, 0xFF45, 0xFF07, 0xFF02 -- its registers

  -- Whether an interrupt will wake the halted processor of a Game Boy without a key.
  local function will_wake()
    local function is_set(register, bits)
      return emu:read8(register) & bits == bits
    end
    local enabled, display = emu:read8(IE), is_set(LCDC, 0x80)
    return enabled & emu:read8(IF) & 0x1F ~= 0
      or enabled & 1 ~= 0 and display
      or enabled & 2 ~= 0 and display and (emu:read8(STAT) & 0x38 ~= 0 or is_set(STAT, 0x40) and emu:read8(LYC) < 154)
      or enabled & 4 ~= 0 and is_set(TAC, 4)
      or enabled & 8 ~= 0 and is_set(SC, 0x81)
  end

  -- Runs an instruction. mGBA has a halted Game Boy step until something wakes it, in this call.
  function emulator.step()
    if emu:platform() ~= GAME_BOY_ADVANCE then
      local state = emu:saveStateBuffer(0) or ""
      local flags = #state > CPU_FLAGS and unpack("<I4", state, CPU_FLAGS + 1) or HALTED
      if flags & HALTED ~= 0 and not will_wake() then
        refuse(UNSUPPORTED, "the Game Boy's processor is halted and no interrupt will wake it; mGBA would step for ever. Run "
          .. "frames or reset instead")
      end
    end
    emu:step()
  end

  -- Loads a ROM without a reset, as far as that can be. The processor holds on to the old ROM's memory, which mGBA has
  -- freed, and the next instruction would end the emulator; the state from before makes it look again. Another game does
  -- not take that state, and starts from the beginning.
  function emulator.exchange_rom(path)
    local state = emu:saveStateBuffer(0)
    emulator.load_rom(path)
    if not state or not emulator.yes(emu:loadStateBuffer(state, 0)) then
      emulator.reset()
    end
    return true
  end

  -- Loads a state from bytes if they are one, and says whether it did.
  function emulator.load_state(data, flags)
    local advance = emu:platform() == GAME_BOY_ADVANCE
    return files.is_state(data, advance) and game.note_state(emulator.yes(emu:loadStateBuffer(data, flags)))
  end

  -- Loads a state from a file, and says whether it did.
  function emulator.load_state_file(path, flags)
    check_path(path)
    return emulator.yes(emu:loadStateFile(path, flags))
  end

  -- Has a file be the game's save, for good or until another is loaded, and says whether it is.
  function emulator.load_save_file(path, temporary)
    check_path(path)
    return emulator.yes(emu:loadSaveFile(path, temporary))
  end

  -- Saves a state to a file, and says whether it did. mGBA 0.10.1 cannot save one without a picture: it leaves zeros.
  function emulator.save_state_file(path, flags)
    check_path(path)
    if emulator.yes(emu:saveStateFile(path, flags)) then
      return true
    end
    local state = emu:saveStateBuffer(flags)
    return state ~= nil and files.write(path, state) == true
  end

  local PNG = "\x89PNG" -- how such a file begins

  local function is_png(data)
    return type(data) == "string" and data:sub(1, #PNG) == PNG
  end

  -- Writes a picture to a file. mGBA does not say whether it could.
  function emulator.screenshot_file(path)
    check_path(path)
    emu:screenshot(path)
    local good, problem = files.is_written(path, PNG)
    if not good then
      refuse(FAILED, "mGBA wrote no picture: %s", sentence(problem))
    end
  end

  local function read_and_remove(path)
    local file = io.open(path, "rb")
    local data = file and file:read("a")
    if file then
      file:close()
    end
    os.remove(path)
    return data
  end

  -- mGBA 0.10 gives pictures away as files only. Where no file can be made, a state with a picture is a PNG too.
  function emulator.screenshot()
    local named, path = pcall(os.tmpname)
    if named then
      emu:screenshot(path)
      local data = read_and_remove(path)
      if is_png(data) then
        return data
      end
    end
    local state = emu:saveStateBuffer(1)
    return is_png(state) and state or refuse(FAILED, "mGBA gave no picture")
  end

  return emulator
end)()

---- lockstep ----------------------------------------------------------------------------------------------------------

parts.lockstep = (function()
  -- Lockstep: each frame waits until a client asks for it. mGBA's Lua cannot run frames, so they are owed, and the script
  -- stays in its frame callback while none is.

  local happenings = require "happenings"
  local log = require "log"

  local lockstep = {
    on = false,
    LONGEST = 60, -- seconds that a frame waits in all: mGBA's window must not hang for as long as somebody asks
    GONE = 1, -- seconds without a connection of the link that began it, after which it ends
    SILENT = 1.75, -- seconds in which nothing is heard on that connection although it has a heartbeat
  }

  local MOST = 0.25 -- seconds between two looks that count as silence

  local timeout = 0 -- seconds
  local owner -- the session of the link that began it
  local unheard = 0 -- seconds in which a frame has waited and nothing was heard of the owner
  local wanted, done = 0, 0 -- frames that were asked for, and those of them that were run
  local goals = {} -- session to what it asked for last: how many `frames`, and the number of the `last` of them in `wanted`
  local cut = {} -- session to how many frames were run of how many, if lockstep ended before the last of them
  local now, asked = 0, 0 -- seconds that this frame has waited, and had when anything was asked last
  local any = false -- whether a client has asked for anything since the last look

  -- A link's session begins it, or goes on with another time-out.
  function lockstep.begin(session, seconds)
    lockstep.on, owner, unheard, timeout, asked = true, session, 0, seconds, now
  end

  -- Ends it. Frames that are still owed run when mGBA has them run.
  function lockstep.stop()
    for session, goal in pairs(goals) do
      if goal.last > done then
        cut[session] = { run = math.max(0, goal.frames - (goal.last - done)), asked = goal.frames }
      end
    end
    lockstep.on, owner, wanted, done, goals = false, nil, 0, 0, {}
  end

  -- A client asks for something. What links do by themselves, such as a ping, is not of this kind.
  function lockstep.ask()
    any = true
  end

  -- A session wants frames. Returns how many are owed.
  function lockstep.advance(session, frames)
    wanted = wanted + frames
    goals[session] = { last = wanted, frames = frames }
    return wanted - done
  end

  -- How many frames are still to run of those that a session has asked for; its next requests wait for them.
  function lockstep.ahead(session)
    local goal = goals[session]
    if not goal then
      return 0
    elseif goal.last <= done then
      goals[session] = nil
      return 0
    end
    return goal.last - done
  end

  -- How many frames were run of how many that a session had asked for, if lockstep ended before the last of them; else nil.
  -- It is said once.
  function lockstep.take_cut(session)
    local found = cut[session]
    if not found then
      return nil
    end
    cut[session] = nil
    return found.run, found.asked
  end

  -- Whether the link that began it is gone, `passed` seconds after the last look.
  local function is_abandoned(passed)
    local connection = owner.connection
    if connection and (connection.heard or not connection.pinged) then
      connection.heard, unheard = false, 0
      return false
    end
    unheard = unheard + math.min(passed, MOST) -- a longer look is a pause of mGBA or of the machine, not of the link
    return unheard >= (connection and lockstep.SILENT or lockstep.GONE)
  end

  local function finish(reason)
    lockstep.stop()
    happenings.add(happenings.LOCKSTEP_OVER)
    log.warn("lockstep is over: %s; a frame has waited for %.1f s", reason, now)
    return false
  end

  -- Whether the next frame may not be run yet, `passed` seconds after the last call.
  function lockstep.waits(passed)
    if not lockstep.on or wanted > done then
      return false
    end
    now = now + passed
    if any then
      asked, any = now, false
    end
    if is_abandoned(passed) then
      return finish("the link that began it is gone")
    elseif now - asked >= timeout then
      return finish("nothing was asked for its time-out")
    elseif now >= lockstep.LONGEST then
      return finish("no frame was asked for")
    end
    return true
  end

  -- The frame is run now.
  function lockstep.run()
    now, asked, any = 0, 0, false
    if wanted > done then
      done = done + 1
    end
  end

  return lockstep
end)()

---- throttle ----------------------------------------------------------------------------------------------------------

parts.throttle = (function()
  -- How much memory requests may move in a frame. One that reads megabytes takes longer than a frame has time for, and it
  -- cannot be cut, as all of a batch is of one moment. So each frame has room for a number of bytes, and a request beyond
  -- them waits for the next one. A request that is larger than this room is done at once, but the processor time that such
  -- requests take is a small share of all time: they wait until the share has grown again. They never wait for longer than
  -- `large_wait`: a change keeps its place, so all later requests of its connection wait with it.

  local limits = require "limits"
  local lockstep = require "lockstep"
  local stopwatch = require "stopwatch"
  local ticks = require "ticks"

  local clock = os.clock


  local DEBT = limits.large_wait * limits.large_share -- seconds

  local throttle = {}

  local frame, moved = 0, 0 -- the bytes that were moved in this frame
  local credit = limits.large_seconds -- seconds that large requests may take
  local counted = 0 -- when that was counted, in seconds

  -- Adds what has been gained since the last time. Frames are counted where there is no clock.
  local function count_credit()
    local now = stopwatch.seconds() or ticks.now / ticks.per_second
    credit = math.min(limits.large_seconds, credit + limits.large_share * (now - counted))
    counted = now
  end

  -- Whether a request that moves this number of bytes may be done now. In lockstep frames wait for requests, not the other way
  -- round.
  function throttle.admits(bytes)
    if bytes == 0 or lockstep.on then
      return true
    elseif bytes > limits.frame_bytes then
      count_credit()
      return credit > 0
    end
    return frame ~= ticks.now or moved + bytes <= limits.frame_bytes
  end

  -- Does what moves this number of bytes, and counts it.
  function throttle.run(bytes, perform, ...)
    if bytes == 0 or lockstep.on then
      return perform(...)
    end
    if frame ~= ticks.now then
      frame, moved = ticks.now, 0
    end
    moved = moved + bytes
    if bytes <= limits.frame_bytes then
      return perform(...)
    end
    local start = clock()
    local result = perform(...)
    count_credit()
    credit = math.max(-DEBT, credit - (clock() - start))
    return result
  end

  return throttle
end)()

---- watches -----------------------------------------------------------------------------------------------------------

parts.watches = (function()
  -- Memory and keys that links watch: after each frame they are told what changed in it. A watch belongs to a connection.

  local connection = require "connection"
  local game = require "game"
  local limits = require "limits"
  local log = require "log"
  local memory = require "memory"
  local refusal = require "refusal"

  local concat, find, pack, unpack = table.concat, string.find, string.pack, string.unpack
  local refuse, BAD_ARGUMENT, BUSY = refusal.refuse, refusal.BAD_ARGUMENT, refusal.BUSY

  local WATCH_KEYS, WATCH_HASHES, WATCH_CLOCK = 1, 2, 4 -- flags
  local CHANGED = 1 -- the kind of item
  local KEYS = 0xFFFF -- in place of a range's number
  local DISCONTINUITY = 0xFFFE -- likewise: this frame does not follow from the last
  local NO_NEWS = {}

  local watches = {}

  local watching = {} -- the connections that watch something, those that ended until they are met
  local keys_watched = false
  local left = 0 -- the keys that were held when the last frame began, if they are watched

  -- Raises a refusal that names the range unless the console has it.
  local function check_place(number, name, address, length)
    local fine, problem
    if name == "" then
      fine, problem = pcall(memory.check_bus, address, length)
    else
      fine, problem = pcall(memory.check_domain, name, address, length)
    end
    if not fine and type(problem) == "table" then
      refuse(problem.status, "ranges[%d]: %s", number, problem.text)
    elseif not fine then
      error(problem, 0)
    end
  end

  local function read_ranges(bytes)
    local ranges, at, size = {}, 1, 0
    while at <= #bytes do
      if #ranges == limits.watch_ranges then
        refuse(BAD_ARGUMENT, "`ranges` holds more than %d; watch fewer, or longer ones", limits.watch_ranges)
      end
      local fine, name, address, length, next_at = pcall(unpack, "<s1I4I2", bytes, at)
      if not fine then
        refuse(BAD_ARGUMENT, "`ranges` ends within its range %d", #ranges)
      elseif length == 0 or length > limits.watch_length then
        refuse(BAD_ARGUMENT, "a range of `ranges` must have 1 to %d bytes, not %d", limits.watch_length, length)
      elseif find(name, "\0", 1, true) then
        refuse(BAD_ARGUMENT, "a domain of `ranges` holds a NUL character")
      end
      check_place(#ranges, name, address, length)
      ranges[#ranges + 1] = { domain = name ~= "" and name, address = address, length = length }
      at, size = next_at, size + length
    end
    return ranges, size
  end

  -- What a range holds; nil if its domain is gone, as another game was opened.
  local function read(core, range)
    local name = range.domain
    if not name then
      return core:readRange(range.address, range.length)
    end
    local domain = memory.find(name)
    return domain and domain:readRange(range.address, range.length) or nil
  end

  -- Ranges, bytes and watches of a connection, but for the watch with this id.
  local function watched(client, id)
    local ranges, size, count = 0, 0, 0
    for _, watch in ipairs(client.watches) do
      if watch.id ~= id then
        ranges, size, count = ranges + #watch.ranges, size + watch.size, count + 1
      end
    end
    return ranges, size, count
  end

  -- A new watch has to leave mGBA the time for its frames.
  local function check_room(client, id, ranges, size)
    local own_ranges, own_size, count = watched(client, id)
    if count >= limits.watches then
      refuse(BUSY, "this connection has %d watches already", count)
    elseif own_size + size > limits.watched_bytes then
      refuse(BUSY, "this connection watches %d bytes already; %d are the most", own_size, limits.watched_bytes)
    elseif own_ranges + ranges > limits.watched_ranges then
      refuse(BUSY, "this connection watches %d ranges already; %d are the most", own_ranges, limits.watched_ranges)
    end
    local all_ranges, all_size = own_ranges + ranges, own_size + size
    for _, other in ipairs(watching) do
      if other ~= client and other.socket then
        local more_ranges, more_size = watched(other)
        all_ranges, all_size = all_ranges + more_ranges, all_size + more_size
      end
    end
    if all_ranges > limits.all_ranges or all_size > limits.all_bytes then
      refuse(BUSY, "other connections watch too much already")
    end
  end

  -- Ends a watch, if there is one with that id.
  function watches.unwatch(client, id)
    for index, watch in ipairs(client.watches) do
      if watch.id == id then
        table.remove(client.watches, index)
        return
      end
    end
  end

  -- Begins a watch, in place of one with the same id. Gives what its ranges hold, joined.
  function watches.watch(client, id, every, flags, bytes)
    if flags & ~(WATCH_KEYS | WATCH_HASHES | WATCH_CLOCK) ~= 0 then
      refuse(BAD_ARGUMENT, "`flags` must be from 0 to 7, not %d", flags)
    elseif flags & WATCH_HASHES ~= 0 then
      refuse(refusal.UNSUPPORTED, "mGBA's Lua gives no hash of a picture; watch without that flag")
    elseif flags & WATCH_CLOCK ~= 0 then
      refuse(refusal.UNSUPPORTED, "mGBA's Lua cannot set the console's clock; watch without that flag")
    end
    local ranges, size = read_ranges(bytes)
    check_room(client, id, #ranges, size)
    local values = {}
    for index, range in ipairs(ranges) do
      values[index] = read(emu, range) or refuse(refusal.FAILED, "mGBA gave no answer")
    end
    watches.unwatch(client, id)
    if not client.is_watching then
      client.is_watching = true
      watching[#watching + 1] = client
    end
    table.insert(client.watches, {
      id = id,
      every = every,
      ranges = ranges,
      size = size,
      values = values, -- what the client knows
      keys = flags & WATCH_KEYS ~= 0,
      mask = nil, -- the keys that the client knows
      ticks = 0,
      breaks = game.breaks, -- of the order of frames, of those that the client knows
    })
    keys_watched = keys_watched or flags & WATCH_KEYS ~= 0
    return concat(values)
  end

  -- What is new for a watch after a frame: an item, or nil.
  local function look(core, watch)
    watch.ticks = watch.ticks + 1 & 0xFFFFFFFF
    local values, news, count = watch.values, NO_NEWS, 0
    for index, range in ipairs(watch.ranges) do
      local value = read(core, range)
      if value and value ~= values[index] then
        values[index] = value
        news, count = count > 0 and news or {}, count + 1
        news[count] = pack("<I2s4", index - 1, value)
      end
    end
    if watch.keys and watch.breaks ~= game.breaks then
      watch.breaks = game.breaks
      news, count = count > 0 and news or {}, count + 1
      news[count] = pack("<I2s4", DISCONTINUITY, string.char(game.broken_by))
    end
    if watch.keys and watch.mask ~= left then
      watch.mask = left
      news, count = count > 0 and news or {}, count + 1
      news[count] = pack("<I2I4I2", KEYS, 2, left)
    end
    if count > 0 or watch.every > 0 and watch.ticks % watch.every == 0 then
      return pack("<I1I4I4I2", CHANGED, watch.id, watch.ticks, count) .. concat(news)
    end
  end

  local function look_for(client, core)
    for _, watch in ipairs(client.watches) do
      keys_watched = keys_watched or watch.keys
      local item = look(core, watch)
      if item then
        client.news = client.news or {}
        table.insert(client.news, item)
      end
    end
  end

  -- A frame was run, and nothing was changed since: finds what changed in it. True if that is anything; it is in `news` of
  -- each connection.
  function watches.look()
    local core = emu
    if not core or #watching == 0 then
      return false
    end
    local kept, any = 0, false
    keys_watched = false
    for index = 1, #watching do
      local client = watching[index]
      watching[index] = nil
      client.is_watching = client.socket ~= nil and client.session ~= nil and #client.watches > 0
      if client.is_watching then
        kept = kept + 1
        watching[kept] = client
        local fine, problem = pcall(look_for, client, core)
        if not fine then
          log.error("%s", refusal.sentence(problem))
          connection.close(client, "an error in this script")
        end
        any = any or client.news ~= nil
      end
    end
    return any
  end

  -- The next frame is about to run. Keys of the keyboard come later, but before the next callback, and are held only in
  -- the frame behind it.
  function watches.leave()
    if keys_watched and emu then
      left = emu:getKeys() & 0x3FF
    end
  end

  return watches
end)()

---- operations --------------------------------------------------------------------------------------------------------

parts.operations = (function()
  -- The table of operations: each of them once. crates/protocol/src/op.rs has the same table for the other end.

  local arguments = require "arguments"
  local emulator = require "emulator"
  local game = require "game"
  local limits = require "limits"
  local lockstep = require "lockstep"
  local memory = require "memory"
  local refusal = require "refusal"
  local watches = require "watches"

  local domain, register, yes = memory.domain, emulator.register, emulator.yes
  local holds, timelines = emulator.holds, emulator.timelines
  local refuse, UNSUPPORTED = refusal.refuse, refusal.UNSUPPORTED
  local unpack = string.unpack

  local READ, CHANGE = "read", "change"
  local LINKED = true

  local by_code, by_name = {}, {}

  -- Defines an operation. `takes` is a list of "name:type", a default behind "=" for text messages. `run` gets the
  -- arguments and returns the result, or raises a refusal. An operation that is `linked` is a link's alone, whose
  -- connection `run` gets before the arguments.
  local function operation(code, name, effect, takes, result, run, linked)
    local op = { code = code, name = name, effect = effect, change = effect == CHANGE, result = result, run = run }
    op.game = true -- whether it needs one
    op.is_last = false -- whether it must be the last of its batch
    op.linked = linked or false
    op.arguments = {}
    local binary = "<"
    local narrow = false
    op.moved_at = nil -- the place of the argument that says how many bytes of memory it reads or writes
    for word in takes:gmatch("%S+") do
      local argument, kind, default = word:match("^([%w_]+):([%w_]+)=?(.*)$")
      local spec = { name = argument, kind = arguments.types[kind], default = tonumber(default) }
      binary = binary .. spec.kind.format
      table.insert(op.arguments, spec)
      narrow = narrow or spec.kind.narrow
      if spec.kind == arguments.types.length then
        op.moved_at = #op.arguments
      end
    end
    op.format, op.count = binary, #op.arguments
    if narrow then
      function op.run(...)
        for index, spec in ipairs(op.arguments) do
          arguments.check(spec, (select(linked and index + 1 or index, ...)))
        end
        return run(...)
      end
    end
    by_code[code], by_name[name] = op, op
    return op
  end

  operation(0x01, "echo", READ, "data:bytes", "bytes", arguments.as_it_is).game = false

  operation(0x10, "current_frame", READ, "", "int", function() return emu:currentFrame() end)
  operation(0x11, "frame_cycles", READ, "", "int", function() return emu:frameCycles() end)
  operation(0x12, "frequency", READ, "", "int", function() return emu:frequency() end)
  operation(0x13, "game_code", READ, "", "text", function() return emu:getGameCode() end)
  -- The last of a Game Boy's 16 letters came to mean colour: 0x80 or 0xC0.
  operation(0x14, "game_title", READ, "", "text", function()
    local title = emu:getGameTitle()
    return title and #title == 16 and title:gsub("[\x80-\xff]$", "") or title
  end)
  operation(0x15, "platform", READ, "", "int", function() return emu:platform() end)
  operation(0x16, "rom_size", READ, "", "int", function() return emu:romSize() end)
  operation(0x17, "checksum", READ, "", "int", function() return (unpack(">I4", emu:checksum())) end)

  local on_bus, in_domain = memory.check_bus, memory.check_domain

  operation(0x20, "read8", READ, "address:u32", "int", memory.read8).check = function(address) on_bus(address, 1) end
  operation(0x21, "read16", READ, "address:u32", "int", memory.read16).check = function(address) on_bus(address, 2) end
  operation(0x22, "read32", READ, "address:u32", "int", memory.read32).check = function(address) on_bus(address, 4) end
  operation(0x23, "read_range", READ, "address:u32 length:length", "bytes", function(address, length)
    return emu:readRange(address, length)
  end).check = on_bus
  operation(0x24, "write8", CHANGE, "address:u32 value:u8", "none", memory.write8).check = function(address)
    on_bus(address, 1, true)
  end
  operation(0x25, "write16", CHANGE, "address:u32 value:u16", "none", memory.write16).check = function(address)
    on_bus(address, 2, true)
  end
  operation(0x26, "write32", CHANGE, "address:u32 value:u32", "none", memory.write32).check = function(address)
    on_bus(address, 4, true)
  end
  -- Each byte is a call of mGBA's, so that more of them would freeze it for seconds.
  local function check_size(data)
    if #data > limits.write then
      refuse(refusal.BAD_ARGUMENT, "`data` must be at most %d bytes, not %d; write the rest with further requests",
        limits.write, #data)
    end
  end

  operation(0x27, "write_range", CHANGE, "address:u32 data:bytes", "none", function(address, data)
    check_size(data)
    memory.write_range(address, data)
  end).check = function(address, data)
    check_size(data)
    on_bus(address, #data, true)
  end

  operation(0x30, "domains", READ, "", "names", function()
    local names = {}
    for name in pairs(emu.memory) do
      names[#names + 1] = name
    end
    return names
  end)
  operation(0x31, "domain_base", READ, "domain:name", "int", function(name) return domain(name):base() end)
  operation(0x32, "domain_bound", READ, "domain:name", "int", function(name) return domain(name):bound() end)
  operation(0x33, "domain_name", READ, "domain:name", "text", function(name) return domain(name):name() end)
  operation(0x34, "domain_size", READ, "domain:name", "int", function(name) return domain(name):size() end)
  operation(0x35, "domain_read8", READ, "domain:name address:u32", "int", function(name, address)
    return domain(name):read8(address)
  end).check = function(name, address)
    in_domain(name, address, 1)
  end
  operation(0x36, "domain_read16", READ, "domain:name address:u32", "int", memory.domain_read16).check = function(
    name, address)
    in_domain(name, address, 2)
  end
  operation(0x37, "domain_read32", READ, "domain:name address:u32", "int", memory.domain_read32).check = function(
    name, address)
    in_domain(name, address, 4)
  end
  operation(0x38, "domain_read_range", READ, "domain:name address:u32 length:length", "bytes", function(name, address, length)
    return domain(name):readRange(address, length)
  end).check = in_domain
  operation(0x39, "domain_write8", CHANGE, "domain:name address:u32 value:u8", "none", memory.domain_write8).check = function(
    name, address)
    in_domain(name, address, 1, true)
  end
  operation(0x3a, "domain_write16", CHANGE, "domain:name address:u32 value:u16", "none",
    memory.domain_write16).check = function(name, address)
    in_domain(name, address, 2, true)
  end
  operation(0x3b, "domain_write32", CHANGE, "domain:name address:u32 value:u32", "none",
    memory.domain_write32).check = function(name, address)
    in_domain(name, address, 4, true)
  end

  operation(0x40, "read_register", READ, "register:name", "int", register)
  operation(0x41, "write_register", CHANGE, "register:name value:i32", "none", emulator.write_register)

  operation(0x50, "get_keys", READ, "", "int", function() return emu:getKeys() end)
  operation(0x51, "get_key", READ, "key:key", "int", function(key) return emu:getKey(key) end)
  operation(0x52, "set_keys", CHANGE, "keys:keys", "none", function(keys)
    timelines.let_go(0x3FF, emu:getKeys() & ~keys)
    emu:setKeys(keys)
  end)
  operation(0x53, "add_keys", CHANGE, "keys:keys", "none", function(keys)
    timelines.let_go(keys, 0)
    emu:addKeys(keys)
  end)
  operation(0x54, "clear_keys", CHANGE, "keys:keys", "none", function(keys)
    timelines.let_go(keys, emu:getKeys() & keys)
    emu:clearKeys(keys)
  end)
  operation(0x55, "hold_keys", CHANGE, "keys:keys frames:u32", "none", function(keys, frames)
    if keys == 0 then
      refuse(refusal.BAD_ARGUMENT, "`keys` names no key")
    end
    holds.hold(keys, frames)
  end)
  operation(0x56, "play_keys", CHANGE, "steps:bytes", "int", timelines.play)
  operation(0x57, "cancel_keys", CHANGE, "id:u32", "bool", timelines.cancel)
  operation(0x58, "timeline", READ, "id:u32", "names", timelines.describe)

  operation(0x60, "save_state", READ, "flags:flags=31", "bytes", function(flags)
    return emu:saveStateBuffer(flags) or refuse(refusal.FAILED, "mGBA could not save the state")
  end)
  operation(0x61, "load_state", CHANGE, "data:bytes flags:flags=29", "bool", emulator.load_state)
  operation(0x62, "save_state_file", CHANGE, "path:path flags:flags=31", "bool", emulator.save_state_file)
  operation(0x63, "load_state_file", CHANGE, "path:path flags:flags=29", "bool", function(path, flags)
    return game.note_state(emulator.load_state_file(path, flags))
  end)
  operation(0x64, "save_state_slot", CHANGE, "slot:slot flags:flags=31", "bool", function(slot, flags)
    return yes(emu:saveStateSlot(slot, flags))
  end)
  operation(0x65, "load_state_slot", CHANGE, "slot:slot flags:flags=29", "bool", function(slot, flags)
    return game.note_state(yes(emu:loadStateSlot(slot, flags)))
  end)

  operation(0x70, "load_file", CHANGE, "path:path", "bool", function(path)
    local loaded = emulator.exchange_rom(path)
    if loaded then
      game.note(game.GAME)
      game.check()
    end
    return loaded
  end)
  operation(0x71, "load_rom", CHANGE, "path:path", "bool", function(path)
    emulator.load_rom(path)
    emulator.reset()
    game.check_break()
    return true
  end)
  operation(0x72, "load_save_file", CHANGE, "path:path temporary:boolean", "bool", function(path, temporary)
    return emulator.load_save_file(path, temporary == 1)
  end)
  operation(0x73, "autoload_save", CHANGE, "", "bool", function() return yes(emu:autoloadSave()) end)

  operation(0x80, "reset", CHANGE, "", "none", emulator.reset)
  operation(0x81, "step", CHANGE, "", "none", emulator.step)
  operation(0x82, "pause", CHANGE, "", "none", function()
    refuse(UNSUPPORTED, "mGBA's Lua cannot pause; pause in its window, or use lockstep")
  end).game = false
  operation(0x83, "resume", CHANGE, "", "none", lockstep.stop).game = false
  operation(0x84, "set_speed", CHANGE, "thousandths:u32", "none", function()
    refuse(UNSUPPORTED, "mGBA's Lua cannot set the speed; its window can")
  end).game = false
  operation(0x85, "advance", CHANGE, "frames:frames", "int", function(client, frames)
    if not lockstep.on then
      refuse(UNSUPPORTED, "mGBA's Lua cannot run frames; begin lockstep, in which each frame waits for `advance`")
    end
    return emulator.frame() + lockstep.advance(client.session, frames) & 0xFFFFFFFF
  end, LINKED).is_last = true
  operation(0x86, "lockstep", CHANGE, "timeout:timeout", "none", function(client, timeout)
    if timeout == 0 then
      lockstep.stop()
    else
      lockstep.begin(client.session, timeout / 1000)
    end
  end, LINKED)

  operation(0x90, "screenshot", READ, "", "bytes", emulator.screenshot)
  operation(0x91, "screenshot_file", CHANGE, "path:path", "none", emulator.screenshot_file)

  operation(0xa0, "console_log", CHANGE, "message:text", "none", function(text) console:log(text) end).game = false
  operation(0xa1, "console_warn", CHANGE, "message:text", "none", function(text) console:warn(text) end).game = false
  operation(0xa2, "console_error", CHANGE, "message:text", "none", function(text) console:error(text) end).game = false

  operation(0xb0, "watch", READ, "id:u32 every:u32 flags:u8 ranges:bytes", "bytes", watches.watch, LINKED)
  operation(0xb1, "unwatch", READ, "id:u32", "none", watches.unwatch, LINKED)

  by_name.write_range.moved_at = 2

  local WRITE_COST = 64 -- a byte is written by a call of its own, and read with many others

  -- How many bytes of memory an operation with these arguments moves, as many as it would read in the same time.
  local function moved_bytes(op, a, b, c)
    local place = op.moved_at
    if not place then
      return 0
    end
    local value = place == 2 and b or place == 3 and c or a
    return type(value) == "string" and WRITE_COST * #value or value
  end

  -- Does an operation for a link's connection, or nil for a text message. True and its result, or false, a status and what
  -- was wrong.
  local function attempt(op, client, a, b, c, d)
    if op.game and not emu then
      return false, refusal.NO_GAME, "no game is loaded in mGBA"
    end
    local done, result
    if op.linked then
      done, result = pcall(op.run, client, a, b, c, d)
    else
      done, result = pcall(op.run, a, b, c, d)
    end
    if done and (result ~= nil or op.result == "none") then
      return true, result
    end
    if done then
      return false, refusal.FAILED, "mGBA gave no answer"
    end
    if type(result) == "table" then
      return false, result.status, result.text
    end
    return false, refusal.FAILED, "mGBA refused: " .. refusal.sentence(result)
  end

  return { by_code = by_code, by_name = by_name, attempt = attempt, moved_bytes = moved_bytes }
end)()

---- readahead ---------------------------------------------------------------------------------------------------------

parts.readahead = (function()
  -- Reads the ROM for a request in small parts, a few in each frame, before the request is done. All of a batch is of one
  -- moment, and most memory changes from frame to frame; a ROM does not, so what was read of it earlier is as good. Some
  -- cartridges have ports at its beginning, such as a clock's, which do change: the beginning is read last, with the rest of
  -- the batch.

  local limits = require "limits"
  local memory = require "memory"
  local operations = require "operations"

  local GAME_BOY_ADVANCE = 0
  local ROM_START, ROM_END = 0x08000000, 0x0E000000 -- on its bus
  local ROM_DOMAINS = { cart0 = true, cart1 = true, cart2 = true }

  local read_range, domain_read_range = operations.by_name.read_range, operations.by_name.domain_read_range

  local readahead = {}

  -- Where the address and the length of an operation that reads much of the ROM are, counted from its place in a request;
  -- nil if it is another.
  local function address_place(request, place)
    local op, a, b, c = request[place], request[place + 1], request[place + 2], request[place + 3]
    local base, length
    if op == read_range then
      base, length = a - ROM_START, b
    elseif op == domain_read_range and ROM_DOMAINS[a] then
      base, length = b, c
    end
    if not base or length <= limits.read_part or base < 0 or base + length > ROM_END - ROM_START then
      return nil
    end
    return op == read_range and 1 or 2
  end

  -- Begins to read for a request, if that helps. A reply to one that changes something is remembered, and so made as a whole.
  function readahead.begin(request)
    if request.change or request.moved <= limits.frame_bytes or not emu or emu:platform() ~= GAME_BOY_ADVANCE then
      return false
    end
    local list, rest = {}, request.moved
    for place = 1, 5 * request.count, 5 do
      local at = address_place(request, place)
      if at then
        local length = request[place + at + 1]
        table.insert(list, 1, { place = place, at = at, length = length, parts = {}, rest = length })
        rest = rest - length
      end
    end
    if rest > limits.frame_bytes then
      return false
    end
    request.ahead, request.ahead_index = list, 1
    request.ahead_game, request.ahead_writes = emu:checksum(), memory.rom_writes
    request.moved = rest
    return true
  end

  local function give_up(request)
    for _, each in ipairs(request.ahead) do
      request.moved = request.moved + each.length
    end
    request.ahead = nil
  end

  -- Reads the last part that is missing.
  local function read_part(request, each)
    local op, a, b = request[each.place], request[each.place + 1], request[each.place + 2]
    local index = (each.rest - 1) // limits.read_part
    local offset = index * limits.read_part
    local count = each.rest - offset
    local fine, part
    if each.at == 1 then
      fine, part = pcall(op.run, a + offset, count)
    else
      fine, part = pcall(op.run, a, b + offset, count)
    end
    each.parts[index + 1], each.rest = part, offset
    return fine and type(part) == "string" and #part == count
  end

  -- Whether the ROM is another than when the request began to read.
  local function is_changed(request)
    return not emu or emu:checksum() ~= request.ahead_game or memory.rom_writes ~= request.ahead_writes
  end

  -- Reads a part. True if there is no more to read ahead: then the request has to be done at once.
  function readahead.go_on(request)
    local each = request.ahead[request.ahead_index]
    if is_changed(request) or not read_part(request, each) then
      give_up(request)
      return true
    elseif each.rest == 0 then
      request.ahead_index = request.ahead_index + 1
    end
    return request.ahead_index > #request.ahead
  end

  -- The parts that were read for the operation at a place of a request; nil if none were.
  function readahead.parts(request, place)
    local ahead = request.ahead
    if not ahead then
      return nil
    end
    for _, each in ipairs(ahead) do
      if each.place == place then
        return each.parts, each.length
      end
    end
    return nil
  end

  return readahead
end)()

---- messages ----------------------------------------------------------------------------------------------------------

parts.messages = (function()
  -- mGBA-http's text messages, on top of the table of operations.

  local arguments = require "arguments"
  local inbox = require "inbox"
  local limits = require "limits"
  local lockstep = require "lockstep"
  local log = require "log"
  local operations = require "operations"
  local refusal = require "refusal"
  local throttle = require "throttle"
  local version = require "version"

  local find, format, sub = string.find, string.format, string.sub
  local refuse, sentence, BAD_ARGUMENT = refusal.refuse, refusal.sentence, refusal.BAD_ARGUMENT
  local types, attempt, moved_bytes = arguments.types, operations.attempt, operations.moved_bytes

  local SUCCESS, ERROR = "<|SUCCESS|>", "<|ERROR|>"
  local END = inbox.END

  -- Messages that stand for no operation.
  local ABOUT_CONNECTION = { ["framewire.version"] = true, ["framewire.hello"] = true }

  -- A result as text, by its type.
  local WRITE = {
    none = function() return SUCCESS end,
    bool = function(value) return value and "true" or "false" end,
    int = function(value) return format("%d", value) end,
    text = refusal.printable,
    bytes = arguments.to_hex,
    names = function(value) return table.concat(value, ",") end,
  }

  local messages = {} -- by key

  -- Defines a text message: the operation it stands for and, where they differ from the operation's, its arguments and
  -- how the result is written. `last` is an argument of the operation that the message does not carry.
  local function message(key, name, takes, last, write)
    local op = operations.by_name[name]
    local specs = op.arguments
    if takes then
      specs = {}
      for argument, kind in takes:gmatch("([%w_]+):([%w_]+)") do
        table.insert(specs, { name = argument, kind = types[kind] })
      end
    end
    local free -- the argument that may hold commas
    for index, spec in ipairs(specs) do
      free = spec.kind.free and index or free
    end
    messages[key] = { op = op, specs = specs, free = free, last = last, write = write or WRITE[op.result] }
  end

  message("core.addKey", "add_keys", "key:key_mask")
  message("core.addKeys", "add_keys")
  message("core.autoloadSave", "autoload_save")
  message("core.checksum", "checksum")
  message("core.clearKey", "clear_keys", "key:key_mask")
  message("core.clearKeys", "clear_keys")
  message("core.currentFrame", "current_frame")
  message("core.frameCycles", "frame_cycles")
  message("core.frequency", "frequency")
  message("core.getGameCode", "game_code")
  message("core.getGameTitle", "game_title")
  message("core.getKey", "get_key")
  message("core.getKeys", "get_keys")
  message("core.loadFile", "load_file")
  message("core.loadSaveFile", "load_save_file")
  message("core.loadStateBuffer", "load_state")
  message("core.loadStateFile", "load_state_file")
  message("core.loadStateSlot", "load_state_slot")
  message("core.platform", "platform")
  message("core.read8", "read8")
  message("core.read16", "read16")
  message("core.read32", "read32")
  message("core.readRange", "read_range")
  message("core.readRegister", "read_register")
  message("core.romSize", "rom_size")
  message("core.saveStateBuffer", "save_state")
  message("core.saveStateFile", "save_state_file")
  message("core.saveStateSlot", "save_state_slot")
  message("core.screenshot", "screenshot_file")
  message("core.setKeys", "set_keys")
  message("core.step", "step")
  message("core.write8", "write8")
  message("core.write16", "write16")
  message("core.write32", "write32")
  message("core.writeRegister", "write_register")

  message("console.error", "console_error")
  message("console.log", "console_log")
  message("console.warn", "console_warn")

  message("coreAdapter.memory", "domains")
  message("coreAdapter.reset", "reset")

  message("memoryDomain.base", "domain_base")
  message("memoryDomain.bound", "domain_bound")
  message("memoryDomain.name", "domain_name")
  message("memoryDomain.read8", "domain_read8")
  message("memoryDomain.read16", "domain_read16")
  message("memoryDomain.read32", "domain_read32")
  message("memoryDomain.readRange", "domain_read_range")
  message("memoryDomain.size", "domain_size")
  message("memoryDomain.write8", "domain_write8")
  message("memoryDomain.write16", "domain_write16")
  message("memoryDomain.write32", "domain_write32")

  local TAP_FRAMES = 15

  message("mgba-http.button.add", "add_keys", "button:button")
  message("mgba-http.button.addMany", "add_keys", "buttons:buttons")
  message("mgba-http.button.clear", "clear_keys", "button:button")
  message("mgba-http.button.clearMany", "clear_keys", "buttons:buttons")
  message("mgba-http.button.get", "get_key", "button:button_key")
  message("mgba-http.button.getAll", "get_keys", nil, nil, function(keys)
    return arguments.names(keys, ",")
  end)
  message("mgba-http.button.tap", "hold_keys", "button:button", TAP_FRAMES)
  message("mgba-http.button.tapMany", "hold_keys", "buttons:buttons", TAP_FRAMES)
  message("mgba-http.button.hold", "hold_keys", "button:button duration:u32")
  message("mgba-http.button.holdMany", "hold_keys", "buttons:buttons duration:u32")
  message("mgba-http.extension.loadFile", "load_rom")

  message("framewire.echo", "echo", "text:text", nil, arguments.as_it_is)

  -- One argument from its text; nil or nothing but white space stands for its default.
  local function read_argument(spec, text)
    local kind = spec.kind
    if not kind.free and (not text or not find(text, "%S")) then
      return spec.default or refuse(BAD_ARGUMENT, "`%s` is missing", spec.name)
    end
    local value = kind.read(text or "")
    if value == nil then
      refuse(BAD_ARGUMENT, "`%s` must be %s, not %q", spec.name, kind.expected, sentence(text))
    end
    arguments.check(spec, value)
    return value
  end

  -- The arguments behind a text that may hold commas: taken from the right, each that can be read as what it should be.
  local function read_from_right(specs, free, rest, values)
    for index = #specs, free + 1, -1 do
      local spec = specs[index]
      local front, last = rest:match("^(.*),(.-)$")
      local blank = last and not find(last, "%S")
      if last and (blank or spec.kind.read(last) ~= nil) then
        values[index] = read_argument(spec, last)
        rest = front
      elseif spec.default then
        values[index] = spec.default
      else
        refuse(BAD_ARGUMENT, "`%s` must be the last argument: %s", spec.name, spec.kind.expected)
      end
    end
    values[free] = read_argument(specs[free], rest)
  end

  local function read_from_left(specs, rest, values)
    for index, spec in ipairs(specs) do
      local text = rest
      local bracketed = spec.kind == types.bytes
      if bracketed and rest then
        text, rest = rest:match("^%s*%[([^%]]*)%]%s*,?(.*)$")
        values[index] = text and arguments.from_hex(text)
          or refuse(BAD_ARGUMENT, "`%s` must be %s", spec.name, spec.kind.expected)
      else
        local comma = rest and find(rest, ",", 1, true)
        if comma then
          text, rest = sub(rest, 1, comma - 1), sub(rest, comma + 1)
        else
          rest = nil
        end
        values[index] = read_argument(spec, text)
      end
    end
    if rest and find(rest, "[^,%s]") then
      refuse(BAD_ARGUMENT, "there are more arguments than the %d that are known: %q", #specs, sentence(rest))
    end
  end

  -- The operation's arguments from all that stands behind a message's key and comma. Raises a refusal.
  local function read_arguments(entry, rest)
    local specs = entry.specs
    local values = { nil, nil, nil }
    if entry.free then
      read_from_right(specs, entry.free, rest or "", values)
    else
      read_from_left(specs, rest, values)
    end
    if entry.last then
      values[#specs + 1] = entry.last
    end
    if entry.op.moved_at == #specs and type(values[#specs]) == "number" and values[#specs] > limits.text_range then
      refuse(BAD_ARGUMENT, "`length` must be at most %d in a text message, not %d; ask for less at once, or by a link's frames",
        limits.text_range, values[#specs])
    end
    return values[1], values[2], values[3]
  end

  local function perform(entry, key, a, b, c)
    local done, result, problem = attempt(entry.op, nil, a, b, c)
    if done then
      return entry.write(result)
    end
    log.warn("%s: %s", key, problem)
    -- What mGBA-http answers where something was tried and did not succeed: its clients know no reasons.
    return result == refusal.FAILED and entry.op.result == "bool" and "false" or ERROR
  end

  local TEXT_COST = 4 -- a byte takes longer as hexadecimal digits than by itself

  -- The reply to a message; both without their end. Nil if the message has to wait for another frame.
  local function answer(text)
    local comma = find(text, ",", 1, true)
    local key = comma and sub(text, 1, comma - 1) or text
    local entry = messages[key]
    if not entry then
      if key == "framewire.version" then
        return "framewire " .. version.script
      end
      log.warn("unknown message %q", sentence(key))
      return ERROR
    end
    lockstep.ask()
    local read, a, b, c = pcall(read_arguments, entry, comma and sub(text, comma + 1))
    if not read then
      log.warn("%s: %s", key, type(a) == "table" and a.text or sentence(a))
      return ERROR
    end
    local moved = TEXT_COST * moved_bytes(entry.op, a, b, c)
    if not throttle.admits(moved) then
      return nil
    end
    return throttle.run(moved, perform, entry, key, a, b, c)
  end

  local LONGEST_KEY = 64 -- characters; that of a known one is shorter

  -- Whether a connection begins with a known message: true, false, or nil if what has arrived of it does not say yet. The
  -- second result is true if it is at least a message, with a key that is not known.
  local function begins_known(bytes)
    local key, rest = bytes:match("^%s*([%w._-]*)(.*)$")
    local first_end = sub(rest, 1, #END)
    if #key > LONGEST_KEY or #bytes > limits.small_read and key == "" then
      return false, false
    elseif sub(rest, 1, 1) == "," or first_end == END then
      local known = messages[key] ~= nil or ABOUT_CONNECTION[key] == true
      return known, not known
    elseif first_end == sub(END, 1, #first_end) then
      return nil
    end
    return false, false
  end

  return { answer = answer, begins_known = begins_known, ERROR = ERROR }
end)()

---- frames ------------------------------------------------------------------------------------------------------------

parts.frames = (function()
  -- The binary form of requests and replies; docs/protocol.md describes it.

  local limits = require "limits"
  local operations = require "operations"
  local refusal = require "refusal"

  local byte, pack, sub, unpack = string.byte, string.pack, string.sub, string.unpack
  local printable, by_code, moved_bytes = refusal.printable, operations.by_code, operations.moved_bytes

  -- The bit of a request's count that says that its addresses are not checked.
  local UNCHECKED = 0x8000

  local frames = {
    -- Kinds of frames.
    REQUEST = 1,
    REPLY = 2,
    CANCEL = 3,
    PING = 4,
    PONG = 5,
    GOODBYE = 6,
    KEYED_REQUEST = 7,
    EVENT = 8,
    TRACE = 9,
  }

  -- A result with its status, 0, and its tag in front, by its type.
  frames.encode = {
    none = function() return "\0\0" end,
    bool = function(value) return value and "\0\2" or "\0\1" end,
    int = function(value) return pack("<I2i8", 0x0300, value) end,
    text = function(value) return pack("<I2s4", 0x0400, printable(value)) end,
    bytes = function(value) return pack("<I2s4", 0x0500, value) end,
    names = function(value)
      local items = { pack("<I2I2", 0x0600, #value) }
      for index, name in ipairs(value) do
        items[index + 1] = pack("<I1s4", 4, printable(name))
      end
      return table.concat(items)
    end,
  }

  -- The result of an operation that was refused.
  function frames.encode_refusal(status, text)
    return pack("<I1s4", status, printable(text))
  end

  -- What stands in front of a result of this number of bytes.
  function frames.encode_bytes_head(length)
    return pack("<I2I4", 0x0500, length)
  end

  -- A reply frame up to its results, whose number and encoded size are given.
  function frames.encode_reply_head(id, frame, count, size)
    return pack("<I4I1I4I4I2", 11 + size, frames.REPLY, id, frame, count)
  end

  -- A whole reply frame from encoded results, joined.
  function frames.encode_reply(id, frame, count, results)
    return frames.encode_reply_head(id, frame, count, #results) .. results
  end

  -- The reply frame to a batch that ended with `advance`, which did not go to the frame that it was to reach but to this one.
  function frames.at_frame(reply, frame)
    local front, results = sub(reply, 1, 9), sub(reply, 14)
    if sub(results, -10, -9) == "\0\3" then
      results = sub(results, 1, -9) .. pack("<i8", frame)
    end
    return front .. pack("<I4", frame) .. results
  end

  -- As `at_frame`, with a refusal in place of what `advance` gave.
  function frames.with_refusal(reply, frame, status, text)
    local _, _, id, _, count, at = unpack("<I4I1I4I4I2", reply)
    local results = sub(reply, at)
    if sub(results, -10, -9) == "\0\3" then
      results = sub(results, 1, -11) .. frames.encode_refusal(status, text)
    end
    return frames.encode_reply(id, frame, count, results)
  end

  function frames.encode_pong(id, frame)
    return pack("<I4I1I4I4", 9, frames.PONG, id, frame)
  end

  function frames.encode_goodbye(reason)
    return pack("<I4I1s4", 5 + #reason, frames.GOODBYE, reason)
  end

  -- A whole event frame from items, joined.
  function frames.encode_event(frame, count, items)
    return pack("<I4I1I4I2", 7 + #items, frames.EVENT, frame, count) .. items
  end

  -- Reads what the request behind it is called in logs: its id and the name; nil if it cannot be decoded.
  function frames.decode_trace(data, at, stop)
    if stop - at < 9 or stop - at > 8 + limits.trace then
      return nil
    end
    local id, length = unpack("<I4I4", data, at)
    if length ~= stop - at - 8 then
      return nil
    end
    return id, printable(sub(data, at + 8, stop - 1))
  end

  -- Reads a request whose id is at `at` and which ends before `stop`; nil if it cannot be decoded. The operations are in
  -- the array part, five places each: the operation and up to four arguments.
  function frames.decode_request(data, at, stop, is_keyed)
    if stop - at < 10 then
      return nil
    end
    local id, answered, key, count, next_at
    if is_keyed then
      local fine
      fine, id, answered, key, count, next_at = pcall(unpack, "<I4I4s1I2", data, at)
      if not fine or next_at > stop then
        return nil
      end
    else
      id, answered, count, next_at = unpack("<I4I4I2", data, at)
    end
    local unchecked = count & UNCHECKED ~= 0
    count = count & ~UNCHECKED
    local request = { id = id, answered = answered, key = key, count = count, change = false, moved = 0,
      unchecked = unchecked }
    if key then
      request.batch = sub(data, next_at - 2, stop - 1)
    end
    if count > limits.ops then
      return nil
    end
    for place = 1, 5 * count, 5 do
      local op = next_at < stop and by_code[byte(data, next_at)]
      if not op then
        return nil
      end
      local fine, a, b, c, d, e = pcall(unpack, op.format, data, next_at + 1)
      if not fine then
        return nil
      end
      request[place] = op
      request.change = request.change or op.change
      if op.count == 0 then
        next_at = a
      elseif op.count == 1 then
        request[place + 1], next_at = a, b
      elseif op.count == 2 then
        request[place + 1], request[place + 2], next_at = a, b, c
      elseif op.count == 3 then
        request[place + 1], request[place + 2], request[place + 3], next_at = a, b, c, d
      else
        request[place + 1], request[place + 2], request[place + 3], request[place + 4], next_at = a, b, c, d, e
      end
      if next_at > stop then
        return nil
      end
      if op.moved_at then
        request.moved = request.moved + moved_bytes(op, request[place + 1], request[place + 2], request[place + 3])
      end
    end
    return next_at == stop and request or nil
  end

  return frames
end)()

---- requests ----------------------------------------------------------------------------------------------------------

parts.requests = (function()
  -- Doing what a request asks for.

  local emulator = require "emulator"
  local frames = require "frames"
  local limits = require "limits"
  local lockstep = require "lockstep"
  local log = require "log"
  local operations = require "operations"
  local readahead = require "readahead"
  local refusal = require "refusal"

  local attempt, encode, encode_refusal = operations.attempt, frames.encode, frames.encode_refusal

  local MAX_RESULTS = limits.frame - 1024
  local TOO_LARGE = encode_refusal(refusal.TOO_LARGE, "the reply would be larger than 24 MiB; ask for less at once")

  local requests = {}

  -- The reply frame to a request that is refused as a whole.
  function requests.refused(id, status, text)
    return frames.encode_reply(id, emulator.frame(), 1, encode_refusal(status, text))
  end

  -- Refusals of operations that were not begun: the same may be done a moment later.
  local NOT_BEGUN = {
    [refusal.BAD_ARGUMENT] = true,
    [refusal.UNSUPPORTED] = true,
    [refusal.NO_GAME] = true,
    [refusal.BUSY] = true,
  }

  local NOT_DONE = encode_refusal(refusal.NOT_DONE, "not done: a later operation of this batch is refused")

  -- Loads another game, so that the memory of what follows is known only then.
  local LOADS = { load_file = true, load_rom = true }

  -- Whether the memory is there that the operation at `place` in a request is for; if not, a status and what is wrong too.
  local function check(request, place)
    local op = request[place]
    if not op.check or not emu then
      return true
    end
    local fine, problem = pcall(op.check, request[place + 1], request[place + 2], request[place + 3])
    if fine then
      return true
    elseif type(problem) == "table" then
      return false, problem.status, problem.text
    end
    return false, refusal.FAILED, "mGBA refused: " .. refusal.sentence(problem)
  end

  -- Looks at the memory of all operations before anything is done, as far as it is known. Gives up to which of them that is,
  -- or nil, the reply frame's results and how many they are.
  local function check_all(request)
    if request.unchecked then
      return request.count
    end
    for index = 1, request.count do
      local fine, status, problem = check(request, 5 * index - 4)
      if not fine then
        log.debug("%s: %s", request[5 * index - 4].name, problem)
        return nil, NOT_DONE:rep(index - 1) .. encode_refusal(status, problem), index
      elseif LOADS[request[5 * index - 4].name] then
        return index
      end
    end
    return request.count
  end

  -- Does an operation that is at `place` in a request, the last one or not.
  local function perform_one(request, place, is_last, client, checked)
    local op = request[place]
    if not checked then
      local fine, status, problem = check(request, place)
      if not fine then
        return false, status, problem
      end
    end
    if op.is_last and not is_last then
      return false, refusal.BAD_ARGUMENT, "`" .. op.name .. "` must be the last operation of its batch"
    end
    return attempt(op, client, request[place + 1], request[place + 2], request[place + 3], request[place + 4])
  end

  -- Does a request's operations in order, up to the first that fails, for a client's connection. Gives the reply frame, and
  -- whether anything may have been changed. If bytes were read ahead for the request, the reply is a list of its parts: joining
  -- them would take long.
  function requests.perform(request, client)
    local results, count, size = {}, 0, 0
    local changed = false
    lockstep.ask()
    local known, refused, refused_count = check_all(request)
    if not known then
      return frames.encode_reply(request.id, emulator.frame(), refused_count, refused), false
    end
    for index = 1, request.count do
      local place = 5 * index - 4
      local op = request[place]
      local pieces, length = readahead.parts(request, place)
      local done, result, problem = true, nil, nil
      if not pieces then
        done, result, problem = perform_one(request, place, index == request.count, client, index <= known)
        length = 0
      end
      local encoded
      if op.change and (done or not NOT_BEGUN[result]) then
        changed = true
      end
      if request.trace then
        log.debug("request %s: %s %s", request.trace, op.name, done and "done" or problem)
      elseif not done then
        log.debug("%s: %s", op.name, problem)
      end
      if pieces then
        encoded = frames.encode_bytes_head(length)
      elseif done then
        encoded = encode[op.result](result)
      else
        encoded = encode_refusal(result, problem)
      end
      if size + #encoded + length > MAX_RESULTS then
        done, encoded, pieces, length = false, TOO_LARGE, nil, 0
      end
      count, size = index, size + #encoded + length
      results[#results + 1] = encoded
      if pieces then
        table.move(pieces, 1, #pieces, #results + 1, results)
      end
      if not done then
        break
      end
    end
    local frame = emulator.frame() + lockstep.ahead(client and client.session) & 0xFFFFFFFF
    local head = frames.encode_reply_head(request.id, frame, count, size)
    if request.ahead then
      table.insert(results, 1, head)
      return results, changed
    end
    return head .. table.concat(results), changed
  end

  return requests
end)()

---- keyed -------------------------------------------------------------------------------------------------------------

parts.keyed = (function()
  -- Replies by the keys that callers chose, for repetitions that outlive a session: a bridge that was killed and started
  -- again, a client that never heard the answer.
  --
  -- A key is never forgotten before its time: when there are too many, requests with new ones are refused. When the replies
  -- are too large together the oldest are dropped and their keys are not, so that a repeat is refused rather than done again.
  -- The embedded core has the same rules.

  local limits = require "limits"
  local refusal = require "refusal"
  local stopwatch = require "stopwatch"

  local pack, sub, unpack = string.pack, string.sub, string.unpack

  -- The words are those of crates/protocol/src/error.rs.
  local USED = "the key was used for another request; choose a new one"
  local DROPPED = "it was done before, and its reply is not kept any more"
  local FULL = "the emulator remembers as many keys as it can, each for 10 minutes; send the request again later, or without a "
    .. "key if it may be done twice"

  local UNDER_WAY = "the frames of the request with this key are still to run; send it again when they were run"

  local SMALL = 64 -- bytes of what was asked for that are kept as they are
  local MULTIPLIER = 0x9E3779B97F4A7C15

  local keyed = {}

  local digests, replies = {}, {} -- by key: what was asked for, and the reply
  local under_way = {} -- the keys whose reply is not final yet
  local order, times = {}, {} -- the keys in the order they were done, and when, from `first` to `last`
  local first, last = 1, 0
  local whole = 1 -- the first in `order` whose reply was not dropped
  local bytes = 0 -- of the replies

  local elapsed, seen = 0, os.time()

  -- Seconds that go by, also when somebody sets the system's time; where the script has no other clock, when they set it back.
  local function seconds()
    local measured = stopwatch.seconds()
    if measured then
      return measured
    end
    local now = os.time()
    elapsed = elapsed + math.max(0, now - seen)
    seen = now
    return elapsed
  end

  -- What is compared of two batches: a small one itself, of a large one a hash over all its bytes.
  local function digest(batch)
    local length = #batch
    if length <= SMALL then
      return batch
    end
    local hash = length
    for at = 1, length - 31, 32 do
      local a, b, c, d = unpack("<i8i8i8i8", batch, at)
      hash = (hash ~ a) * MULTIPLIER
      hash = (hash ~ hash >> 32 ~ b) * MULTIPLIER
      hash = (hash ~ hash >> 32 ~ c) * MULTIPLIER
      hash = (hash ~ hash >> 32 ~ d) * MULTIPLIER
      hash = hash ~ hash >> 32
    end
    for at = length - 31, length - 7, 8 do
      hash = (hash ~ unpack("<i8", batch, at)) * MULTIPLIER
      hash = hash ~ hash >> 32
    end
    return pack("<i8i8", length, hash)
  end

  local function drop(key)
    bytes = bytes - #(replies[key] or "")
    replies[key] = nil
  end

  -- Forgets the keys whose time is over.
  local function expire(now)
    while first <= last and now - times[first] >= limits.keyed_seconds do
      local key = order[first]
      drop(key)
      digests[key], under_way[key], order[first], times[first] = nil, nil, nil, nil
      first = first + 1
    end
    whole = math.max(whole, first)
  end

  -- The reply that was given to a batch under a key, as the one to request `id`; nil if the key is new. If the batch cannot be
  -- done under this key, nil with a status and a text.
  function keyed.recall(key, batch, id)
    expire(seconds())
    local known = digests[key]
    if not known then
      if last - first + 1 >= limits.keyed_replies then
        return nil, refusal.BUSY, FULL
      end
      return nil
    end
    if known ~= digest(batch) then
      return nil, refusal.BAD_ARGUMENT, USED
    elseif under_way[key] then
      return nil, refusal.BUSY, UNDER_WAY
    end
    local reply = replies[key]
    if not reply then
      return nil, refusal.LOST, DROPPED
    end
    return sub(reply, 1, 5) .. pack("<I4", id) .. sub(reply, 10)
  end

  local function drop_oldest_replies()
    while bytes > limits.reply_bytes do
      drop(order[whole])
      whole = whole + 1
    end
  end

  -- Keeps the reply to a batch of a key that is new; if it `is_under_way`, until `replace` gives the final one.
  function keyed.remember(key, batch, reply, is_under_way)
    last = last + 1
    order[last], times[last] = key, seconds()
    digests[key], replies[key], under_way[key] = digest(batch), reply, is_under_way or nil
    bytes = bytes + #reply
    drop_oldest_replies()
  end

  -- Puts the final reply in place of one that was under way.
  function keyed.replace(key, reply)
    under_way[key] = nil
    if replies[key] then
      bytes = bytes + #reply - #replies[key]
      replies[key] = reply
      drop_oldest_replies()
    end
  end

  return keyed
end)()

---- sessions ----------------------------------------------------------------------------------------------------------

parts.sessions = (function()
  -- A session outlives its connections. It remembers the replies to requests that changed something until the link says
  -- that it has them, so that a request which is repeated after a broken connection is answered but not done again.
  -- Requests that only look are not remembered: repeated, they look again.
  --
  -- When the replies are too large together the oldest are dropped, and a repeat is told so. When they are too many,
  -- requests that change something are refused as busy until the link has caught up.

  local emulator = require "emulator"
  local frames = require "frames"
  local keyed = require "keyed"
  local limits = require "limits"
  local lockstep = require "lockstep"
  local refusal = require "refusal"
  local requests = require "requests"

  local CUT = "lockstep ended after %d of %d frames; the others run as mGBA has them run"

  local sessions = {}

  local unfinished = {} -- those whose late reply is not final yet

  -- A session that was never used.
  function sessions.new()
    return {
      replies = {}, -- id to the reply, or to false when it was dropped
      order = {}, -- the ids in the order they were done, from `first` to `last`
      first = 1,
      last = 0,
      kept = 1, -- the first in `order` whose reply was not dropped
      bytes = 0,
      answered = nil, -- every request before this one was answered and is forgotten
      connection = nil,
      late = nil, -- the reply to an `advance` that waits for its frames: with its id, key and connection
      used = 0, -- a count that says which session was used last
    }
  end

  -- Whether id `a` comes before `b`, ids going round at 2^32.
  local function before(a, b)
    local distance = b - a & 0xFFFFFFFF
    return distance > 0 and distance < 0x80000000
  end

  local function forget(session, answered)
    if session.answered and not before(session.answered, answered) then
      return
    end
    session.answered = answered
    local order, replies = session.order, session.replies
    while session.first <= session.last and before(order[session.first], answered) do
      local id = order[session.first]
      session.bytes = session.bytes - #(replies[id] or "")
      replies[id] = nil
      order[session.first] = nil
      session.first = session.first + 1
    end
  end

  local function remember(session, id, reply)
    local order, replies = session.order, session.replies
    session.last = session.last + 1
    order[session.last] = id
    replies[id] = reply
    session.bytes = session.bytes + #reply
    session.kept = math.max(session.kept, session.first)
    while session.bytes > limits.reply_bytes and session.kept < session.last do
      local oldest = order[session.kept]
      session.bytes = session.bytes - #(replies[oldest] or "")
      replies[oldest] = false
      session.kept = session.kept + 1
    end
  end

  -- The reply to a request of a session, from memory if it was done before.
  function sessions.answer(session, request)
    forget(session, request.answered)
    if not request.change then
      return (requests.perform(request, session.connection))
    end
    local id = request.id
    local reply = session.replies[id]
    if reply then
      return reply
    end
    if reply == false or before(id, session.answered) then
      return requests.refused(id, refusal.LOST, "it was done before, and its reply is not kept any more")
    end
    if session.last - session.first + 1 >= limits.replies then
      return requests.refused(id, refusal.BUSY, "too many replies were not acknowledged")
    end
    local key = request.key
    local status, text
    if key then
      reply, status, text = keyed.recall(key, request.batch, id)
    end
    if status then
      reply = requests.refused(id, status, text)
    elseif not reply then
      local changed
      reply, changed = requests.perform(request, session.connection)
      local is_late = lockstep.ahead(session) > 0
      if key and changed then
        keyed.remember(key, request.batch, reply, is_late)
      end
      if is_late then
        session.late = { id = id, reply = reply, key = key, connection = session.connection }
        unfinished[session] = true
      end
    end
    remember(session, id, reply)
    return reply
  end

  -- Finishes a session's late reply if its frames were run, or never will be as frames that a client asked for.
  function sessions.finish(session)
    if not unfinished[session] or lockstep.ahead(session) > 0 then
      return
    end
    unfinished[session] = nil
    local late = session.late
    local run, asked = lockstep.take_cut(session)
    local reply
    if run then
      reply = frames.with_refusal(late.reply, emulator.frame(), refusal.FAILED, CUT:format(run, asked))
    else
      reply = frames.at_frame(late.reply, emulator.frame())
    end
    local predicted = session.replies[late.id]
    if predicted then
      session.bytes = session.bytes + #reply - #predicted
      session.replies[late.id] = reply
    end
    if late.key then
      keyed.replace(late.key, reply)
    end
    late.reply = reply
  end

  -- A frame was run: finishes late replies, also of sessions whose link is gone.
  function sessions.finish_all()
    for session in pairs(unfinished) do
      sessions.finish(session)
    end
  end

  local known = {} -- by name
  local count, uses = 0, 0

  local function forget_oldest()
    local oldest
    for name, session in pairs(known) do
      if not session.connection and (not oldest or session.used < known[oldest].used) then
        oldest = name
      end
    end
    if oldest then
      known[oldest] = nil
      count = count - 1
    end
  end

  -- The session of a name, and whether it was known.
  function sessions.named(name)
    uses = uses + 1
    local session = known[name]
    local is_known = session ~= nil
    if not is_known then
      if count >= limits.sessions then
        forget_oldest()
      end
      session = sessions.new()
      known[name] = session
      count = count + 1
    end
    session.used = uses
    return session, is_known
  end

  return sessions
end)()

---- turn --------------------------------------------------------------------------------------------------------------

parts.turn = (function()
  -- A connection's turn: reading, doing what was asked, sending. A connection begins with text messages; a greeting turns
  -- it into a link's, which sends frames.

  local connection = require "connection"
  local emulator = require "emulator"
  local frames = require "frames"
  local happenings = require "happenings"
  local inbox = require "inbox"
  local limits = require "limits"
  local lockstep = require "lockstep"
  local log = require "log"
  local messages = require "messages"
  local readahead = require "readahead"
  local refusal = require "refusal"
  local sessions = require "sessions"
  local throttle = require "throttle"
  local ticks = require "ticks"
  local version = require "version"

  local byte, find, sub, unpack = string.byte, string.find, string.sub, string.unpack
  local clock = os.clock
  local put, answer_message, answer_request = connection.put, messages.answer, sessions.answer
  local next_message, next_frame = inbox.next_message, inbox.next_frame
  local REQUEST, KEYED_REQUEST, CANCEL, PING = frames.REQUEST, frames.KEYED_REQUEST, frames.CANCEL, frames.PING
  local TRACE = frames.TRACE
  local REQUESTS, SECONDS = limits.turn.requests, limits.turn.seconds
  local END = inbox.END

  local LINGER = 2 * ticks.per_second -- for which a dismissed client may read why

  -- Names this script's memory: one that is loaded anew has another.
  local boot = string.format("%016x", math.random(0) ~ os.time() << 32)

  local turn = {}

  -- Ends a connection, but keeps it until its client had time to read why.
  function turn.dismiss(self, reason)
    if self.binary then
      put(self, frames.encode_goodbye(reason))
    end
    if self.session then
      self.session.connection = nil
      self.session = nil
      log.info("a link is disconnected: %s", reason)
    end
    self.dismissed = ticks.now
    self.inbox = inbox.new()
    self.queue, self.queue_first, self.queue_last, self.deferred, self.waiting = {}, 1, 0, {}, nil
  end

  -- The one message that is about the connection itself.
  local function greet(self, text)
    local protocol, name = text:match("^framewire%.hello,(%d+),(%x+)$")
    if not protocol or tonumber(protocol) < version.protocol or #name ~= 16 then
      log.warn("%q is no greeting: framewire.hello,%d,SESSION is, SESSION being 16 hexadecimal digits",
        refusal.sentence(text), version.protocol)
      put(self, messages.ERROR .. END)
      return
    end
    local session, known = sessions.named(name:lower())
    if session.connection then
      turn.dismiss(session.connection, "another connection goes on with this session")
    end
    session.connection, self.session, self.binary = self, session, true
    local fields = { "framewire.welcome", version.protocol, version.script, boot, known and 1 or 0, emulator.frame(),
      happenings.sent }
    put(self, table.concat(fields, ",") .. END)
    log.info("a link connected%s", known and " again" or "")
  end

  -- Whether a connection may go on: its first message must be a known one. Any web page can have a browser connect to this
  -- machine. What the browser sends then, the head of an HTTP request or the hello of TLS, can hold messages for this script
  -- that the page has chosen; but it cannot begin with one.
  local function is_client(self)
    local bytes = inbox.beginning(self.inbox)
    local known, is_message = messages.begins_known(bytes)
    if known then
      self.fresh = false
    elseif is_message then
      log.warn("a client is turned away: its first message has no known key, %q", refusal.sentence(sub(bytes, 1, 80)))
      put(self, messages.ERROR .. END)
      turn.dismiss(self, "unknown first message")
    elseif known == false then
      log.warn("a client is turned away: it began with %q, which is no message; HTTP and HTTPS are served by `framewire "
        .. "serve`, not by this script", refusal.sentence(sub(bytes, 1, 80)))
      connection.close(self, "its first bytes are no message")
    end
    return known == true
  end

  local function do_messages(self, deadline)
    if self.fresh and not is_client(self) then
      return self.dismissed ~= nil
    end
    local box, done = self.inbox, 0
    repeat
      local text, too_long = self.waiting, false
      if text then
        self.waiting = nil
      else
        text, too_long = next_message(box)
      end
      if too_long or not text and box.size > limits.message then
        log.warn("a message longer than %d bytes", limits.message)
        put(self, messages.ERROR .. END)
        turn.dismiss(self, "message too long")
        return true
      end
      if not text then
        break
      end
      if find(text, "framewire.hello", 1, true) == 1 then
        greet(self, text)
        return true
      end
      local reply = answer_message(text)
      if not reply then
        self.waiting = text
        break
      end
      done = done + 1
      put(self, reply .. END)
    until done >= REQUESTS or self.unsent >= limits.full_outbox or clock() > deadline
    return done > 0
  end

  -- Decodes the frames that have arrived; false if they make no sense.
  local function read_frames(self)
    local box = self.inbox
    while self.queue_last - self.queue_first + 1 < limits.queue do
      local at, stop = next_frame(box)
      if not at then
        return at == nil
      end
      local data = box.data
      local kind = byte(data, at)
      if kind == REQUEST or kind == KEYED_REQUEST then
        local request = frames.decode_request(data, at + 1, stop, kind == KEYED_REQUEST)
        if not request then
          return false
        end
        if self.traced == request.id then
          request.trace = self.trace
        end
        self.traced, self.trace = nil, nil
        self.queue_last = self.queue_last + 1
        self.queue[self.queue_last] = request
      elseif kind == TRACE then
        self.traced, self.trace = frames.decode_trace(data, at + 1, stop)
        if not self.traced then
          return false
        end
      elseif kind == CANCEL and stop - at == 5 then
        self.cancelled = self.cancelled or {}
        self.cancelled[unpack("<I4", data, at + 1)] = true
      elseif kind == PING and stop - at == 5 then
        self.pinged = true
        put(self, frames.encode_pong(unpack("<I4", data, at + 1), emulator.frame()))
      else
        return false
      end
    end
    return true
  end

  -- Whether a link's next request may be done: those after an `advance` wait until its frames were run, and so does its
  -- reply. A connection that was made meanwhile asks for that reply again.
  local function is_free(self)
    local session = self.session
    if lockstep.ahead(session) > 0 then
      return false
    end
    sessions.finish(session)
    local late = session.late
    if late then
      session.late = nil
      if late.connection == self then
        put(self, late.reply)
      end
    end
    return true
  end

  local function answer(self, request)
    local session = self.session
    local reply = throttle.run(request.moved, answer_request, session, request)
    if session.late then
      return
    elseif type(reply) == "string" then
      put(self, reply)
      return
    end
    for _, part in ipairs(reply) do
      put(self, part)
    end
  end

  -- Whether a request has to wait: for bytes to be read ahead, or for another frame.
  local function has_to_wait(request)
    if request.ahead then
      return true
    elseif lockstep.on then
      return false
    elseif throttle.admits(request.moved) then
      return request.moved > limits.frame_bytes and readahead.begin(request)
    end
    readahead.begin(request)
    return true
  end

  -- Puts off a request that has to wait, so that those after it need not wait, too. One that changes something keeps its
  -- place. True if it was put off.
  local function defer(self, request)
    if request.change or #self.deferred >= limits.deferred then
      return false
    end
    table.insert(self.deferred, request)
    return true
  end

  local function drop_cancelled(list, cancelled)
    for index = #list, 1, -1 do
      if cancelled[list[index].id] then
        table.remove(list, index)
      end
    end
  end

  -- Reads ahead for a request until `deadline`. True if there is no more to read.
  local function read_ahead(request, deadline)
    while request.ahead do
      if readahead.go_on(request) then
        return true
      elseif clock() > deadline then
        return false
      end
    end
    return true
  end

  -- Goes on with the requests that were put off: does the first that may be done now, or reads ahead for it. True if there was
  -- one.
  local function do_deferred(self, deadline)
    local deferred = self.deferred
    if self.cancelled then
      drop_cancelled(deferred, self.cancelled)
    end
    if lockstep.ahead(self.session) > 0 then
      return false
    end
    for index, request in ipairs(deferred) do
      local admitted = throttle.admits(request.moved)
      if admitted and read_ahead(request, deadline) and throttle.admits(request.moved) then
        answer(self, table.remove(deferred, index))
      end
      if admitted then
        return true
      end
    end
    return false
  end

  local function do_requests(self, deadline)
    if not read_frames(self) then
      log.warn("a link sent what is no frame of protocol %d", version.protocol)
      turn.dismiss(self, "malformed frame")
      return true
    end
    local queue, done = self.queue, 0
    if self.session.late then
      if not is_free(self) then
        return false
      end
      done = 1
    end
    if do_deferred(self, deadline) then
      done = done + 1
    end
    while self.queue_first <= self.queue_last do
      local full = done >= REQUESTS or self.unsent >= limits.full_outbox or done > 0 and clock() > deadline
      if full or not is_free(self) then
        return done > 0
      end
      local request = queue[self.queue_first]
      local cancelled = self.cancelled and self.cancelled[request.id]
      if not cancelled then
        if not has_to_wait(request) then
          answer(self, request)
        elseif not defer(self, request) then
          return done > 0
        end
      end
      queue[self.queue_first] = nil
      self.queue_first = self.queue_first + 1
      done = done + 1
    end
    self.queue_first, self.queue_last, self.cancelled = 1, 0, nil
    return done > 0
  end

  -- Whether there is enough to do without reading: for a link there never is, as a cancel may have arrived.
  local function has_enough(self)
    if self.binary then
      return self.queue_last - self.queue_first + 1 >= limits.queue
    end
    return self.inbox.ended or self.waiting ~= nil
  end

  -- Whether reading on would bring nothing that is needed now.
  local function is_sated(self)
    local box = self.inbox
    return box.size >= limits.read_ahead and (self.binary and box.size >= box.needed or not self.binary and box.ended)
  end

  -- Reads what has arrived.
  local function read(self, readable)
    if self.ended or not readable and (has_enough(self) or self.socket:select(0) == 0) then
      return
    end
    connection.receive(self)
    for _ = 1, limits.turn.reads do
      -- A read that was not full has left nothing.
      if self.read_size == limits.small_read or self.ended or is_sated(self) or self.socket:select(0) == 0 then
        return
      end
      connection.receive(self)
    end
  end

  local function has_requests(self)
    return self.inbox.size > 0 or self.queue_first <= self.queue_last or self.deferred[1] ~= nil or self.session.late ~= nil
  end

  -- Whether all is done that an ended connection has asked for.
  local function is_over(self)
    return self.binary or self.dismissed or not self.inbox.ended and not self.waiting
  end

  -- Gives a connection its turn: `readable` if it is known to have something to read, `now` the processor time. True if
  -- a request was done.
  function turn.take(self, readable, now)
    local done = false
    if self.dismissed then
      connection.drain(self)
      if ticks.now - self.dismissed > LINGER then
        connection.close(self, "dismissed")
        return false
      end
    elseif self.unsent < limits.full_outbox or self.ended then
      read(self, readable)
      if self.binary then
        done = has_requests(self) and do_requests(self, now + SECONDS)
      elseif self.inbox.size > 0 or self.waiting then
        done = do_messages(self, now + SECONDS)
      end
    end
    if self.unsent > 0 then
      connection.flush(self)
    end
    if self.ended and self.socket and is_over(self) then
      connection.close(self, "by the other end")
    end
    if done then
      self.active = ticks.now
    end
    return done
  end

  return turn
end)()

---- clients -----------------------------------------------------------------------------------------------------------

parts.clients = (function()
  -- Those who are connected, and their turns.

  local connection = require "connection"
  local limits = require "limits"
  local log = require "log"
  local refusal = require "refusal"
  local ticks = require "ticks"
  local turn = require "turn"

  local clock = os.clock

  local RECENT = 4 -- ticks: who asked in these is looked at all the time, others each millisecond

  local clients = {
    all = {}, -- in the order they were accepted, closed ones until they are swept up
    request_tick = -math.huge, -- of the last request
  }

  local closed_before = 0 -- connections that were closed before the last sweep
  local looked_tick -- of the last look for connections that have ended
  local first_turn = 0 -- who begins, so that the last are not always the same
  local hot -- the connection whose request was done last

  -- Removes the connections that are closed.
  local function sweep()
    if connection.closed == closed_before then
      return
    end
    closed_before = connection.closed
    local kept = 0
    for index = 1, #clients.all do
      local each = clients.all[index]
      clients.all[index] = nil
      if each.socket then
        kept = kept + 1
        clients.all[kept] = each
      end
    end
  end

  -- Runs a function for a connection. An error in it ends this connection and nothing else: then the result is false.
  local function guarded(run, each, ...)
    local fine, result = pcall(run, each, ...)
    if not fine then
      log.error("%s", refusal.sentence(result))
      connection.close(each, "an error in this script")
      return false
    end
    return result
  end

  -- A turn that can break nothing but its own connection.
  function clients.take_turn(each, readable, now)
    local done = guarded(turn.take, each, readable, now)
    if done then
      hot, clients.request_tick = each, ticks.now
    end
    return done
  end

  -- Gives a turn to every connection with something to read, which its end is too, so that those that have ended are closed.
  local function look_for_ended()
    for _, each in ipairs(clients.all) do
      if each.socket and each.socket:select(0) ~= 0 then
        clients.take_turn(each, true, clock())
      end
    end
    sweep()
  end

  -- Closes the connection that has been silent for longest, if that is more than a minute.
  local function evict()
    local idlest
    for _, each in ipairs(clients.all) do
      if not idlest or each.active < idlest.active then
        idlest = each
      end
    end
    if ticks.now - idlest.active > 60 * ticks.per_second then
      connection.close(idlest, "silent, and others need its place")
      sweep()
    end
  end

  -- Whether there is room for one more connection; makes room if it can. The look at all connections takes time, so there is
  -- one in a frame.
  local function has_room()
    if #clients.all < limits.connections then
      return true
    end
    sweep()
    if #clients.all == limits.connections and looked_tick ~= ticks.now then
      looked_tick = ticks.now
      look_for_ended()
    end
    if #clients.all == limits.connections then
      evict()
    end
    return #clients.all < limits.connections
  end

  -- Adds a client that has connected, if there is room.
  function clients.add(socket)
    if has_room() then
      table.insert(clients.all, connection.new(socket))
    else
      connection.shut(socket)
      log.warn("a client is turned away, %d are connected", #clients.all)
    end
  end

  -- Gives connections their turn until processor time `stop`, all of them or those that asked lately. True if a request
  -- was done.
  function clients.serve(all, stop)
    local count, any = #clients.all, false
    for step = 1, count do
      local each = clients.all[(first_turn + step) % count + 1]
      if each.socket and (all or ticks.now - each.active < RECENT) then
        local now = clock()
        if now > stop then
          first_turn = first_turn + step - 1
          return any
        end
        any = clients.take_turn(each, false, now) or any
      end
    end
    first_turn = first_turn + 1
    sweep()
    return any
  end

  -- A connection with more to send than may be sent without a sleep; nil if there is none.
  function clients.with_long_reply()
    for _, each in ipairs(clients.all) do
      if each.socket and connection.has_long_reply(each) then
        return each
      end
    end
    return nil
  end

  -- The script has slept: sends parts of long replies, to each client in its turn.
  function clients.send_long_replies()
    local count, sent = #clients.all, 0
    for step = 1, count do
      local each = clients.all[(first_turn + step) % count + 1]
      if each.socket and connection.has_long_reply(each) and guarded(connection.flush_rested, each) then
        sent = sent + 1
        if sent == limits.rested_replies then
          first_turn = first_turn + step
          return
        end
      end
    end
  end

  -- The connection that is the likeliest to ask next.
  function clients.hottest()
    if hot and hot.socket and not hot.ended then
      return hot
    end
    hot = nil
    for _, each in ipairs(clients.all) do
      if each.socket and not each.ended and (not hot or each.active > hot.active) then
        hot = each
      end
    end
    return hot
  end

  -- Closes the links whose heartbeat has stopped: nothing else tells of a network that lets nothing through any more. To be
  -- called once a second. Seconds are counted, not measured, as in a pause of mGBA nobody could be heard.
  function clients.close_silent()
    for _, each in ipairs(clients.all) do
      each.silent = each.silent + 1
      if each.pinged and each.silent > limits.silent_seconds then
        connection.close(each, "nothing was heard for " .. limits.silent_seconds .. " s")
      end
    end
  end

  -- Closes all of them, who are told why.
  function clients.close_all(reason)
    for _, each in ipairs(clients.all) do
      if each.socket then
        turn.dismiss(each, reason)
        pcall(connection.flush, each)
        connection.close(each, reason)
      end
    end
    clients.all = {}
  end

  return clients
end)()

---- listener ----------------------------------------------------------------------------------------------------------

parts.listener = (function()
  -- The listening socket: one port for all clients, tried again until it is to be had.

  local clients = require "clients"
  local connection = require "connection"
  local limits = require "limits"
  local log = require "log"
  local ticks = require "ticks"
  local version = require "version"

  local listener = {
    socket = nil, -- nil while it does not listen
  }

  local retry_tick -- when to try again to listen; nil at first

  local function try_to_listen(address, port)
    local candidate = socket.tcp()._s -- the bare socket: its wrapper would be polled by a callback of its own
    local code = candidate:open(address, port)
    if code == 0 then
      code = candidate:listen(limits.backlog)
    end
    if code == 0 then
      listener.socket = candidate
      return
    end
    connection.shut(candidate)
    return socket.ERRORS[code] or "error " .. code
  end

  function listener.listen(address, port)
    local problem = try_to_listen(address, port)
    if not problem then
      log.info("version %s, listening on %s:%d", version.script, address, port)
    elseif not retry_tick then
      log.error("cannot listen on %s:%d: %s. Most often another mGBA has the port, or another script in this one, such as "
        .. "mGBA-http's. Close that, or choose another port before this script is loaded: `framewire = {port = %d}` in Lua, "
        .. "or FRAMEWIRE_SCRIPT_PORT=%d in mGBA's environment. Trying again every second.",
        address, port, problem, port + 1, port + 1)
    end
    retry_tick = ticks.now + ticks.per_second
  end

  -- Listens again if it does not and a second has passed since it was tried.
  function listener.retry(address, port)
    if not listener.socket and ticks.now >= retry_tick then
      listener.listen(address, port)
    end
  end

  -- Accepts one client; false if none is waiting.
  local function accept()
    local client = listener.socket:accept()
    if client.error ~= 0 then
      return false
    end
    clients.add(client)
    return true
  end

  function listener.accept_all()
    while listener.socket:select(0) ~= 0 and accept() do
    end
  end

  function listener.close()
    if listener.socket then
      connection.shut(listener.socket)
      listener.socket = nil
    end
  end

  return listener
end)()

---- events ------------------------------------------------------------------------------------------------------------

parts.events = (function()
  -- Tells links what happened, unasked: at most one event frame for each frame of the game.

  local connection = require "connection"
  local emulator = require "emulator"
  local frames = require "frames"
  local happenings = require "happenings"

  local events = {}

  -- Tells the links among `clients`. `any_news` is whether some of them have news of their watches.
  function events.tell(clients, any_news)
    local happened, count = happenings.take()
    if count == 0 and not any_news then
      return
    end
    local frame = emulator.frame()
    for _, client in ipairs(clients) do
      local news = client.news
      client.news = nil
      if client.socket and client.session and (news or count > 0) then
        news = news or {}
        local items = table.concat(news) .. happened
        connection.put(client, frames.encode_event(frame, #news + count, items))
      end
    end
  end

  return events
end)()

---- steering ----------------------------------------------------------------------------------------------------------

parts.steering = (function()
  -- How much of a frame clients get. There is no telling beforehand: it is found by feedback. Once a second the frames
  -- that were run are counted, and the budget grows while none are missing and is cut when some are.
  --
  -- Pure: it reads no clock and calls nothing.

  local steering = {
    NORMAL_RATE = 16777216 / 280896, -- frames a second of a Game Boy Advance and of a Game Boy
    MAX_BUDGET = 10, -- milliseconds of a frame's 16.7: mGBA's window must not wait for longer
  }

  local FAST_RATE = 70 -- frames in a second from which on it is fast-forward, not catching up
  local TOLERANCE = 1.5 -- frames behind at which the budget is cut: the count of a second is one off anyway
  local SPARE = 8 -- milliseconds idle in a frame: with so many the budget is not to blame for missing frames
  local RESERVE = 1.5 -- milliseconds idle in a frame that are left to mGBA
  local SHARE = 1 / 4 -- of the idle time that the budget grows by in a second
  local GROWTH = 0.5 -- milliseconds a second that it grows by at most, once it was cut
  local SMALL_GROWTH, SWELL = 0.1, 1.3 -- after a cut it begins small, so as not to overshoot where it ended
  local MARGIN = 0.5 -- milliseconds that are cut off beyond what was too much
  local BREATH = 8 -- in one of so many seconds the budget is halved, or else fast-forward could not be seen

  function steering.new()
    return {
      budget = 0, -- milliseconds a frame
      growth = nil, -- milliseconds a second that it may grow by; nil until it is cut
      behind = 0, -- frames missing
      seconds = 0, -- since it was opened
      fast = false, -- whether it is fast-forward
    }
  end

  -- Clients begin to ask. `busy` is the milliseconds of processor time a frame that go to everything else.
  function steering.open(self, busy)
    self.budget = math.max(0, math.min(steering.MAX_BUDGET, 1000 / steering.NORMAL_RATE - 2 * busy - 3))
    self.growth, self.behind, self.seconds = nil, 0, 0
  end

  local function grow(self, idle)
    local step = SHARE * (idle - RESERVE)
    if self.growth then
      step = math.min(step, self.growth)
      self.growth = math.min(GROWTH, self.growth * SWELL)
    end
    self.budget = math.max(0, math.min(steering.MAX_BUDGET, self.budget + step))
  end

  local function cut(self, frames)
    local missing = 1000 / math.max(frames, 1) - 1000 / steering.NORMAL_RATE -- milliseconds a frame
    self.budget = math.max(0, self.budget - 1.5 * missing - MARGIN)
    self.growth, self.behind = SMALL_GROWTH, 0
  end

  -- A second has passed in which `frames` were run. In each of them `idle` milliseconds were spent neither on clients nor
  -- on the processor.
  function steering.steer(self, frames, idle)
    self.seconds = self.seconds + 1
    self.fast = frames >= FAST_RATE
    if self.fast then
      self.budget, self.behind = 0, 0
      return
    end
    self.behind = math.max(0, self.behind + steering.NORMAL_RATE - frames)
    if self.behind > TOLERANCE and idle < SPARE then
      cut(self, frames)
      return
    elseif self.behind > TOLERANCE then
      self.behind = 0
    end
    grow(self, idle)
  end

  -- Milliseconds for clients in this frame.
  function steering.allowance(self)
    if self.fast then
      return 0
    end
    return self.seconds % BREATH == BREATH - 1 and self.budget / 2 or self.budget
  end

  return steering
end)()

---- window ------------------------------------------------------------------------------------------------------------

parts.window = (function()
  -- Staying in the frame callback, blocked in select() most of the time, and answering whatever comes: for the time that is
  -- left of a frame, in which mGBA would wait for the next one anyway, or in lockstep until the next one is asked for.

  local clients = require "clients"
  local listener = require "listener"
  local lockstep = require "lockstep"
  local steering = require "steering"
  local stopwatch = require "stopwatch"
  local ticks = require "ticks"

  local clock = os.clock

  local TURNS_SECONDS = steering.MAX_BUDGET / 1000 -- for the turns of all clients in lockstep

  local window = {}

  local function open()
    return {
      spent = 0, -- seconds, as far as they are known
      busy = 0, -- seconds of processor time in these
      looked_around = 0, -- `spent` when all clients had their turn
      rested = false, -- whether it has slept
      done = false, -- whether there may be more to do without waiting
    }
  end

  -- Waits up to a millisecond by `wait` for the client that is likeliest to ask, and does what is asked. `rest` is the
  -- seconds there are for all clients.
  local function look(self, wait, rest)
    local target, ready, slept = clients.hottest(), false, false
    if not self.done then
      local passed
      ready, passed = wait(target and target.socket or listener.socket)
      self.spent, rest = self.spent + passed, rest - passed
      slept = not ready
    end
    local start = clock()
    if slept then
      self.rested = true
      clients.send_long_replies()
    end
    self.done = ready and target and clients.take_turn(target, true, start)
    if not ready or not target or #clients.all > 1 then
      local all = not target or self.spent - self.looked_around >= 0.001
      if all then
        self.looked_around = self.spent
        listener.accept_all()
      end
      self.done = clients.serve(all, start + rest) or self.done
    end
    local used = clock() - start
    self.spent, self.busy = self.spent + used, self.busy + used
  end

  -- Sleeps for a moment if there is a long reply to send and no time was left to sleep.
  local function rest_for_long_replies(self, wait)
    local target = not self.rested and clients.with_long_reply()
    if target then
      local _, passed = wait(target.socket)
      local start = clock()
      clients.send_long_replies()
      local used = clock() - start
      self.spent, self.busy = self.spent + passed + used, self.busy + used
    end
    self.rested = false
  end

  -- Goes on serving for `length` seconds. Gives those that it took.
  function window.serve(length)
    local self = open()
    stopwatch.begin_window()
    while self.spent < length and not lockstep.on do
      look(self, stopwatch.wait, length - self.spent)
    end
    rest_for_long_replies(self, stopwatch.wait)
    stopwatch.end_window(self.busy)
    return self.spent
  end

  -- Keeps the next frame waiting as long as lockstep says. `each_second` is called now and then, as it is between frames.
  function window.keep_waiting(each_second)
    local self, passed, waited = open(), stopwatch.lap(), 0
    rest_for_long_replies(self, stopwatch.wait_aside)
    while lockstep.waits(passed(self.spent)) do
      look(self, stopwatch.wait_aside, TURNS_SECONDS)
      if self.spent - waited >= 1 / ticks.per_second then
        waited, ticks.now = self.spent, ticks.now + 1
        each_second()
        rest_for_long_replies(self, stopwatch.wait_aside)
      end
    end
    lockstep.run()
  end

  return window
end)()

---- server ------------------------------------------------------------------------------------------------------------

parts.server = (function()
  -- What is done in each frame: what happened in it is told, everybody has a turn, and then, while clients keep asking, the
  -- frame's budget is spent on them.

  local clients = require "clients"
  local emulator = require "emulator"
  local events = require "events"
  local game = require "game"
  local listener = require "listener"
  local lockstep = require "lockstep"
  local memory = require "memory"
  local sessions = require "sessions"
  local steering = require "steering"
  local stopwatch = require "stopwatch"
  local ticks = require "ticks"
  local watches = require "watches"
  local window = require "window"

  local clock = os.clock

  local LINGER = ticks.per_second -- after a request the budget is spent for so long on waiting for the next one
  local LEAST_SECONDS = 0.002 -- of a frame that clients get even if frames are missing

  local server = {
    address = nil, -- where to listen: set before `start`
    port = nil,
  }

  local steer = steering.new()
  local second, second_tick -- when a second of the clock was seen to begin
  local undisturbed = false -- whether all frames of this second came when mGBA had them come, not when clients did
  local left_at = 0 -- processor time at which the last frame was left
  local outside, outside_ticks = 0, 0 -- processor time spent outside of this script, in how many frames
  local inside = 0 -- time spent in it, in the same frames
  local last_second = math.huge -- milliseconds of processor time a frame spent outside, in the last second
  local busy_outside = 0 -- the less of that of the last two, as one may be a passing effort, such as opening a game

  -- Counts frames by the clock's seconds. One that is longer, as mGBA was paused, tells nothing.
  local function count_frames()
    local now = os.time()
    if now == second then
      return
    end
    if second == now - 1 and undisturbed then
      local frames = ticks.now - second_tick
      steering.steer(steer, frames, 1000 / frames - 1000 * (outside + inside) / outside_ticks)
    end
    if outside_ticks > 0 then
      local this_second = 1000 * outside / outside_ticks
      last_second, busy_outside = this_second, math.min(this_second, last_second)
    end
    outside, inside, outside_ticks = 0, 0, 0
    second, second_tick, undisturbed = now, ticks.now, not lockstep.on
    clients.close_silent()
    game.check()
  end

  local function serve(now)
    listener.accept_all()
    local open = ticks.now - clients.request_tick < LINGER
    clients.serve(true, now + math.max(LEAST_SECONDS, steering.allowance(steer) / 1000))
    local asking = ticks.now - clients.request_tick < LINGER or clients.with_long_reply() ~= nil
    if asking and not lockstep.on then
      if not open then
        steering.open(steer, busy_outside)
      end
      inside = inside + window.serve(steering.allowance(steer) / 1000 - (clock() - now))
    end
    if lockstep.on then
      undisturbed = false
      window.keep_waiting(count_frames)
    end
  end

  -- What is done in each frame.
  function server.frame()
    local now = clock()
    ticks.now = ticks.now + 1
    outside, outside_ticks = outside + now - left_at, outside_ticks + 1
    memory.forget()
    game.advance()
    local any_news = watches.look()
    emulator.advance()
    sessions.finish_all()
    events.tell(clients.all, any_news)
    count_frames()
    listener.retry(server.address, server.port)
    if listener.socket then
      serve(now)
    end
    watches.leave()
    left_at = clock()
  end

  function server.start()
    stopwatch.find_clock()
    left_at = clock()
    listener.listen(server.address, server.port)
  end

  -- Closes everything and lets go of the keys that are held.
  function server.stop(reason)
    local down = emulator.holds.down()
    if emu and down ~= 0 then
      emu:clearKeys(down)
    end
    lockstep.stop()
    clients.close_all(reason)
    listener.close()
  end

  return server
end)()

---- main --------------------------------------------------------------------------------------------------------------

-- Settings, and loading: the script may be loaded again and again.

local log = require "log"
local operations = require "operations"
local server = require "server"
local version = require "version"

-- The user's settings, and then what this script shows to others: the only global.
local public = type(framewire) == "table" and framewire or {}
framewire = public

public.version = version.script
public.operations = {}
for code, op in pairs(operations.by_code) do
  public.operations[code] = { name = op.name, effect = op.effect, format = op.format, result = op.result }
end

local function setting(name)
  local value = public[name]
  if value == nil then
    value = os.getenv("FRAMEWIRE_SCRIPT_" .. name:upper())
  end
  if value == nil then
    value = SETTINGS[name]
  end
  return value
end

local function read_settings()
  local level = tostring(setting("log_level")):lower()
  if not log.set_level(level) then
    log.error("log_level is debug, info, warn, error or none, not %q; it stays info", level)
  end
  server.address = tostring(setting("address"))
  server.port = math.tointeger(tonumber(setting("port")))
  if not server.port or server.port < 1 or server.port > 65535 then
    log.error("port is a number from 1 to 65535, not %q; it stays %d", tostring(setting("port")), SETTINGS.port)
    server.port = SETTINGS.port
  end
end

-- One callback is added to mGBA and never removed; it runs the script that was loaded last. What it runs is kept where a
-- script that is loaded anew finds it even if the user has set the global to something else.
local function start()
  local loaded = package.loaded.framewire or {}
  package.loaded.framewire = loaded
  -- Again if it fails: mGBA 0.10 with OpenGL may load a script beside the callback of the one before, which then trips
  -- over what it closes.
  if loaded.stop and not pcall(loaded.stop, "the script is loaded again") then
    pcall(loaded.stop, "the script is loaded again")
  end
  read_settings()
  server.start()
  loaded.frame, loaded.stop = server.frame, server.stop
  if loaded.callback then
    return
  end
  loaded.callback = callbacks:add("frame", function()
    local fine, problem = pcall(loaded.frame)
    if not fine then
      log.error("%s", tostring(problem))
    end
  end)
end

if not public.testing then
  start()
end
