--- The common part of Linux, macOS and FreeBSD: the C declarations and the functions that are the same on all of them.
-- Some of these functions also need declarations from the module of a system.

local bit = require "bit"
local ffi = require "ffi"

ffi.cdef [[
struct fw_pollfd { int fd; short events; short revents; };
struct fw_timespec { long sec; long nsec; };
struct fw_winsize { uint16_t rows; uint16_t columns; uint16_t width; uint16_t height; };

int socket(int, int, int);
int bind(int, const struct fw_sockaddr *, uint32_t);
int listen(int, int);
int connect(int, const struct fw_sockaddr *, uint32_t);
int getsockname(int, struct fw_sockaddr *, uint32_t *);
int getpeername(int, struct fw_sockaddr *, uint32_t *);
int getsockopt(int, int, int, void *, uint32_t *);
int setsockopt(int, int, int, const void *, uint32_t);
int shutdown(int, int);
long recv(int, void *, size_t, int);
long send(int, const void *, size_t, int);
long sendto(int, const void *, size_t, int, const struct fw_sockaddr *, uint32_t);
long recvfrom(int, void *, size_t, int, struct fw_sockaddr *, uint32_t *);
int socketpair(int, int, int, int *);
int unlink(const char *);
int getaddrinfo(const char *, const char *, const struct fw_addrinfo *, struct fw_addrinfo **);
void freeaddrinfo(struct fw_addrinfo *);
const char *gai_strerror(int);
const char *inet_ntop(int, const void *, char *, uint32_t);
long read(int, void *, size_t);
long write(int, const void *, size_t);
int close(int);
void free(void *);
int abs(int);
int pipe(int *);
int closedir(void *);
char *getcwd(char *, size_t);
int isatty(int);
int tcgetattr(int, struct fw_termios *);
int tcsetattr(int, int, const struct fw_termios *);
void cfmakeraw(struct fw_termios *);
int sched_yield(void);
int shm_unlink(const char *);
int munmap(void *, size_t);
int fork(void);
int execvp(const char *program, char *const *arguments);
void _exit(int);
int fflush(void *);
int getpid(void);
int getppid(void);
uint32_t geteuid(void);
int kill(int, int);
int waitpid(int, int *, int);
long sysconf(int);
int getrlimit(int, struct fw_rlimit *);
int setrlimit(int, const struct fw_rlimit *);
void *signal(int, void *);
int clock_gettime(int, struct fw_timespec *);
int nanosleep(const struct fw_timespec *, struct fw_timespec *);
void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
size_t strspn(const void *, const char *);
char *strerror(int);
int sigemptyset(struct fw_sigset *);
int sigaddset(struct fw_sigset *, int);
int sigprocmask(int, const struct fw_sigset *, struct fw_sigset *);
]]

local path_buffer = ffi.new("char[4096]")

--- Adds the common functions to the module of a system.
---@param system table the module, which must have its constants already
---@param thread_type string the C type of a thread's handle
return function(system, thread_type)
  local handles = ffi.typeof(thread_type .. "[1]")
  local file_kinds = { [system.S_IFREG] = "file", [system.S_IFDIR] = "directory", [system.S_IFLNK] = "link" }
  local entry_kinds = { [system.DT_REG] = "file", [system.DT_DIR] = "directory", [system.DT_LNK] = "link" }
  if system.S_IFSOCK then
    file_kinds[system.S_IFSOCK], entry_kinds[system.DT_SOCK] = "socket", "socket"
  end

  --- The library with the socket functions.
  system.net = ffi.C

  --- The name of the system's poll function in `net`.
  system.poll_name = "poll"

  --- The module for the terminal.
  system.terminal_module = "framewire.ffi.terminal"

  --- The module for shared memory.
  system.shm_module = "framewire.shm.posix"

  --- The number of the last error of a system call.
  system.errno = ffi.errno

  --- The message for an error number.
  function system.strerror(number)
    return ffi.string(ffi.C.strerror(number))
  end

  --- The message for an error of getaddrinfo.
  function system.gai_message(status)
    return ffi.string(ffi.C.gai_strerror(status))
  end

  --- Closes a socket. Returns 0 or -1.
  function system.close(fd)
    return ffi.C.close(fd)
  end

  --- Reads from an offset in a file. Returns the number of bytes, or -1.
  function system.pread(fd, target, length, offset)
    return ffi.C.pread(fd, target, length, offset)
  end

  --- Returns the facts in the structure of `stat`: the size in bytes, the time of the last change in seconds since
  --- 1970, the kind, the inode, the owner's user id and the permission bits.
  function system.facts_of(stat)
    return tonumber(stat.size), tonumber(stat.mtime.sec), file_kinds[bit.band(stat.mode, system.S_IFMT)] or "other",
      tonumber(stat.ino), stat.uid, bit.band(stat.mode, 0x1ff)
  end

  --- A part of `open_beneath` on systems that cannot limit the path when they open a file: checks afterwards where the
  --- file `fd` is. If the file is not below the folder `root_fd`, closes it. Returns `fd` or -1.
  function system.keep_beneath(root_fd, fd)
    if fd < 0 then return fd end
    local root, real = system.path_of(root_fd), system.path_of(fd)
    if root and real and (root == "/" or real:sub(1, #root + 1) == root .. "/") then return fd end
    ffi.C.close(fd)
    ffi.errno(system.EXDEV)
    return -1
  end

  --- Calls a function with the name and the kind of each entry of a folder. The kind is nil if it is not known.
  ---@return true|nil ok
  function system.list(path, add)
    local folder = ffi.C.fw_opendir(path)
    if folder == nil then return nil end
    while true do
      local entry = ffi.C.fw_readdir(folder)
      if entry == nil then break end
      local kind = entry_kinds[entry.type]
      if not kind and entry.type ~= system.DT_UNKNOWN then kind = "other" end
      add(ffi.string(entry.name), kind)
    end
    ffi.C.closedir(folder)
    return true
  end

  --- The number of this process.
  function system.process_id()
    return ffi.C.getpid()
  end

  --- The current working directory.
  function system.here()
    if ffi.C.getcwd(path_buffer, 4096) == nil then return nil end
    return ffi.string(path_buffer)
  end

  --- Starts a thread that runs the C function at an address. Returns its handle, or nil and a message.
  function system.start_thread(entry)
    local handle = handles()
    local status = ffi.C.pthread_create(handle, nil, entry, nil)
    if status ~= 0 then return nil, "pthread_create: " .. system.strerror(status) end
    return handle[0]
  end

  --- Waits for the end of a thread.
  function system.join_thread(handle)
    ffi.C.pthread_join(handle, nil)
  end

  --- The number of processor cores that the system uses.
  function system.cores()
    return tonumber(ffi.C.sysconf(system._SC_NPROCESSORS_ONLN))
  end

  --- Lets another thread use the processor, if one is waiting for it.
  function system.yield()
    ffi.C.sched_yield()
  end

  --- Creates a pipe with which other threads can wake a loop. Returns the descriptor that the loop watches and the one
  --- for `notify`, or nil if that fails.
  function system.open_pair()
    local ends = ffi.new("int[2]")
    if ffi.C.pipe(ends) ~= 0 then return nil end
    system.close_on_exec(ends[0])
    system.close_on_exec(ends[1])
    return ends[0], ends[1]
  end

  --- Wakes the loop that watches the other end of the pipe.
  function system.notify(fd)
    ffi.C.write(fd, "x", 1)
  end
end
