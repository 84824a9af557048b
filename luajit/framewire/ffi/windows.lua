--- Windows: TCP sockets, clocks, threads, shared memory, files and the terminal. Worker processes, signals, watching
-- files, serving static files, UDP, unix sockets and channels are not supported. `make test-windows` tests this file
-- under Wine.

local bit = require "bit"
local ffi = require "ffi"

-- A socket is a handle as large as a pointer, but Windows uses only 32 bits of it. So results can be declared as `int`.
ffi.cdef [[
struct fw_sockaddr { uint16_t family; char data[14]; };
struct fw_sockaddr_in { uint16_t family; uint16_t port; uint8_t address[4]; uint8_t zero[8]; };
struct fw_sockaddr_in6 { uint16_t family; uint16_t port; uint32_t flowinfo; uint8_t address[16]; uint32_t scope; };
struct fw_sockaddr_storage { uint16_t family; uint8_t data[126]; };
struct fw_addrinfo {
  int flags; int family; int socktype; int protocol;
  size_t addrlen; char *canonname; struct fw_sockaddr *addr; struct fw_addrinfo *next;
};
struct fw_find_data {
  uint32_t attributes; uint32_t created[2]; uint32_t accessed[2]; uint32_t modified[2]; uint32_t size_high;
  uint32_t size_low; uint32_t tag; uint32_t reserved; uint16_t name[260]; uint16_t short_name[14];
};
struct fw_attributes {
  uint32_t attributes; uint32_t created[2]; uint32_t accessed[2]; uint32_t modified[2]; uint32_t size_high;
  uint32_t size_low;
};
struct fw_memory_facts {
  void *base; void *allocation; uint32_t protection; uint16_t partition; uintptr_t size; uint32_t state;
  uint32_t access; uint32_t kind;
};
struct fw_console_facts {
  int16_t buffer[2]; int16_t cursor[2]; uint16_t attributes; int16_t left, top, right, bottom; int16_t largest[2];
};
struct fw_input_record {
  uint16_t type, padding; int32_t is_down; uint16_t repeats, key, scan_code, unit; uint32_t modifiers;
};
struct fw_pollfd { intptr_t fd; short events; short revents; };

int WSAStartup(uint16_t, void *);
int WSAGetLastError(void);
int WSAPoll(struct fw_pollfd *, unsigned long, int);
int socket(int, int, int);
int bind(intptr_t, const struct fw_sockaddr *, int);
int listen(intptr_t, int);
int accept(intptr_t, struct fw_sockaddr *, int *);
int connect(intptr_t, const struct fw_sockaddr *, int);
int getsockname(intptr_t, struct fw_sockaddr *, uint32_t *);
int getpeername(intptr_t, struct fw_sockaddr *, uint32_t *);
int getsockopt(intptr_t, int, int, void *, uint32_t *);
int setsockopt(intptr_t, int, int, const void *, int);
int shutdown(intptr_t, int);
int recv(intptr_t, void *, int, int);
int send(intptr_t, const void *, int, int);
int closesocket(intptr_t);
int ioctlsocket(intptr_t, long, unsigned long *);
int getaddrinfo(const char *, const char *, const struct fw_addrinfo *, struct fw_addrinfo **);
void freeaddrinfo(struct fw_addrinfo *);
const char *inet_ntop(int, const void *, char *, size_t);
int getnameinfo(const struct fw_sockaddr *, int, char *, uint32_t, char *, uint32_t, int);

void GetSystemTimeAsFileTime(uint64_t *);
int GetProcessTimes(void *, uint64_t *, uint64_t *, uint64_t *, uint64_t *);
void *GetCurrentProcess(void);
uint32_t GetCurrentProcessId(void);
int QueryPerformanceCounter(int64_t *);
int QueryPerformanceFrequency(int64_t *);
void Sleep(uint32_t);
uint32_t FormatMessageA(uint32_t, const void *, uint32_t, uint32_t, char *, uint32_t, void *);

void *CreateThread(void *, size_t, void *(*)(void *), void *, uint32_t, uint32_t *);
uint32_t WaitForSingleObject(void *, uint32_t);
int CloseHandle(void *);
int SwitchToThread(void);
uint32_t GetActiveProcessorCount(uint16_t);
uintptr_t SetThreadAffinityMask(void *, uintptr_t);
void *GetCurrentThread(void);
uint32_t GetLastError(void);
void SetLastError(uint32_t);

void *CreateFileMappingA(void *, void *, uint32_t, uint32_t, uint32_t, const char *);
void *OpenFileMappingA(uint32_t, int, const char *);
void *MapViewOfFile(void *, uint32_t, uint32_t, uint32_t, size_t);
int UnmapViewOfFile(const void *);
size_t VirtualQuery(const void *, struct fw_memory_facts *, size_t);
void *VirtualAlloc(void *, size_t, uint32_t, uint32_t);
int VirtualFree(void *, size_t, uint32_t);
int abs(int);

int MultiByteToWideChar(uint32_t, uint32_t, const char *, int, uint16_t *, int);
int WideCharToMultiByte(uint32_t, uint32_t, const uint16_t *, int, char *, int, const char *, int *);
void *FindFirstFileW(const uint16_t *, struct fw_find_data *);
int FindNextFileW(void *, struct fw_find_data *);
int FindClose(void *);
int GetFileAttributesExW(const uint16_t *, int, struct fw_attributes *);
uint32_t GetCurrentDirectoryW(uint32_t, uint16_t *);

void *GetStdHandle(uint32_t);
int GetConsoleMode(void *, uint32_t *);
int SetConsoleMode(void *, uint32_t);
int GetConsoleScreenBufferInfo(void *, struct fw_console_facts *);
int ReadConsoleInputW(void *, struct fw_input_record *, uint32_t, uint32_t *);
short VkKeyScanW(uint16_t);
int PeekNamedPipe(void *, void *, uint32_t, uint32_t *, uint32_t *, uint32_t *);
int ReadFile(void *, void *, uint32_t, uint32_t *, void *);

void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
size_t strspn(const void *, const char *);
]]

local C = ffi.C
local net = ffi.load("ws2_32")
net.WSAStartup(0x0202, ffi.new("uint8_t[1024]"))

local M = { name = "windows" }

-- The error numbers are those of Windows. EINPROGRESS is WSAEWOULDBLOCK, which `connect` reports on a non-blocking
-- socket.
M.constants = {
  AF_UNSPEC = 0, AF_INET = 2, AF_INET6 = 23,
  SOCK_STREAM = 1, SOL_SOCKET = 0xffff, SO_REUSEADDR = 4, SO_KEEPALIVE = 8,
  SO_SNDBUF = 0x1001, SO_RCVBUF = 0x1002, SO_ERROR = 0x1007,
  IPPROTO_TCP = 6, TCP_NODELAY = 1, IPPROTO_IPV6 = 41, IPV6_V6ONLY = 27,
  MSG_PEEK = 2, SHUT_WR = 1, AI_PASSIVE = 1, AI_NUMERICHOST = 4, AI_NUMERICSERV = 8,
  NI_NUMERICHOST = 2, NI_NAMEREQD = 4,
  ENOENT = 2, EEXIST = 183, EINTR = 10004, EACCES = 10013, EMFILE = 10024, EAGAIN = 10035, EINPROGRESS = 10035,
  ECONNABORTED = 10053, ECONNRESET = 10054, ENOBUFS = 10055, ETIMEDOUT = 10060, ECONNREFUSED = 10061, ENFILE = 10024,
  POLLIN = 0x300, POLLOUT = 0x10, POLLERR = 1, POLLHUP = 2, POLLNVAL = 4,
  FIONBIO = -2147195266,
}

for name, value in pairs(M.constants) do M[name] = value end

M.net = net
M.poll_name = "WSAPoll"
M.pollers = { "wsapoll" }
M.socket_flags = 0
M.send_flags = 0

function M.after_socket(fd)
  net.ioctlsocket(fd, M.FIONBIO, ffi.new("unsigned long[1]", 1))
end

function M.accept(fd)
  local accepted = net.accept(fd, nil, nil)
  if accepted >= 0 then M.after_socket(accepted) end
  return accepted
end

function M.close(fd)
  return net.closesocket(fd)
end

function M.errno()
  return net.WSAGetLastError()
end

function M.strerror(number)
  local text = ffi.new("char[512]")
  local length = C.FormatMessageA(0x1200, nil, number, 0, text, 512, nil)
  return (ffi.string(text, length):gsub("%s+$", ""))
end

M.gai_message = M.strerror

local ticks = ffi.new("int64_t[1]")
C.QueryPerformanceFrequency(ticks)
local frequency = tonumber(ticks[0])

function M.monotonic()
  C.QueryPerformanceCounter(ticks)
  return tonumber(ticks[0]) / frequency
end

local file_time = ffi.new("uint64_t[1]")

--- Seconds since 1970. Windows counts tenths of microseconds since 1601.
function M.wall()
  C.GetSystemTimeAsFileTime(file_time)
  return tonumber(file_time[0]) / 1e7 - 11644473600
end

local process_times = ffi.new("uint64_t[4]")

--- Processor time of this process, in seconds. On Windows, `os.clock` is the time since its start.
function M.cpu()
  -- The times of the start and the end, then the time in the kernel and in the program.
  local times = process_times
  C.GetProcessTimes(C.GetCurrentProcess(), times, times + 1, times + 2, times + 3)
  return tonumber(times[2] + times[3]) / 1e7
end

function M.sleep(seconds)
  C.Sleep(math.max(0, seconds) * 1000)
end

M.yield = C.SwitchToThread

--- Starts a thread that runs the C function at an address. Returns its handle, or nil and a message.
function M.start_thread(entry)
  local handle = C.CreateThread(nil, 0, entry, nil, 0, nil)
  if handle == nil then return nil, "CreateThread: " .. M.strerror(C.GetLastError()) end
  return handle
end

local FOREVER = 0xffffffff

function M.join_thread(handle)
  C.WaitForSingleObject(handle, FOREVER)
  C.CloseHandle(handle)
end

function M.cores()
  return C.GetActiveProcessorCount(0xffff)
end

--- Keeps the calling thread on one core. Returns 0 or -1.
function M.pin(core)
  if core >= 64 then
    C.SetLastError(87) -- ERROR_INVALID_PARAMETER
    return -1
  end
  return C.SetThreadAffinityMask(C.GetCurrentThread(), ffi.cast("uintptr_t", 2 ^ core)) ~= 0 and 0 or -1
end

M.shm_module = "framewire.shm.windows"

local UTF8 = 65001

local function wide(text)
  local length = C.MultiByteToWideChar(UTF8, 0, text, #text, nil, 0)
  local units = ffi.new("uint16_t[?]", length + 1)
  C.MultiByteToWideChar(UTF8, 0, text, #text, units, length)
  return units
end

local function narrow(units, length)
  local size = C.WideCharToMultiByte(UTF8, 0, units, length, nil, 0, nil, nil)
  local bytes = ffi.new("char[?]", size + 1)
  C.WideCharToMultiByte(UTF8, 0, units, length, bytes, size, nil, nil)
  -- With -1, the length includes the final zero.
  return ffi.string(bytes, length < 0 and size - 1 or size)
end

local DIRECTORY, REPARSE_POINT, DEVICE = 0x10, 0x400, 0x40

local function kind_of(attributes)
  if bit.band(attributes, REPARSE_POINT) ~= 0 then return "link" end
  if bit.band(attributes, DIRECTORY) ~= 0 then return "directory" end
  return bit.band(attributes, DEVICE) ~= 0 and "other" or "file"
end

local function seconds_of(parts)
  return (parts[1] * 4294967296 + parts[0]) / 1e7 - 11644473600
end

--- Size, time of the last change, and kind of the file at a path.
function M.facts(path)
  local facts = ffi.new("struct fw_attributes")
  if C.GetFileAttributesExW(wide(path), 0, facts) == 0 then return nil end
  local size = facts.size_high * 4294967296 + facts.size_low
  return size, math.floor(seconds_of(facts.modified)), kind_of(facts.attributes)
end

--- Calls a function with the name and the kind of each entry of a folder.
function M.list(path, add)
  local data = ffi.new("struct fw_find_data")
  local search = C.FindFirstFileW(wide(path .. "/*"), data)
  if ffi.cast("intptr_t", search) == -1 then return nil end
  repeat add(narrow(data.name, -1), kind_of(data.attributes)) until C.FindNextFileW(search, data) == 0
  C.FindClose(search)
  return true
end

--- The number of this process.
function M.process_id()
  return C.GetCurrentProcessId()
end

--- The current working directory.
function M.here()
  local units = ffi.new("uint16_t[32768]")
  local length = C.GetCurrentDirectoryW(32768, units)
  return length > 0 and narrow(units, length) or nil
end

M.terminal_module = "framewire.ffi.console"

--- Creates a pair of sockets with which other threads can wake a loop. Returns the descriptor that the loop watches and
--- the one for `notify`. It is not a pipe, because WSAPoll waits only for sockets.
function M.open_pair()
  local socket = require "framewire.socket"
  local listener = socket.listen { backlog = 1 }
  if not listener then return nil end
  local client = socket.connect("127.0.0.1", select(2, listener:name()), 1)
  local server = client and listener:accept(1)
  listener:close()
  if server then return server.fd, client.fd end
  if client then client:close() end
  return nil
end

--- Wakes the loop that watches the other socket of the pair.
function M.notify(fd)
  net.send(fd, "x", 1, 0)
end

function M.open_folder()
  return -1
end

function M.descriptor_limit()
  return 16384
end

return M
