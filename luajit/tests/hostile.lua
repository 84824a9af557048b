--- Sends the list of hostile requests that every server of the project must withstand. Tests both pollers.

local check = require "tests.support.check"
local client = require "tests.support.client"
local http = require "framewire.http"
local json = require "framewire.json"
local process = require "tests.support.process"

local function read_list()
  local file = assert(io.open(check.root .. "/../tests/data/hostile-http.json", "rb"))
  local list = assert(json.decode(file:read("*a"))).requests
  file:close()
  return list
end

-- Converts the characters U+0080 to U+00FF, which stand for bytes in the list, to these bytes.
local function to_bytes(text)
  return (text:gsub("([\194\195])([\128-\191])", function(first, second)
    return string.char((first:byte() - 192) * 64 + second:byte() - 128)
  end))
end

-- The bytes of a request. In the list, a request is a text, or a list of parts. A part is a text, or a text and the
-- number of its repetitions.
local function bytes_of(send)
  if type(send) == "string" then return to_bytes(send) end
  local parts = {}
  for i, part in ipairs(send) do
    parts[i] = to_bytes(type(part) == "table" and part["repeat"]:rep(part.times) or part)
  end
  return table.concat(parts)
end

-- Sends one request of the list. Returns a description of what is wrong with the response, or nil.
local function fault_of(port, case)
  local connection = client.connect(port)
  connection:send(bytes_of(case.send))
  local answer, message = connection:receive()
  local status = answer and answer.status or message == "closed" and 0 or message
  if not check.holds(case.expect, status) then
    return ("answered %s instead of %s"):format(status, table.concat(case.expect, " or "))
  end
  if case.closed then
    local closed, rest = connection:is_closed(5)
    if not closed then return "the connection stays open" end
    if rest ~= "" then return "more was answered: " .. rest:sub(1, 100) end
  else
    answer, message = connection:ask("GET", "/")
    if not answer or answer.body ~= "alive" then return "the next request is lost: " .. tostring(message) end
  end
  connection:close()
  return nil
end

local list = read_list()

check.test("the list is long enough", function() assert(#list >= 60, #list .. " requests") end)

for _, name in ipairs { "epoll", "poll" } do
  check.test(name .. ": the server withstands all hostile requests", function()
    process.with_server({
      poller = name,
      handler = http.routes {
        ["GET /"] = function(_, response) response:text(200, "alive") end,
        ["POST /echo"] = function(request, response) response:text(200, request.body) end,
        ["GET /smuggled"] = function() os.exit(99) end,
      },
    }, function(port)
      local faults = {}
      for _, case in ipairs(list) do
        local fault = fault_of(port, case)
        if fault then faults[#faults + 1] = case.name .. ": " .. fault end
      end
      check.equal(table.concat(faults, "\n"), "")
    end)
  end)
end
