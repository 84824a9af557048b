--- Finds the addresses of a host name, and the host name of an address.
--
--   print(unpack(assert(resolve.addresses("localhost"))))   --> ::1  127.0.0.1
--   print(resolve.name("127.0.0.1"))                        --> localhost
--
-- A look-up can take seconds. `addresses` and `name` block until it is complete; but in a task, they use another
-- thread, and the loop continues meanwhile. `addresses_on` and `name_on` also use another thread, and call a function
-- with the result.

local ffi = require "ffi"
local sys = require "framewire.sys"
local tasks = require "framewire.task"

local net = sys.net

local M = {}

local text_buffer = ffi.new("char[1025]")

--- The addresses of a name, in the form that the system's functions take.
---@param name string
---@param port string|nil
---@param hints integer getaddrinfo's flags
---@return table[]|nil addresses each with `family` and `bytes`
---@return string? message
function M.find(name, port, hints)
  local want = ffi.new("struct fw_addrinfo")
  want.flags, want.family, want.socktype = hints, sys.AF_UNSPEC, sys.SOCK_STREAM
  local list = ffi.new("struct fw_addrinfo *[1]")
  local status = net.getaddrinfo(name, port, want, list)
  if status ~= 0 then return nil, ("cannot find '%s': %s"):format(tostring(name), sys.gai_message(status)) end
  local addresses = {}
  local entry = list[0]
  while entry ~= nil do
    addresses[#addresses + 1] = { family = entry.family, bytes = ffi.string(entry.addr, tonumber(entry.addrlen)) }
    entry = entry.next
  end
  net.freeaddrinfo(list[0])
  return addresses
end

-- Returns an address as text: as a host name or in digits, depending on the flags for getnameinfo.
local function describe(entry, flags)
  local address = ffi.cast("const struct fw_sockaddr *", entry.bytes)
  local status = net.getnameinfo(address, #entry.bytes, text_buffer, ffi.sizeof(text_buffer), nil, 0, flags)
  if status ~= 0 then return nil, sys.gai_message(status) end
  return ffi.string(text_buffer)
end

local function look_up(name, hints)
  local found, message = M.find(name, nil, hints)
  if not found then return nil, message end
  local texts, seen = {}, {}
  for _, entry in ipairs(found) do
    local text = describe(entry, sys.NI_NUMERICHOST)
    if text and not seen[text] then
      seen[text] = true
      texts[#texts + 1] = text
    end
  end
  return texts
end

local function look_up_name(address)
  local found = M.find(address, nil, sys.AI_NUMERICHOST)
  if not found then
    return nil, ("'%s' is not an address; use one such as 127.0.0.1 or ::1"):format(tostring(address))
  end
  local name, message = describe(found[1], sys.NI_NAMEREQD)
  if not name then return nil, ("cannot find the name of %s: %s"):format(address, message) end
  return name
end

--- Finds the addresses of a name on another thread, and then calls a function on the loop.
---@param loop table
---@param name string name or address
---@param callback fun(addresses: string[]|nil, message: string|nil)
---@return true|nil ok
---@return string? message
function M.addresses_on(loop, name, callback)
  return require("framewire.thread").start_on(loop, function(ok, list, message)
    if not ok then return callback(nil, list) end
    if not list then return callback(nil, message) end
    local addresses = {}
    for address in list:gmatch("[^\n]+") do addresses[#addresses + 1] = address end
    callback(addresses)
  end, function(text)
    local found, problem = require("framewire.resolve").addresses(text)
    if not found then return nil, problem end
    return table.concat(found, "\n")
  end, name)
end

--- Finds the name of an address on another thread, and then calls a function on the loop.
---@param loop table
---@param address string
---@param callback fun(name: string|nil, message: string|nil)
---@return true|nil ok
---@return string? message
function M.name_on(loop, address, callback)
  return require("framewire.thread").start_on(loop, function(ok, name, message)
    if not ok then return callback(nil, name) end
    if not name then return callback(nil, message) end
    callback(name)
  end, function(text) return require("framewire.resolve").name(text) end, address)
end

-- Calls `start`, which takes a callback, and suspends the running task until the callback is called.
local function wait(task, start, text)
  local answer
  local ok, message = start(task.loop, text, function(...)
    answer = { count = select("#", ...), ... }
    tasks.resume(task)
  end)
  if not ok then return nil, message end
  repeat tasks.suspend(task) until answer
  return unpack(answer, 1, answer.count)
end

--- The addresses of a name, in the order in which the system prefers them.
---@param name string name or address
---@return string[]|nil addresses
---@return string? message
function M.addresses(name)
  -- With AI_NUMERICHOST, `look_up` only reads an address and does not block. It fails if `name` is a name.
  local found = look_up(name, sys.AI_NUMERICHOST)
  if found then return found end
  local task = tasks.current()
  if task then return wait(task, M.addresses_on, name) end
  return look_up(name, 0)
end

--- The name of an address.
---@param address string IPv4 or IPv6
---@return string|nil name
---@return string? message
function M.name(address)
  local task = tasks.current()
  if task then return wait(task, M.name_on, address) end
  return look_up_name(address)
end

return M
