-- A small test runner.

local harness = {
  passed = 0,
  failed = 0,
  root = nil, -- the project's folder, with a slash at its end; set by the program that runs the tests
}

local function show(value)
  if type(value) == "string" then
    return #value > 200 and ("%q..."):format(value:sub(1, 200)) or ("%q"):format(value)
  end
  return tostring(value)
end

-- Runs a test and counts it.
function harness.test(name, run)
  local fine, problem = xpcall(run, debug.traceback)
  if fine then
    harness.passed = harness.passed + 1
  else
    harness.failed = harness.failed + 1
    io.write("FAILED ", name, "\n", type(problem) == "table" and problem.text or problem, "\n")
  end
end

-- Raises an error unless both values are equal and have the same type of number.
function harness.eq(found, wanted, what)
  if found ~= wanted or math.type(found) ~= math.type(wanted) then
    error(("%s is %s, not %s"):format(what or "the value", show(found), show(wanted)), 2)
  end
end

-- Returns the refusal that `run` raises: an error that is a table. Raises an error if there is no refusal.
function harness.refusal(run, ...)
  local fine, problem = pcall(run, ...)
  if fine then
    error("it was not refused", 2)
  elseif type(problem) ~= "table" then
    error("an error instead of a refusal: " .. tostring(problem), 2)
  end
  return problem
end

-- The rows of a file of test vectors, each as a list of its columns.
function harness.vectors(name)
  local rows = {}
  for line in io.lines(harness.root .. "crates/protocol/vectors/" .. name) do
    if line ~= "" and line:sub(1, 1) ~= "#" then
      local row = {}
      for column in (line .. "\t"):gmatch("([^\t]*)\t") do
        table.insert(row, column)
      end
      table.insert(rows, row)
    end
  end
  return rows
end

-- Decodes hexadecimal digits to bytes; white space is ignored.
function harness.unhex(digits)
  return (digits:gsub("%s", ""):gsub("%x%x", function(pair)
    return string.char(tonumber(pair, 16))
  end))
end

-- The values of Lua literals that are separated by spaces, as in the files of test vectors.
function harness.literals(text)
  local list = {}
  local at = 1
  while at <= #text do
    local literal = text:match('^"[^"]*"', at) or text:match("^%S+", at)
    table.insert(list, assert(load("return " .. literal))())
    at = at + #literal + 1
  end
  list.n = #list
  return list
end

return harness
