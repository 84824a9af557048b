--- Runs `framewire serve --channel` during a test. Build the program with `cargo build -p framewire`, or set
-- FRAMEWIRE_BIN to its path.

local check = require "tests.support.check"
local process = require "tests.support.process"
local worker = require "framewire.worker"

local M = {
  --- The beginning of a shell command that runs `framewire`. With it, the program stores snapshots and recordings in a
  --- folder for tests, not in the user's folder.
  with_data = ("FRAMEWIRE_DATA='%s/../target/test-data' "):format(check.root),
}

--- The program's path.
function M.program()
  local given = os.getenv("FRAMEWIRE_BIN")
  if given then return given end
  for _, profile in ipairs { "debug", "release" } do
    local path = check.root .. "/../target/" .. profile .. "/framewire"
    local file = io.open(path)
    if file then
      file:close()
      return path
    end
  end
  error("there is no framewire to test with: cargo build -p framewire, or set FRAMEWIRE_BIN", 0)
end

--- Replaces this process with `framewire serve` on a channel. Does not return.
---@param channel string
---@param ... string further arguments
function M.serve(channel, ...)
  -- The tests do not use the HTTP port, so any free one will do.
  local quietly = M.with_data .. 'exec "$0" serve --quiet --listen 127.0.0.1:0 "$@" >/dev/null'
  assert(worker.become { "sh", "-c", quietly, M.program(), "--channel", channel, ... })
end

--- Runs a function while `framewire serve` runs.
---@param channel string
---@param body function
---@param ... string further arguments
function M.run_with(channel, body, ...)
  local arguments = { ... }
  local function channel_exists()
    local file = io.open("/dev/shm/framewire." .. channel)
    if file then file:close() end
    return file
  end
  process.run_with(function() M.serve(channel, unpack(arguments)) end, function(...)
    check.eventually(10, channel_exists, "the emulator serves its channel")
    body(...)
  end)
end

return M
