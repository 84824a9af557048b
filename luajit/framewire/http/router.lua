--- Selects a handler by path and method.
--
--   local handler = http.routes {
--     ["GET /"] = function(request, response) response:text(200, "hello") end,
--     ["GET /items/:id"] = function(request, response) response:text(200, request.params.id) end,
--     ["GET /files/*path"] = function(request, response) response:text(200, request.params.path) end,
--   }
--
-- `:name` matches one part of the path, which must not be empty; `*name` matches the rest of the path, which can be
-- empty. For each part, a literal text is preferred to a `:name`, and a `:name` to a `*name`. The router first finds
-- the path and then the method.

local url = require "framewire.http.url"

local find, sub, decode = string.find, string.sub, url.decode

-- The limits of the cache of matched paths: the largest number of paths per router, and the longest path in bytes.
local REMEMBERED, LONGEST = 1024, 256

local M = {}

-- Creates a node of the tree of paths. The next part of the path leads to a child: `texts` has the nodes of literal
-- parts, `any` is the node of a ":name", `rest` is the route of a "*name". `route` is the route of a path that ends
-- here.
local function new_node()
  return { texts = {}, any = nil, rest = nil, route = nil }
end

-- Creates a route: `methods` has the handlers by method, `allowed` is the value of the header "Allow", and `names`
-- lists the parameters.
local function new_route(path, names)
  return { path = path, methods = {}, allowed = nil, names = names }
end

-- Returns the route of a path with parameters. Creates the route if there is none.
local function route_of(root, path)
  local node, names = root, {}
  local function take_name(name, part)
    if not find(name, "^[%a_][%w_]*$") then
      error(("the parameter '%s' in the path '%s' needs a name of letters, digits and _"):format(part, path), 4)
    end
    for _, other in ipairs(names) do
      if other == name then error(("the path '%s' has two parameters '%s'"):format(path, name), 4) end
    end
    names[#names + 1] = name
  end
  local place, field = 2, "route"
  while place do
    local slash = find(path, "/", place, true)
    local part = sub(path, place, (slash or 0) - 1)
    local first = sub(part, 1, 1)
    if first == "*" then
      if slash then error(("'%s' must be the last part of the path '%s'"):format(part, path), 3) end
      take_name(sub(part, 2), part)
      field = "rest"
    elseif first == ":" then
      take_name(sub(part, 2), part)
      node.any = node.any or new_node()
      node = node.any
    else
      node.texts[part] = node.texts[part] or new_node()
      node = node.texts[part]
    end
    place = slash and slash + 1
  end
  local route = node[field] or new_route(path, names)
  node[field] = route
  if table.concat(route.names, "/") ~= table.concat(names, "/") then
    error(("the paths '%s' and '%s' differ only in the names of parameters"):format(route.path, path), 3)
  end
  return route
end

-- Finds the route for the path from offset `place` on. Stores the values of parameters, not decoded, in `values`, after
-- the first `count` values.
local function search(node, path, place, values, count)
  local slash = find(path, "/", place, true)
  local part = sub(path, place, (slash or 0) - 1)
  local next_node = node.texts[part]
  if next_node then
    local route
    if slash then route = search(next_node, path, slash + 1, values, count) else route = next_node.route end
    if route then return route end
  end
  next_node = node.any
  if next_node and part ~= "" then
    local route
    if slash then route = search(next_node, path, slash + 1, values, count + 1) else route = next_node.route end
    if route then
      values[count + 1] = part
      return route
    end
  end
  local route = node.rest
  if route then values[count + 1] = sub(path, place) end
  return route
end

local function add(route, method, handler)
  if route.methods[method] then error(("there are two routes '%s %s'"):format(method, route.path), 3) end
  route.methods[method] = handler
end

-- Lets the handler of GET also answer HEAD, and prepares the header "Allow".
local function complete(route)
  local methods, names = route.methods, {}
  methods.HEAD = methods.HEAD or methods.GET
  for name in pairs(methods) do names[#names + 1] = name end
  table.sort(names)
  route.allowed = table.concat(names, ", ")
end

local function serve(route, request, response)
  local handler = route.methods[request.method]
  if handler then return handler(request, response) end
  response:header("Allow", route.allowed)
  response:text(405, "use " .. route.allowed .. "\n")
end

--- Creates a handler from a table of handlers. The handler of GET also answers HEAD. A known path with another method
-- gets a 405, and a parameter that cannot be decoded gets a 400. `request.params` has the decoded parameters. Do not
-- write to this table, because requests with the same path share it. Raises an error if routes are malformed or
-- contradict each other.
---@param routes table<string, function> keys such as "GET /path" or "GET /items/:id"
---@param fallback? function handler for every other path; 404 if left out
---@return function handler
function M.new(routes, fallback)
  local exact, root, all = {}, new_node(), {}
  for key, handler in pairs(routes) do
    local method, path
    if type(key) == "string" then method, path = key:match("^(%u+) (/.*)$") end
    if not method then error("a route is a method, a space and a path, not '" .. tostring(key) .. "'", 2) end
    local route
    if find(path, "/[:*]") then
      route = route_of(root, path)
    else
      route = exact[path] or new_route(path)
      exact[path] = route
    end
    add(route, method, handler)
    all[route] = true
  end
  for route in pairs(all) do complete(route) end
  fallback = fallback or function(_, response) response:text(404, "not found\n") end
  if not (next(root.texts) or root.any or root.rest) then root = nil end
  -- The cache of matched paths that have parameters, each with its route and its decoded parameters.
  local found, count = {}, 0
  local function match(path, request, response)
    local values = {}
    local route = search(root, path, 2, values, 0)
    if not route then return fallback(request, response) end
    local names, params = route.names, {}
    for i = 1, #names do
      local value = decode(values[i])
      if not value then return response:text(400, "the path has a % without two hexadecimal digits\n") end
      params[names[i]] = value
    end
    if #path <= LONGEST then
      if count == REMEMBERED then found, count = {}, 0 end
      found[path] = { route = route, params = params }
      count = count + 1
    end
    request.params = params
    return serve(route, request, response)
  end
  return function(request, response)
    local path = request.path
    local route = exact[path]
    if route then return serve(route, request, response) end
    if not root then return fallback(request, response) end
    local known = found[path]
    if not known then return match(path, request, response) end
    request.params = known.params
    return serve(known.route, request, response)
  end
end

return M
