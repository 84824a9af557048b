--- Tests of static files: what is served, and what is refused.

local check = require "tests.support.check"
local client = require "tests.support.client"
local http = require "framewire.http"
local process = require "tests.support.process"
local sys = require "framewire.sys"
local time = require "framewire.time"

local SMALL = "0123456789"
local LARGE = ("abcdefghijklmnop"):rep(65536 * 3) -- 3 MiB

local function with_files(body, poller)
  local folder = process.folder()
  local root = folder .. "/root"
  local folders = "mkdir -p '%s/sub/deep' '%s/.hidden' '%s/.well-known/acme' '%s/outside'"
  os.execute(folders:format(root, root, root, folder))
  process.write(folder .. "/secret.txt", "secret")
  process.write(folder .. "/outside/secret.txt", "secret")
  process.write(root .. "/small.txt", SMALL)
  process.write(root .. "/large.bin", LARGE)
  process.write(root .. "/empty.css", "")
  process.write(root .. "/with space & ü.html", "<p>")
  process.write(root .. "/sub/index.html", "index of sub")
  process.write(root .. "/.hidden/secret.txt", "secret")
  process.write(root .. "/.secret", "secret")
  process.write(root .. "/.well-known/acme/token", "token")
  process.write(root .. "/.well-known/.secret", "secret")
  os.execute(("ln -s ../secret.txt '%s/link-out'; ln -s /etc/passwd '%s/link-absolute'"):format(root, root))
  os.execute(("ln -s ../outside '%s/folder-out'; ln -s small.txt '%s/link-in'"):format(root, root))
  os.execute(("mkfifo '%s/pipe'"):format(root))
  local files = assert(http.static(root))
  local ok, message = pcall(process.with_server, { handler = files, poller = poller }, function(port)
    body(port, root)
  end)
  process.remove_folder(folder)
  if not ok then error(message, 0) end
end

-- Registers a test. The other arguments are those of `with_files`.
local function test(what, body, poller)
  check.test(what, function() with_files(body, poller) end)
end

test("files have a type, a length and a date", function(port)
  local answer = client.ask(port, "GET", "/small.txt")
  check.equal(answer.status, 200)
  check.equal(answer.body, SMALL)
  check.equal(answer.headers["content-type"], "text/plain; charset=utf-8")
  check.equal(answer.headers["accept-ranges"], "bytes")
  assert(math.abs(time.parse_http_date(answer.headers["last-modified"]) - time.wall()) < 10)
  check.equal(client.ask(port, "GET", "/empty.css").body, "")
  check.equal(client.ask(port, "GET", "/large.bin").headers["content-type"], "application/octet-stream")
  check.equal(client.ask(port, "GET", "/with%20space%20%26%20%c3%bc.html?query").body, "<p>")
  check.equal(client.ask(port, "GET", "/link-in").body, SMALL)
  local head = client.ask(port, "HEAD", "/large.bin")
  check.equal(head.headers["content-length"], tostring(#LARGE))
  check.equal(client.ask(port, "POST", "/small.txt", nil, "x").status, 405)
end)

for _, name in ipairs { "epoll", "poll" } do
  test(name .. ": large files arrive complete, one after the other", function(port)
    local connection = client.connect(port)
    local request = "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n"
    connection:send(request:rep(3) .. "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n")
    time.sleep(0.05)
    for _ = 1, 3 do check.equal(connection:receive().body == LARGE, true) end
    check.equal(connection:receive().body, SMALL)
    connection:close()
  end, name)
end

-- The system accepts such a file at once. The client sends nothing more, so no event makes the server continue.
test("a request that arrives together with one for a file of 300 KB is answered", function(port, root)
  process.write(root .. "/medium.bin", LARGE:sub(1, 300000))
  local connection = client.connect(port)
  local request = "GET /medium.bin HTTP/1.1\r\nHost: a\r\n\r\n"
  connection:send(request:rep(3) .. "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n")
  for _ = 1, 3 do check.equal(#assert(connection:receive()).body, 300000) end
  check.equal(assert(connection:receive()).body, SMALL)
  connection:close()
end)

check.test("after the 500 of a handler that failed, no bytes of its file follow", function()
  local folder = process.folder()
  process.write(folder .. "/large.bin", LARGE)
  local files = assert(http.static(folder))
  local function handler(request, response)
    files(request, response)
    error("as asked")
  end
  local ok, message = pcall(process.with_server, { handler = handler, log = function() end }, function(port)
    local connection = client.connect(port)
    check.equal(connection:ask("GET", "/large.bin").status, 500)
    local closed, rest = connection:is_closed()
    check.equal(closed, true)
    check.equal(#rest, 0, "bytes after the answer")
    connection:close()
  end)
  process.remove_folder(folder)
  if not ok then error(message, 0) end
end)

test("folders have an index, and a slash at their end", function(port)
  check.equal(client.ask(port, "GET", "/sub/").body, "index of sub")
  local answer = client.ask(port, "GET", "/sub?x=1")
  check.equal(answer.status, 301)
  check.equal(answer.headers["location"], "/sub/?x=1")
  check.equal(client.ask(port, "GET", "/").status, 404)
  check.equal(client.ask(port, "GET", "/sub/deep/").status, 404)
  check.equal(client.ask(port, "GET", "/small.txt/").status, 404)
end)

test("unchanged files are not sent again", function(port)
  local first = client.ask(port, "GET", "/small.txt")
  local date, tag = first.headers["last-modified"], first.headers["etag"]
  local function status(headers) return client.ask(port, "GET", "/small.txt", headers).status end
  check.equal(status { ["If-Modified-Since"] = date }, 304)
  check.equal(status { ["If-Modified-Since"] = "Sun, 06 Nov 1994 08:49:37 GMT" }, 200)
  check.equal(status { ["If-Modified-Since"] = "yesterday" }, 200)
  check.equal(status { ["If-None-Match"] = tag }, 304)
  check.equal(status { ["If-None-Match"] = '"other", W/' .. tag }, 304)
  check.equal(status { ["If-None-Match"] = "*" }, 304)
  check.equal(status { ["If-None-Match"] = '"other"', ["If-Modified-Since"] = date }, 200, "tags come first")
  local connection = client.connect(port)
  local answer = connection:ask("GET", "/small.txt", { ["If-None-Match"] = tag })
  check.equal(answer.headers["etag"], tag)
  check.equal(connection:ask("GET", "/small.txt").body, SMALL, "the next answer on the connection")
end)

test("clients can request ranges", function(port)
  local function ask(range, more)
    local headers = more or {}
    headers["Range"] = range
    return client.ask(port, "GET", "/small.txt", headers)
  end
  for range, wanted in pairs {
    ["bytes=0-0"] = { "0", "bytes 0-0/10" },
    ["bytes=2-4"] = { "234", "bytes 2-4/10" },
    ["bytes=7-"] = { "789", "bytes 7-9/10" },
    ["bytes=5-999"] = { "56789", "bytes 5-9/10" },
    ["bytes=-3"] = { "789", "bytes 7-9/10" },
    ["bytes=-99"] = { SMALL, "bytes 0-9/10" },
  } do
    local answer = ask(range)
    check.equal(answer.status, 206, range)
    check.equal(answer.body, wanted[1], range)
    check.equal(answer.headers["content-range"], wanted[2], range)
  end
  for _, range in ipairs { "bytes=10-", "bytes=99-100", "bytes=-0" } do
    local answer = ask(range)
    check.equal(answer.status, 416, range)
    check.equal(answer.headers["content-range"], "bytes */10", range)
  end
  for _, range in ipairs { "bytes=4-2", "bytes=a-b", "bytes=-", "lines=1-2", "bytes=0-1,3-4", "bytes=0x1-2", "" } do
    local answer = ask(range)
    check.equal(answer.status, 200, range)
    check.equal(answer.body, SMALL, range)
  end
  local tag = ask("bytes=0-0").headers["etag"]
  check.equal(ask("bytes=0-0", { ["If-Range"] = tag }).status, 206)
  check.equal(ask("bytes=0-0", { ["If-Range"] = '"other"' }).status, 200)
  local large = client.ask(port, "GET", "/large.bin", { Range = "bytes=1000000-1999999" })
  check.equal(large.body == LARGE:sub(1000001, 2000000), true, "a large range")
end)

local escapes = {
  "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/%2E%2E%2Fsecret.txt", "/sub/../../secret.txt",
  "/sub/%2e%2e/%2e%2e/secret.txt", "//etc/passwd", "/%2fetc/passwd", "/..\\secret.txt", "/..%5csecret.txt",
  "/%252e%252e/secret.txt", "/....//secret.txt", "/small.txt%00.html", "/%00", "/link-out", "/link-absolute",
  "/folder-out/secret.txt", "/folder-out/", "/.secret", "/.hidden/secret.txt", "/sub/./index.html", "/pipe",
  "/%c0%ae%c0%ae/secret.txt", "/sub//index.html", "/%", "/%zz", "/small.txt/../../secret.txt",
  "/.well-known/../.secret", "/.well-known/.secret", "/.well-known/acme/../../.secret",
  "/.well-known/acme/../.secret", "/.well-known/acme/%2e%2e/%2e%2e/.hidden/secret.txt",
}

test("the folder for well-known files is served, although its name begins with a dot", function(port)
  check.equal(client.ask(port, "GET", "/.well-known/acme/token").body, "token")
end)

test("nothing outside the folder can be reached", function(port)
  for _, path in ipairs(escapes) do
    local answer = client.ask(port, "GET", path)
    check.equal(answer.status, 404, path)
    assert(not answer.body:find("secret"), path)
  end
end)

check.test("even without the kernel's own check, nothing outside the folder can be reached", function()
  local by_kernel = sys.open_beneath
  sys.open_beneath = sys.open_and_check
  local ok, message = pcall(with_files, function(port)
    for _, path in ipairs(escapes) do check.equal(client.ask(port, "GET", path).status, 404, path) end
    check.equal(client.ask(port, "GET", "/link-in").body, SMALL)
  end)
  sys.open_beneath = by_kernel
  if not ok then error(message, 0) end
end)

test("files do not leak descriptors", function(port, root)
  local function count()
    -- Counts the open files inside of the root, in all processes. The server's descriptor of the root itself does not
    -- count.
    return tonumber(process.output("ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c '" .. root .. "/'"))
  end
  for _ = 1, 50 do
    client.ask(port, "GET", "/small.txt")
    client.ask(port, "HEAD", "/large.bin")
    client.ask(port, "GET", "/sub")
    client.ask(port, "GET", "/small.txt", { Range = "bytes=99-" })
    local cut = client.connect(port)
    cut:send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n")
    cut:close()
  end
  check.eventually(10, function() return count() == 0 end, "every file is closed")
end)

check.test("a folder that does not exist is an error at once", function()
  local files, message = http.static("/no/such/folder")
  check.equal(files, nil)
  check.contains(message, "/no/such/folder")
end)
