--- Tests of the program serve.lua, and of command lines.

local check = require "tests.support.check"
local cli = require "framewire.options"
local client = require "tests.support.client"
local process = require "tests.support.process"

local function start(arguments)
  local program = process.start(('luajit "%s/serve.lua" %s'):format(check.root, arguments))
  local line = program.line() or ""
  program.port = tonumber(line:match("^listening on http://127%.0%.0%.1:(%d+)$"))
  if not program.port then error("serve.lua said: " .. line, 2) end
  return program
end

for _, signal in ipairs { "INT", "TERM", "HUP" } do
  for _, workers in ipairs { 1, 2 } do
    check.test(("serve.lua with %d worker(s) stops cleanly on %s"):format(workers, signal), function()
      -- A stop that waits for the connection would take more than 2 seconds in every attempt. A busy machine
      -- delays only some attempts.
      check.eventually(10, function()
        local program = start("--port 0 --root \"" .. check.root .. "\" --workers " .. workers)
        local connection = client.connect(program.port)
        check.equal(connection:ask("GET", "/echo?message=a%20b").body, "a b")
        local answer = connection:ask("POST", "/echo", { ["Content-Type"] = "x/y" }, "body\0")
        check.equal(answer.body, "body\0")
        check.equal(answer.headers["content-type"], "x/y")
        check.contains(connection:ask("GET", "/serve.lua").body, "A web server for a folder")
        check.equal(connection:ask("GET", "/echo").status, 400)
        check.equal(connection:ask("GET", "/../README.md").status, 404)
        local seconds = process.timed(function()
          program.signal(signal)
          check.equal(program.finish(), 0)
        end)
        check.equal(connection:is_closed(1), true)
        return seconds < 2
      end, "the program stopped in time")
    end)
  end
end

check.test("serve.lua refuses foreign web pages, even if their host name resolves to this machine", function()
  local program = start("--port 0 --allow-host Raspberry --root \"" .. check.root .. "\"")
  for _, headers in ipairs {
    { Host = "evil.example" }, { Host = "evil.example:80", Origin = "http://evil.example:80" },
    { Origin = "http://evil.example" }, { ["Sec-Fetch-Site"] = "cross-site" },
  } do
    local answer = client.ask(program.port, "GET", "/serve.lua", headers)
    check.equal(answer.status, 403)
    assert(not answer.body:find("web server for a folder", 1, true))
  end
  for _, host in ipairs { "localhost", "127.0.0.1:" .. program.port, "raspberry", "RASPBERRY:80" } do
    check.equal(client.ask(program.port, "GET", "/serve.lua", { Host = host }).status, 200, host)
  end
  program.signal("TERM")
  check.equal(program.finish(), 0)
end)

check.test("serve.lua accepts each poller, and lists them in the error about an unknown one", function()
  for _, name in ipairs { "epoll", "poll" } do
    local program = start("--port 0 --poller " .. name)
    check.equal(client.ask(program.port, "GET", "/echo?message=x").body, "x")
    program.signal("TERM")
    check.equal(program.finish(), 0)
  end
  local code, output = process.start(('luajit "%s/serve.lua" --port 0 --poller magic'):format(check.root)).finish()
  check.equal(code, 1)
  check.contains(output, "epoll, poll")
end)

check.test("serve.lua runs from any folder, prints help, and reports wrong options", function()
  local code, output = process.start(('luajit "%s/serve.lua" --help'):format(check.root)).finish()
  check.equal(code, 0)
  check.contains(output, "--workers N")
  code, output = process.start(('luajit "%s/serve.lua" --prot 1'):format(check.root)).finish()
  check.equal(code, 2)
  check.contains(output, "unknown argument '--prot'")
  code, output = process.start(('luajit "%s/serve.lua" --root /no/such/folder'):format(check.root)).finish()
  check.equal(code, 1)
  check.contains(output, "/no/such/folder")
end)

check.test("serve.lua reports that its port is in use", function()
  local program = start("--port 0")
  local again = process.start(('luajit "%s/serve.lua" --port %d'):format(check.root, program.port))
  local code, output = again.finish()
  check.equal(code, 1)
  check.contains(output, "in use")
  program.signal("TERM")
  program.finish()
end)

local spec = {
  usage = "x", about = "y",
  { "port", "N", "port", kind = "integer", default = 1 },
  { "few", "N", "few", kind = "integer", low = 1, high = 3 },
  { "name", "TEXT", "name" },
  { "flag", nil, "flag" },
}

check.test("command lines are parsed", function()
  local values = assert(cli.parse({ "--port", "80", "--name=a=b", "--flag" }, spec))
  check.equal(values.port, 80)
  check.equal(values.name, "a=b")
  check.equal(values.flag, true)
  check.equal(cli.parse({}, spec).port, 1)
  check.equal(cli.parse({ "-h" }, spec).help, true)
end)

check.test("errors about command lines name the mistake", function()
  for text, wanted in pairs {
    ["--port"] = "needs N", ["--port=x"] = "whole number", ["--port=-1"] = "whole number", ["--few=4"] = "from 1 to 3",
    ["--nothing"] = "unknown argument", ["stray"] = "unknown argument", ["--port=65536"] = "to 65535",
    ["--flag=no"] = "takes no value", ["--flag_x"] = "unknown argument", ["--port_x=1"] = "unknown argument",
  } do
    local values, message = cli.parse({ text }, spec)
    check.equal(values, nil, text)
    check.contains(message, wanted, text)
  end
end)
