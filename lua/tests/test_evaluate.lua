local evaluate = require "evaluate"
local fake = require "fake"
local harness = require "harness"
local operations = require "operations"
local test, eq = harness.test, harness.eq

local function error_of(code)
  return evaluate(code):match('"error":"(.*)"}$')
end

test("values and output are returned as JSON", function()
  emu = fake.emu()
  eq(evaluate("print('a\\n', 1) return 1, 2.5, nil, true, {}, {1, 2}, {b = 1, a = {2}}, '\\xff', '\\u{e4}'"),
    '{"values":[1,2.5,null,true,[],[1,2],{"a":[2],"b":1},{"hex":"ff"},"\u{e4}"],"output":["a\\n\\t1"]}')
  eq(evaluate("return 1/0, math.mininteger"), '{"values":["inf",-9223372036854775808],"output":[]}')
  eq(evaluate("x = 1 return x"), '{"values":[1],"output":[]}')
  eq(evaluate("return x, _G.x"), '{"values":[1,null],"output":[]}', "the code's globals are not in _G")
end)

test("numbers are written with a point even if the user's locale has another decimal separator", function()
  for _, point in ipairs { ",", "\u{66b}" } do
    local real, real_tostring, loaded = string.format, tostring, package.loaded.evaluate
    string.format = function(form, ...) -- luacheck: ignore
      local text = real(form, ...)
      return form == "%.17g" and text:gsub("%.", point) or text
    end
    tostring = function(value) -- luacheck: ignore
      local text = real_tostring(value)
      return math.type(value) == "float" and text:gsub("%.", point) or text
    end
    package.loaded.evaluate = nil
    local copy = require "evaluate"
    local reply = copy("print(-0.5, 2.0, 1e100, 1/0, '0,5') console:log(0.5) return 0.5, -1.5e300, {2.25}, {[1.5] = 3}")
    string.format, tostring, package.loaded.evaluate = real, real_tostring, loaded -- luacheck: ignore
    eq(reply, '{"values":[0.5,-1.5000000000000001e+300,[2.25],{"1.5":3}],"output":["-0.5\\t2.0\\t1e+100\\tinf\\t0,5","0.5"]}',
      point)
  end
end)

test("the reply to code with an error has the error's line and the output before it", function()
  eq(evaluate("print(1)\nerror('no')"), '{"values":[],"output":["1"],"error":"script:2: no"}')
  local reply, problem = evaluate("return 1 +")
  eq(reply, nil)
  eq(problem:match("^script:1: ") ~= nil, true)
  eq(error_of("emu:reset()"), "script:1: emu:reset is not available here; use the MCP tool control, or POST /v1/reset")
end)

test("code that does not end is stopped, and the size of its values and output is limited", function()
  for _, code in ipairs { "while true do end", "while true do pcall(function() while true do end end) end",
    "coroutine.wrap(function() while true do end end)()" } do
    eq(error_of(code), "the code was stopped after 5000000 instructions; do less in one request", code)
  end
  eq(debug.gethook(), nil)
  eq(error_of("local t = {} t.t = t return t"), "the values have tables that are nested deeper than 8; return fewer levels")
  local long = "local t = {} for i = 1, 10001 do t[i] = i end return t"
  eq(error_of(long), "the values have more than 10000 entries; return fewer")
  eq(error_of("return {['1'] = 1, [1] = 2}"),
    'the values have a table with two keys that are \\"1\\" as text; use different keys')
  eq(evaluate("return {[1] = 1, [3] = 3}"), '{"values":[{"1":1,"3":3}],"output":[]}')
  eq(error_of("return ('x'):rep(300000)"), "the values have more than 262144 bytes; return less")
  eq(error_of("return {[('x'):rep(300000)] = 1}"), "the values have more than 262144 bytes; return less")
  eq(error_of("error('x' .. ('\u{e4}'):rep(3000), 0)"), "x" .. ("\u{e4}"):rep(2047))
  eq(evaluate("for i = 1, 1001 do print(i) end"):match('"cut":true') ~= nil, true)
end)

test("message handlers of `xpcall` are limited", function()
  local stopped = "the code was stopped after 5000000 instructions; do less in one request"
  local handler = "function() while true do end end"
  eq(error_of(("xpcall(function() while true do end end, %s)"):format(handler)), stopped)
  eq(error_of(("xpcall(error, %s)"):format(handler)), stopped)
  eq(error_of(("coroutine.wrap(function() xpcall(error, %s) end)()"):format(handler)), stopped)
  eq(debug.gethook(), nil)
  eq(evaluate("return xpcall(function(...) return ... end, print, 1, nil), xpcall(error, function(e) return e .. 2 end, 1)"),
    '{"values":[true,false,"12"],"output":[]}')
  eq(evaluate("return select('#', xpcall(function(...) return ... end, print, 1, nil))"), '{"values":[3],"output":[]}')
  eq(error_of("xpcall(error)"):match("bad argument #2 to 'xpcall'") ~= nil, true)
end)

test("many short coroutines are counted together", function()
  for _, code in ipairs { "coroutine.wrap(function() for j = 1, 200 do end end)()", "coroutine.create(print)" } do
    eq(error_of("made = 0 while true do " .. code .. " made = made + 1 end"),
      "the code was stopped after 5000000 instructions; do less in one request", code)
    eq(evaluate("return made <= 20000"), '{"values":[true],"output":[]}', code) -- each counts as 250 instructions
  end
  eq(evaluate("local sum = 0 for i = 1, 1000 do sum = sum + coroutine.wrap(function() return i end)() end return sum"),
    '{"values":[500500],"output":[]}')
end)

test("callbacks that the code adds have no limit, even if they use coroutines", function()
  evaluate("_G.later = function() for _ = 1, 30000 do coroutine.wrap(function() end)() end end")
  _G.later() -- luacheck: ignore
  eq(debug.gethook(), nil)
  _G.later = nil -- luacheck: ignore
end)

test("conversions to text that the code defines are limited, and may fail", function()
  local stopped = "the code was stopped after 5000000 instructions; do less in one request"
  local object = "setmetatable({}, {__tostring = function() %s end})"
  for body, problem in pairs {
    ["while true do end"] = stopped, ["error('no', 0)"] = "no",
    ["error({})"] = "the code raised an error that cannot be converted to text",
  } do
    eq(error_of("error(" .. object:format(body) .. ")"), problem, body)
    eq(error_of("return {[" .. object:format(body) .. "] = 1}"), problem, body)
  end
  eq(debug.gethook(), nil)
end)

test("the operation `script` is refused unless a setting allows it", function()
  emu = fake.emu()
  local script = operations.by_name.script
  eq(harness.refusal(script.run, "return 1").text:match("allow_script = true") ~= nil, true)
  operations.scripts.allowed = true
  eq(script.run("return 1"), '{"values":[1],"output":[]}')
  eq(harness.refusal(script.run, "=").text:match("^the code is not Lua: script:1: ") ~= nil, true)
  operations.scripts.allowed = false
end)
