--- Threads of the operating system, each with its own Lua state.
--
--   local worker = assert(thread.start(function(a, b) return a + b end, 1, 2))
--   print(worker:join())   --> true 3
--
-- The function is passed as bytecode, so it can use its arguments and the global variables of the new Lua state, but no
-- local variables from outside of it. Arguments and results can be strings, numbers, booleans and nil. To share memory,
-- pass the name of a block of shared memory, or an address as a number. This module needs a LuaJIT that exports its C
-- functions, as the `luajit` program does.

local ffi = require "ffi"
local sys = require "framewire.sys"

ffi.cdef [[
typedef struct fw_lua_State fw_lua_State;
fw_lua_State *luaL_newstate(void);
void luaL_openlibs(fw_lua_State *);
int luaL_loadbuffer(fw_lua_State *, const char *, size_t, const char *);
int lua_pcall(fw_lua_State *, int, int, int);
void lua_pushlstring(fw_lua_State *, const char *, size_t);
void lua_pushnumber(fw_lua_State *, double);
void lua_pushboolean(fw_lua_State *, int);
void lua_pushnil(fw_lua_State *);
int lua_type(fw_lua_State *, int);
int lua_gettop(fw_lua_State *);
void lua_settop(fw_lua_State *, int);
int lua_checkstack(fw_lua_State *, int);
const char *lua_tolstring(fw_lua_State *, int, size_t *);
double lua_tonumber(fw_lua_State *, int);
int lua_toboolean(fw_lua_State *, int);
void lua_close(fw_lua_State *);
]]

local C = ffi.C
local TYPE_BOOLEAN, TYPE_NUMBER, TYPE_STRING = 1, 3, 4

local M = {
  --- How many other threads this Lua state knows: those that it has started and has not joined yet. In a thread of this
  --- module, the thread that started it also counts.
  running = rawget(_G, "FW_THREAD") and 1 or 0,
}

local Thread = {}
Thread.__index = Thread

-- Runs in the new Lua state, but still on the thread that called `start`. Returns the address of a C function, which
-- the new thread will run, and a Lua function that returns the results afterwards.
local BOOTSTRAP = [[
local path, code, notify = ...
local ffi = require "ffi"
local arguments, count = { select(4, ...) }, select("#", ...) - 3
package.path = path
local results, result_count
local function keep(...) results, result_count = { ... }, select("#", ...) end
local run = ffi.cast("void *(*)(void *)", function()
  local main, message = loadstring(code, "=thread")
  if not main then
    keep(false, message)
  else
    keep(xpcall(function() return main(unpack(arguments, 1, count)) end, debug.traceback))
  end
  if notify then require("framewire.sys").notify(notify) end
  return nil
end)
FW_THREAD = true -- for framewire.thread in this state
return tonumber(ffi.cast("intptr_t", run)), function() return unpack(results, 1, result_count) end
]]

local function push(state, value)
  local kind = type(value)
  if kind == "string" then
    C.lua_pushlstring(state, value, #value)
  elseif kind == "number" then
    C.lua_pushnumber(state, value)
  elseif kind == "boolean" then
    C.lua_pushboolean(state, value and 1 or 0)
  elseif kind == "nil" then
    C.lua_pushnil(state)
  else
    return nil, "a " .. kind .. " cannot be passed to a thread; pass strings, numbers, booleans or nil"
  end
  return true
end

local length_box = ffi.new("size_t[1]")

local function value_at(state, index)
  local kind = C.lua_type(state, index)
  if kind == TYPE_STRING then
    local text = C.lua_tolstring(state, index, length_box)
    return ffi.string(text, length_box[0])
  elseif kind == TYPE_NUMBER then
    return C.lua_tonumber(state, index)
  elseif kind == TYPE_BOOLEAN then
    return C.lua_toboolean(state, index) ~= 0
  end
  return nil
end

local function bytecode_of(main)
  if type(main) == "string" then return main end
  if type(main) ~= "function" then return nil, "a thread runs a function or Lua source, not a " .. type(main) end
  if debug.getinfo(main, "S").what == "C" then return nil, "only a function written in Lua can run in a thread" end
  local name = debug.getupvalue(main, 1)
  if name then
    return nil, "the thread's function uses '" .. name
      .. "' from outside itself; pass it as an argument, or require it inside"
  end
  return string.dump(main)
end

-- Runs BOOTSTRAP with all arguments. Leaves its two results on the stack of the new state.
local function prepare(state, code, notify, count, ...)
  C.luaL_openlibs(state)
  C.lua_checkstack(state, count + 8)
  if C.luaL_loadbuffer(state, BOOTSTRAP, #BOOTSTRAP, "=framewire.thread") ~= 0 then return nil, value_at(state, -1) end
  push(state, package.path)
  push(state, code)
  push(state, notify or false)
  for i = 1, count do
    local ok, message = push(state, (select(i, ...)))
    if not ok then return nil, message end
  end
  if C.lua_pcall(state, count + 3, 2, 0) ~= 0 then return nil, value_at(state, -1) end
  return true
end

-- Starts a thread. If `notify` is not nil, the thread wakes a loop at its end, through this descriptor.
local function start(notify, main, ...)
  local code, message = bytecode_of(main)
  if not code then return nil, message end
  local state = C.luaL_newstate()
  if state == nil then return nil, "not enough memory for a Lua state" end
  local ok
  ok, message = prepare(state, code, notify, select("#", ...), ...)
  if not ok then
    C.lua_close(state)
    return nil, message
  end
  local entry = ffi.cast("void *(*)(void *)", ffi.cast("intptr_t", C.lua_tonumber(state, 1)))
  local handle
  handle, message = sys.start_thread(entry)
  if not handle then
    C.lua_close(state)
    return nil, message
  end
  M.running = M.running + 1
  return setmetatable({ state = state, handle = handle }, Thread)
end

--- Runs a function in a new thread.
---@param main function|string a function that uses no local variables from outside of it; or Lua source
---@param ... any strings, numbers, booleans and nil
---@return table|nil thread with a method `join`
---@return string? message
function M.start(main, ...)
  return start(nil, main, ...)
end

--- Runs a function in a new thread. When it has ended, calls `callback` on a loop, which is not blocked meanwhile.
---@param loop table
---@param callback function called with the results of `join`
---@param main function|string as for `start`
---@param ... any as for `start`
---@return true|nil ok
---@return string? message
function M.start_on(loop, callback, main, ...)
  local receiving, sending = sys.open_pair()
  if not receiving then return sys.fail("cannot make a pair of descriptors") end
  local thread, message = start(sending, main, ...)
  local ok = thread
  if thread then
    ok, message = loop:watch(receiving, loop.READ, function()
      loop:forget(receiving)
      sys.close(receiving)
      sys.close(sending)
      callback(thread:join())
    end)
  end
  if ok then return true end
  if thread then thread:join() end
  sys.close(receiving)
  sys.close(sending)
  return nil, message
end

--- Lets another thread or process use the processor, if one is waiting for it.
function M.yield()
  sys.yield()
end

--- Waits for the thread to end. Blocks even in a task; for a loop, use `start_on`.
---@return boolean ok whether the thread's function returned without an error
---@return any ... the function's results, or the error with a traceback; a result that is not a string, number or
--- boolean is nil
function Thread:join()
  local state = self.state
  if not state then return false, "the thread has been joined already" end
  self.state = nil
  sys.join_thread(self.handle)
  M.running = M.running - 1
  C.lua_settop(state, 2)
  C.lua_pcall(state, 0, -1, 0)
  local values, count = {}, C.lua_gettop(state) - 1
  for i = 1, count do values[i] = value_at(state, i + 1) end
  C.lua_close(state)
  return unpack(values, 1, count)
end

-- These functions call into other Lua states, so LuaJIT must not compile them: during such a call, compiled code could
-- have values of this state only in registers.
for _, f in ipairs { prepare, start, M.start, M.start_on, Thread.join } do jit.off(f) end

return M
