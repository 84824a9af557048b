--- Tests of channels: messages between processes through shared memory.

local bit = require "bit"
local ffi = require "ffi"
local channel = require "framewire.channel"
local check = require "tests.support.check"
local layout = require "framewire.channel.layout"
local process = require "tests.support.process"
local shm = require "framewire.shm"
local time = require "framewire.time"
local worker = require "framewire.worker"

local name = "test-" .. ffi.C.getpid()

-- Creates a message. Its bytes depend on its number and length, so that damaged or misplaced messages are recognised.
local function message(number, length)
  return (string.char(number % 251, length % 256, number % 7):rep(math.ceil(length / 3))):sub(1, length)
end

-- The length of a message by its number: mostly short, sometimes long, rarely very long.
local function length_of(number)
  local kind = number % 50
  if kind == 49 then return 1 + number * 7919 % 300000 end
  if kind > 40 then return 1 + number * 31 % 5000 end
  return 1 + number * 13 % 130
end

local function pair(options)
  local here = assert(channel.create(name, options))
  return here, assert(channel.connect(name, 1, options))
end

-- Registers a test whose body gets both sides of a channel with these options.
local function test_pair(what, body, options)
  check.test(what, function()
    local here, there = pair(options)
    body(here, there)
    there:close()
    here:close()
  end)
end

test_pair("messages of every size arrive complete, in both directions", function(here, there)
  for _, length in ipairs { 1, 2, 19, 20, 111, 112, 113, 4096, 1048575, 1048576 } do
    assert(here:send(message(length, length)))
    check.equal(there:receive(1), message(length, length), "down")
    assert(there:send(message(length + 1, length)))
    check.equal(here:receive(1), message(length + 1, length), "up")
  end
  for _, length in ipairs { 0, 1048577 } do
    local ok, problem = here:send(("x"):rep(length))
    check.equal(ok, nil)
    check.contains(problem, "1 to 1048576 bytes")
  end
end)

test_pair("messages arrive in order, and a sender waits while the channel is full", function(here, there)
  local sent = 0
  while here:send(message(sent, length_of(sent)), 0) do sent = sent + 1 end
  check.equal(sent, 16)
  for number = 0, 3 do check.equal(there:receive(0), message(number, length_of(number))) end
  -- The receiver has reported that it has read four messages, so there is room for four more.
  for number = sent, sent + 3 do assert(here:send(message(number, length_of(number)), 0)) end
  check.equal(select(2, here:send("x", 0.01)), "timeout")
  for number = 4, sent + 3 do check.equal(there:receive(0), message(number, length_of(number))) end
  check.equal(select(2, there:receive(0.01)), "timeout")
end, { slots = 16 })

check.test("sizes that a channel cannot have are refused", function()
  for option, values in pairs {
    slots = { 4, 5, 100, 131072, 8.5, "8" }, bulk = { 0, 4096, 2 ^ 21 + 1, 2 ^ 31 }, extra = { -4096, 1, 2 ^ 31 },
  } do
    for _, value in ipairs(values) do
      local ok, problem = channel.create(name, { [option] = value })
      check.equal(ok, nil, option .. " " .. value)
      check.contains(problem, option .. ": a ")
    end
  end
end)

test_pair("lengths that are not whole numbers are refused", function(here, there)
  assert(here:send("unread"))
  for _, length in ipairs { 0.5, 5.5, 112.5, 200.5, 1048576.5, 0 / 0 } do
    local place, problem = here.sender:reserve(length, 0.1)
    check.equal(place, nil, length)
    check.contains(problem, "a message has 1 to 1048576 bytes, not ")
  end
  assert(here:send(message(1, 1000)))
  check.equal(there:receive(1), "unread")
  check.equal(there:receive(1), message(1, 1000))
end)

check.test("times that are not numbers of at least 0 are refused", function()
  local ok, problem = pcall(channel.connect, name, 0 / 0)
  check.equal(ok, false)
  check.contains(problem, "a time-out is a number of seconds")
  for _, spin in ipairs { 0 / 0, -1, "1" } do
    local options = { spin = spin }
    for _, result in ipairs { { channel.create(name, options) }, { channel.connect(name, 0, options) } } do
      check.equal(result[1], nil)
      check.contains(result[2], "spin is " .. tostring(spin) .. "; use a number of at least 0")
    end
  end
end)

check.test("a channel for which there is no memory is refused", function()
  local file = os.tmpname()
  process.write(file, ([[
    package.path = %q
    local here, message = require("framewire.channel").create("full")
    io.write(here and "created" or message)
  ]]):format(package.path))
  local small = "mount -t tmpfs -o size=64k tmpfs /dev/shm && echo mounted && luajit " .. file
  local output = process.output(("unshare --map-root-user --mount sh -c '%s' 2>&1"):format(small))
  os.remove(file)
  -- Some systems do not let a test mount a small /dev/shm.
  if output:find("^mounted") then check.contains(output, "cannot allocate 5246976 bytes for channel 'full'") end
end)

test_pair("a long message is freed even after 2^31 short messages", function(here, there)
  local function exchange(number)
    assert(here:send(message(number, 1000000), 1))
    check.equal(there:receive(1), message(number, 1000000))
  end
  exchange(1)
  -- Sets the counts to the values that they would have after 2^31 short messages.
  local sender, receiver, count = here.sender.state, there.receiver.state, 2 ^ 31
  sender.head, sender.stamp = bit.tobit(sender.head + count), sender.stamp + count
  receiver.next, receiver.stamp = bit.tobit(receiver.next + count), receiver.stamp + count
  receiver.published = receiver.next
  receiver.own[layout.HALF_CONSUMED / 4] = receiver.next
  for number = 2, 5 do exchange(number) end
end)

check.test("two processes exchange many messages of mixed sizes", function()
  local COUNT = 20000
  process.run_with(function()
    local there = assert(channel.connect(name, 5))
    for number = 0, COUNT - 1 do
      local text = assert(there:receive(5))
      if text ~= message(number, length_of(number)) then error("message " .. number .. " is torn") end
      if number % 3 == 0 then assert(there:send(text, 5)) end
    end
    assert(there:receive(5) == "end")
    there:close()
  end, function()
    local here = assert(channel.create(name))
    assert(here:accept(5))
    local back = 0
    for number = 0, COUNT - 1 do
      assert(here:send(message(number, length_of(number)), 5))
      while back <= number do
        local text = here:receive(0)
        if not text then break end
        check.equal(text, message(back, length_of(back)))
        back = back + 3
      end
    end
    while back < COUNT do
      check.equal(here:receive(5), message(back, length_of(back)))
      back = back + 3
    end
    assert(here:send("end"))
    check.equal(select(2, here:receive(5)), "closed")
    here:close()
  end, true) -- the other process ends by itself
end)

test_pair("messages can be written and read directly in shared memory", function(here, there)
  local place = assert(here.sender:reserve(4))
  ffi.cast("uint32_t *", place)[0] = 77
  check.equal(there.receiver:peek(), nil)
  here.sender:commit()
  local data, length = there.receiver:peek()
  check.equal(length, 4)
  check.equal(ffi.cast("uint32_t *", data)[0], 77)
  there.receiver:release()
  check.equal(there.receiver:peek(), nil)
  check.equal(pcall(here.sender.commit, here.sender), false)
end)

test_pair("a release without a message loses no message", function(here, there)
  check.equal(pcall(there.receiver.release, there.receiver), false)
  here:send("first")
  check.equal(there:receive(5), "first")
  check.equal(pcall(there.receiver.release, there.receiver), false)
  here:send("second")
  check.equal(there:receive(5), "second")
end)

check.test("messages that were sent before a close arrive before it", function()
  local here, there = pair()
  there:send("last words")
  there:close()
  check.equal(here:receive(1), "last words")
  check.equal(select(2, here:receive(1)), "closed")
  here:close()
end)

-- Waits for five messages, which come after pauses. Returns the processor time that this takes.
local function cpu_of_waits()
  local used
  process.run_with(function()
    local there = assert(channel.connect(name, 5))
    for _ = 1, 5 do
      time.sleep(0.12)
      assert(there:send("wake up"))
    end
    assert(there:receive(5) == "bye")
  end, function()
    local here = assert(channel.create(name))
    assert(here:accept(5))
    local cpu = time.cpu()
    for _ = 1, 5 do check.equal(here:receive(5), "wake up") end
    used = time.cpu() - cpu
    here:send("bye")
    here:close()
  end, true)
  return used
end

check.test("a sleeping side uses no processor time and is woken", function()
  -- Without sleep, the waits would always use 0.6 s of processor time. On a virtual machine, time in which other
  -- machines use the processor can count as used, too.
  check.eventually(10, function() return cpu_of_waits() < 0.06 end, "the waits used little processor time")
end)

-- Kills the other side at a random moment of a busy exchange.
local function kill_peer(creates)
  local peer = assert(worker.start(function()
    local mine = creates and assert(channel.create(name)) or assert(channel.connect(name, 5))
    if creates then mine:accept(5) end
    local number = 0
    while true do
      mine:send(message(number, length_of(number)))
      number = number + 1
    end
  end))
  local mine = creates and assert(channel.connect(name, 5)) or assert(channel.create(name))
  if not creates then assert(mine:accept(5)) end
  local number, killed = 0, false
  local deadline = time.monotonic() + math.random() * 0.01
  while true do
    local text, problem = mine:receive(10) -- a busy machine can delay the end of the peer
    if not text then
      check.equal(problem, "the other side has ended without closing")
      break
    end
    check.equal(text, message(number, length_of(number)), "message " .. number)
    number = number + 1
    if not killed and time.monotonic() >= deadline then
      peer:signal("KILL")
      killed = true
    end
  end
  mine:close()
  peer:wait()
end

check.test("a killed peer is noticed, its messages are complete, and the channel can be created again", function()
  local kills = tonumber(os.getenv("FRAMEWIRE_KILLS") or 40)
  for round = 1, kills do kill_peer(round % 2 == 0) end
end)

-- Kills the peer of an idle side. Returns the seconds until this side notices it.
local function time_until_noticed()
  local peer = assert(worker.start(function()
    assert(channel.connect(name, 5))
    time.sleep(60)
  end))
  local here = assert(channel.create(name))
  assert(here:accept(5))
  here:receive(0.07)
  peer:signal("KILL")
  local seconds = process.timed(function()
    check.equal(select(2, here:receive(5)), "the other side has ended without closing")
  end)
  here:close()
  peer:wait(1)
  return seconds
end

check.test("an idle side notices a killed peer within a tenth of a second", function()
  -- A busy machine can delay the end of the peer.
  check.eventually(10, function() return time_until_noticed() < 0.1 end, "a killed peer was noticed in time")
end)

check.test("a channel has one creator and one client", function()
  local here, there = pair()
  check.contains(select(2, channel.create(name)), "served already")
  check.contains(select(2, channel.connect(name)), "has a client already")
  there:close()
  check.contains(select(2, channel.connect(name)), "has a client already")
  here:close()
  check.contains(select(2, channel.connect(name)), "does not exist")
  check.contains(select(2, channel.create("a/b")), "letters")
end)

local path = "/dev/shm/framewire." .. name

check.test("a creator without a client notices that its name was removed", function()
  local here = assert(channel.create(name))
  assert(os.remove(path))
  check.contains(select(2, here:accept(5)), "removed its file")
  here:close()
end)

test_pair("a channel with a client works after its name was removed", function(here, there)
  assert(os.remove(path))
  for _, mine in ipairs { here, there } do check.equal(select(2, mine:receive(0.12)), "timeout") end
  assert(here:send("x"))
  check.equal(there:receive(1), "x")
end)

check.test("the end of a channel does not remove the name of a newer one", function()
  local older = assert(channel.create(name))
  assert(os.remove(path))
  local newer = assert(channel.create(name))
  older:close()
  local there = assert(channel.connect(name))
  there:close()
  newer:close()
end)

check.test("blocks that other users can open, and damaged blocks, are refused", function()
  os.remove(path)
  process.write(path, ("x"):rep(8192))
  assert(os.execute("chmod 666 " .. path) == 0)
  check.contains(select(2, channel.create(name)), "others may open it")
  check.contains(select(2, channel.connect(name)), "others may open it")
  assert(os.execute("chmod 600 " .. path) == 0)
  check.contains(select(2, channel.connect(name)), "leftover")
  local here = assert(channel.create(name))
  local header = ffi.cast("uint32_t *", here.block.data)
  header[layout.AT_BULK / 4], header[layout.AT_EXTRA / 4] = here.block.bulk - 1, 2
  check.contains(select(2, channel.connect(name)), "damaged", "sizes with the right sum that are not multiples of 4096")
  header[layout.AT_BULK / 4], header[layout.AT_EXTRA / 4] = here.block.bulk, 0
  header[layout.AT_SLOTS / 4] = 12
  check.contains(select(2, channel.connect(name)), "damaged")
  header[layout.AT_VERSION / 4] = 9
  check.contains(select(2, channel.connect(name)), "version 9")
  here:close()
  check.equal(shm.open("framewire." .. name), nil)
end)

check.test("a block with a wrong header is refused", function()
  for _, at in ipairs { 0, layout.AT_VERSION, layout.AT_SLOTS, layout.AT_BULK, layout.AT_EXTRA } do
    for _, value in ipairs { 0, 1, 7, 12, 4095, 4096, 2 ^ 31, 2 ^ 32 - 4096, 2 ^ 32 - 1 } do
      local here = assert(channel.create(name, { extra = 8192 }))
      local word = ffi.cast("uint32_t *", here.block.data + at)
      if word[0] ~= value then
        word[0] = value
        local there, problem = channel.connect(name, 0)
        check.equal(there, nil, value .. " at " .. at)
        check.contains(problem, at == 0 and "not ready" or at == layout.AT_VERSION and "version" or "damaged")
      end
      here:close()
    end
  end
end)

local function truncate(size)
  assert(os.execute(("truncate --size %d /dev/shm/framewire.%s"):format(size, name)) == 0)
end

check.test("sizes in a header that are outside of the limits are refused", function()
  for _, sizes in ipairs { { 2 ^ 17, layout.BULK }, { 4096, 0 }, { 4096, 4096 }, { 4096, 2 ^ 20 + 4096 } } do
    local here = assert(channel.create(name))
    local header = ffi.cast("uint32_t *", here.block.data)
    header[layout.AT_SLOTS / 4], header[layout.AT_BULK / 4] = sizes[1], sizes[2]
    -- The sizes add up to the size of the file.
    truncate(layout.HEADER + 2 * layout.SLOT * sizes[1] + 2 * sizes[2])
    check.contains(select(2, channel.connect(name)), "damaged", ("%d slots, %d bytes"):format(sizes[1], sizes[2]))
    here:close()
  end
end)

test_pair("the extra memory is shared", function(here, there)
  check.equal(there.extra_size, 4096)
  here.extra[4095] = 9
  check.equal(there.extra[4095], 9)
end, { extra = 4096 })

-- The offsets of the rings, and of the memory for long messages, with the default sizes.
local RINGS, BULK = layout.HEADER, layout.HEADER + 2 * layout.SLOTS * layout.SLOT

-- Writes bytes into the block, as another program would.
local function garble(at, bytes)
  local file = assert(io.open("/dev/shm/framewire." .. name, "r+b"))
  file:seek("set", at)
  file:write(bytes)
  file:close()
end

check.test("a channel that this user may not open belongs to another user", function()
  ffi.cdef "int seteuid(unsigned int);"
  os.execute("install -m 000 /dev/null " .. path)
  process.run_with(function()
    if ffi.C.geteuid() == 0 then assert(ffi.C.seteuid(65534) == 0) end -- root may open every file
    local seconds = process.timed(function()
      check.contains(select(2, channel.connect(name, 5)), "belongs to another user")
    end)
    assert(seconds < 1, "it waited for " .. seconds .. " s")
    check.contains(select(2, channel.create(name)), "belongs to another user")
  end, function() end, true)
  os.remove(path)
end)

check.test("a link or a folder with the name is an error that says so", function()
  for _, command in ipairs { "mkdir -m 700 ", "ln -s /dev/null " } do
    os.remove(path)
    assert(os.execute(command .. path) == 0)
    local wanted = path .. " is a link or a folder; remove it or choose another name"
    check.contains(select(2, channel.create(name)), wanted)
    check.contains(select(2, channel.connect(name, 1)), wanted)
  end
  os.remove(path)
end)

check.test("a FIFO with the name is refused and not removed", function()
  assert(os.execute("mkfifo -m 600 " .. path) == 0)
  for _, problem in ipairs { select(2, channel.create(name)), select(2, channel.connect(name, 1)) } do
    check.contains(problem, path .. " is not a regular file; remove it or choose another name")
  end
  assert(os.remove(path))
end)

check.test("both sides get an error if the size of the block changes", function()
  for _, size in ipairs { 0, 100, RINGS, BULK, BULK + 4096, BULK + 4 * layout.BULK } do
    -- A busy machine can delay the end of a wait.
    check.eventually(5, function()
      local here, there = pair()
      here:send("before")
      check.equal(there:receive(1), "before")
      -- Neither side is in a wait now, so both check the size before they access the memory again.
      truncate(size)
      local slowest = 0
      for _, mine in ipairs { here, there } do
        check.contains(mine.block:damage(), "changed the size")
        local seconds = process.timed(function() check.contains(select(2, mine:receive()), "damaged", size) end)
        slowest = math.max(slowest, seconds)
      end
      -- Further calls fail with an error, but do not crash the process.
      for _, mine in ipairs { here, there } do
        mine:send(("x"):rep(1048576), 0)
        local text, problem
        repeat text, problem = mine:receive(1) until not text
        assert(problem == "closed" or problem:find("damaged", 1, true), problem)
        mine:close()
      end
      return slowest < 1
    end, "the size " .. size .. " was noticed in time")
  end
end)

check.test("a wait that sleeps ends with an error when the block is truncated", function()
  process.run_with(function()
    local there = assert(channel.connect(name, 5))
    local text, problem = there:receive()
    assert(not text and problem:find("changed the size", 1, true), problem)
    there:close()
  end, function()
    local here = assert(channel.create(name))
    assert(here:accept(5))
    local sleeps = ffi.cast("volatile uint32_t *", here.block.data + layout.AT_READER[1])
    check.eventually(5, function() return sleeps[0] == 1 end, "the other side sleeps")
    truncate(0)
    check.contains(here.block:damage(), "changed the size")
    time.sleep(0.15)
    here:close()
  end, true)
end)

check.test("overwritten stamps and counts end a wait that has no time-out", function()
  local garbage = ("\165"):rep(8)
  -- These halves are those of the mailbox, which has room for a single short message in each direction.
  local halves, consumed = layout.AT_HALF, layout.HALF_CONSUMED
  for at, side in pairs {
    -- The offset to overwrite, and the side that must notice. Some of these values were written by that side itself.
    [halves[0]] = 1, [halves[1]] = 0, [RINGS] = 1, [RINGS + layout.SLOTS * layout.SLOT] = 0,
    [halves[0] + consumed - 4] = 0, [halves[1] + consumed - 4] = 1,
  } do
    -- A busy machine can delay the end of a wait.
    check.eventually(5, function()
      local sides = {}
      sides[0], sides[1] = pair()
      garble(at, garbage)
      local seconds = process.timed(function()
        check.contains(select(2, sides[side]:receive()), "damaged", "at " .. at)
      end)
      sides[0]:close()
      sides[1]:close()
      return seconds < 1
    end, "the garbage at " .. at .. " was noticed in time")
  end
end)

test_pair("a mailbox full of zeros ends a wait that has no time-out", function(here, there)
  assert(here:send("ping"))
  check.equal(there:receive(1), "ping")
  assert(there:send("pong"))
  check.equal(here:receive(1), "pong")
  garble(layout.AT_HALF[0], ("\0"):rep(64))
  check.contains(select(2, there:receive()), "damaged")
end)

check.test("an overwritten header ends a wait that has no time-out", function()
  for _, at in ipairs { 0, layout.AT_VERSION, layout.AT_SLOTS, layout.AT_BULK, layout.AT_EXTRA } do
    local here, there = pair()
    garble(at, "\165\165\165\165")
    for _, mine in ipairs { here, there } do
      check.contains(select(2, mine:receive()), "overwritten its header", "at " .. at)
      mine:close()
    end
  end
end)

test_pair("an overwritten count does not make a sender wait forever", function(here)
  garble(layout.AT_HALF[1] + layout.HALF_CONSUMED, "\165\165\165\165")
  check.contains(select(2, here:send("hello")), "damaged")
  check.contains(select(2, here:send(("x"):rep(1000))), "damaged")
end)

test_pair("a count of messages that were not sent does not let a sender overwrite unread ones", function(here, there)
  for number = 1, 3 do assert(here:send(message(number, 100))) end
  garble(layout.AT_HALF[1] + layout.HALF_CONSUMED, "\5\0\0\0")
  for _, length in ipairs { 1, 100, 1000 } do
    check.contains(select(2, here:send(message(4, length), 0.2)), "damaged", length .. " bytes")
  end
  for number = 1, 3 do check.equal(there:receive(1), message(number, 100)) end
end)
