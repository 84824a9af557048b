--- Runs every Lua example of docs/luajit.md. Also checks that docs/luajit-origins.md and docs/study-origins.md name
-- only tests that exist.
--
-- These blocks can follow an example: `text` is the example's output; `console` has commands to run while the example
-- runs, and their output; `input` is what the example reads from its standard input, where "\27" stands for the byte
-- 27. In `text`, "..." stands for any text and PORT for any number. Port 8080 is replaced by a free port. For an
-- example that uses an emulator, the test starts one, on a channel whose name replaces "demo".

local ffi = require "ffi"
local check = require "tests.support.check"
local framewire = require "tests.support.framewire"
local process = require "tests.support.process"

local function read_blocks()
  local file = assert(io.open(check.root .. "/../docs/luajit.md", "rb"))
  local text = file:read("*a")
  file:close()
  local examples, heading, kind, lines = {}, "", nil, nil
  for line in text:gmatch("([^\n]*)\n") do
    local fence = line:match("^```(.*)$")
    if fence == "" and kind then
      if kind == "lua" then
        examples[#examples + 1] = { heading = heading, code = table.concat(lines, "\n") }
      else
        examples[#examples][kind] = lines
      end
      kind = nil
    elseif fence then
      kind, lines = fence, {}
    elseif kind then
      lines[#lines + 1] = line
    else
      heading = line:match("^## (.*)$") or heading
    end
  end
  return examples
end

local function matches(wanted, got)
  local pattern = wanted:gsub("%p", "%%%0"):gsub("%%%.%%%.%%%.", ".*"):gsub("PORT", "%%d+")
  return got:find("^" .. pattern .. "$") ~= nil
end

-- Returns the commands of a `console` block, each with the output that it should print.
local function read_commands(lines)
  local commands = {}
  for _, line in ipairs(lines) do
    local command = line:match("^%$ (.*)$")
    if command then
      commands[#commands + 1] = { command = command, output = "" }
    else
      commands[#commands].output = commands[#commands].output .. line .. "\n"
    end
  end
  return commands
end

local function run_commands(lines, port)
  process.wait_for_port(port)
  for _, one in ipairs(read_commands(lines)) do
    local command = one.command:gsub("8080", port)
    check.equal(process.output(("cd '%s' && (%s) 2>&1"):format(check.root, command)), one.output, one.command)
  end
end

local examples = read_blocks()

check.test("the page has examples", function() assert(#examples >= 8, "too few examples: " .. #examples) end)

local channel = "documentation-" .. ffi.C.getpid()

local function run_example(example)
  local port = process.free_port()
  local path = os.tmpname()
  process.write(path, (example.code:gsub("8080", tostring(port)):gsub('"demo"', '"' .. channel .. '"')))
  local input = "/dev/null"
  if example.input then
    input = os.tmpname()
    process.write(input, (table.concat(example.input, "\n"):gsub("\\(%d+)", string.char)))
  end
  local program = process.start(("sh -c \"cd \\\"%s\\\" && exec luajit %s < %s\""):format(check.root, path, input))
  local ok, message = true, nil
  if example.console then
    ok, message = pcall(run_commands, example.console, port)
    program.signal("INT")
  end
  local code, output = program.finish()
  os.remove(path)
  if example.input then os.remove(input) end
  if not ok then error(message .. "\n" .. output, 0) end
  check.equal(code, 0, "exit code; it printed: " .. output)
  if example.text then
    local wanted = table.concat(example.text, "\n") .. "\n"
    if not matches(wanted, output) then check.equal(output, wanted, "output") end
  end
end

for number, example in ipairs(examples) do
  check.test(("example %d, %s"):format(number, example.heading), function()
    assert(example.text or example.console, "an example must be followed by a text or console block")
    if example.code:find("framewire.emulator", 1, true) then
      framewire.run_with(channel, function() run_example(example) end)
    else
      run_example(example)
    end
  end)
end

check.test("each command of luajit-origins.md selects a test", function()
  local count = 0
  for line in io.lines(check.root .. "/../docs/luajit-origins.md") do
    for word in line:gmatch("luajit/tests/run%.lua '([^']+)'") do
      assert(check.count(word) > 0, "no test is selected by " .. word)
      count = count + 1
    end
  end
  assert(count >= 30, "too few commands: " .. count)
end)

check.test("every test named in study-origins.md exists", function()
  local functions, count = {}, 0
  local command = "cd '%s/..' && grep -rhoE 'fn [a-z0-9_]+\\(' crates tests --include=*.rs"
  for line in process.output(command:format(check.root)):gmatch("[^\n]+") do functions[line:sub(4, -2)] = true end
  for line in io.lines(check.root .. "/../docs/study-origins.md") do
    for code in line:gmatch("`([^`]+)`") do
      local name = code:match("^cargo test .- ([a-z0-9_]+)$") or code:match("^[a-z0-9]+_[a-z0-9]+_[a-z0-9_]+$")
      local luajit = code:match("luajit/tests/run%.lua (.+)$")
      if name then
        assert(functions[name], "there is no test " .. name)
        count = count + 1
      end
      if luajit then
        local word = luajit:match("^'(.*)'$") or luajit:match("^%S+")
        assert(check.count(word) > 0, "no test is selected by " .. word)
      end
    end
  end
  assert(count >= 30, "too few names of tests: " .. count)
end)
