--- Tests of framewire.emulator, with `framewire serve --channel`, and of the bot that plays the demo game.

local bit = require "bit"
local ffi = require "ffi"
local balls = require "bot.ball"
local check = require "tests.support.check"
local codec = require "framewire.emulator.codec"
local emulator = require "framewire.emulator"
local framewire = require "tests.support.framewire"
local layout = require "framewire.channel.layout"
local player = require "bot.player"
local process = require "tests.support.process"
local time = require "framewire.time"
local worker = require "framewire.worker"

local name = "emulator-test-" .. ffi.C.getpid()

-- Registers a test that runs while `framewire serve` runs. The other arguments are those of the program.
local function test(what, body, ...)
  local arguments = { ... }
  check.test(what, function() framewire.run_with(name, body, unpack(arguments)) end)
end

local function connect()
  return assert(emulator.connect(name, { wait = 10 }))
end

-- Calls `check_row` for each row of a file of test vectors. The tests of the Rust code use the same files.
local function vectors(file, check_row)
  local count = 0
  for line in io.lines(check.root .. "/../crates/protocol/vectors/" .. file) do
    if line:sub(1, 1) ~= "#" then
      local first, second, hex = line:match("^([^\t]*)\t([^\t]*)\t([^\t]*)$")
      local bytes = hex:gsub(" ", ""):gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end)
      check_row(first, second, bytes)
      count = count + 1
    end
  end
  assert(count > 5, "vectors in " .. file)
end

check.test("operations are encoded as in the test vectors", function()
  vectors("ops.tsv", function(operation, arguments, bytes)
    -- Spaces separate the arguments, except inside quotation marks.
    local list, quoted = {}, {}
    arguments = arguments:gsub('"[^"]*"', function(text)
      quoted[#quoted + 1] = text
      return "q" .. #quoted
    end)
    for word in arguments:gmatch("%S+") do
      local text = quoted[tonumber(word:match("^q(%d+)$"))] or word
      list[#list + 1] = assert(loadstring("return " .. text))()
    end
    check.equal(assert(codec.operation { operation, unpack(list) }), bytes, operation)
  end)
end)

check.test("values are decoded as in the test vectors", function()
  vectors("values.tsv", function(kind, literal, bytes)
    local wanted, got = assert(loadstring("return " .. literal))(), codec.value(bytes)
    if type(wanted) == "table" then wanted, got = table.concat(wanted, "|"), table.concat(got, "|") end
    check.equal(got, wanted, kind)
  end)
end)

check.test("arguments that do not fit are refused before they are sent", function()
  for message, call in pairs {
    ["no operation 'fly'"] = { "fly" },
    ["argument 2 must be a whole number from 0 to 255, not 256"] = { "write8", 0, 256 },
    ["argument 1 must be a string, not 7"] = { "console_log", 7 },
    ["argument 2 must be true or false, not nil"] = { "load_save_file", "a" },
  } do
    check.contains(select(2, codec.operation(call)), message)
  end
end)

check.test("a reply that ends early is an error", function()
  local bytes = "\2\1\0\0\0\7\0\0\0\1\0\0\5\255\0\0\0x"
  for length = 1, #bytes do
    local outcome, message = codec.reply(ffi.cast("const uint8_t *", bytes), length)
    check.equal(outcome, nil)
    check.contains(message, "ends early")
  end
end)

test("a client steps the core and reads its memory and its picture", function()
  local game = connect()
  check.equal(game:call("game_title"), "FRAMEWIRE")
  local frame = assert(game:step(0, 0))
  time.sleep(0.05)
  check.equal(game:call("current_frame"), frame, "the game is paused")
  assert(game:step(0, 120))
  check.equal(game:call("current_frame"), frame + 120)

  local memory = ffi.cast("const struct fw_demo_game *", assert(game:watch(player.ADDRESS, player.SIZE)))
  local unaligned = assert(game:watch(0x02000009, 3))
  local before = memory.frame
  assert(game:step(emulator.keys.A + emulator.keys.L))
  check.equal(memory.frame, before + 1)
  check.equal(memory.held, emulator.keys.A + emulator.keys.L)
  check.equal(unaligned[0], bit.band(bit.rshift(memory.frame, 8), 255), "a range that begins between words")
  check.equal(memory.score, game:call("read32", 0x02000044))

  -- The lamps that the demo game draws for keys; see rom/memory-map.toml.
  check.equal(game:pixel(208, 136), 0xff4a52, "A is lit")
  check.equal(game:pixel(187, 145), 0x292931, "B is not lit")
  assert(game:step(emulator.keys.B))
  check.equal(game:pixel(208, 136), 0x292931, "A is not lit any more")
  check.equal(game:pixel(187, 145), 0xffce29, "B is lit")
  local _, width, height, stride = game:picture()
  check.equal(("%dx%d, %d"):format(width, height, stride), "240x160, 1024")
  game:close()
end)

test("a client that disconnects gives the clock back and releases its keys", function()
  local game = connect()
  assert(game:step(emulator.keys.A))
  game:close()
  game = connect()
  check.eventually(5, function() return game:call("get_keys") == 0 end, "the key is up")
  local frame = game:call("current_frame")
  check.eventually(5, function() return game:call("current_frame") > frame + 3 end, "the game runs")
  game:close()
end)

test("after a look at a running game, picture and memory are of the same frame", function()
  local game = connect()
  local memory = ffi.cast("const struct fw_demo_game *", assert(game:watch(player.ADDRESS, player.SIZE)))
  -- Wait until the title has been drawn. Afterwards, the lamps in the picture must match the keys in memory, because
  -- both belong to the same frame.
  check.eventually(5, function() return game:look() and memory.frame > 5 end, "the game has begun")
  for number = 1, 300 do
    assert(game:call("set_keys", number % 2 == 0 and 1 or 0))
    assert(game:look())
    local lit = bit.band(memory.held, 1) == 1
    check.equal(game:pixel(208, 136), lit and 0xff4a52 or 0x292931, "lamp in look " .. number)
    local frame, pixel = memory.frame, game:pixel(208, 136)
    time.sleep(1e-3)
    check.equal(memory.frame, frame, "memory does not change until the next look")
    check.equal(game:pixel(208, 136), pixel, "nor does the picture")
  end
  game:close()
end, "--speed", "unlimited")

test("refused requests get a reason, and later requests work", function()
  local game = connect()
  assert(game:step(0, 60))
  check.contains(select(2, game:step(0x8000)), "a mask of 0 to 1023")
  check.contains(select(2, game:call("read_register", "r99")), "no register")
  check.contains(select(2, game:watch("score", 4)), "as whole numbers from 0 to 4294967295, not score and 4")
  check.contains(select(2, game:step("A")), "emulator.keys has its bits")
  check.contains(select(2, game:call("read_range", 0x02000000, 2 * 1048576)), "request less")
  check.equal(#game:call("read_range", 0x02000000, 262144), 262144)
  check.contains(select(2, game:watch(0x02000000, 65537)), "at most")
  local all = assert(game:watch(0x02000000, 65536))
  check.equal(ffi.string(all, 8), "FWDEMO01")
  check.contains(select(2, game:watch(0x02000000, 1)), "at most")
  local values = assert(game:batch { { "write32", 0x02000100, 0xfedcba98 }, { "read32", 0x02000100 } })
  check.equal(values[2], 0xfedcba98)
  check.contains(select(2, emulator.connect(name)), "has a client already")
  -- A malformed message ends the channel with a reason, and the next client is served.
  assert(game.endpoint:send("\200 what?"))
  check.contains(select(2, game:call("game_title")), "malformed message")
  game:close()
  local again = connect()
  check.equal(again:call("game_title"), "FRAMEWIRE")
  again:close()
end)

test("steps and batches that the protocol cannot express are refused before they are sent", function()
  local game = connect()
  local frame = assert(game:step(0, 1))
  for _, wrong in ipairs { { 0, -1 }, { -1, 1 }, { 70000, 1 }, { 65535, 1 }, { 0, 2.7 }, { 0.5, 1 }, { 0, 2 ^ 32 } } do
    local what = ("step(%s, %s)"):format(wrong[1], wrong[2])
    check.contains(select(2, game:step(wrong[1], wrong[2])), "a whole number of frames", what)
  end
  local calls = {}
  for index = 1, 4096 do calls[index] = { "read8", 0x02000000 } end
  check.equal(#assert(game:batch(calls)), 4096)
  calls[4097] = calls[1]
  check.contains(select(2, game:batch(calls)), "up to 4,096 operations, not 4097")
  check.equal(game:step(0, 1), frame + 1, "the connection still works")
  game:close()
end)

-- LuaJIT never frees a C type, and has room for 65,536.
test("watching declares no new C types", function()
  local game = connect()
  local function new_type() return tonumber(ffi.typeof "struct { int number; }") end
  local function watch_and_unwatch()
    assert(game:watch(0x02000000, 4))
    assert(game:unwatch())
  end
  watch_and_unwatch() -- the first calls may declare types
  ffi.typeof "const volatile uint64_t *" -- declared when a call first checks the block for damage
  local first, second = new_type(), new_type()
  for _ = 1, 10 do watch_and_unwatch() end
  check.equal(new_type() - second, second - first)
  game:close()
end)

test("unwatch makes room for other watches", function()
  local game = connect()
  assert(game:step(0, 60))
  assert(game:watch(0x02000000, 65536))
  check.contains(select(2, game:watch(player.ADDRESS, player.SIZE)), "at most")
  assert(game:unwatch())
  check.equal(game.screen.watched, 0)
  local memory = ffi.cast("const struct fw_demo_game *", assert(game:watch(player.ADDRESS, player.SIZE)))
  local before = memory.frame
  assert(game:step(0, 1))
  check.equal(memory.frame, before + 1)
  game:close()
  check.contains(select(2, game:unwatch()), "the emulator is closed")
end)

test("a reply that comes after a time-out is not taken for the reply to the next request", function()
  local game = connect()
  assert(game:step(0, 0))
  for what, ask in pairs {
    step = function() return game:step(0, 600) end,
    batch = function() return game:call("advance", 600) end,
  } do
    local patience = game.patience
    game.patience = 1e-3
    -- On a busy machine, the reply can be there before this process waits for it.
    check.eventually(30, function() return select(2, ask()) == "timeout" end, "a " .. what .. " timed out")
    game.patience = patience
    local frame = assert(game:step(0, 1), what)
    check.equal(game:call("current_frame"), frame, what)
    check.equal(game:step(0, 1), frame + 1, what)
  end
  game:close()
end)

test("a state is saved, and the same steps give the same game", function()
  local game = connect()
  assert(game:step(0, 60))
  local state = assert(game:call("save_state", 0))
  local function play()
    for number = 1, 100 do assert(game:step(number % 16 < 8 and emulator.keys.Left or emulator.keys.A)) end
    return game:call("read_range", 0x02000000, 0x2000)
  end
  local first = play()
  assert(game:call("load_state", state, 0))
  check.equal(play() == first, true, "the same memory")
  game:close()
end)

-- Plays until the process is killed.
local function play_forever()
  local game = connect()
  local bot = player.new(assert(game:watch(player.ADDRESS, player.SIZE)))
  while true do assert(game:step(bot:decide())) end
end

test("clients are killed at random moments, and the next one is served", function()
  for round = 1, tonumber(os.getenv("FRAMEWIRE_KILLS") or 20) do
    -- A busy machine can delay some clients.
    check.eventually(10, function()
      local client = assert(worker.start(play_forever))
      time.sleep(math.random() * 0.03)
      client:signal("KILL")
      client:wait()
      local seconds = process.timed(function()
        local game = connect()
        check.equal(game:call("game_title"), "FRAMEWIRE")
        game:close()
      end)
      return seconds < 1
    end, ("the next client was served in time in round %d"):format(round))
  end
end)

-- Kills an emulator at a random moment. Returns the seconds until the client notices it.
local function time_until_noticed()
  local server = assert(worker.start(function() framewire.serve(name) end))
  local game = connect()
  local deadline = time.monotonic() + math.random() * 0.03
  local killed, problem
  repeat
    local frame
    frame, problem = game:step(0)
    if not killed and time.monotonic() >= deadline then
      server:signal("KILL")
      killed = time.monotonic()
    end
  until not frame
  check.equal(problem, "the other side has ended without closing")
  local seconds = time.monotonic() - killed
  game:close()
  server:wait()
  return seconds
end

check.test("a killed emulator is noticed, and its successor is found", function()
  for _ = 1, tonumber(os.getenv("FRAMEWIRE_KILLS") or 5) do
    -- A busy machine can delay the end of the emulator.
    check.eventually(30, function() return time_until_noticed() < 0.3 end, "a killed emulator was noticed in time")
  end
end)

-- Changes the channel's file with a shell command while a client is idle. Returns the seconds until the client notices.
local function change(game, command)
  local path = "/dev/shm/framewire." .. name
  assert(os.execute(command:gsub("FILE", path)) == 0)
  return process.timed(function()
    local ok, problem = game.endpoint:receive(5)
    check.equal(ok, nil, command)
    assert(problem:find("damaged") or problem == "closed" or problem:find("ended"), problem)
  end)
end

test("a client whose channel is changed by others gets an error, and the next one is served", function()
  for _, command in ipairs {
    "truncate --size +4096 FILE",
    "printf 0123456789abcdef | dd of=FILE conv=notrunc status=none",
    -- The stamps in the two halves of the channel's mailbox; docs/channel.md explains them.
    "printf 01234567 | dd of=FILE bs=1 seek=128 conv=notrunc status=none",
    "printf 01234567 | dd of=FILE bs=1 seek=160 conv=notrunc status=none",
    "dd if=/dev/urandom of=FILE bs=128 seek=1 count=1 conv=notrunc status=none",
  } do
    -- On a busy machine, the client can notice it later.
    check.eventually(5, function()
      local game = connect()
      assert(game:step(1))
      local seconds = change(game, command)
      game:close()
      return seconds < 1
    end, "this was noticed in time: " .. command)
  end
  local game = connect()
  check.equal(game:call("game_title"), "FRAMEWIRE")
  check.equal(game:call("get_keys"), 0)
  game:close()
end)

-- The id of the process on the client's side of the channel.
local function attached_process()
  local file = io.open("/dev/shm/framewire." .. name, "rb")
  if not file then return nil end
  file:seek("set", layout.AT_ATTACHED)
  local bytes = file:read(4)
  file:close()
  return bytes and #bytes == 4 and ffi.cast("const int32_t *", bytes)[0]
end

test("after a truncation while a client plays, the emulator serves the next client", function()
  for round = 1, tonumber(os.getenv("FRAMEWIRE_KILLS") or 10) do
    local client = assert(worker.start(function()
      local game = connect()
      local bot = player.new(assert(game:watch(player.ADDRESS, player.SIZE)))
      while game:step(bot:decide()) do end
      game:close()
    end))
    check.eventually(5, function() return attached_process() == client.pid end, "the client is attached")
    time.sleep(math.random() * 0.03)
    assert(os.execute(("truncate --size %d /dev/shm/framewire.%s"):format(math.random(0, 4000000), name)) == 0)
    -- The client ends with an error, or is killed when it accesses memory that no longer exists.
    local code, reason = client:wait(5)
    assert(code == 0 or reason ~= "timeout", ("round %d: %s"):format(round, tostring(reason)))
    local game = connect()
    check.equal(game:call("game_title"), "FRAMEWIRE")
    game:close()
  end
end)

test("a picture outside of the channel's memory is an error and is not read", function()
  local game = connect()
  assert(game:step(0, 60))
  for _, place in ipairs { { -1, -1 }, { 240, 0 }, { 0, 160 }, { 1e5, 1e5 }, { 0.5, 0 }, { 0 / 0, 0 } } do
    check.contains(select(2, pcall(game.pixel, game, place[1], place[2])), "the picture has 240 x 160")
  end
  local screen = game.screen
  screen.picture = 0xfffffff0
  check.contains(select(2, pcall(game.pixel, game, 0, 0)), "lies outside")
  check.contains(select(2, pcall(game.picture, game)), "lies outside")
  screen.watch = 0xfffffff0
  check.contains(select(2, game:watch(0x02000000, 4)), "lies outside")
  game:close()
end)

test("the bot predicts the path of the ball", function()
  local game = connect()
  assert(game:call("reset"))
  assert(game:step(0, 0))
  local bot = player.new(assert(game:watch(player.ADDRESS, player.SIZE)))
  local ball, predicted = balls.new(), 0
  for frame = 1, 3000 do
    -- `now` points to memory that each step updates, so after the step, it has the values of the next frame.
    local now = bot.game
    local flies = now.state == 1 and now.ball_dy ~= 0
    if flies then
      ball.x, ball.y, ball.dx, ball.dy = now.ball_x, now.ball_y, now.ball_dx, now.ball_dy
      ball.left = now.bricks_left
      ffi.copy(ball.bricks, now.bricks, 70)
      balls.move(ball)
    end
    local rally = now.rally
    assert(game:step(bot:decide()))
    if flies and now.state == 1 and now.rally == rally then
      predicted = predicted + 1
      local form = "%d %d %d %d, %d left"
      local got = form:format(now.ball_x, now.ball_y, now.ball_dx, now.ball_dy, now.bricks_left)
      check.equal(got, form:format(ball.x, ball.y, ball.dx, ball.dy, ball.left), "frame " .. frame)
    end
  end
  assert(predicted > 1000, "too few frames were predicted: " .. predicted)
  game:close()
end)

check.test("bot.lua gets at least ten times as many points as an idle player", function()
  local folder = process.folder()
  -- Starts the emulator, and stores on which processor cores it may run.
  local started = "#!/bin/sh\ngrep Cpus_allowed_list /proc/self/status >'%s/cores'\n%sexec '%s' \"$@\"\n"
  process.write(folder .. "/start", started:format(folder, framewire.with_data, framewire.program()))
  os.execute(("chmod +x '%s/start'"):format(folder))
  local command = ('luajit "%s/bot.lua" --start --program "%s/start" --channel %s --frames 6000 --core 0')
  local code, output = process.start(command:format(check.root, folder, name)).finish()
  local cores = process.output(("cat '%s/cores'"):format(folder))
  process.remove_folder(folder)
  check.equal(code, 0, output)
  check.equal(cores, process.output("grep Cpus_allowed_list /proc/self/status"), "cores of the emulator")
  local idle, best = output:match("doing nothing: (%d+) points.-the bot: +(%d+) points")
  assert(tonumber(best) >= 10 * tonumber(idle), "the bot plays badly: " .. output)
  check.contains(output, "decisions/s")
end)

check.test("bot.lua does not wait for an emulator that could not be started", function()
  local seconds = process.timed(function()
    local command = 'luajit "%s/bot.lua" --start --program /nonexistent --channel %s'
    local code, said = process.start(command:format(check.root, name)).finish()
    check.equal(code, 1)
    check.contains(said, "Does the program /nonexistent exist?")
  end)
  assert(seconds < 5, "it waited for " .. seconds .. " s")
end)

check.test("bot.lua says how to start an emulator", function()
  local wrong, said = process.start(('luajit "%s/bot.lua" --core 5000'):format(check.root)).finish()
  check.equal(wrong, 1)
  check.contains(said, "--core 5000 cannot be used")
  assert(not said:find("traceback", 1, true), said)
  local code, output = process.start(('luajit "%s/bot.lua" --channel nobody'):format(check.root)).finish()
  check.equal(code, 1)
  check.contains(output, "framewire serve --channel nobody")
end)
