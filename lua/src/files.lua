-- Checks files and bytes before mGBA gets them, because mGBA itself checks too little: for example, it closes the
-- running game before it checks the new one. Also checks the files that mGBA has written.

local byte, find, rep, sub, unpack = string.byte, string.find, string.rep, string.sub, string.unpack

local files = {}

local WINDOWS = package.config:sub(1, 1) == "\\"
local SYSTEM_FOLDERS = { "/dev/", "/proc/", "/sys/" }
-- Linux error numbers.
local NO_SUCH_FILE, NO_ACCESS, NOT_PERMITTED, IS_FOLDER, READ_ONLY_DISK, IN_USE = 2, 13, 1, 21, 30, 26

-- Returns an absolute path without `//`, `.` and `..`.
local function cleaned(path)
  local names = {}
  for name in path:gmatch("[^/]+") do
    if name == ".." then
      names[#names] = nil
    elseif name ~= "." then
      names[#names + 1] = name
    end
  end
  return "/" .. table.concat(names, "/")
end

-- Whether a path is in a folder of device files or of the kernel's own files.
local function is_of_system(path)
  if sub(path, 1, 1) ~= "/" then
    return false
  end
  local name = cleaned(path) .. "/"
  for _, folder in ipairs(SYSTEM_FOLDERS) do
    if sub(name, 1, #folder) == folder then
      return sub(name, 1, 9) ~= "/dev/shm/" -- this folder has regular files
    end
  end
  return false
end

-- Asks the shell whether a path is a regular file (`-f`), or whether nothing exists there (`! -e`). Lua cannot find
-- this out without opening the file.
local function shell_says(test, path)
  return os.execute("[ " .. test .. " '" .. path:gsub("'", "'\\''") .. "' ]") == true
end

-- Whether the size of an open file is correct, and the size. Files of the kernel, as in /proc, have size 0 but contain
-- bytes.
local function has_true_size(file)
  local size = file:seek("end")
  return size and (size > 0 or file:seek("set", 0) == 0 and file:read(1) == nil), size
end

-- Whether mGBA may open this path. On Windows, this is not checked. On other systems, these are allowed: regular files,
-- paths that do not exist yet, and folders, which mGBA itself refuses. A FIFO is not allowed, because mGBA would wait
-- forever for its other end. Other special files are not allowed either: mGBA terminates if it cannot map a save file
-- into memory. This check first opens a file for reading and writing, because that does not block for a FIFO. If no
-- file can be at the path, for example because its name is too long, also returns the system's reason.
function files.may_open(path)
  if WINDOWS then
    return true
  elseif is_of_system(path) then
    return false
  end
  local file, problem, code = io.open(path, "r+b")
  if file then
    local true_size, size = has_true_size(file)
    file:close()
    return true_size and (size > 0 or shell_says("-f", path)) or false
  elseif code == NO_SUCH_FILE or code == IS_FOLDER then
    return true
  elseif code == READ_ONLY_DISK or code == IN_USE then
    return true -- opening a FIFO or a device gives neither of these errors
  elseif shell_says("! -e", path) then
    return false, sub(problem, #path + 3) -- without the path before it
  elseif code ~= NO_ACCESS and code ~= NOT_PERMITTED or not shell_says("-f", path) then
    return false
  end
  file = io.open(path, "rb")
  local true_size = file == nil or has_true_size(file)
  if file then
    file:close()
  end
  return true_size and true or false
end

local function is_gba_elf(head)
  if #head < 28 then
    return false
  end
  local machine, _, entry = unpack("<I2I4I4", head, 19)
  return machine == 40 and (entry == 0x08000000 or entry == 0x02000000 or entry == 0x020000C0)
end

local GBA_HEADER = 0xC0

-- `is_gba_rom` and `is_gb_rom` make the same tests as GBAIsROM and GBIsROM in libmgba. In addition, the header must be
-- complete. Otherwise, mGBA would read past the end of the file.
local function is_gba_rom(head)
  if sub(head, 1, 4) == "\127ELF" then
    return is_gba_elf(head)
  end
  if byte(head, 4) ~= 0xEA or #head < GBA_HEADER then
    return false
  end
  if byte(head, 0xB3) ~= 0x96 and sub(head, 5, 0xA0) ~= rep("\0", 0x9C) then
    return false
  end
  for vector = 0, 6 do
    if byte(head, 4 * vector + 4) ~= 0xEA or byte(head, 4 * vector + 3) ~= 0 then
      return true
    end
  end
  return false -- all seven vectors are branches, so this is the BIOS itself
end

local GB_LOGOS = { "\xCE\xED\x66\x66", "\x7C\xE7\xC0\x00" }

local function is_gb_rom(head, tail)
  if #head < 0x200 then
    return false
  end
  local plain = sub(head, 0x105, 0x108)
  local scrambled = sub(head, 0x105, 0x105) .. sub(head, 0x145, 0x145) .. sub(head, 0x115, 0x115) .. sub(head, 0x155, 0x155)
  for _, logo in ipairs(GB_LOGOS) do
    if plain == logo or scrambled == logo then
      return true
    end
  end
  return sub(tail, -16, -9) == "\0\0\0\64\0\0\0\1" and sub(tail, -4) == "GBX!"
end

local ROM_NAMES = {
  [true] = { gba = true, agb = true, mb = true, elf = true, bin = true },
  [false] = { gb = true, gbc = true, sgb = true, bin = true },
}

-- Whether the directory at the end of a zip archive lists a ROM. The ROM itself cannot be checked without unpacking it.
local function zip_names_rom(tail, names)
  local at = 1
  while true do
    at = find(tail, "PK\1\2", at, true)
    if not at or at + 45 > #tail then
      return false
    end
    local name = sub(tail, at + 46, at + 45 + unpack("<I2", tail, at + 28))
    local ending = name:lower():match("%.(%w+)$")
    if ending and names[ending] then
      return true
    end
    at = at + 46
  end
end

-- Whether nothing exists at this path. The second result is the system's error.
function files.is_missing(path)
  local file, problem, code = io.open(path, "rb")
  if file then
    file:close()
  end
  return code == NO_SUCH_FILE, problem
end

-- Returns true if the file is a ROM for the running console: the Game Boy Advance if `advance` is true, otherwise the
-- Game Boy. If it is not, returns false or nil, and the reason.
function files.check_rom(path, advance)
  local file, problem = io.open(path, "rb")
  if not file then
    return nil, problem
  end
  local head = file:read(0x200)
  local size = head and file:seek("end")
  if not size then
    file:close()
    return nil, "it is empty or cannot be read"
  end
  file:seek("set", math.max(0, size - 65536))
  local tail = file:read(65536) or ""
  file:close()
  local console_name = advance and "Game Boy Advance" or "Game Boy"
  local good
  if sub(head, 1, 4) == "PK\3\4" then
    good = zip_names_rom(tail, ROM_NAMES[advance])
  elseif sub(head, 1, 6) == "7z\xBC\xAF\x27\x1C" then
    return nil, "a 7z archive cannot be checked before mGBA closes the running game; unpack the archive first"
  elseif advance then
    good = is_gba_rom(head)
  else
    good = is_gb_rom(head, tail)
  end
  return good, "it is not a ROM of the running console, the " .. console_name
end

-- Savestates begin with a magic number that identifies the console; its lowest byte is a version.
local STATES = {
  [true] = { magic = 0x01000000, size = 0x61000 },
  [false] = { magic = 0x00400000, size = 0x11800 },
}

-- Whether the bytes are a savestate of the running console, or a PNG file that contains a savestate. `advance` is as in
-- `check_rom`.
function files.is_state(data, advance)
  if sub(data, 1, 8) == "\x89PNG\r\n\26\n" then
    return find(data, "gbAs", 1, true) ~= nil
  end
  local state = STATES[advance]
  return #data >= state.size and unpack("<I4", data) & ~0xFF == state.magic
end

-- Writes a file. Returns whether that worked.
function files.write(path, bytes)
  local file = io.open(path, "wb")
  local written = file and file:write(bytes)
  return file and file:close() and written ~= nil or false
end

-- Whether a file that mGBA has written exists, can be written, and begins with the given bytes. If not, also returns
-- the reason.
function files.is_written(path, beginning)
  if WINDOWS and find(path, "[\128-\255]") then
    return true -- on Windows, mGBA takes paths as UTF-8, but Lua does not, so Lua cannot open this file
  end
  local file, problem = io.open(path, "r+b")
  local head = file and file:read(#beginning)
  if file then
    file:close()
  end
  return file ~= nil and head == beginning, problem or path .. " holds something else"
end

return files
