--- The terminal on POSIX systems. `struct fw_termios` is declared in the module of each system.

local bit = require "bit"
local ffi = require "ffi"

local C = ffi.C

-- This module returns a function that gets the table `sys`. It cannot load framewire.sys, because that module loads
-- this one.
return function(sys)
  local M = {}

  -- Signals that the guard process blocks; see `start_guard`. Most of them are sent to the whole process
  -- group. TTOU would stop a background process that changes the terminal.
  local GROUP = { sys.SIGHUP, sys.SIGINT, sys.SIGQUIT, sys.SIGTERM, sys.SIGTTOU, sys.SIGTSTP }

  function M.is_terminal(stream)
    return C.isatty(stream) == 1
  end

  function M.size(stream)
    local size = ffi.new("struct fw_winsize")
    if C.fw_ioctl(stream, sys.TIOCGWINSZ, size) ~= 0 or size.columns == 0 then return nil end
    return size.columns, size.rows
  end

  -- Called in the guard process. If its copies of descriptors stayed open, they would keep the program's sockets and
  -- locks alive.
  local function close_all_but(first, second)
    local open = {}
    sys.list("/dev/fd", function(name) open[#open + 1] = tonumber(name) end)
    for _, fd in ipairs(open) do
      if fd ~= first and fd ~= second then C.close(fd) end
    end
  end

  -- Starts the guard: a process that waits until this one ends and then restores the terminal. This works even if a
  -- signal ends the program at once.
  local function start_guard(saved)
    local ends = ffi.new("int[2]")
    if C.pipe(ends) ~= 0 then return nil end
    -- The guard inherits the signal mask, so signals for the whole process group, such as Ctrl+C, end the program but
    -- not the guard.
    local blocked, before = ffi.new("struct fw_sigset"), ffi.new("struct fw_sigset")
    C.sigemptyset(blocked)
    for _, number in ipairs(GROUP) do C.sigaddset(blocked, number) end
    C.sigprocmask(sys.SIG_BLOCK, blocked, before)
    local pid = C.fork()
    if pid == 0 then
      -- If the guard kept its copy of the writing end, `read` would never report the end. `close_all_but` may not find
      -- this descriptor: FreeBSD without fdescfs does not list it in /dev/fd.
      C.close(ends[1])
      close_all_but(0, ends[0])
      local word = ffi.new("char[1]")
      local got
      repeat got = C.read(ends[0], word, 1) until got >= 0 or ffi.errno() ~= sys.EINTR
      -- If a byte arrives, the program has restored the terminal itself.
      if got == 0 then C.tcsetattr(0, sys.TCSANOW, saved) end
      C._exit(0)
    end
    C.sigprocmask(sys.SIG_SETMASK, before, nil)
    C.close(ends[0])
    if pid < 0 then
      C.close(ends[1])
      return nil
    end
    sys.close_on_exec(ends[1])
    return { pid = pid, fd = ends[1] }
  end

  local function stop_guard(guard)
    C.write(guard.fd, "x", 1)
    C.close(guard.fd)
    local status = ffi.new("int[1]")
    repeat until C.waitpid(guard.pid, status, 0) >= 0 or ffi.errno() ~= sys.EINTR
  end

  function M.raw(keep_signals)
    local saved, raw = ffi.new("struct fw_termios"), ffi.new("struct fw_termios")
    if C.tcgetattr(0, saved) ~= 0 then return sys.fail("tcgetattr") end
    ffi.copy(raw, saved, ffi.sizeof(raw))
    C.cfmakeraw(raw)
    -- The output mode does not change, so "\n" still moves the cursor to the beginning of a line.
    raw.oflag = saved.oflag
    if keep_signals and bit.band(tonumber(saved.lflag), sys.ISIG) ~= 0 then raw.lflag = raw.lflag + sys.ISIG end
    local guard = start_guard(saved)
    if C.tcsetattr(0, sys.TCSANOW, raw) ~= 0 then
      if guard then stop_guard(guard) end
      return sys.fail("tcsetattr")
    end
    return { saved = saved, guard_process = guard, owner = C.getpid() }
  end

  function M.restore(changed)
    -- A forked child of the program must not change the terminal when it ends.
    if changed.owner ~= C.getpid() then return end
    C.tcsetattr(0, sys.TCSANOW, changed.saved)
    if changed.guard_process then stop_guard(changed.guard_process) end
  end

  function M.wait(seconds)
    local one = ffi.new("struct fw_pollfd[1]")
    one[0].fd, one[0].events = 0, sys.POLLIN
    local milliseconds = seconds > 2e6 and -1 or math.max(0, math.ceil(seconds * 1000))
    local count = C.poll(one, 1, milliseconds)
    if count > 0 then return true end
    if count < 0 and ffi.errno() ~= sys.EINTR then return sys.fail("poll") end
    return nil, "timeout"
  end

  local byte = ffi.new("uint8_t[1]")

  function M.read()
    local got = C.read(0, byte, 1)
    if got == 1 then return byte[0] end
    if got == 0 then return nil, "closed" end
    return sys.fail("read")
  end

  return M
end
