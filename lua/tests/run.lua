-- Runs the tests of the parts that need no emulator:  lua5.4 lua/tests/run.lua

local folder = arg[0]:match("^(.*)run%.lua$")
package.path = folder .. "?.lua;" .. folder .. "../src/?.lua;" .. package.path

local harness = require "harness"
harness.root = folder .. "../../"
require "limits".log_lines = math.huge -- so that no result depends on how many tests run in a second

local PARTS = {
  "arguments", "messages", "frames", "keyed", "sessions", "holds", "timelines", "lockstep", "throttle", "readahead", "watches",
  "inbox", "connection", "turn", "memory", "code", "runs", "files", "evaluate",
  "emulator", "steering", "stopwatch", "server", "events", "log", "main",
}

for _, part in ipairs(PARTS) do
  require("test_" .. part)
end

io.write(harness.passed, " passed, ", harness.failed, " failed\n")
os.exit(harness.failed == 0)
