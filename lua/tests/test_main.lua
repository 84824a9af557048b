local harness = require "harness"
local server = require "server"
local test, eq = harness.test, harness.eq

-- Loads the script's main module with these settings. Returns the address and the port of its server, and how many
-- errors were logged.
local function load_main(case)
  local real = { getenv = os.getenv, start = server.start, callbacks = callbacks, console = console,
    framewire = framewire, address = server.address, port = server.port, copy = package.loaded.framewire }
  local errors = 0
  os.getenv = function(name) return case.environment and case.environment[name] end -- luacheck: ignore
  server.start = function() end
  callbacks = { add = function() return 1 end }
  console = { log = function() end, warn = function() end, error = function() errors = errors + 1 end }
  framewire, package.loaded.framewire = case.global, nil
  SETTINGS = case.file or { address = "127.0.0.1", port = 8888, log_level = "info", allow_script = false }
  package.loaded.main = nil
  local fine, problem = pcall(require, "main")
  local address, port = server.address, server.port
  os.getenv, server.start, callbacks, console = real.getenv, real.start, real.callbacks, real.console -- luacheck: ignore
  framewire, package.loaded.framewire, SETTINGS = real.framewire, real.copy, nil
  server.address, server.port = real.address, real.port
  eq(fine, true, problem)
  return address, port, errors
end

test("the global table wins over the environment, and the environment over the file", function()
  local environment = { FRAMEWIRE_SCRIPT_PORT = "8890", FRAMEWIRE_SCRIPT_ADDRESS = "0.0.0.0" }
  local address, port, errors = load_main { global = { port = 8889 }, environment = environment }
  eq(address, "0.0.0.0")
  eq(port, 8889)
  eq(errors, 0)
end)

test("an empty variable does not open the script to the network", function()
  local address, port, errors = load_main { environment = { FRAMEWIRE_SCRIPT_ADDRESS = "", FRAMEWIRE_SCRIPT_PORT = "" } }
  eq(address, "127.0.0.1")
  eq(port, 8888)
  eq(errors, 0)
end)

test("a wrong port in the file is not used", function()
  for _, wrong in ipairs { 70000, "abc", 0 } do
    local file = { address = "127.0.0.1", port = wrong, log_level = "info", allow_script = false }
    local _, port, errors = load_main { file = file }
    eq(port, 8888)
    eq(errors, 1)
    _, port, errors = load_main { file = file, environment = { FRAMEWIRE_SCRIPT_PORT = "8890" } }
    eq(port, 8890)
    eq(errors, 0)
  end
end)
