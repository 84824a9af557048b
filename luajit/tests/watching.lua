--- Tests of framewire.watch: changes of files and folders.

local check = require "tests.support.check"
local process = require "tests.support.process"
local watch = require "framewire.watch"

-- Waits until a change of this kind has been reported for a path.
local function expect(changes, kind, path)
  check.eventually(3, function()
    for _, change in ipairs(changes:read()) do
      if change.kind == kind and change.path == path then return true end
    end
    return false
  end, path .. " is reported as " .. kind)
end

check.test("a folder reports changes of its files", function()
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
  check.contains(select(2, changes:add("")), "No such file")
  process.write(folder .. "/one", "3")
  check.contains(select(2, changes:add(folder .. "/one/")), "Not a directory")
  process.remove_folder(folder)
  changes:close()
end)

-- Fails if a change is reported.
local function expect_nothing(changes)
  for _, change in ipairs(changes:read()) do error(("reported: %s %s"):format(change.kind, change.path)) end
end

check.test("a file or folder that was moved away is reported as deleted and no longer watched", function()
  local folder = process.folder()
  os.execute(("mkdir '%s/sub' '%s/tree' '%s/tree/a'"):format(folder, folder, folder))
  process.write(folder .. "/file", "1")
  local changes = assert(watch.new())
  assert(changes:add(folder .. "/file"))
  assert(changes:add(folder .. "/sub"))
  assert(changes:add(folder .. "/tree", { recursive = true }))
  for _, name in ipairs { "/file", "/sub", "/tree" } do
    os.rename(folder .. name, folder .. "/away")
    -- This change comes before the next `read`.
    process.write(name == "/file" and folder .. "/away" or folder .. "/away/early", "2")
    local seen = {}
    for _, change in ipairs(changes:read()) do seen[#seen + 1] = change.kind .. " " .. change.path end
    check.equal(table.concat(seen, ", "), "deleted " .. folder .. name)
    process.write(name == "/file" and folder .. "/away" or folder .. "/away/late", "3")
    if name == "/tree" then process.write(folder .. "/away/a/late", "3") end
    expect_nothing(changes)
    process.remove_folder(folder .. "/away")
    expect_nothing(changes)
  end
  check.equal(next(changes.numbers), nil)
  check.equal(next(changes.paths), nil)

  process.write(folder .. "/file", "4")
  assert(changes:add(folder .. "/file"))
  process.write(folder .. "/file", "5")
  expect(changes, "changed", folder .. "/file")
  process.remove_folder(folder)
  changes:close()
end)

check.test("a path that is added again after it was moved away is watched", function()
  local folder = process.folder()
  local path, away = folder .. "/file", folder .. "/away"
  process.write(path, "1")
  local changes = assert(watch.new())
  assert(changes:add(path))
  os.rename(path, away)
  process.write(path, "2")
  assert(changes:add(path)) -- before the move has been read
  process.write(away, "3")
  expect(changes, "deleted", path)
  process.write(away, "4")
  expect_nothing(changes)
  process.write(path, "5")
  expect(changes, "changed", path)
  process.remove_folder(folder)
  changes:close()
end)

check.test("a folder that is added again after it was moved away has no watches of the old one", function()
  local folder = process.folder()
  local tree, away = folder .. "/tree", folder .. "/away"
  os.execute(("mkdir -p '%s/inner'"):format(tree))
  local changes = assert(watch.new())
  assert(changes:add(tree, { recursive = true }))
  os.rename(tree, away)
  os.execute(("mkdir -p '%s'"):format(tree))
  assert(changes:add(tree, { recursive = true })) -- before the move has been read
  expect(changes, "deleted", tree)
  process.write(away .. "/inner/file", "1")
  expect_nothing(changes)
  process.write(tree .. "/file", "1")
  expect(changes, "created", tree .. "/file")
  process.remove_folder(folder)
  changes:close()
end)

check.test("in a folder that is added again after it was moved away, only new paths stay watched", function()
  local folder = process.folder()
  local tree, away = folder .. "/tree", folder .. "/away"
  os.execute(("mkdir -p '%s/one'"):format(tree))
  local changes = assert(watch.new())
  assert(changes:add(tree .. "/one"))
  assert(changes:add(tree))
  os.rename(tree, away)
  os.execute(("mkdir -p '%s/two'"):format(tree))
  assert(changes:add(tree .. "/two")) -- before the move has been read
  assert(changes:add(tree))
  process.write(away .. "/one/file", "1")
  process.write(tree .. "/two/file", "1")
  local seen = {}
  check.eventually(3, function()
    for _, change in ipairs(changes:read()) do seen[change.kind .. " " .. change.path] = true end
    return seen["deleted " .. tree .. "/one"] and seen["created " .. tree .. "/two/file"]
  end, "the old path is reported as deleted, and the new file as created")
  check.equal(seen["created " .. tree .. "/one/file"], nil)
  process.remove_folder(folder)
  changes:close()
end)

check.test("if a folder is moved away, files in it that were added are no longer watched", function()
  for _, options in ipairs { {}, { recursive = true } } do
    local folder = process.folder()
    os.execute(("mkdir -p '%s/top/sub' '%s/top-2'"):format(folder, folder))
    local file, other = folder .. "/top/sub/file", folder .. "/top-2/file"
    process.write(file, "1")
    process.write(other, "1")
    local changes = assert(watch.new())
    assert(changes:add(folder .. "/top", options))
    assert(changes:add(folder .. "/top/sub", options))
    assert(changes:add(file))
    assert(changes:add(other))
    os.rename(folder .. "/top", folder .. "/away")
    local seen = {}
    for _, change in ipairs(changes:read()) do
      check.equal(change.kind, "deleted", change.path)
      seen[change.path] = true
    end
    for _, path in ipairs { folder .. "/top", folder .. "/top/sub", file } do
      check.equal(seen[path], true, path .. " is reported")
    end
    process.write(folder .. "/away/sub/file", "2")
    expect_nothing(changes)
    process.write(other, "2")
    expect(changes, "changed", other)
    changes:close()
    process.remove_folder(folder)
  end
end)

check.test("slashes at the end of a path do not change the reported paths", function()
  local folder = process.folder()
  os.execute(("mkdir '%s/a'"):format(folder))
  local changes = assert(watch.new())
  assert(changes:add(folder, { recursive = true }))
  assert(changes:add(folder .. "/a/"))
  os.execute(("mkdir '%s/a/new'"):format(folder))
  expect(changes, "created", folder .. "/a/new")
  process.write(folder .. "/a/new/file", "1")
  expect(changes, "changed", folder .. "/a/new/file")
  process.remove_folder(folder)
  changes:close()
end)

-- Registers a test. Its body gets a new folder, which contains `a/b` and `.hidden`, and a watch of this folder with the
-- option `recursive`.
local function test_tree(what, body)
  check.test(what, function()
    local folder = process.folder()
    os.execute(("mkdir -p '%s/a/b' '%s/.hidden'"):format(folder, folder))
    local changes = assert(watch.new())
    assert(changes:add(folder, { recursive = true }))
    local ok, message = xpcall(body, debug.traceback, folder, changes)
    changes:close()
    process.remove_folder(folder)
    if not ok then error(message, 0) end
  end)
end

test_tree("with `recursive`, both existing and new folders in a folder report changes", function(folder, changes)
  for _, place in ipairs { "/top", "/a/one", "/a/b/two", "/.hidden/three" } do
    process.write(folder .. place, "1")
    expect(changes, "changed", folder .. place)
  end
  os.execute(("mkdir -p '%s/new/deep/er'"):format(folder))
  expect(changes, "created", folder .. "/new/deep/er")
  process.write(folder .. "/new/deep/er/file", "1")
  expect(changes, "changed", folder .. "/new/deep/er/file")
  os.remove(folder .. "/new/deep/er/file")
  expect(changes, "deleted", folder .. "/new/deep/er/file")
end)

test_tree("everything in a new folder is reported once", function(folder, changes)
  local seen = {}
  for round = 1, 20 do
    os.execute(("cd '%s' && mkdir -p t%d/x/y && touch t%d/f t%d/x/g t%d/x/y/h"):format(folder, round, round, round,
      round))
    local wanted = { "", "/f", "/x", "/x/g", "/x/y", "/x/y/h" }
    check.eventually(3, function()
      for _, change in ipairs(changes:read()) do
        if change.kind == "created" then
          check.equal(seen[change.path], nil, change.path .. " again")
          seen[change.path] = true
        end
      end
      for _, name in ipairs(wanted) do
        if not seen[folder .. "/t" .. round .. name] then return false end
      end
      return true
    end, "everything in t" .. round .. " is reported")
  end
end)

test_tree("with the option `recursive`, moved and deleted folders are tracked", function(folder, changes)
  os.rename(folder .. "/a", folder .. "/moved")
  expect(changes, "created", folder .. "/moved/b")
  process.write(folder .. "/moved/b/file", "1")
  expect(changes, "changed", folder .. "/moved/b/file")
  local outside = process.folder()
  os.rename(folder .. "/moved", outside .. "/away")
  expect(changes, "deleted", folder .. "/moved")
  process.write(outside .. "/away/b/other", "1")
  for _, change in ipairs(changes:read()) do error("reported outside: " .. change.path) end
  os.rename(outside .. "/away", folder .. "/back")
  expect(changes, "created", folder .. "/back/b/other")
  os.execute(("rm -r '%s/back'"):format(folder))
  expect(changes, "deleted", folder .. "/back")
  process.remove_folder(outside)
  -- Create folders with the same names again.
  os.execute(("mkdir -p '%s/back/b'"):format(folder))
  expect(changes, "created", folder .. "/back/b")
  process.write(folder .. "/back/b/new", "1")
  expect(changes, "changed", folder .. "/back/b/new")
  local count = 0
  for _ in pairs(changes.numbers) do count = count + 1 end
  check.equal(count, 4, "watched folders")
end)

for _, is_added in ipairs { false, true } do
  local what = is_added and "a folder that was also added alone" or "a folder"
  test_tree(what .. " and then moved into a new folder stays watched", function(folder, changes)
    if is_added then assert(changes:add(folder .. "/a")) end
    -- `read` learns of both at once: it first watches everything in the new folder, and then forgets the old path.
    os.execute(("mkdir '%s/new' && mv '%s/a' '%s/new/moved'"):format(folder, folder, folder))
    expect(changes, "deleted", folder .. "/a")
    for _, place in ipairs { "/new/moved/one", "/new/moved/b/two" } do
      process.write(folder .. place, "1")
      expect(changes, "changed", folder .. place)
    end
  end)
end

check.test("a folder that was added with two paths stays watched until both are removed", function()
  local folder = process.folder()
  local changes = assert(watch.new())
  for _, paths in ipairs { { folder, folder .. "/." }, { folder .. "/.", folder } } do
    assert(changes:add(folder) and changes:add(folder .. "/."))
    changes:remove(paths[1])
    process.write(folder .. "/a", "1")
    expect(changes, "changed", paths[2] .. "/a")
    changes:remove(paths[2])
    process.write(folder .. "/a", "2")
    expect_nothing(changes)
  end
  process.remove_folder(folder)
  changes:close()
end)

test_tree("a file that was added is no longer watched after a folder around it was moved", function(folder, changes)
  process.write(folder .. "/a/b/file", "1")
  assert(changes:add(folder .. "/a/b/file"))
  os.rename(folder .. "/a", folder .. "/moved")
  expect(changes, "created", folder .. "/moved/b/file")
  process.write(folder .. "/moved/b/file", "2")
  local seen = {}
  for _, change in ipairs(changes:read()) do seen[#seen + 1] = change.kind .. " " .. change.path end
  check.equal(table.concat(seen, ", "), "changed " .. folder .. "/moved/b/file")
end)

test_tree("`remove` does not stop watching a folder inside of one added with `recursive`", function(folder, changes)
  changes:remove(folder .. "/a")
  assert(changes:add(folder .. "/a/b"))
  changes:remove(folder .. "/a/b")
  process.write(folder .. "/a/b/file", "1")
  expect(changes, "changed", folder .. "/a/b/file")
  process.write(folder .. "/a/file", "1")
  expect(changes, "changed", folder .. "/a/file")
end)

test_tree("`remove` of an inner folder with `recursive` does not stop the outer one", function(folder, changes)
  assert(changes:add(folder .. "/a", { recursive = true }))
  changes:remove(folder .. "/a")
  process.write(folder .. "/a/file", "1")
  expect(changes, "changed", folder .. "/a/file")
  process.write(folder .. "/a/b/file", "1")
  expect(changes, "changed", folder .. "/a/b/file")
  changes:remove(folder)
  check.equal(next(changes.numbers), nil)
end)

test_tree("links are not followed, and remove stops watching everything", function(folder, changes)
  local outside = process.folder()
  os.execute(("ln -s '%s' '%s/link'"):format(outside, folder))
  expect(changes, "created", folder .. "/link")
  process.write(outside .. "/file", "1")
  check.equal(#changes:read(), 0, "changes in a link's target")
  changes:remove(folder)
  process.write(folder .. "/a/b/x", "1")
  check.equal(#changes:read(), 0, "changes after remove")
  check.equal(next(changes.numbers), nil)
  check.contains(select(2, changes:add(folder .. "/none", { recursive = true })), "No such file")
  check.contains(select(2, changes:add("", { recursive = true })), "No such file")
  process.write(folder .. "/file", "1")
  check.contains(select(2, changes:add(folder .. "/file", { recursive = true })), "Not a directory")
  assert(changes:add(folder .. "//", { recursive = true }))
  process.write(folder .. "/a/b/y", "1")
  expect(changes, "changed", folder .. "/a/b/y")
  changes:remove(folder .. "/")
  check.equal(next(changes.numbers), nil, "the path may end in a slash, as for `add`")
  process.remove_folder(outside)
end)

test_tree("`remove` stops watching a folder whose outer folder was deleted or removed", function(folder, changes)
  local function count()
    local number = 0
    for _ in pairs(changes.numbers) do number = number + 1 end
    return number
  end
  local before = count()
  local outer = process.folder()
  os.execute(("mkdir -p '%s/a/b'"):format(outer))
  local recursive = { recursive = true }
  assert(changes:add(outer, recursive))
  os.execute(("rm -r '%s' && mkdir -p '%s/a/b'"):format(outer, outer))
  expect(changes, "deleted", outer)
  assert(changes:add(outer .. "/a", recursive))
  changes:remove(outer .. "/a")
  check.equal(count(), before, "after the outer folder was deleted")

  assert(changes:add(outer, recursive))
  assert(changes:add(outer .. "/a", recursive))
  changes:remove(outer)
  assert(changes:add(outer .. "/a/b", recursive))
  changes:remove(outer .. "/a/b")
  check.equal(count(), before, "after the outer folder was removed")

  os.execute(("ln -s '%s' '%s/link'"):format(outer, folder))
  expect(changes, "created", folder .. "/link")
  assert(changes:add(folder .. "/link/a", recursive))
  changes:remove(folder .. "/link/a")
  check.equal(count(), before, "in a link, which the outer folder does not follow")
  process.remove_folder(outer)
end)
