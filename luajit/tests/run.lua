--- Runs the tests. `luajit luajit/tests/run.lua [WORD]...` runs the tests whose file or name contains one of the words.
-- The tests in kqueue.lua and windows.lua are separate programs.

local here = arg[0]:match("^(.*)[/\\]") or "."
local root = here .. "/.."
package.path = root .. "/?.lua;" .. package.path

local check = require "tests.support.check"
local time = require "framewire.time"

local files = {
  "declarations",
  "numbers",
  "json",
  "loop",
  "streams",
  "sockets",
  "processes",
  "threads",
  "system",
  "memory",
  "channel",
  "emulator",
  "watching",
  "parser",
  "http",
  "routes",
  "forms",
  "websockets",
  "autobahn",
  "httpclient",
  "udpunix",
  "tls",
  "hostile",
  "timeouts",
  "static",
  "many",
  "textlink",
  "programs",
  "documentation",
  "misuse",
}

check.root = root

for _, file in ipairs(files) do
  check.file = file
  dofile(here .. "/" .. file .. ".lua")
end

local started = time.monotonic()
local passed, failed = check.run(arg)
print(("%d passed, %d failed (%.1f s)"):format(passed, failed, time.monotonic() - started))
os.exit(failed == 0 and passed > 0 and 0 or 1)
