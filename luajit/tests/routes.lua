--- Tests of routes with parameters.

local check = require "tests.support.check"
local client = require "tests.support.client"
local http = require "framewire.http"
local process = require "tests.support.process"

local function say(text)
  return function(request, response)
    local names = {}
    for name in pairs(request.params or {}) do names[#names + 1] = name end
    table.sort(names)
    local parts = { text }
    for _, name in ipairs(names) do parts[#parts + 1] = name .. "=" .. request.params[name] end
    response:text(200, table.concat(parts, " "))
  end
end

-- Calls a handler for a path, without a server. Returns the status, the text and the headers of its answer.
local function ask(handler, method, path)
  local status, body, headers = nil, nil, {}
  local response = {
    text = function(_, code, text) status, body = code, text end,
    header = function(_, name, value) headers[name] = value end,
  }
  handler({ method = method, path = path }, response)
  return status, body, headers
end

local handler = http.routes {
  ["GET /items/:id"] = say "item",
  ["PUT /items/:id"] = say "put",
  ["GET /items/new"] = say "new",
  ["GET /items/:id/parts/:part"] = say "part",
  ["GET /items/special/parts/all"] = say "all",
  ["DELETE /items/:id/parts/"] = say "slash",
  ["GET /files/*path"] = say "file",
  ["GET /files/:name/info"] = say "info",
  ["GET /:any"] = say "any",
}

check.test("paths match their routes", function()
  for path, wanted in pairs {
    ["/items/42"] = "item id=42",
    ["/items/new"] = "new",
    ["/items/new/parts/7"] = "part id=new part=7",
    ["/items/special/parts/all"] = "all",
    ["/items/special/parts/one"] = "part id=special part=one",
    ["/items/a%20b%2Fc"] = "item id=a b/c",
    ["/items/a+b"] = "item id=a+b",
    ["/items/:id"] = "item id=:id",
    ["/files/"] = "file path=",
    ["/files/a"] = "file path=a",
    ["/files/a/b/c.txt"] = "file path=a/b/c.txt",
    ["/files/a/info"] = "info name=a",
    ["/files/a/info/b"] = "file path=a/info/b",
    ["/files//info"] = "file path=/info",
    ["/items"] = "any any=items",
    ["/files"] = "any any=files",
  } do
    local status, body = ask(handler, "GET", path)
    check.equal(status, 200, path)
    check.equal(body, wanted, path)
  end
end)

check.test("other paths are not found", function()
  local unknown = { "/", "//", "/items/", "/items//", "/items/1/", "/items/1/parts", "/a/b", "/items//parts/1", "*" }
  for _, path in ipairs(unknown) do
    check.equal(ask(handler, "GET", path), 404, path)
  end
  local fallback = http.routes({ ["GET /a/:b"] = say "b" }, say "fallback")
  check.equal(select(2, ask(fallback, "GET", "/b/a")), "fallback")
end)

check.test("a value that cannot be decoded gets a 400", function()
  for _, path in ipairs { "/items/%", "/items/%2", "/items/%zz", "/files/a/%/b" } do
    check.equal(ask(handler, "GET", path), 400, path)
  end
end)

check.test("known paths with parameters answer HEAD and refuse other methods", function()
  check.equal(ask(handler, "HEAD", "/items/1"), 200)
  local status, body, headers = ask(handler, "DELETE", "/items/1")
  check.equal(status, 405)
  check.equal(headers.Allow, "GET, HEAD, PUT")
  check.equal(body, "use GET, HEAD, PUT\n")
  status, body, headers = ask(handler, "GET", "/items/1/parts/")
  check.equal(status, 405)
  check.equal(headers.Allow, "DELETE")
  check.equal(body, "use DELETE\n")
end)

check.test("routes that cannot be served are refused", function()
  local function refused(routes, part)
    local ok, message = pcall(function() return (http.routes(routes)) end)
    check.equal(ok, false, part)
    check.contains(message, part)
    check.contains(message, "tests/routes.lua", "the place in the message")
  end
  local f = function() end
  refused({ ["/a"] = f }, "a method, a space and a path")
  refused({ [1] = f }, "a method, a space and a path")
  refused({ ["get /a"] = f }, "a method, a space and a path")
  refused({ ["GET /:"] = f }, "needs a name")
  refused({ ["GET /:a-b"] = f }, "needs a name")
  refused({ ["GET /*"] = f }, "needs a name")
  refused({ ["GET /*all/more"] = f }, "must be the last part")
  refused({ ["GET /:a/:a"] = f }, "two parameters 'a'")
  refused({ ["GET /:a"] = f, ["PUT /:b"] = f }, "differ only in the names")
end)

check.test("a server gives each request its own parameters", function()
  process.with_server({ handler = http.routes({ ["GET /items/:id"] = say "item" }, say "other") }, function(port)
    local connection = client.connect(port)
    for i = 1, 50 do
      check.equal(connection:ask("GET", "/items/" .. i).body, "item id=" .. i)
      check.equal(connection:ask("GET", "/other").body, "other", "without the parameters of the last request")
    end
    check.equal(connection:ask("HEAD", "/items/1").status, 200)
    check.equal(connection:ask("POST", "/items/1").headers.allow, "GET, HEAD")
    connection:close()
  end)
end)
