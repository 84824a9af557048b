--- TLS 1.2 and 1.3, with OpenSSL (libssl 3 or 1.1). Without OpenSSL, `require` of this module fails.
--
--   local server = assert(tls.connect("example.org", 443))
--   server:write("GET / HTTP/1.0\r\nHost: example.org\r\n\r\n", 5)
--   print(server:read(65536, 5))
--
-- The sockets have the methods of framewire.socket, so streams, tasks, the HTTP client and WebSockets can use them.

local ffi = require "ffi"
local poller = require "framewire.poller"
local check_settings = require "framewire.settings"
local socket = require "framewire.socket"
local sys = require "framewire.sys"
local time = require "framewire.time"

ffi.cdef [[
const void *TLS_method(void);
void *SSL_CTX_new(const void *);
void SSL_CTX_free(void *);
int SSL_CTX_set_default_verify_paths(void *);
int SSL_CTX_load_verify_locations(void *, const char *, const char *);
int SSL_CTX_use_certificate_chain_file(void *, const char *);
int SSL_CTX_use_PrivateKey_file(void *, const char *, int);
int SSL_CTX_check_private_key(const void *);
void SSL_CTX_set_verify(void *, int, void *);
int SSL_CTX_set_session_id_context(void *, const char *, unsigned int);
long SSL_CTX_ctrl(void *, int, long, void *);
long SSL_CTX_callback_ctrl(void *, int, void (*)(void));
void *SSL_new(void *);
void SSL_free(void *);
int SSL_set_fd(void *, int);
void SSL_set_connect_state(void *);
void SSL_set_accept_state(void *);
int SSL_do_handshake(void *);
int SSL_read(void *, void *, int);
int SSL_write(void *, const void *, int);
int SSL_shutdown(void *);
int SSL_get_error(const void *, int);
long SSL_ctrl(void *, int, long, void *);
int SSL_set1_host(void *, const char *);
void *SSL_get0_param(void *);
long SSL_get_verify_result(const void *);
const char *SSL_get_version(const void *);
const char *SSL_get_servername(const void *, int);
void *SSL_set_SSL_CTX(void *, void *);
int X509_VERIFY_PARAM_set1_ip_asc(void *, const char *);
const char *X509_verify_cert_error_string(long);
unsigned long ERR_get_error(void);
void ERR_clear_error(void);
void ERR_error_string_n(unsigned long, char *, size_t);
]]

local function load(names)
  local message
  for _, name in ipairs(names) do
    local ok, library = pcall(ffi.load, name)
    if ok then return library end
    message = library
  end
  error("framewire.tls needs OpenSSL 3 or 1.1: " .. tostring(message), 0)
end

local ssl = load { "libssl.so.3", "libssl.so.1.1", "ssl" }
local crypto = load { "libcrypto.so.3", "libcrypto.so.1.1", "crypto" }

local READ, WRITE = poller.READ, poller.WRITE

-- Constants from OpenSSL's headers. tests/tls.lua compares them with the values that a C compiler finds.
local constants = {
  SSL_ERROR_SSL = 1, SSL_ERROR_WANT_READ = 2, SSL_ERROR_WANT_WRITE = 3, SSL_ERROR_SYSCALL = 5,
  SSL_ERROR_ZERO_RETURN = 6,
  SSL_VERIFY_NONE = 0, SSL_VERIFY_PEER = 1, SSL_VERIFY_FAIL_IF_NO_PEER_CERT = 2,
  SSL_FILETYPE_PEM = 1, X509_V_OK = 0,
  SSL_CTRL_MODE = 33, SSL_MODE_ENABLE_PARTIAL_WRITE = 1, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER = 2,
  SSL_CTRL_SET_MIN_PROTO_VERSION = 123, TLS1_2_VERSION = 0x303,
  SSL_CTRL_SET_TLSEXT_HOSTNAME = 55, TLSEXT_NAMETYPE_host_name = 0, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB = 53,
  SSL_CTRL_SET_TLSEXT_SERVERNAME_ARG = 54, SSL_TLSEXT_ERR_OK = 0,
}
local K = constants

-- Ignores SIGPIPE, so that OpenSSL's writes to a broken connection return an error instead of ending the process.
if sys.SIGPIPE then ffi.C.signal(sys.SIGPIPE, ffi.cast("void *", 1)) end

local text_buffer = ffi.new("char[256]")

-- Returns OpenSSL's message about the last failure, or nil.
local function reason()
  local code = crypto.ERR_get_error()
  crypto.ERR_clear_error()
  if code == 0 then return nil end
  crypto.ERR_error_string_n(code, text_buffer, 256)
  return (ffi.string(text_buffer):gsub("^error:%x+:[^:]*:[^:]*:", ""))
end

local function fail(what)
  return nil, what .. ": " .. (reason() or "unknown reason")
end

local Secure = {}
Secure.__index = Secure

--- Marks sockets that have a buffer of their own: OpenSSL may already hold received bytes although a poller does not
--- report the descriptor as readable.
Secure.buffered = true

-- Converts the result of a failed OpenSSL call. Returns nil and a message: "again", "closed" or an error. With "again",
-- the third result is what to wait for, READ or WRITE.
local function result(self, code, what)
  local kind = ssl.SSL_get_error(self.ssl, code)
  if kind == K.SSL_ERROR_WANT_READ then return nil, "again", READ end
  if kind == K.SSL_ERROR_WANT_WRITE then return nil, "again", WRITE end
  self.broken = kind ~= K.SSL_ERROR_ZERO_RETURN
  if kind == K.SSL_ERROR_ZERO_RETURN then return nil, "closed" end
  if kind == K.SSL_ERROR_SYSCALL then
    local number = sys.errno()
    crypto.ERR_clear_error()
    if number == 0 then return nil, what .. ": the connection was cut off" end
    return nil, what .. ": " .. sys.strerror(number), number
  end
  local problem = ssl.SSL_get_verify_result(self.ssl)
  local text = reason() or "unknown reason"
  if text:find("unexpected eof", 1, true) then text = "the connection was cut off" end
  if problem ~= K.X509_V_OK then
    text = text .. ": " .. ffi.string(crypto.X509_verify_cert_error_string(problem))
  end
  return nil, what .. ": " .. text
end

--- Sends bytes from C memory, as many as possible now.
---@param source ffi.cdata* uint8_t *
---@param length integer
---@return integer|nil sent
---@return string? message "again" or an error
---@return integer? interest with "again": what to wait for, READ or WRITE
function Secure:send_bytes(source, length)
  if not self.ssl then return nil, "the socket is closed" end
  if length == 0 then return 0 end
  crypto.ERR_clear_error()
  local sent = ssl.SSL_write(self.ssl, source, math.min(length, 0x40000000))
  if sent > 0 then return sent end
  return result(self, sent, "send")
end

--- Receives bytes into C memory.
---@param target ffi.cdata* uint8_t *
---@param room integer
---@return integer|nil count
---@return string? message "again", "closed" or an error
---@return integer? interest with "again": what to wait for
function Secure:receive_into(target, room)
  if not self.ssl then return nil, "the socket is closed" end
  crypto.ERR_clear_error()
  local got = ssl.SSL_read(self.ssl, target, math.min(room, 0x40000000))
  if got > 0 then return got end
  return result(self, got, "receive")
end

-- These methods are those of the underlying socket.
for _, name in ipairs { "wait", "name", "peer", "set" } do
  Secure[name] = function(self, ...) return self.socket[name](self.socket, ...) end
end

-- These methods call `send_bytes`, `receive_into` and `wait`. With "again", `send` and `receive` also return what to
-- wait for, READ or WRITE, as `send_bytes` and `receive_into` do.
for _, name in ipairs { "send", "receive", "write", "read" } do Secure[name] = socket.methods[name] end

--- The version of TLS that the connection uses.
---@return string|nil version "TLSv1.3" or "TLSv1.2"
function Secure:version()
  return self.ssl and ffi.string(ssl.SSL_get_version(self.ssl))
end

--- The server name that the client sent (SNI).
---@return string|nil
function Secure:server_name()
  local name = self.ssl and ssl.SSL_get_servername(self.ssl, K.TLSEXT_NAMETYPE_host_name)
  return name and name ~= nil and ffi.string(name) or nil
end

--- Closes the sending direction. The socket can still receive.
function Secure:finish()
  if self.ssl and not self.broken then
    crypto.ERR_clear_error()
    ssl.SSL_shutdown(self.ssl)
  end
end

--- Closes the socket; a second call does nothing.
function Secure:close()
  if not self.ssl then return end
  self:finish()
  ssl.SSL_free(ffi.gc(self.ssl, nil))
  self.ssl = nil
  self.socket:close()
  self.fd = -1
end

-- A separate function that LuaJIT must not compile, because OpenSSL calls a Lua function from it: `choose` below.
local function step(handle)
  return ssl.SSL_do_handshake(handle)
end
jit.off(step)

local function shake_hands(self, timeout)
  local deadline = time.deadline(timeout)
  while true do
    crypto.ERR_clear_error()
    local code = step(self.ssl)
    if code == 1 then return true end
    local _, message, interest = result(self, code, "TLS")
    if message ~= "again" then return nil, message == "closed" and "TLS: the other side refused" or message end
    local ready
    ready, message = self.socket:wait(interest, deadline - time.monotonic())
    if not ready then return nil, "TLS: " .. message end
  end
end

-- Closes a TLS connection whose handshake failed or cannot begin. Returns the other arguments.
local function give_up(secure, ...)
  secure.broken = true
  secure:close()
  return ...
end

-- Performs the handshake of a new TLS connection and returns the connection. If the handshake fails, closes it.
local function complete(secure, timeout)
  local returned, ok, message = pcall(shake_hands, secure, timeout or 10)
  if not returned then error(give_up(secure, ok), 0) end -- the task was cancelled
  if ok then return secure end
  return give_up(secure, nil, message)
end

local Context = {}
Context.__index = Context

-- Creates a TLS connection on a connected socket, without the handshake. If this fails, closes the socket.
local function new_secure(context, connected)
  local handle = ssl.SSL_new(context.handle)
  if handle ~= nil then handle = ffi.gc(handle, ssl.SSL_free) end
  if handle == nil or ssl.SSL_set_fd(handle, connected.fd) ~= 1 then
    local _, message = fail("TLS")
    connected:close()
    return nil, message
  end
  return setmetatable({
    ssl = handle, socket = connected, fd = connected.fd, context = context, broken = false,
  }, Secure)
end

local function is_address(host)
  return host:find("^%d+%.%d+%.%d+%.%d+$") ~= nil or host:find(":", 1, true) ~= nil
end

--- Performs the client's TLS handshake on a connected socket. From then on, use only the result and not the socket. If
--- this function fails, it closes the socket.
---@param connected table socket
---@param host string the server's name or address, which its certificate must contain
---@param timeout? number seconds, 10 by default
---@return table|nil secure
---@return string? message
function Context:connect(connected, host, timeout)
  if type(host) ~= "string" or host == "" then
    connected:close()
    return nil, "TLS needs the name of the server"
  end
  local secure, message = new_secure(self, connected)
  if not secure then return nil, message end
  local handle = secure.ssl
  ssl.SSL_set_connect_state(handle)
  if is_address(host) then
    if self.verifies and crypto.X509_VERIFY_PARAM_set1_ip_asc(ssl.SSL_get0_param(handle), host) ~= 1 then
      return give_up(secure, fail("TLS: the address " .. host))
    end
  else
    local name = ffi.new("char[?]", #host + 1, host)
    local kind = K.TLSEXT_NAMETYPE_host_name
    if ssl.SSL_ctrl(handle, K.SSL_CTRL_SET_TLSEXT_HOSTNAME, kind, name) ~= 1
      or self.verifies and ssl.SSL_set1_host(handle, host) ~= 1 then
      return give_up(secure, fail("TLS: the name " .. host))
    end
  end
  return complete(secure, timeout)
end

--- Performs the server's TLS handshake on an accepted socket. From then on, use only the result and not the socket. If
--- this function fails, it closes the socket.
---@param accepted table socket
---@param timeout? number seconds, 10 by default
---@return table|nil secure, string? message
function Context:accept(accepted, timeout)
  local secure, message = new_secure(self, accepted)
  if not secure then return nil, message end
  ssl.SSL_set_accept_state(secure.ssl)
  return complete(secure, timeout)
end

local CLIENT = { ca = "string", certificate = "string", key = "string", verify = "boolean" }
local SERVER = { ca = "string", certificate = "string", key = "string", names = "table" }

local function check_options(owner, options, known)
  if type(options) ~= "table" then return nil, "the settings of TLS must be a table, not a " .. type(options) end
  local ok, message = check_settings(owner, options, known)
  if not ok then return nil, message end
  if (options.certificate == nil) ~= (options.key == nil) then return nil, "give both certificate and key" end
  return true
end

local function new_context()
  local handle = ssl.SSL_CTX_new(ssl.TLS_method())
  if handle == nil then return fail("TLS") end
  handle = ffi.gc(handle, ssl.SSL_CTX_free)
  ssl.SSL_CTX_ctrl(handle, K.SSL_CTRL_MODE,
    K.SSL_MODE_ENABLE_PARTIAL_WRITE + K.SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, nil)
  ssl.SSL_CTX_ctrl(handle, K.SSL_CTRL_SET_MIN_PROTO_VERSION, K.TLS1_2_VERSION, nil)
  -- Without this, a server that asks for certificates of clients refuses each client that resumes a session.
  ssl.SSL_CTX_set_session_id_context(handle, "framewire", 9)
  return handle
end

local function use_certificate(handle, options)
  crypto.ERR_clear_error()
  if ssl.SSL_CTX_use_certificate_chain_file(handle, options.certificate) ~= 1 then
    return fail("cannot use the certificate " .. options.certificate)
  end
  if ssl.SSL_CTX_use_PrivateKey_file(handle, options.key, K.SSL_FILETYPE_PEM) ~= 1
    or ssl.SSL_CTX_check_private_key(handle) ~= 1 then
    return fail("cannot use the key " .. options.key)
  end
  return true
end

-- Trusts the certificate authorities in a file, or those of the system.
local function trust(handle, ca)
  crypto.ERR_clear_error()
  if ca then
    if ssl.SSL_CTX_load_verify_locations(handle, ca, nil) ~= 1 then return fail("cannot use the authorities " .. ca) end
  elseif ssl.SSL_CTX_set_default_verify_paths(handle) ~= 1 then
    return fail("cannot use the system's authorities")
  end
  return true
end

-- The contexts with certificates for further server names. Each key is the address of a server's main context; its
-- value is a table with a context for each of these names.
local by_context = {}

local function key_of(pointer)
  return tonumber(ffi.cast("uintptr_t", pointer))
end

-- OpenSSL calls this in a handshake, to choose the certificate for the server name that the client has sent. `argument`
-- is the server's context.
local choose = ffi.cast("int (*)(void *, int *, void *)", function(handle, _, argument)
  local names = by_context[key_of(argument)]
  local name = ssl.SSL_get_servername(handle, K.TLSEXT_NAMETYPE_host_name)
  if names and name ~= nil then
    local text = ffi.string(name):lower()
    local chosen = names[text] or names[text:gsub("^[^.]+", "*")]
    if chosen then ssl.SSL_set_SSL_CTX(handle, chosen) end
  end
  return K.SSL_TLSEXT_ERR_OK
end)

local function use_names(context, names, ca)
  local chosen = {}
  for name, pair in pairs(names) do
    if type(name) ~= "string" or type(pair) ~= "table" or type(pair.certificate) ~= "string"
      or type(pair.key) ~= "string" then
      return nil, "names must have a certificate and a key for each name"
    end
    local ok, message = check_settings("the certificate of " .. name, pair, { certificate = "string", key = "string" })
    if not ok then return nil, message end
    local handle
    handle, message = new_context()
    if not handle then return nil, message end
    ok, message = use_certificate(handle, pair)
    -- OpenSSL checks the client's certificate with the authorities of the chosen context.
    if ok and ca then ok, message = trust(handle, ca) end
    if not ok then return nil, message end
    chosen[name:lower()] = handle
  end
  by_context[key_of(context.handle)] = chosen
  ssl.SSL_CTX_callback_ctrl(context.handle, K.SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, ffi.cast("void (*)(void)", choose))
  ssl.SSL_CTX_ctrl(context.handle, K.SSL_CTRL_SET_TLSEXT_SERVERNAME_ARG, 0, context.handle)
  return true
end

local M = { constants = constants }

--- Creates a context: the settings of a client.
---@param options? table `ca`: PEM file with the certificate authorities to trust (by default, those of the system);
--- `verify` (true): false accepts any certificate; `certificate` and `key`: PEM files with the client's own certificate
---@return table|nil context with `connect(socket, host, timeout)`
---@return string? message
function M.client(options)
  options = options or {}
  local ok, message = check_options("a TLS client", options, CLIENT)
  if not ok then return nil, message end
  local handle
  handle, message = new_context()
  if not handle then return nil, message end
  local verifies = options.verify ~= false
  if verifies then
    ok, message = trust(handle, options.ca)
    if not ok then return nil, message end
  end
  ssl.SSL_CTX_set_verify(handle, verifies and K.SSL_VERIFY_PEER or K.SSL_VERIFY_NONE, nil)
  if options.certificate then
    ok, message = use_certificate(handle, options)
    if not ok then return nil, message end
  end
  return setmetatable({ handle = handle, verifies = verifies }, Context)
end

--- Creates a context: the settings of a server.
---@param options table `certificate` and `key`: PEM files; `names`: other certificates, by server name (in
--- "*.example.org", the * stands for one part of the name), each with `certificate` and `key`; `ca`: PEM file with
--- authorities: every client must have a certificate from one of them
---@return table|nil context with `accept(socket, timeout)`
---@return string? message
function M.server(options)
  local ok, message = check_options("a TLS server", options or {}, SERVER)
  if not ok then return nil, message end
  if not options or not options.certificate then return nil, "a TLS server needs a certificate and a key" end
  local handle
  handle, message = new_context()
  if not handle then return nil, message end
  ok, message = use_certificate(handle, options)
  if ok and options.ca then ok, message = trust(handle, options.ca) end
  if not ok then return nil, message end
  if options.ca then
    ssl.SSL_CTX_set_verify(handle, K.SSL_VERIFY_PEER + K.SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
  end
  local context = setmetatable({ handle = handle, verifies = options.ca ~= nil }, Context)
  if options.names then
    ok, message = use_names(context, options.names, options.ca)
    if not ok then return nil, message end
  end
  return context
end

-- The contexts that `connect` has created, by table of options; and the table for calls without options.
local contexts = setmetatable({}, { __mode = "k" })
local NO_OPTIONS = {}

--- Connects, and checks the server's certificate.
---@param host string name or address
---@param port integer
---@param options? table as for `client`; read only in the first call with this table, so do not change it afterwards
---@param timeout? number seconds for connecting and the handshake together, 10 by default
---@return table|nil secure
---@return string? message
function M.connect(host, port, options, timeout)
  options = options or NO_OPTIONS
  local context = contexts[options]
  if not context then
    local problem
    context, problem = M.client(options)
    if not context then return nil, problem end
    contexts[options] = context
  end
  local deadline = time.monotonic() + (timeout or 10)
  local connected, message = socket.connect(host, port, timeout or 10)
  if not connected then return nil, message end
  local secure
  secure, message = context:connect(connected, host, math.max(0, deadline - time.monotonic()))
  if not secure then return nil, ("cannot connect to %s port %s: %s"):format(host, port, message) end
  return secure
end

return M
