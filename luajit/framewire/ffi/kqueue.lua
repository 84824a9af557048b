--- Declarations and constants of kqueue, and signals through kqueue, for macOS and FreeBSD. The library libkqueue has
-- the same functions on Linux; with it, tests/kqueue.lua tests this file.

local ffi = require "ffi"

local C = ffi.C

-- FreeBSD's structure has four more words at its end.
return function(has_ext)
  ffi.cdef([[
  struct fw_kevent {
    uintptr_t ident; int16_t filter; uint16_t flags; uint32_t fflags; intptr_t data; void *udata; ]]
    .. (has_ext and "uint64_t ext[4];" or "") .. [[
  };
  int kqueue(void);
  int kevent(int, const struct fw_kevent *, int, struct fw_kevent *, int, const struct fw_timespec *);
  int sigpending(struct fw_sigset *);
  int sigismember(const struct fw_sigset *, int);
  int sigwait(const struct fw_sigset *, int *);
  ]])

  local M = {}

  M.constants = {
    EVFILT_READ = -1, EVFILT_WRITE = -2, EVFILT_VNODE = -4, EVFILT_SIGNAL = -6,
    EV_ADD = 1, EV_DELETE = 2, EV_CLEAR = 0x20, EV_EOF = 0x8000,
    NOTE_DELETE = 1, NOTE_WRITE = 2, NOTE_RENAME = 0x20,
  }

  --- Creates a separate kqueue for the signals in `list`, a list of names. `numbers` has the number of each name. The
  --- first parameter is a set of the same signals, which only Linux uses. Returns the descriptor, or -1.
  function M.open_signals(_, list, numbers)
    local fd = C.kqueue()
    local change = ffi.new("struct fw_kevent[1]")
    for _, name in ipairs(list) do
      change[0].ident, change[0].filter, change[0].flags = numbers[name], M.constants.EVFILT_SIGNAL, M.constants.EV_ADD
      if fd < 0 or C.kevent(fd, change, 1, nil, 0, nil) < 0 then
        if fd >= 0 then C.close(fd) end
        return -1
      end
    end
    return fd
  end

  local event = ffi.new("struct fw_kevent[1]")
  local no_time = ffi.new("struct fw_timespec")

  -- Takes a pending signal from the system. A kqueue only reports a blocked signal; the signal stays pending. Without
  -- this function, it would have its default action when it is unblocked. Only one thread of a process may call this
  -- function: another thread could take the signal between `sigpending` and `sigwait`, and `sigwait` would then wait
  -- for the next signal.
  local function take_pending(number)
    local set, taken = ffi.new("struct fw_sigset"), ffi.new("int[1]")
    C.sigpending(set)
    if C.sigismember(set, number) ~= 1 then return end
    C.sigemptyset(set)
    C.sigaddset(set, number)
    C.sigwait(set, taken)
  end

  --- Takes one signal from a descriptor of `open_signals`. Returns the signal's number, or nil if there is none.
  function M.read_signal(fd)
    if C.kevent(fd, nil, 0, event, 1, no_time) ~= 1 then return nil end
    local number = tonumber(event[0].ident)
    take_pending(number)
    return number
  end

  return M
end
