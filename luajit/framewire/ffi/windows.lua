--- Windows: sockets and clocks, enough for TCP and HTTP in one process. Not tested: written from the published headers
-- alone. There are no threads, processes, signals, shared memory, file watching and static files.

local ffi = require "ffi"

-- A socket is a handle of pointer size, but only 32 bits are ever used. So `int` is enough for results.
ffi.cdef [[
struct fw_sockaddr { uint16_t family; char data[14]; };
struct fw_sockaddr_in { uint16_t family; uint16_t port; uint8_t address[4]; uint8_t zero[8]; };
struct fw_sockaddr_in6 { uint16_t family; uint16_t port; uint32_t flowinfo; uint8_t address[16]; uint32_t scope; };
struct fw_sockaddr_storage { uint16_t family; uint8_t data[126]; };
struct fw_addrinfo {
  int flags; int family; int socktype; int protocol;
  size_t addrlen; char *canonname; struct fw_sockaddr *addr; struct fw_addrinfo *next;
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

void GetSystemTimeAsFileTime(uint64_t *);
int QueryPerformanceCounter(int64_t *);
int QueryPerformanceFrequency(int64_t *);
void Sleep(uint32_t);
uint32_t FormatMessageA(uint32_t, const void *, uint32_t, uint32_t, char *, uint32_t, void *);

void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
]]

local C = ffi.C
local net = ffi.load("ws2_32")
net.WSAStartup(0x0202, ffi.new("uint8_t[1024]"))

local M = { name = "windows" }

M.constants = {
  AF_UNSPEC = 0, AF_INET = 2, AF_INET6 = 23,
  SOCK_STREAM = 1, SOL_SOCKET = 0xffff, SO_REUSEADDR = 4, SO_KEEPALIVE = 8,
  SO_SNDBUF = 0x1001, SO_RCVBUF = 0x1002, SO_ERROR = 0x1007,
  IPPROTO_TCP = 6, TCP_NODELAY = 1, IPPROTO_IPV6 = 41, IPV6_V6ONLY = 27,
  MSG_PEEK = 2, SHUT_WR = 1, AI_PASSIVE = 1, AI_NUMERICSERV = 8,
  EINTR = 10004, EACCES = 10013, EMFILE = 10024, EAGAIN = 10035, EINPROGRESS = 10035, ECONNABORTED = 10053,
  ECONNRESET = 10054, ENOBUFS = 10055, ETIMEDOUT = 10060, ECONNREFUSED = 10061, ENFILE = 10024,
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

--- File times count tenths of microseconds since 1601.
function M.wall()
  C.GetSystemTimeAsFileTime(file_time)
  return tonumber(file_time[0]) / 1e7 - 11644473600
end

M.cpu = os.clock

function M.sleep(seconds)
  C.Sleep(math.max(0, seconds) * 1000)
end

function M.open_folder()
  return -1
end

function M.descriptor_limit()
  return 16384
end

return M
