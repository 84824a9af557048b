local fake = require "fake"
local harness = require "harness"
local messages = require "messages"
local test, eq = harness.test, harness.eq

local SUCCESS, ERROR = "<|SUCCESS|>", "<|ERROR|>"

-- Returns the reply to a message, the calls of mGBA's functions (one per line), and the lines on the console.
local function ask(message, values)
  emu, console = fake.emu(values), fake.console()
  local reply = messages.answer(message)
  return reply, table.concat(emu.calls, "\n"), table.concat(console.lines, "\n")
end

-- Defines a test: the message succeeds, and the script calls the functions `wanted` of mGBA, which return `values`.
local function calls(message, wanted, values)
  test(message .. " calls the right functions of mGBA", function()
    local reply, found = ask(message, values)
    eq(found, wanted, "the calls of mGBA")
    eq(reply ~= ERROR, true, "success")
  end)
end

-- Defines a test: the reply to the message is an error, and the console shows why.
local function refused(message, why)
  test(message .. " is refused", function()
    local reply, found, line = ask(message)
    eq(reply, ERROR)
    -- Only a call shows that there is no register `rx`. The other messages are refused without a call.
    eq(found:gsub("^readRegister rx$", ""), "", "the calls of mGBA")
    eq(line:find(why, 1, true) ~= nil, true, "the reason in " .. line)
  end)
end

test("a flag for colour at the end of a title is removed", function()
  for _, flag in ipairs { "\x80", "\xc0" } do
    eq(ask("core.getGameTitle", { getGameTitle = "PRICK OCH SOMMA" .. flag }), "PRICK OCH SOMMA")
  end
  eq(ask("core.getGameTitle", { getGameTitle = "SIXTEEN LETTERS!" }), "SIXTEEN LETTERS!")
end)

for _, row in ipairs(harness.vectors "marker.tsv") do
  local name, literals, message = table.unpack(row)
  test("marker.tsv: " .. message, function()
    local operations = require "operations"
    local op = operations.by_name[name]
    local real, got = op.run, nil
    op.run = function(...)
      got = table.pack(...)
      return op.result ~= "none" and 0 or nil
    end
    emu = fake.emu()
    pcall(messages.answer, message)
    op.run = real
    local wanted = harness.literals(literals)
    for index = 1, math.max(op.count, wanted.n) do
      local value = wanted[index]
      eq(got[index], type(value) == "boolean" and (value and 1 or 0) or value, "argument " .. index)
    end
  end)
end

calls("core.read8,0x02000000", "read8 33554432", { read8 = 1 })
calls("core.write32,33554432,4294967295", "write32 33554432 4294967295")
calls("core.addKey,9", "addKeys 512")
calls("core.setKeys,1", "getKeys\nsetKeys 1", { getKeys = 3 })
calls("core.clearKeys,0x3ff", "getKeys\nclearKeys 1023", { getKeys = 0 })
calls("mgba-http.button.addMany,A;Start", "addKeys 9")
calls("mgba-http.button.get,L", "getKey 9", { getKey = 1 })
calls("core.saveStateBuffer", "saveStateBuffer 31", { saveStateBuffer = "" })
calls("core.saveStateBuffer,", "saveStateBuffer 31", { saveStateBuffer = "" })
calls("core.loadStateSlot,3", "loadStateSlot 3 29")
calls("core.loadStateSlot,3,5", "loadStateSlot 3 5")
calls("core.saveStateFile,/a,b.ss,31", "saveStateFile /a,b.ss 31", { saveStateFile = true })
calls("core.saveStateFile,/a,b.ss", "saveStateFile /a,b.ss 31", { saveStateFile = true })
calls("core.loadStateFile,/a b+c.ss,", "loadStateFile /a b+c.ss 29")
calls("core.loadSaveFile,/a,b.sav,True", "loadSaveFile /a,b.sav true")
calls("core.loadSaveFile,[x].sav,false", "loadSaveFile [x].sav false")
calls("memoryDomain.read16,wram,0x100", "platform\nwram read16 256", { platform = 0, read16 = 1 })
calls("memoryDomain.write8,wram,1,255,", "platform\nwram write8 1 255")
calls("core.writeRegister,r0,-5", "readRegister r0\nplatform\nwriteRegister r0 -5", { readRegister = 0, platform = 0 })

refused("core.write8,0x02000000,300", "`value` must be from 0 to 255, not 300")
refused("core.write8,0x02000000", "`value` is missing")
refused("core.write8,,1", "`address` is missing")
refused("core.read8,abc", "`address` must be a whole number from 0 to 4294967295, not \"abc\"")
refused("core.read8,1,2", "more arguments")
refused("core.readRange,0,-1", "`length` must be from 0 to 16777216")
refused("core.readRange,0,99999999", "`length` must be from 0 to 16777216")
refused("core.saveStateFile,/a.ss,300", "`flags` must be from 0 to 31")
refused("core.saveStateFile,", "`path` is missing")
refused("core.loadSaveFile,/a.sav,maybe", "`temporary` must be the last argument")
refused("core.loadStateBuffer,[zz],29", "`data` must be pairs")
refused("core.loadStateBuffer,d3,00", "`data` must be pairs")
refused("core.addKey,10", "`key` must be a whole number from 0 to 9")
refused("core.setKeys,1024", "`keys` must be from 0 to 1023")
refused("core.readRegister,rx", "unknown register \"rx\"")
refused("memoryDomain.size,rom", "this console has vram, wram")
refused("mgba-http.button.tap,a", "unknown button \"a\"")
refused("mgba-http.button.holdMany,,30", "`buttons` is missing")
refused("mgba-http.button.hold,A", "`duration` is missing")
refused("framewire.nothing", "unknown message")

test("a picture that mGBA did not write is an error", function()
  local path = os.tmpname()
  local reply, found = ask("core.screenshot," .. path)
  os.remove(path)
  eq(reply, ERROR)
  eq(found, "screenshot " .. path, "the calls of mGBA")
end)

test("if mGBA cannot write a state to a file, the script does", function()
  local path = os.tmpname()
  local reply, found = ask("core.saveStateFile," .. path .. ",0", { saveStateFile = false, saveStateBuffer = "state" })
  local file = assert(io.open(path, "rb"))
  local written = file:read("a")
  file:close()
  os.remove(path)
  eq(reply, "true")
  eq(found, "saveStateFile " .. path .. " 0\nsaveStateBuffer 0", "the calls of mGBA")
  eq(written, "state")
end)

test("replies are written as mGBA-http writes them", function()
  eq(ask("core.step", { platform = 0 }), SUCCESS)
  eq(ask("core.read32,0", { read32 = 0xFFFFFFFF }), "4294967295")
  eq(ask("core.readRange,0,3", { readRange = "\xd3\0\xea" }), "d3,00,ea")
  eq(ask("core.readRegister,r0", { readRegister = -1, platform = 0 }), "-1")
  eq(ask("core.readRegister,a", { readRegister = 0x5601, platform = 1 }), "1", "a register of the Game Boy")
  eq(ask("core.readRegister,pc", { readRegister = 0x7FFF0150, platform = 1 }), "336")
  eq(ask("core.checksum", { checksum = "\x10\xe8\x2e\x15" }), "283651605")
  eq(ask("core.autoloadSave", { autoloadSave = true }), "true")
  eq(ask("core.autoloadSave", { autoloadSave = 0 }), "false")
  eq(ask("mgba-http.button.getAll", { getKeys = 0x209 }), "A,Start,L")
  eq(ask("mgba-http.button.getAll", { getKeys = 0 }), "")
  eq(ask "framewire.version", "framewire " .. require "version".script)
end)

test("echo returns every byte", function()
  for _, text in ipairs { "", "a,b,, c ", "[1,2", "\xff\0\r\n", " <|END| >" } do
    eq(ask("framewire.echo," .. text), text)
  end
end)

test("a line for the console may contain any text", function()
  local _, _, line = ask "console.warn,hello, world, 100%s"
  eq(line, "hello, world, 100%s")
end)

test("without a game, the reply is an error", function()
  emu, console = nil, fake.console()
  eq(messages.answer "core.getGameTitle", ERROR)
  eq(messages.answer "framewire.echo,still here", "still here")
end)

test("a function of mGBA that fails is an error", function()
  emu, console = fake.emu(), fake.console()
  rawset(emu, "step", function() error("Error calling function\nstack traceback") end)
  eq(messages.answer "core.step", ERROR)
  eq(messages.answer "core.getGameTitle", ERROR, "no title at all")
end)

test("no message raises an error, whatever bytes it has", function()
  emu, console = fake.emu { read8 = 1 }, fake.console()
  math.randomseed(1)
  local seeds = { "core.read8,0x02000000", "core.loadStateBuffer,[d3,00],29", "mgba-http.button.holdMany,A;B,5" }
  for _ = 1, 20000 do
    local message = seeds[math.random(#seeds)]
    local at = math.random(#message)
    local noise = math.random(3) == 1 and "" or string.char(math.random(0, 255))
    eq(type(messages.answer(message:sub(1, at - 1) .. noise .. message:sub(at + math.random(0, 3)))), "string")
  end
end)
