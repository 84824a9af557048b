--- Changes of files and folders.

local check = require "tests.support.check"
local process = require "tests.support.process"
local watch = require "framewire.watch"

-- Collects changes until one of this kind has been reported for a path.
local function expect(changes, kind, path)
  check.eventually(3, function()
    for _, change in ipairs(changes:read()) do
      if change.kind == kind and change.path == path then return true end
    end
    return false
  end, path .. " is reported as " .. kind)
end

check.test("a folder reports what happens in it", function()
  local folder = process.folder()
  local changes = assert(watch.new())
  assert(changes:add(folder))
  check.equal(#changes:read(), 0)
  process.write(folder .. "/a", "1")
  expect(changes, "changed", folder .. "/a")
  os.rename(folder .. "/a", folder .. "/b")
  expect(changes, "created", folder .. "/b")
  os.remove(folder .. "/b")
  expect(changes, "deleted", folder .. "/b")
  changes:remove(folder)
  process.write(folder .. "/c", "1")
  check.equal(#changes:read(), 0, "changes after remove")
  process.remove_folder(folder)
  changes:close()
end)

check.test("a file can be watched alone, and a missing one is an error", function()
  local folder = process.folder()
  local changes = assert(watch.new())
  process.write(folder .. "/one", "1")
  assert(changes:add(folder .. "/one"))
  process.write(folder .. "/one", "2")
  expect(changes, "changed", folder .. "/one")
  os.remove(folder .. "/one")
  expect(changes, "deleted", folder .. "/one")
  local _, message = changes:add(folder .. "/none")
  check.contains(message, "No such file")
  process.remove_folder(folder)
  changes:close()
end)
