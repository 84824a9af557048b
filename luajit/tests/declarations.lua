--- Compares the constants and system call numbers in ffi/linux.lua, and the sizes and offsets of the structures in its
-- `M.structs`, with the values that the system's C compiler finds. Also loads the declarations of macOS and FreeBSD.

local ffi = require "ffi"
local check = require "tests.support.check"
local process = require "tests.support.process"
local sys = require "framewire.sys"

local HEADERS = {
  "arpa/inet.h", "dirent.h", "errno.h", "fcntl.h", "linux/futex.h", "linux/membarrier.h", "linux/openat2.h",
  "netdb.h", "netinet/in.h", "netinet/tcp.h", "poll.h", "pthread.h", "signal.h", "stddef.h", "stdio.h", "sys/epoll.h",
  "sys/inotify.h", "sys/ioctl.h", "sys/mman.h", "sys/prctl.h", "sys/resource.h", "sys/signalfd.h", "sys/socket.h",
  "sys/stat.h", "sys/syscall.h", "sys/un.h", "sys/wait.h", "termios.h", "time.h", "unistd.h",
}

-- Returns the source of a C program that prints the compiler's values, and the lines that it should print according to
-- our declarations.
local function both_sides()
  local source, ours = { "#define _GNU_SOURCE" }, {}
  local function say(label, expression, value)
    source[#source + 1] = ('printf("%s %%lld\\n", (long long)(%s));'):format(label, expression)
    ours[#ours + 1] = ("%s %d"):format(label, value)
  end
  for _, header in ipairs(HEADERS) do source[#source + 1] = "#include <" .. header .. ">" end
  source[#source + 1] = "int main(void) {"
  for _, group in ipairs { sys.constants, sys.syscalls } do
    for name, value in pairs(group) do say(name, name, value) end
  end
  for _, pair in ipairs(sys.structs) do
    local mine, theirs, fields = pair[1], pair[2], pair[3]
    say("sizeof:" .. mine:gsub(" ", "-"), "sizeof(" .. theirs .. ")", ffi.sizeof(mine))
    for _, field in ipairs(fields) do
      local label = ("offset:%s.%s"):format(mine:gsub(" ", "-"), field[1])
      say(label, ("offsetof(%s, %s)"):format(theirs, field[2]), ffi.offsetof(mine, field[1]))
    end
  end
  say("sizeof:pthread_t", "sizeof(pthread_t)", ffi.sizeof("unsigned long"))
  source[#source + 1] = "return 0; }"
  return table.concat(source, "\n") .. "\n", ours
end

check.test("the declarations agree with the C compiler", function()
  local source, ours = both_sides()
  local folder = process.folder()
  process.write(folder .. "/declarations.c", source)
  local output = process.output(("cc -o '%s/run' '%s/declarations.c' 2>&1 && '%s/run'"):format(folder, folder, folder))
  process.remove_folder(folder)
  local theirs = {}
  for line in output:gmatch("[^\n]+") do theirs[#theirs + 1] = line end
  check.equal(#theirs, #ours, "lines from the compiler; it said: " .. output:sub(1, 500))
  for i, line in ipairs(ours) do check.equal(line, theirs[i]) end
  assert(#ours > 150, "too few declarations compared")
end)

for system, name in pairs { OSX = "macos", BSD = "freebsd" } do
  check.test("the declarations of " .. name .. " can be loaded, and have everything that the modules use", function()
    local constant = system == "OSX" and "O_EVTONLY" or "O_RESOLVE_BENEATH"
    local program = ([[
      package.path = "%s/?.lua;" .. package.path
      require("ffi").os = "%s"
      local sys = require "framewire.sys"
      assert(sys.EVFILT_READ == -1 and sys.%s)
      for _, name in ipairs {
        "accept", "facts", "list", "here", "open_pair", "notify", "yield", "cores", "start_thread", "join_thread",
        "stat", "open_signals", "read_signal", "strerror", "gai_message", "terminal",
      } do assert(sys[name], name) end
      for _, name in ipairs {
        "socket", "loop", "signal", "thread", "worker", "watch", "shm", "files", "terminal", "resolve", "http",
        "channel",
      } do require("framewire." .. name) end
      print(sys.name)
    ]]):format(check.root, system, constant)
    local file = os.tmpname()
    process.write(file, program)
    check.equal(process.output("luajit " .. file .. " 2>&1"), name .. "\n")
    os.remove(file)
  end)
end
