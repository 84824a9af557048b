local files = require "files"
local harness = require "harness"
local test, eq = harness.test, harness.eq

local function with_file(bytes, check)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
  local fine, problem = pcall(check, path)
  os.remove(path)
  if not fine then
    error(problem, 0)
  end
end

-- Whether a file with these bytes is a ROM of the Game Boy Advance or, if `advance` is false, of the Game Boy.
local function is_rom(bytes, advance)
  local found
  with_file(bytes, function(path)
    found = files.check_rom(path, advance)
  end)
  return found == true
end

local function put(bytes, at, piece)
  return bytes:sub(1, at) .. piece .. bytes:sub(at + #piece + 1)
end

local BLANK = ("\0"):rep(0x8000)
local GBA = put(put(put(BLANK, 3, "\xEA"), 4, ("logo"):rep(39)), 0xB2, "\x96")
local GB = put(BLANK, 0x104, "\xCE\xED\x66\x66")

test("the demo game is a ROM of the Game Boy Advance", function()
  eq(files.check_rom(harness.root .. "rom/framewire-demo.gba", true), true)
  eq(files.check_rom(harness.root .. "rom/framewire-demo.gba", false), false)
end)

test("ROMs are recognised by the same bytes as in libmgba", function()
  eq(is_rom(GBA, true), true)
  eq(is_rom(put(GBA, 0xB2, "\0"), true), false, "a logo without the fixed byte")
  eq(is_rom(put(BLANK, 3, "\xEA"), true), true, "no logo and no fixed byte: an incomplete header")
  eq(is_rom(put(GBA, 3, "\0"), true), false, "no branch at the start")
  eq(is_rom(GBA:sub(1, 0xC0), true), true, "a header and nothing else")
  eq(is_rom(GBA:sub(1, 0xBF), true), false, "a header that is cut off")
  eq(is_rom(put(put(BLANK, 0, ("\0\0\0\xEA"):rep(7)), 0xB2, "\x96"), true), false, "a BIOS")
  eq(is_rom(GB, false), true)
  eq(is_rom(GB:sub(1, 0x1FF), false), false, "too short")
  eq(is_rom(GB, true), false)
  eq(is_rom(GBA, false), false)
  eq(is_rom("", true), false)
end)

test("an ELF file is a ROM if its entry point is where programs of the console begin", function()
  local function elf(machine, entry)
    return "\127ELF" .. ("\0"):rep(14) .. string.pack("<I2I4I4", machine, 1, entry) .. BLANK
  end
  eq(is_rom(elf(40, 0x08000000), true), true)
  eq(is_rom(elf(62, 0x08000000), true), false) -- a program for x86-64; 40 is ARM
  eq(is_rom(elf(40, 0x400000), true), false)
end)

test("a zip archive is a ROM if its directory lists one", function()
  local function zip(name)
    return "PK\3\4" .. BLANK .. "PK\1\2" .. ("\0"):rep(24) .. string.pack("<I2", #name) .. ("\0"):rep(16) .. name
  end
  eq(is_rom(zip "game.GBA", true), true)
  eq(is_rom(zip "game.txt", true), false)
  eq(is_rom(zip "game.gb", true), false)
  eq(is_rom(zip "game.gbc", false), true)
  eq(is_rom("7z\xBC\xAF\x27\x1C" .. BLANK, true), false)
end)

test("a file that cannot be read is refused with the reason", function()
  local good, problem = files.check_rom("/nothing/here.gba", true)
  eq(good, nil)
  eq(problem:find("No such file", 1, true) ~= nil, true)
  eq((files.check_rom("/", true)), nil, "a folder")
end)

test("writing a file, and checking a written file, report whether that worked", function()
  with_file("", function(path)
    eq(files.write(path, "\0state"), true)
    eq(files.is_written(path, "\0st"), true) -- only the beginning is compared
    eq(files.is_written(path, "state"), false, "holds something else")
  end)
  eq(files.write("/nothing/here.ss", "state"), false)
  local good, problem = files.is_written("/nothing/here.png", "")
  eq(good, false)
  eq(problem:find("No such file", 1, true) ~= nil, true)
  eq((files.is_written("/", "")), false, "a folder")
end)

test("states are recognised by their magic number and size", function()
  local advance = string.pack("<I4", 0x01000007) .. ("\0"):rep(0x61000 - 4)
  eq(files.is_state(advance, true), true)
  eq(files.is_state(advance, false), false)
  eq(files.is_state(advance:sub(1, -2), true), false)
  eq(files.is_state(string.pack("<I4", 0x00400003) .. ("\0"):rep(0x11800 - 4), false), true)
  eq(files.is_state("\x89PNG\r\n\26\n....gbAs....", true), true)
  eq(files.is_state("\x89PNG\r\n\26\n............", true), false)
  eq(files.is_state("", true), false)
end)

-- Calls `check` with the name of a new folder, and then removes the folder.
local function with_folder(check)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local fine, problem = pcall(check, folder)
  os.execute("chmod -R u+rwx " .. folder .. "; rm -r " .. folder)
  if not fine then
    error(problem, 0)
  end
end

test("mGBA may not open a FIFO, a device or a file of the kernel", function()
  with_folder(function(folder)
    local names = { "/dev/null", "//dev/./full", "/tmp/../dev/random", "/dev", "/proc/self/maps", "/proc/self/mem",
      "/sys/kernel", folder .. "/fifo", folder .. "/locked fifo",
      folder .. "/null", folder .. "/maps", folder .. "/zero",
      folder .. "/link to fifo", folder .. "/fifo/below", folder .. "/socket" }
    assert(os.execute(("cd %s && mkfifo fifo 'locked fifo' && chmod 444 'locked fifo' && ln -s /dev/null null && "
      .. "ln -s /dev/zero zero && ln -s /proc/self/maps maps && ln -s fifo 'link to fifo' && "
      .. "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'"):format(folder)))
    for _, name in ipairs(names) do
      eq(files.may_open(name), false, name)
    end
  end)
end)

test("mGBA may open regular files, including empty and read-only ones, and paths that do not exist yet", function()
  with_folder(function(folder)
    assert(os.execute(("cd %s && printf x > full && : > empty && printf x > locked && : > 'locked empty' && "
      .. "chmod 444 locked 'locked empty' && ln -s full link && printf x > \"it's\" && "
      .. ": > \"it's; touch oops\""):format(folder)))
    for _, name in ipairs { "full", "empty", "locked", "locked empty", "link", "new", "it's", "it's; touch oops" } do
      eq(files.may_open(folder .. "/" .. name), true, name)
    end
    eq(files.may_open("/dev/shm/framewire-nothing-here"), true)
    eq(files.may_open(folder), true, "a folder, which mGBA refuses")
    eq(io.open(folder .. "/oops"), nil)
    eq(io.open(folder .. "/full"):read("a"), "x", "its bytes")
  end)
end)

test("operations on files refuse a FIFO before mGBA gets its path", function()
  local fake = require "fake"
  local operations = require "operations"
  emu = fake.emu { platform = 0 }
  with_folder(function(folder)
    local fifo = folder .. "/fifo"
    assert(os.execute("mkfifo " .. fifo))
    local names = { "load_file", "load_rom", "load_state_file", "save_state_file", "load_save_file", "screenshot_file" }
    for _, name in ipairs(names) do
      local done, status, problem = operations.attempt(operations.by_name[name], nil, fifo, 1)
      eq(done, false, name)
      eq(status, 1, name) -- `BAD_ARGUMENT` in refusal.lua
      eq(problem:find("FIFO", 1, true) ~= nil, true, problem)
    end
    eq(table.concat(emu.calls, " "):find(fifo, 1, true), nil)
  end)
end)

test("the refusal of a path at which no file can be has the system's reason", function()
  local fake = require "fake"
  local operations = require "operations"
  emu = fake.emu { platform = 0 }
  with_folder(function(folder)
    assert(os.execute(("cd %s && : > file && ln -s loop loop"):format(folder)))
    local reasons = {
      [folder .. "/file/below"] = "Not a directory",
      [folder .. "/" .. ("x"):rep(300)] = "File name too long",
      [folder .. "/loop"] = "Too many levels of symbolic links",
    }
    for path, reason in pairs(reasons) do
      local _, status, problem = operations.attempt(operations.by_name.screenshot_file, nil, path)
      eq(status, 1, path)
      eq(problem:find("`path` cannot be opened: " .. reason .. "; ", 1, true), 1, problem)
    end
    eq(#emu.calls, 0)
  end)
end)
