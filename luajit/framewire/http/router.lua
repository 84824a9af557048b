--- Selects a handler by exact path and method.
--
--   local handler = http.routes {
--     ["GET /"] = function(request, response) response:text(200, "hello") end,
--     ["POST /echo"] = function(request, response) response:text(200, request.body) end,
--   }

local M = {}

local function not_found(_, response)
  response:text(404, "not found\n")
end

--- Creates a handler from a table of handlers. GET answers HEAD too. A known path with another method gets a 405.
---@param routes table<string, function> keys such as "GET /path"
---@param fallback? function handler for every other path; 404 if left out
---@return function handler
function M.new(routes, fallback)
  local by_path, allowed = {}, {}
  for key, handler in pairs(routes) do
    local method, path = key:match("^(%u+) (/.*)$")
    if not method then error("a route is a method, a space and a path, not '" .. tostring(key) .. "'", 2) end
    by_path[path] = by_path[path] or {}
    by_path[path][method] = handler
    if method == "GET" then by_path[path].HEAD = by_path[path].HEAD or handler end
  end
  for path, methods in pairs(by_path) do
    local names = {}
    for name in pairs(methods) do names[#names + 1] = name end
    table.sort(names)
    allowed[path] = table.concat(names, ", ")
  end
  fallback = fallback or not_found
  return function(request, response)
    local methods = by_path[request.path]
    if not methods then return fallback(request, response) end
    local handler = methods[request.method]
    if handler then return handler(request, response) end
    response:header("Allow", allowed[request.path])
    response:text(405, "use " .. allowed[request.path] .. "\n")
  end
end

return M
