--- macOS and FreeBSD: C declarations and constants, from the published headers of macOS 14 and FreeBSD 14 (64 bits).
-- Some of the numbers are different on OpenBSD and NetBSD. The tests run on Linux. They load this file, but do not call
-- its functions. The code for kqueue is in other files, which the tests run with libkqueue.

local ffi = require "ffi"
local add_common = require "framewire.ffi.unix"

local is_mac = ffi.os == "OSX"

ffi.cdef [[
struct fw_sockaddr { uint8_t length; uint8_t family; char data[14]; };
struct fw_sockaddr_in { uint8_t length; uint8_t family; uint16_t port; uint8_t address[4]; uint8_t zero[8]; };
struct fw_sockaddr_in6 {
  uint8_t length; uint8_t family; uint16_t port; uint32_t flowinfo; uint8_t address[16]; uint32_t scope;
};
struct fw_sockaddr_un { uint8_t length; uint8_t family; char path[104]; };
struct fw_sockaddr_storage { uint8_t length; uint8_t family; uint8_t data[118]; unsigned long align; };
struct fw_addrinfo {
  int flags; int family; int socktype; int protocol;
  uint32_t addrlen; char *canonname; struct fw_sockaddr *addr; struct fw_addrinfo *next;
};
struct fw_rlimit { uint64_t current; uint64_t maximum; };

int accept(int, struct fw_sockaddr *, uint32_t *);
int getnameinfo(const struct fw_sockaddr *, uint32_t, char *, size_t, char *, size_t, int);
int fcntl(int, int, ...);
int poll(struct fw_pollfd *, unsigned int, int);

long pread(int, void *, size_t, int64_t);
int open(const char *, int, ...);
int openat(int, const char *, int, ...);
int fw_ioctl(int, unsigned long, ...) __asm__("ioctl");

int shm_open(const char *, int, ...);
int ftruncate(int, int64_t);
void *mmap(void *, size_t, int, int, int, int64_t);

int pthread_create(void **, const void *, void *(*)(void *), void *);
int pthread_join(void *, void **);
]]

if is_mac then
  ffi.cdef [[
  struct fw_sigset { uint32_t words[1]; };
  struct fw_stat {
    int32_t dev; uint16_t mode; uint16_t nlink; uint64_t ino; uint32_t uid; uint32_t gid; int32_t rdev;
    struct fw_timespec atime; struct fw_timespec mtime; struct fw_timespec ctime; struct fw_timespec btime;
    int64_t size; uint8_t rest[64];
  };
  struct fw_dirent { uint64_t ino; uint64_t off; uint16_t reclen; uint16_t length; uint8_t type; char name[1024]; };
  struct fw_termios {
    unsigned long iflag; unsigned long oflag; unsigned long cflag; unsigned long lflag; uint8_t cc[20];
    unsigned long ispeed; unsigned long ospeed;
  };
  ]]
else
  ffi.cdef [[
  struct fw_sigset { uint32_t words[4]; };
  struct fw_stat {
    uint64_t dev; uint64_t ino; uint64_t nlink; uint16_t mode; int16_t pad0; uint32_t uid; uint32_t gid; int32_t pad1;
    uint64_t rdev;
    struct fw_timespec atime; struct fw_timespec mtime; struct fw_timespec ctime; struct fw_timespec btime;
    int64_t size; uint8_t rest[104];
  };
  struct fw_dirent {
    uint64_t ino; int64_t off; uint16_t reclen; uint8_t type; uint8_t pad0; uint16_t length; uint16_t pad1;
    char name[256];
  };
  struct fw_termios {
    uint32_t iflag; uint32_t oflag; uint32_t cflag; uint32_t lflag; uint8_t cc[20]; uint32_t ispeed; uint32_t ospeed;
  };
  ]]
end

-- On macOS with x86-64, the functions with the plain names use older structures.
local suffix = is_mac and ffi.arch == "x64" and "$INODE64" or ""
local functions = ([[
int fw_fstat(int, struct fw_stat *) __asm__("fstatSUFFIX");
int fw_stat(const char *, struct fw_stat *) __asm__("statSUFFIX");
int fw_lstat(const char *, struct fw_stat *) __asm__("lstatSUFFIX");
void *fw_opendir(const char *) __asm__("opendirSUFFIX");
struct fw_dirent *fw_readdir(void *) __asm__("readdirSUFFIX");
]]):gsub("SUFFIX", suffix)
ffi.cdef(functions)

local M = { name = is_mac and "macos" or "freebsd" }

M.constants = {
  AF_UNSPEC = 0, AF_UNIX = 1, AF_INET = 2, AF_INET6 = is_mac and 30 or 28,
  SOCK_STREAM = 1, SOCK_DGRAM = 2, SOL_SOCKET = 0xffff, SO_REUSEADDR = 4, SO_KEEPALIVE = 8, SO_BROADCAST = 0x20,
  SO_SNDBUF = 0x1001, SO_RCVBUF = 0x1002, SO_ERROR = 0x1007,
  -- On FreeBSD, this is SO_REUSEPORT_LB: with SO_REUSEPORT, FreeBSD does not distribute the connections over several
  -- sockets. macOS has no such option.
  SO_REUSEPORT = is_mac and 0x200 or 0x10000,
  IPPROTO_TCP = 6, TCP_NODELAY = 1, IPPROTO_IPV6 = 41, IPV6_V6ONLY = 27,
  MSG_PEEK = 2, SHUT_WR = 1, AI_PASSIVE = 1, AI_NUMERICHOST = 4, NI_NUMERICHOST = 2, NI_NAMEREQD = 4,
  AI_NUMERICSERV = is_mac and 0x1000 or 8,
  EPERM = 1, ENOENT = 2, EINTR = 4, EACCES = 13, EEXIST = 17, EXDEV = 18, ENOTDIR = 20, EINVAL = 22, ENFILE = 23,
  EMFILE = 24, EPIPE = 32, EAGAIN = 35, EINPROGRESS = 36, ECONNABORTED = 53, ECONNRESET = 54, ENOBUFS = 55,
  ETIMEDOUT = 60, ECONNREFUSED = 61, ELOOP = 62, ENAMETOOLONG = 63, ENOSYS = 78,
  POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, POLLNVAL = 32,
  O_RDONLY = 0, O_RDWR = 2, O_NONBLOCK = 4, O_CREAT = 0x200, O_EXCL = 0x800,
  O_CLOEXEC = is_mac and 0x1000000 or 0x100000, O_DIRECTORY = is_mac and 0x100000 or 0x20000,
  O_EVTONLY = is_mac and 0x8000 or 0, O_RESOLVE_BENEATH = 0x800000,
  F_SETFD = 2, F_SETFL = 4, F_GETPATH = 50, FD_CLOEXEC = 1,
  S_IFMT = 0xf000, S_IFREG = 0x8000, S_IFDIR = 0x4000, S_IFLNK = 0xa000, DT_UNKNOWN = 0, DT_DIR = 4, DT_REG = 8,
  DT_LNK = 10, TIOCGWINSZ = 0x40087468, TCSANOW = 0, ISIG = 0x80,
  PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x1000,
  WNOHANG = 1, _SC_NPROCESSORS_ONLN = 58, RLIMIT_NOFILE = 8,
  SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGFPE = 8, SIGKILL = 9, SIGBUS = 10,
  SIGSEGV = 11, SIGSYS = 12, SIGPIPE = 13, SIGALRM = 14, SIGTERM = 15, SIGURG = 16, SIGSTOP = 17, SIGTSTP = 18,
  SIGCONT = 19, SIGCHLD = 20, SIGTTIN = 21, SIGTTOU = 22, SIGIO = 23, SIGXCPU = 24, SIGXFSZ = 25, SIGVTALRM = 26,
  SIGPROF = 27, SIGWINCH = 28, SIGUSR1 = 30, SIGUSR2 = 31,
  SIG_BLOCK = 1, SIG_UNBLOCK = 2, SIG_SETMASK = 3,
  CLOCK_REALTIME = 0, CLOCK_MONOTONIC = is_mac and 6 or 4, CLOCK_PROCESS_CPUTIME_ID = is_mac and 12 or 15,
}

local kqueue = require "framewire.ffi.kqueue"(not is_mac)
for name, value in pairs(kqueue.constants) do M.constants[name] = value end
M.open_signals, M.read_signal = kqueue.open_signals, kqueue.read_signal

for name, value in pairs(M.constants) do M[name] = value end

add_common(M, "void *") -- the type of pthread_t

M.watch_module = "framewire.watch.kqueue"
M.pollers = { "kqueue", "poll" }
M.socket_flags = 0
M.send_flags = is_mac and 0 or 0x20000 -- MSG_NOSIGNAL on FreeBSD

-- Variadic arguments need a C type: LuaJIT passes a plain number as a double.
local function int(value)
  return ffi.cast("int", value)
end

--- Makes a new socket non-blocking, and sets close-on-exec, so programs that this one starts do not inherit the socket.
function M.after_socket(fd)
  ffi.C.fcntl(fd, M.F_SETFL, int(M.O_NONBLOCK))
  ffi.C.fcntl(fd, M.F_SETFD, int(M.FD_CLOEXEC))
end

function M.accept(fd)
  local accepted = ffi.C.accept(fd, nil, nil)
  if accepted >= 0 then M.after_socket(accepted) end
  return accepted
end

function M.open(path, flags)
  return ffi.C.open(path, flags, int(0))
end

function M.shm_open(path, flags, mode)
  return ffi.C.shm_open(path, flags, int(mode))
end

local stat = ffi.new("struct fw_stat")

function M.stat(fd)
  if ffi.C.fw_fstat(fd, stat) ~= 0 then return nil end
  return M.facts_of(stat)
end

function M.facts(path, follow)
  if (follow and ffi.C.fw_stat or ffi.C.fw_lstat)(path, stat) ~= 0 then return nil end
  return M.facts_of(stat)
end

function M.close_on_exec(fd)
  ffi.C.fcntl(fd, M.F_SETFD, int(M.FD_CLOEXEC))
end

function M.open_folder(path)
  return M.open(path, M.O_RDONLY + M.O_DIRECTORY + M.O_CLOEXEC)
end

function M.path_of(fd)
  local path = ffi.new("char[1024]")
  if ffi.C.fcntl(fd, M.F_GETPATH, path) < 0 then return nil end
  return ffi.string(path)
end

--- Opens a file for reading. The path must stay below an open folder, even if it follows symbolic links. macOS has no
--- flag for this, so on macOS, this function opens the file and then checks where the opened file is.
function M.open_beneath(root_fd, path)
  local flags = M.O_RDONLY + M.O_CLOEXEC + M.O_NONBLOCK
  if not is_mac then return ffi.C.openat(root_fd, path, flags + M.O_RESOLVE_BENEATH, int(0)) end
  return M.keep_beneath(root_fd, ffi.C.openat(root_fd, path, flags, int(0)))
end

local copy_buffer = ffi.new("uint8_t[65536]")

--- Copies part of a file to a socket, 64 KiB at most. Returns the number of bytes sent, or -1.
function M.sendfile(socket, file, offset, length)
  local got = tonumber(M.pread(file, copy_buffer, math.min(length, 65536), offset))
  if got <= 0 then return got end
  return tonumber(ffi.C.send(socket, copy_buffer, got, M.send_flags))
end

function M.descriptor_limit()
  local limit = ffi.new("struct fw_rlimit")
  if ffi.C.getrlimit(M.RLIMIT_NOFILE, limit) ~= 0 then return 256 end
  return tonumber(limit.current)
end

return M
