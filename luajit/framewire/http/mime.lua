--- Media types of files by their extension.

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

local M = {}

--- The media type of a file.
---@param path string
---@return string type "application/octet-stream" for an unknown extension
function M.of(path)
  local extension = path:match("%.([%w]+)$")
  return extension and types[extension:lower()] or "application/octet-stream"
end

return M
