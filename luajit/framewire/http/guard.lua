--- Refuses requests from web pages of other sites.
--
--   local handler = http.guard(http.routes { ... }, { hosts = { "my-machine" } })
--
-- Any web page can make a browser send requests to this machine. Three headers, which a page cannot forge, show where a
-- request comes from. `Host` is the host name under which the browser reached this server. If a page's own host name
-- resolves to this machine (DNS rebinding), `Host` is that name. `Origin` is the page's origin, and `Sec-Fetch-Site`
-- says whether the page belongs to another site. Programs other than browsers usually do not send the last two.

local M = {}

local function strip_port(authority)
  return (authority:match("^%[(.-)%]") or authority:match("^([^:]*)")):lower()
end

-- Whether a name is `localhost` or an IP address. DNS rebinding needs a host name that is neither.
local function is_address(name)
  return name == "localhost" or name:find(":", 1, true) ~= nil or name:find("^%d+%.%d+%.%d+%.%d+$") ~= nil
end

--- Returns why a request is refused, or nil if it is accepted.
---@param headers table<string, string>
---@param hosts table<string, boolean> names of this server, in addition to addresses and localhost
---@param scheme string "https" or "http": how the request came
---@return string|nil reason
function M.refusal(headers, hosts, scheme)
  local host = headers.host
  if host then
    local name = strip_port(host)
    if not is_address(name) and not hosts[name] then
      return ("this server is not called '%s'; use its IP address or localhost, or allow the name (--allow-host; in a "
        .. "program of your own, the option `hosts` of http.guard)"):format(name)
    end
  end
  local origin = headers.origin
  if origin and (not host or origin:lower() ~= scheme .. "://" .. host:lower()) then
    return "pages of another origin may not use this server"
  end
  local site = headers["sec-fetch-site"]
  if site and site ~= "same-origin" and site ~= "none" then
    return "pages of another site may not use this server"
  end
end

--- Creates a handler that answers 403 to requests that may come from a web page of another site. It passes all other
--- requests to `handler`.
---@param handler function
---@param options? table `hosts`: names of this server, in addition to addresses and localhost
---@return function handler
function M.new(handler, options)
  local hosts = {}
  for _, name in ipairs(options and options.hosts or {}) do hosts[name:lower()] = true end
  return function(request, response)
    -- Only connections of HTTPS have a `peer`.
    local reason = M.refusal(request.headers, hosts, request.connection.peer and "https" or "http")
    if reason then return response:text(403, reason .. "\n") end
    return handler(request, response)
  end
end

return M
