--- Measures how fast two processes exchange messages through a channel, compared with the limit of the machine.
-- `luajit pingpong.lua --help` lists the options.

local here = arg[0]:match("^(.*)[/\\]") or "."
package.path = here .. "/../../luajit/?.lua;" .. here .. "/?.lua;" .. package.path

local ffi = require "ffi"
local channel = require "framewire.channel"
local cli = require "framewire.options"
local measure = require "measure"
local time = require "framewire.time"
local worker = require "framewire.worker"

-- The sizes of a message in bytes: in round trips, and in a stream in one direction.
local ROUND_TRIP_SIZE, STREAM_SIZE = 11, 64
-- How long a receiver spins before it sleeps, in seconds. It is long, because each process has a core of its own here.
local SPIN = { spin = 0.02 }

local options = cli.read(arg, {
  usage = "luajit pingpong.lua [options]",
  about = "Measures messages between two processes, each pinned to a core, and prints the medians. If there is a C\n"
    .. "compiler, each round also measures the limit of the machine, with pingpong.c.",
  { "count", "N", "messages in a round", kind = "integer", low = 1000, high = 1e9, default = 1000000 },
  { "rounds", "N", "rounds; the results are their medians", kind = "integer", low = 1, high = 99, default = 5 },
  { "core", "N", "core of this process", kind = "integer", default = 0 },
  { "other", "N", "core of the other process", kind = "integer", default = 1 },
  { "partner", "COMMAND", "program for the other side; it gets the channel's name and the core as arguments", },
  { "answer", "NAME", "be the other side of channel NAME, and print nothing" },
  { "json", "FILE", "also write the figures to this file" },
})

local function fail(message)
  io.stderr:write("pingpong.lua: ", message, "\n")
  os.exit(1)
end

-- The tasks of the other side. After the message "p COUNT", it echoes COUNT messages. After "s COUNT", it receives a
-- stream of COUNT messages and then sends "done". It ends when the channel is closed. Each loop is in a function of its
-- own, so that LuaJIT compiles it separately.
local tasks = {}

function tasks.p(sender, receiver, count)
  for _ = 1, count do
    local data, length = receiver:await(10)
    if data == nil then error(length) end
    local number = ffi.cast("const uint32_t *", data)[0]
    receiver:release()
    local place = sender:reserve(ROUND_TRIP_SIZE)
    ffi.cast("uint32_t *", place)[0] = number
    sender:commit()
  end
end

function tasks.s(sender, receiver, count)
  for number = 1, count do
    local data, length = receiver:await(10)
    if data == nil then error(length) end
    if length ~= STREAM_SIZE or ffi.cast("const uint32_t *", data)[0] ~= number then error("a torn message") end
    receiver:release()
  end
  assert(sender:send("done"))
end

local function answer(name, core)
  assert(worker.pin(core))
  local mine = assert(channel.connect(name, 10, SPIN))
  while true do
    local text, problem = mine:receive()
    if not text then
      if problem == "closed" then return mine:close() end
      error(problem)
    end
    local task, count = text:match("^([ps]) (%d+)$")
    tasks[task](mine.sender, mine.receiver, tonumber(count))
  end
end

local function round_trips(mine, count)
  local sender, receiver = mine.sender, mine.receiver
  assert(mine:send("p " .. count))
  local start = time.monotonic()
  for number = 1, count do
    local place = sender:reserve(ROUND_TRIP_SIZE)
    ffi.cast("uint32_t *", place)[0] = number
    sender:commit()
    local data, length = receiver:await(10)
    if data == nil then error(length) end
    if length ~= ROUND_TRIP_SIZE or ffi.cast("const uint32_t *", data)[0] ~= number then error("a torn message") end
    receiver:release()
  end
  return (time.monotonic() - start) / count * 1e9
end

local function stream(mine, count)
  local sender = mine.sender
  local message = ffi.new("uint8_t[?]", STREAM_SIZE)
  assert(mine:send("s " .. count))
  local start = time.monotonic()
  for number = 1, count do
    local place, problem = sender:reserve(STREAM_SIZE, 10)
    if place == nil then error(problem) end
    ffi.copy(place, message, STREAM_SIZE)
    ffi.cast("uint32_t *", place)[0] = number
    sender:commit()
  end
  assert(mine:receive(10) == "done")
  return (time.monotonic() - start) / count * 1e9
end

-- Runs pingpong.c and returns the nanoseconds that it prints.
local function bare(program, arguments)
  local ns = measure.output(("'%s' %s"):format(program, arguments))
  return tonumber(ns) or fail("pingpong.c failed: " .. arguments)
end

local function start_partner(name)
  if not options.partner then return assert(worker.start(function() answer(name, options.other) end)) end
  return assert(worker.start(function()
    local code = os.execute(("exec %s %s %d"):format(options.partner, name, options.other))
    if code ~= 0 then error(options.partner .. " failed") end
  end))
end

local function run(program)
  local name = "pingpong-" .. ffi.C.getpid()
  local partner = start_partner(name)
  assert(worker.pin(options.core))
  local mine = assert(channel.create(name, SPIN))
  local ok, problem = mine:accept(10)
  if not ok then fail("the other side did not connect: " .. problem) end
  local all = { round_trip = {}, message = {}, line = {}, copy = {} }
  local warm_up = math.floor(options.count / 10)
  round_trips(mine, warm_up)
  stream(mine, warm_up)
  for round = 1, options.rounds do
    all.round_trip[round] = round_trips(mine, options.count)
    all.message[round] = stream(mine, options.count)
    if program then
      -- The other side sleeps while these programs run.
      all.line[round] = bare(program, ("line %d %d %d"):format(options.core, options.other, options.count))
      all.copy[round] = bare(program, ("copy %d %d"):format(options.core, options.count))
    end
  end
  mine:close()
  if partner:wait(5) ~= 0 then fail("the other side ended with an error") end
  return all
end

local function show(what, ns, ns_in_c)
  local share = ns_in_c and (", %.0f%% of the speed in C"):format(ns_in_c / ns * 100) or ""
  print(("%-46s %7.2f million/s, %6.1f ns%s"):format(what, 1e3 / ns, ns, share))
end

local function main()
  if options.answer then return answer(options.answer, options.other) end
  if worker.cores() < 2 then fail("this needs two processor cores") end
  local has_compiler, program = pcall(measure.build, here .. "/pingpong.c")
  local all = run(has_compiler and program)
  measure.clean()
  local figures, json = {}, {}
  for name, list in pairs(all) do
    figures[name] = measure.median(list)
    json[name .. "_ns"] = figures[name]
  end
  if figures.line then
    show("a cache line to and fro, in C (the limit)", figures.line)
  else
    print("(no C compiler, so the machine's own limit is not known)")
  end
  show(("round trips, %d-byte messages"):format(ROUND_TRIP_SIZE), figures.round_trip, figures.line)
  if figures.copy then show(("copies of %d bytes in memory, in C"):format(STREAM_SIZE), figures.copy) end
  show(("one way, %d-byte messages"):format(STREAM_SIZE), figures.message, figures.copy)
  if options.json then measure.write(options.json, json) end
end

main()
