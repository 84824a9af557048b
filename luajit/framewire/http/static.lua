--- Serves the files of a folder, and nothing outside the folder.

local ffi = require "ffi"
local sys = require "framewire.sys"
local time = require "framewire.time"
local url = require "framewire.http.url"

local M = {}

-- Media types of files by their extension.
local types = {
  html = "text/html; charset=utf-8", htm = "text/html; charset=utf-8", css = "text/css; charset=utf-8",
  js = "text/javascript; charset=utf-8", mjs = "text/javascript; charset=utf-8",
  txt = "text/plain; charset=utf-8", md = "text/markdown; charset=utf-8", lua = "text/plain; charset=utf-8",
  csv = "text/csv; charset=utf-8", xml = "application/xml", json = "application/json", map = "application/json",
  png = "image/png", jpg = "image/jpeg", jpeg = "image/jpeg", gif = "image/gif", webp = "image/webp",
  avif = "image/avif", svg = "image/svg+xml", ico = "image/vnd.microsoft.icon",
  woff = "font/woff", woff2 = "font/woff2", ttf = "font/ttf", otf = "font/otf",
  mp3 = "audio/mpeg", ogg = "audio/ogg", wav = "audio/wav", mp4 = "video/mp4", webm = "video/webm",
  pdf = "application/pdf", zip = "application/zip", gz = "application/gzip", wasm = "application/wasm",
}

local function type_of(path)
  local extension = path:match("%.([%w]+)$")
  return extension and types[extension:lower()] or "application/octet-stream"
end

-- Converts a request's path to a path relative to the root. Returns nil if the path must not be served. Names that
-- begin with a dot are not served, including "." and "..". The folder "/.well-known/" is an exception.
local function relative_path(raw)
  local path = url.decode(raw)
  if not path or path:byte(1) ~= 47 then return nil end
  if path:find("[%z\1-\31\127\\]") or path:find("//", 1, true) then return nil end
  if path:gsub("^/%.well%-known/", "/"):find("/.", 1, true) then return nil end
  return path:sub(2)
end

-- Reads a Range header for a file of `size` bytes. Returns the first byte and the number of bytes; nil if the whole
-- file is to be sent; false if the file has none of these bytes.
local function read_range(header, size)
  local first, last = header:match("^bytes=(%d*)%-(%d*)$")
  if not first or #first > 15 or #last > 15 then return nil end
  first, last = tonumber(first), tonumber(last)
  if not first then
    if not last then return nil end
    if last == 0 or size == 0 then return false end
    local length = math.min(last, size)
    return size - length, length
  end
  if last and last < first then return nil end
  if first >= size then return false end
  return first, math.min(last or size - 1, size - 1) - first + 1
end

local function has_tag(list, tag)
  if list == "*" then return true end
  for one in list:gmatch('"[^"]*"') do
    if one == tag then return true end
  end
  return false
end

-- Whether the client's copy is still current. RFC 9110, 13.2.2: the date is ignored if the client sends a tag.
local function is_fresh(headers, tag, modified)
  local tags = headers["if-none-match"]
  if tags then return has_tag(tags, tag) end
  local since = headers["if-modified-since"]
  since = since and time.parse_http_date(since)
  return since ~= nil and modified <= since
end

local function send_file(request, response, fd, name, size, modified, inode)
  local headers = request.headers
  local tag = ('"%x-%x-%x"'):format(inode, size, modified)
  local date = time.http_date(modified)
  response:header("Last-Modified", date)
  response:header("ETag", tag)
  response:header("Accept-Ranges", "bytes")
  if is_fresh(headers, tag, modified) then
    ffi.C.close(fd)
    return response:send(304, "")
  end
  local range, condition = headers["range"], headers["if-range"]
  if range and request.method == "GET" and (not condition or condition == tag or condition == date) then
    local first, length = read_range(range, size)
    if first == false then
      ffi.C.close(fd)
      response:header("Content-Range", "bytes */" .. size)
      return response:text(416, "the file has " .. size .. " bytes\n")
    elseif first then
      response:header("Content-Range", ("bytes %d-%d/%d"):format(first, first + length - 1, size))
      return response:file(206, fd, first, length, type_of(name))
    end
  end
  return response:file(200, fd, 0, size, type_of(name))
end

--- Creates a handler that serves a folder. For the path of a folder, it serves the folder's `index.html`. It does not
-- follow symbolic links to files outside of the root.
---@param root string
---@param options? table `index`: another name for index.html
---@return function|nil handler
---@return string? message
function M.new(root, options)
  local index = options and options.index or "index.html"
  local root_fd = sys.open_folder(root)
  if root_fd < 0 then return sys.fail("cannot open the folder '" .. root .. "'") end

  return function(request, response)
    local function missing() return response:text(404, "not found\n") end
    if request.method ~= "GET" and request.method ~= "HEAD" then
      response:header("Allow", "GET, HEAD")
      return response:text(405, "use GET, HEAD\n")
    end
    local path = relative_path(request.path)
    if not path then return missing() end
    local wants_folder = path == "" or path:sub(-1) == "/"
    local name = wants_folder and path .. index or path
    local fd = sys.open_beneath(root_fd, name)
    if fd < 0 then
      local number = sys.errno()
      if number == sys.EMFILE or number == sys.ENFILE then return response:text(503, "out of descriptors\n") end
      return missing()
    end
    local size, modified, kind, inode = sys.stat(fd)
    if kind == "file" then return send_file(request, response, fd, name, size, modified, inode) end
    ffi.C.close(fd)
    if kind ~= "directory" or wants_folder then return missing() end
    return response:redirect(301, request.path .. "/" .. (request.query and "?" .. request.query or ""))
  end
end

return M
