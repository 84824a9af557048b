--- Linux: the C declarations and constants that the library uses, from the published headers of Linux and glibc for
-- x86, x86-64, ARM and ARM64. tests/declarations.lua compares every constant here, and the sizes and offsets of the
-- structures in `M.structs`, with the values that the system's C compiler finds. The names of structures begin with
-- `fw_`, so they cannot clash with a program's own declarations.

local ffi = require "ffi"
local add_common = require "framewire.ffi.unix"

local is_arm = ffi.arch == "arm" or ffi.arch == "arm64"
if not is_arm and ffi.arch ~= "x64" and ffi.arch ~= "x86" then
  error("framewire has no Linux declarations for the processor '" .. ffi.arch .. "'; add them to ffi/linux.lua")
end

-- `struct epoll_event` ends with 8 bytes of data. On x86 and x86-64, they follow `events` directly. On ARM, 4 bytes of
-- padding come before them.
local epoll_padding = is_arm and "uint32_t padding;" or ""

ffi.cdef([[
struct fw_sockaddr { uint16_t family; char data[14]; };
struct fw_sockaddr_in { uint16_t family; uint16_t port; uint8_t address[4]; uint8_t zero[8]; };
struct fw_sockaddr_in6 { uint16_t family; uint16_t port; uint32_t flowinfo; uint8_t address[16]; uint32_t scope; };
struct fw_sockaddr_un { uint16_t family; char path[108]; };
struct fw_sockaddr_storage { uint16_t family; uint8_t data[118]; unsigned long align; };
struct fw_addrinfo {
  int flags; int family; int socktype; int protocol;
  uint32_t addrlen; struct fw_sockaddr *addr; char *canonname; struct fw_addrinfo *next;
};
struct fw_epoll_event { uint32_t events; ]] .. epoll_padding .. [[ int32_t fd; uint32_t unused; };
struct fw_flock { short type; short whence; long start; long len; int pid; };
struct fw_rlimit { unsigned long current; unsigned long maximum; };
struct fw_sigset { unsigned long words[128 / sizeof(long)]; };
struct fw_signalfd_siginfo { uint32_t signo; uint8_t rest[124]; };
struct fw_inotify_event { int wd; uint32_t mask; uint32_t cookie; uint32_t len; };
struct fw_open_how { uint64_t flags; uint64_t mode; uint64_t resolve; };
struct fw_statx_time { int64_t sec; uint32_t nsec; int32_t reserved; };
struct fw_statx {
  uint32_t mask; uint32_t blksize; uint64_t attributes; uint32_t nlink; uint32_t uid; uint32_t gid;
  uint16_t mode; uint16_t spare0; uint64_t ino; uint64_t size; uint64_t blocks; uint64_t attributes_mask;
  struct fw_statx_time atime; struct fw_statx_time btime; struct fw_statx_time ctime; struct fw_statx_time mtime;
  uint32_t rdev_major; uint32_t rdev_minor; uint32_t dev_major; uint32_t dev_minor; uint64_t spare[14];
};

struct fw_dirent { unsigned long ino; long off; unsigned short reclen; uint8_t type; char name[256]; };
struct fw_termios {
  uint32_t iflag; uint32_t oflag; uint32_t cflag; uint32_t lflag; uint8_t line; uint8_t cc[32];
  uint32_t ispeed; uint32_t ospeed;
};

int accept4(int, struct fw_sockaddr *, uint32_t *, int);
long sendfile(int, int, long *, size_t);
int getnameinfo(const struct fw_sockaddr *, uint32_t, char *, uint32_t, char *, uint32_t, int);

int poll(struct fw_pollfd *, unsigned long, int);
int epoll_create1(int);
int epoll_ctl(int, int, int, struct fw_epoll_event *);
int epoll_wait(int, struct fw_epoll_event *, int, int);

long pread(int, void *, size_t, long);
int fw_fcntl_int(int, int, int) __asm__("fcntl");
void *fw_opendir(const char *) __asm__("opendir");
struct fw_dirent *fw_readdir(void *) __asm__("readdir");
int fw_ioctl(int, unsigned long, void *) __asm__("ioctl");
int fw_open(const char *, int, uint32_t) __asm__("open");
int fw_openat(int, const char *, int, uint32_t) __asm__("openat");
long fw_openat2(long, int, const char *, struct fw_open_how *, size_t) __asm__("syscall");
int statx(int, const char *, int, unsigned int, struct fw_statx *);
char *realpath(const char *, char *);

int shm_open(const char *, int, uint32_t);
int ftruncate(int, long);
int posix_fallocate(int, long, long);
int fw_fcntl(int, int, struct fw_flock *) __asm__("fcntl");
int fw_membarrier(long, int, unsigned int, int) __asm__("syscall");
void *mmap(void *, size_t, int, int, int, long);
int fw_futex(long, void *, int, uint32_t, const struct fw_timespec *, void *, uint32_t) __asm__("syscall");

int fw_prctl(int, unsigned long, unsigned long, unsigned long, unsigned long) __asm__("prctl");
int sched_setaffinity(int, size_t, const void *);

int signalfd(int, const struct fw_sigset *, int);

int inotify_init1(int);
int inotify_add_watch(int, const char *, uint32_t);
int inotify_rm_watch(int, int);

int pthread_create(unsigned long *, const void *, void *(*)(void *), void *);
int pthread_join(unsigned long, void **);
]])

local M = { name = "linux" }

--- C constants by their header names.
M.constants = {
  AF_UNSPEC = 0, AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10,
  SOCK_STREAM = 1, SOCK_DGRAM = 2, SOCK_NONBLOCK = 0x800, SOCK_CLOEXEC = 0x80000,
  SOL_SOCKET = 1, SO_REUSEADDR = 2, SO_ERROR = 4, SO_BROADCAST = 6, SO_SNDBUF = 7, SO_RCVBUF = 8,
  SO_KEEPALIVE = 9, SO_REUSEPORT = 15,
  IPPROTO_TCP = 6, TCP_NODELAY = 1, IPPROTO_IPV6 = 41, IPV6_V6ONLY = 26,
  MSG_PEEK = 2, MSG_NOSIGNAL = 0x4000, MSG_MORE = 0x8000,
  SHUT_WR = 1,
  AI_PASSIVE = 1, AI_NUMERICHOST = 4, AI_NUMERICSERV = 0x400, NI_NUMERICHOST = 1, NI_NAMEREQD = 8,
  EPERM = 1, ENOENT = 2, EINTR = 4, EAGAIN = 11, EACCES = 13, EEXIST = 17, EXDEV = 18, ENOTDIR = 20, EINVAL = 22,
  ENFILE = 23, EMFILE = 24, ENOSPC = 28, EPIPE = 32, ENAMETOOLONG = 36, ENOSYS = 38, ELOOP = 40, ECONNABORTED = 103,
  ECONNRESET = 104, ENOBUFS = 105, ETIMEDOUT = 110, ECONNREFUSED = 111, EINPROGRESS = 115,
  POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, POLLNVAL = 32,
  EPOLLIN = 1, EPOLLOUT = 4, EPOLLERR = 8, EPOLLHUP = 16,
  EPOLL_CLOEXEC = 0x80000, EPOLL_CTL_ADD = 1, EPOLL_CTL_DEL = 2, EPOLL_CTL_MOD = 3,
  O_RDONLY = 0, O_RDWR = 2, O_CREAT = 0x40, O_EXCL = 0x80, O_NONBLOCK = 0x800, O_CLOEXEC = 0x80000,
  O_DIRECTORY = is_arm and 0x4000 or 0x10000,
  RESOLVE_NO_MAGICLINKS = 2, RESOLVE_BENEATH = 8,
  AT_FDCWD = -100, AT_EMPTY_PATH = 0x1000, AT_SYMLINK_NOFOLLOW = 0x100, STATX_BASIC_STATS = 0x7ff,
  S_IFMT = 0xf000, S_IFREG = 0x8000, S_IFDIR = 0x4000, S_IFLNK = 0xa000, S_IFSOCK = 0xc000,
  DT_UNKNOWN = 0, DT_DIR = 4, DT_REG = 8, DT_LNK = 10, DT_SOCK = 12,
  F_SETFD = 2, FD_CLOEXEC = 1,
  TIOCGWINSZ = 0x5413, TIOCOUTQ = 0x5411, TCSANOW = 0, ISIG = 1,
  PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 16, MAP_ANONYMOUS = 32,
  FUTEX_WAIT = 0, FUTEX_WAKE = 1,
  F_WRLCK = 1, F_UNLCK = 2, F_OFD_GETLK = 36, F_OFD_SETLK = 37, SEEK_SET = 0,
  MEMBARRIER_CMD_GLOBAL_EXPEDITED = 2, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED = 4,
  WNOHANG = 1, PR_SET_PDEATHSIG = 1, _SC_NPROCESSORS_ONLN = 84, RLIMIT_NOFILE = 7,
  SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGBUS = 7, SIGFPE = 8, SIGKILL = 9,
  SIGUSR1 = 10, SIGSEGV = 11, SIGUSR2 = 12, SIGPIPE = 13, SIGALRM = 14, SIGTERM = 15, SIGCHLD = 17, SIGCONT = 18,
  SIGSTOP = 19, SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22, SIGURG = 23, SIGXCPU = 24, SIGXFSZ = 25, SIGVTALRM = 26,
  SIGPROF = 27, SIGWINCH = 28, SIGIO = 29, SIGSYS = 31,
  SIG_BLOCK = 0, SIG_UNBLOCK = 1, SIG_SETMASK = 2, SFD_NONBLOCK = 0x800, SFD_CLOEXEC = 0x80000,
  IN_CLOSE_WRITE = 8, IN_MOVED_FROM = 0x40, IN_MOVED_TO = 0x80, IN_CREATE = 0x100, IN_DELETE = 0x200,
  IN_DELETE_SELF = 0x400, IN_MOVE_SELF = 0x800, IN_Q_OVERFLOW = 0x4000, IN_IGNORED = 0x8000,
  IN_ISDIR = 0x40000000, IN_ONLYDIR = 0x1000000, IN_DONT_FOLLOW = 0x2000000,
  IN_MASK_ADD = 0x20000000,
  IN_NONBLOCK = 0x800, IN_CLOEXEC = 0x80000,
  CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1, CLOCK_PROCESS_CPUTIME_ID = 2,
}

--- System call numbers of calls that the C library does not wrap.
M.syscalls = {
  SYS_futex = ({ x64 = 202, arm64 = 98 })[ffi.arch] or 240,
  SYS_openat2 = 437,
  SYS_membarrier = ({ x64 = 324, x86 = 375, arm64 = 283 })[ffi.arch] or 389,
}

--- Structures for tests/declarations.lua: our name, the name in C, and the names of fields as { ours, in C }.
M.structs = {
  { "struct fw_sockaddr_in", "struct sockaddr_in", { { "port", "sin_port" }, { "address", "sin_addr" } } },
  { "struct fw_sockaddr_in6", "struct sockaddr_in6",
    { { "port", "sin6_port" }, { "address", "sin6_addr" }, { "scope", "sin6_scope_id" } } },
  { "struct fw_sockaddr_un", "struct sockaddr_un", { { "path", "sun_path" } } },
  { "struct fw_sockaddr_storage", "struct sockaddr_storage", { { "family", "ss_family" } } },
  { "struct fw_addrinfo", "struct addrinfo",
    { { "family", "ai_family" }, { "addrlen", "ai_addrlen" }, { "addr", "ai_addr" }, { "next", "ai_next" } } },
  { "struct fw_pollfd", "struct pollfd", { { "events", "events" }, { "revents", "revents" } } },
  { "struct fw_epoll_event", "struct epoll_event", { { "events", "events" }, { "fd", "data" } } },
  { "struct fw_timespec", "struct timespec", { { "sec", "tv_sec" }, { "nsec", "tv_nsec" } } },
  { "struct fw_dirent", "struct dirent", { { "type", "d_type" }, { "name", "d_name" } } },
  { "struct fw_winsize", "struct winsize", { { "rows", "ws_row" }, { "columns", "ws_col" } } },
  { "struct fw_termios", "struct termios", { { "oflag", "c_oflag" }, { "lflag", "c_lflag" }, { "cc", "c_cc" } } },
  { "struct fw_flock", "struct flock",
    { { "type", "l_type" }, { "whence", "l_whence" }, { "start", "l_start" }, { "len", "l_len" } } },
  { "struct fw_rlimit", "struct rlimit", { { "current", "rlim_cur" }, { "maximum", "rlim_max" } } },
  { "struct fw_sigset", "sigset_t", {} },
  { "struct fw_signalfd_siginfo", "struct signalfd_siginfo", { { "signo", "ssi_signo" } } },
  { "struct fw_inotify_event", "struct inotify_event",
    { { "wd", "wd" }, { "mask", "mask" }, { "cookie", "cookie" }, { "len", "len" } } },
  { "struct fw_open_how", "struct open_how", { { "mode", "mode" }, { "resolve", "resolve" } } },
  { "struct fw_statx", "struct statx",
    { { "nlink", "stx_nlink" }, { "mode", "stx_mode" }, { "ino", "stx_ino" }, { "size", "stx_size" },
      { "mtime", "stx_mtime" } } },
  { "struct fw_statx_time", "struct statx_timestamp", { { "sec", "tv_sec" }, { "nsec", "tv_nsec" } } },
}

for _, group in ipairs { M.constants, M.syscalls } do
  for name, value in pairs(group) do M[name] = value end
end

add_common(M, "unsigned long") -- the type of pthread_t

--- The module that watches files on this system.
M.watch_module = "framewire.watch.inotify"

--- The pollers of this system, best first.
M.pollers = { "epoll", "poll" }

--- Flags for new sockets: non-blocking, and close-on-exec, so programs that this one starts do not inherit them.
M.socket_flags = M.SOCK_NONBLOCK + M.SOCK_CLOEXEC

--- Flags for every send: a broken connection returns an error instead of raising a signal.
M.send_flags = M.MSG_NOSIGNAL

--- Accepts one waiting connection. The new socket has `socket_flags`. Returns its descriptor, or -1.
function M.accept(fd)
  return ffi.C.accept4(fd, nil, nil, M.socket_flags)
end

local stat = ffi.new("struct fw_statx")
--- Facts about an open file.
---@param fd integer
---@return integer|nil size
---@return integer modified time of the last change, in whole seconds since 1970
---@return string kind "file", "directory", "link", "socket" or "other"
---@return integer inode
---@return integer owner user id
---@return integer mode permission bits
function M.stat(fd)
  if ffi.C.statx(fd, "", M.AT_EMPTY_PATH, M.STATX_BASIC_STATS, stat) ~= 0 then return nil end
  return M.facts_of(stat)
end

--- Extends an empty file to this size and reserves the memory for it, so no later access can fail for lack of memory.
--- Returns 0 or -1.
function M.allocate(fd, size)
  local number
  repeat number = ffi.C.posix_fallocate(fd, 0, size) until number ~= M.EINTR
  ffi.errno(number)
  return number == 0 and 0 or -1
end

--- How many names an open file has; nil if this is not known.
function M.links(fd)
  if ffi.C.statx(fd, "", M.AT_EMPTY_PATH, M.STATX_BASIC_STATS, stat) ~= 0 then return nil end
  return stat.nlink
end

--- The facts of `stat` about the file at a path. If the path is a symbolic link, they are about its target with
--- `follow`, and about the link itself without it.
function M.facts(path, follow)
  local flags = follow and 0 or M.AT_SYMLINK_NOFOLLOW
  if ffi.C.statx(M.AT_FDCWD, path, flags, M.STATX_BASIC_STATS, stat) ~= 0 then return nil end
  return M.facts_of(stat)
end

local int_box = ffi.new("int[1]")

--- How many bytes of a socket the system holds and the other side has not received yet; nil if this is not known. Linux
--- can hold megabytes, and the socket becomes writable again only when a third of them has been received. So without
--- this number, a time-out could not distinguish a slow receiver from one that receives nothing. The other systems do
--- not need this function: there, a socket is writable when a few kilobytes have been received.
function M.queued(fd)
  if ffi.C.fw_ioctl(fd, M.TIOCOUTQ, int_box) ~= 0 then return nil end
  return int_box[0]
end

--- Sets close-on-exec, so programs that this one starts do not inherit the descriptor.
function M.close_on_exec(fd)
  ffi.C.fw_fcntl_int(fd, M.F_SETFD, M.FD_CLOEXEC)
end

--- Opens a folder for `open_beneath`. Returns a descriptor or -1.
function M.open_folder(path)
  return ffi.C.fw_open(path, M.O_RDONLY + M.O_DIRECTORY + M.O_CLOEXEC, 0)
end

--- The current path of a descriptor's file, or nil.
function M.path_of(fd)
  local resolved = ffi.C.realpath("/proc/self/fd/" .. fd, nil)
  if resolved == nil then return nil end
  local path = ffi.string(resolved)
  ffi.C.free(resolved)
  return path
end

-- Used where openat2 does not work: in kernels before 5.6, and in containers that do not allow it. Opens the file first
-- and then checks where the opened file is. So nobody can replace a part of the path between the check and the opening.
local function open_and_check(root_fd, path)
  return M.keep_beneath(root_fd, ffi.C.fw_openat(root_fd, path, M.O_RDONLY + M.O_CLOEXEC + M.O_NONBLOCK, 0))
end

local how = ffi.new("struct fw_open_how")

--- Opens a file for reading. The path must stay below an open folder, even where it follows symbolic links.
---@param root_fd integer from `open_folder`
---@param path string relative to the folder
---@return integer fd or -1
function M.open_beneath(root_fd, path)
  how.flags = M.O_RDONLY + M.O_CLOEXEC + M.O_NONBLOCK
  how.resolve = M.RESOLVE_BENEATH + M.RESOLVE_NO_MAGICLINKS
  local fd = tonumber(ffi.C.fw_openat2(M.SYS_openat2, root_fd, path, how, ffi.sizeof(how)))
  -- EPERM: a container's filter of system calls refuses openat2.
  if fd < 0 and (ffi.errno() == M.ENOSYS or ffi.errno() == M.EPERM) then return open_and_check(root_fd, path) end
  return fd
end

M.open_and_check = open_and_check -- for the tests

--- Opens a descriptor that becomes readable when one of the signals in `set` arrives. These signals must be blocked.
function M.open_signals(set)
  return ffi.C.signalfd(-1, set, M.SFD_NONBLOCK + M.SFD_CLOEXEC)
end

local info = ffi.new("struct fw_signalfd_siginfo")

--- Takes one signal from a descriptor of `open_signals`. Returns the signal's number, or nil if there is none.
function M.read_signal(fd)
  if ffi.C.read(fd, info, ffi.sizeof(info)) ~= ffi.sizeof(info) then return nil end
  return info.signo
end

--- Keeps the calling thread on one core. Returns 0 or -1.
function M.pin(core)
  local mask = ffi.new("uint8_t[128]")
  if core < 0 or core >= 1024 then
    ffi.errno(M.EINVAL)
    return -1
  end
  mask[math.floor(core / 8)] = 2 ^ (core % 8)
  return ffi.C.sched_setaffinity(0, ffi.sizeof(mask), mask)
end

--- Makes the system send TERM to this process when the thread that started it ends.
function M.die_with_parent()
  ffi.C.fw_prctl(M.PR_SET_PDEATHSIG, M.SIGTERM, 0, 0, 0)
end

--- Raises the limit on this process's open descriptors as far as the system allows, and returns the limit.
function M.descriptor_limit()
  local limit = ffi.new("struct fw_rlimit")
  if ffi.C.getrlimit(M.RLIMIT_NOFILE, limit) ~= 0 then return 1024 end
  -- The soft limit is often 1,024 because of programs that use select. A process may raise it to the hard limit.
  if limit.current < limit.maximum then
    limit.current = limit.maximum
    ffi.C.setrlimit(M.RLIMIT_NOFILE, limit)
    ffi.C.getrlimit(M.RLIMIT_NOFILE, limit)
  end
  return math.min(tonumber(limit.current), 2 ^ 31)
end

local offset_box = ffi.new("long[1]")

--- Sends part of a file to a socket without copying it. Returns the number of bytes sent, or -1.
function M.sendfile(socket, file, offset, length)
  offset_box[0] = offset
  return tonumber(ffi.C.sendfile(socket, file, offset_box, length))
end

--- Sleeps until another thread or process wakes the waiters of `word`. Does not sleep if the word no longer has the
--- value `value`. Returns 0 when woken, otherwise -1, for example after the time-out.
---@param timeout ffi.cdata*|nil struct fw_timespec
function M.futex_wait(word, value, timeout)
  return ffi.C.fw_futex(M.SYS_futex, word, M.FUTEX_WAIT, value, timeout, nil, 0)
end

--- Wakes at most `count` waiters of a word. Returns how many were woken, or -1.
function M.futex_wake(word, count)
  return ffi.C.fw_futex(M.SYS_futex, word, M.FUTEX_WAKE, count, nil, nil, 0)
end

local flock = ffi.new("struct fw_flock")

local function lock_byte(fd, command, byte)
  flock.type, flock.whence, flock.start, flock.len, flock.pid = M.F_WRLCK, M.SEEK_SET, byte, 1, 0
  return ffi.C.fw_fcntl(fd, command, flock)
end

--- Locks one byte of an open file. The lock lasts until the last descriptor of this open file is closed, in any
--- process. Returns 0 or -1.
function M.lock(fd, byte)
  return lock_byte(fd, M.F_OFD_SETLK, byte)
end

--- Whether the lock of a byte is held through another open file, normally by another process.
function M.is_locked(fd, byte)
  return lock_byte(fd, M.F_OFD_GETLK, byte) == 0 and flock.type ~= M.F_UNLCK
end

--- Registers this process for the barriers of other processes. Returns 0 or -1.
function M.accept_barriers()
  return ffi.C.fw_membarrier(M.SYS_membarrier, M.MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0)
end

--- Makes this process, and all processes that called `accept_barriers`, pass a full memory barrier. Returns 0 or -1.
function M.barrier()
  return ffi.C.fw_membarrier(M.SYS_membarrier, M.MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0)
end

--- Opens a shared memory object. Returns a descriptor or -1.
function M.shm_open(path, flags, mode)
  return ffi.C.shm_open(path, flags, mode)
end

return M
