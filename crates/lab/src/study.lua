-- A simple echo script, like the one that the load-test study of 2025 used (docs/study.md): it answers each message
-- with the same message. `framewire-lab` compares it with Framewire's script. It has no other use.
--
-- It works as such scripts usually do. The queue for new connections has mGBA's default length, 1, and the script
-- accepts one connection per frame. For each connection, mGBA adds a frame callback, which calls the connection's
-- `received` callback when data has arrived. The `received` callback of this script reads up to the first complete
-- message, and answers all complete messages that it has read.

local END = "<|END|>"
local READ = 1024 -- bytes at a time

local port = framewire and framewire.port or 8888
local number = 0 -- the number of the last connection
local kept = {} -- closed sockets, if the global `study_keeps` is set, so that Lua never collects them as garbage

-- Logs a line, if the global `study_talks` is set. Lines about every connection would slow down mGBA's scripting
-- window.
local function say(level, ...)
  if study_talks then
    console[level](console, string.format(...))
  end
end

local function accepted(client)
  number = number + 1
  local own, text = number, ""
  say("log", "client %d connected", own)

  local function ended(reason)
    say(reason == "disconnected" and "log" or "error", "client %d: %s", own, tostring(reason))
    client:close()
    if study_keeps then
      kept[#kept + 1] = client
    end
  end

  client:add("error", function(_, reason) -- mGBA passes the socket first
    ended(reason)
  end)
  client:add("received", function()
    repeat
      local data, reason = client:receive(READ)
      if not data then
        if reason ~= socket.ERRORS.AGAIN then
          ended(reason)
        end
        return
      end
      if study_unframed then -- messages have no mark at their end
        client:send(data)
      else
        text = text .. data
      end
    until #data < READ or text:find(END, 1, true)
    while true do
      local _, last = text:find(END, 1, true)
      if not last then
        return
      end
      client:send(text:sub(1, last))
      text = text:sub(last + 1)
    end
  end)
end

local server = assert(socket.bind("127.0.0.1", port))
server:add("received", function()
  local client = server:accept()
  if client then
    accepted(client)
  end
end)
assert(server:listen())
