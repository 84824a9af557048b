--- A small test runner. Tests are registered first and run afterwards.

local time = require "framewire.time"

local M = {
  --- The folder above `tests`, set by the runner.
  root = nil,
  --- The file whose tests are being registered.
  file = nil,
}

local tests = {}

--- Registers a test.
---@param name string
---@param body function
function M.test(name, body)
  tests[#tests + 1] = { name = M.file .. ": " .. name, body = body }
end

local function show(value)
  return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

--- Fails if two values are not the same.
function M.equal(got, wanted, what)
  if got ~= wanted then
    error(("%s: got %s, wanted %s"):format(what or "value", show(got), show(wanted)), 2)
  end
end

--- Fails if a text does not contain another.
function M.contains(text, part, what)
  if not tostring(text):find(part, 1, true) then
    error(("%s: %s does not contain %s"):format(what or "text", show(text), show(part)), 2)
  end
end

--- Whether a list holds a value.
---@return boolean
function M.holds(list, value)
  for _, one in ipairs(list) do
    if one == value then return true end
  end
  return false
end

--- Waits until a condition holds, that is, until `condition` returns a true value. Returns this value. Fails after
-- `seconds`.
---@param seconds number
---@param condition function
---@param what string describes the condition, for the error message
function M.eventually(seconds, condition, what)
  local deadline = time.monotonic() + seconds
  while true do
    local value = condition()
    if value then return value end
    if time.monotonic() > deadline then error("waited without success until " .. what, 2) end
    time.sleep(0.005)
  end
end

local function is_wanted(name, words)
  if #words == 0 then return true end
  for _, word in ipairs(words) do
    if name:find(word, 1, true) then return true end
  end
  return false
end

--- How many tests a word selects.
---@param word string
---@return integer
function M.count(word)
  local count = 0
  for _, test in ipairs(tests) do
    if is_wanted(test.name, { word }) then count = count + 1 end
  end
  return count
end

--- Runs the tests and prints those that fail.
---@param words string[] run only tests whose names contain one of these words; all tests if there are no words
---@return integer passed
---@return integer failed
function M.run(words)
  local passed, failed = 0, 0
  for _, test in ipairs(tests) do
    if is_wanted(test.name, words) then
      local ok, message = xpcall(test.body, debug.traceback)
      if ok then
        passed = passed + 1
      else
        failed = failed + 1
        print("FAILED " .. test.name .. "\n  " .. message:gsub("\n", "\n  "))
      end
    end
  end
  return passed, failed
end

return M
