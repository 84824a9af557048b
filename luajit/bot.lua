--- Plays the demo game through shared memory, frame by frame. `luajit bot.lua --help` lists the options.

local here = arg[0]:match("^(.*)[/\\]") or "."
package.path = here .. "/?.lua;" .. package.path

local cli = require "framewire.options"
local emulator = require "framewire.emulator"
local player = require "bot.player"
local time = require "framewire.time"
local worker = require "framewire.worker"

local options = cli.read(arg, {
  usage = "luajit bot.lua [options]",
  about = "Plays the demo game of `framewire serve --channel NAME` and prints its score. For comparison,\n"
    .. "it first runs the same number of frames without pressing a key, and prints that score too.",
  { "channel", "NAME", "the emulator's channel", default = "demo" },
  { "frames", "N", "frames to play", kind = "integer", low = 1, high = 1e9, default = 18000 },
  { "start", nil, "start the emulator too, and stop it at the end" },
  { "program", "PATH", "framewire, for --start", default = here .. "/../target/release/framewire" },
  { "core", "N", "run on this processor core only", kind = "integer" },
})

local process -- the emulator that this program has started

local function stop_emulator()
  if not process then return end
  process:signal("TERM")
  process:wait(10)
end

local function fail(message)
  stop_emulator()
  io.stderr:write("bot.lua: ", message, "\n")
  os.exit(1)
end

local function start_emulator()
  process = assert(worker.start(function()
    -- The bot does not use the HTTP port, so any free one will do.
    local quietly = 'exec "$0" serve --channel "$1" --listen 127.0.0.1:0 --quiet >/dev/null'
    assert(worker.become { "sh", "-c", quietly, options.program, options.channel })
  end))
  local deadline = time.monotonic() + 10
  local game, message
  repeat
    game, message = emulator.connect(options.channel)
    if game then return game end
  until select(2, process:wait(0)) ~= "timeout" or time.monotonic() >= deadline
  fail(("%s\nDoes the program %s exist? `make build` builds it; --program selects another.")
    :format(message, options.program))
end

local function find_emulator()
  local game, message = emulator.connect(options.channel)
  if game then return game end
  fail(("%s\nStart one with\n  framewire serve --channel %s\nor let this program do it with --start.")
    :format(message, options.channel))
end

-- Resets the game and plays all frames. Returns the highest score that was reached, and the seconds for all frames.
local function play(game, memory, decide)
  assert(game:call("reset"))
  local best = 0
  local start = time.monotonic()
  for _ = 1, options.frames do
    assert(game:step(decide()))
    if memory.score > best then best = memory.score end
  end
  return best, time.monotonic() - start
end

local function main()
  local game
  -- Start the emulator before this process is pinned. Otherwise, the emulator would be pinned to the same core.
  if options.start then game = start_emulator() end
  if options.core then
    local ok, message = worker.pin(options.core)
    if not ok then
      fail(("--core %d cannot be used (%s); this machine has %d processor cores, counted from 0")
        :format(options.core, message, worker.cores()))
    end
  end
  game = game or find_emulator()
  local title = assert(game:call("game_title"))
  if title ~= "FRAMEWIRE" then
    fail("this bot plays only the demo game, not " .. title .. "; start framewire without a ROM of your own")
  end
  assert(game:step(0, 0)) -- takes the clock: from here on, only `step` runs frames, and the game is paused in between
  local bot = player.new(assert(game:watch(player.ADDRESS, player.SIZE)))

  local idle = play(game, bot.game, function() return 0 end) -- presses no key in any frame
  local best, seconds = play(game, bot.game, function() return bot:decide() end)
  print(("doing nothing: %d points"):format(idle))
  local times = best / math.max(idle, 1)
  print(("the bot:       %d points, %.0f times as many; level %d"):format(best, times, bot.game.level))
  print(("%d decisions in %.1f s: %.0f decisions/s, %.0f times the console's speed")
    :format(options.frames, seconds, options.frames / seconds, options.frames / seconds / 59.7275))

  game:close()
end

local ok, message = xpcall(main, debug.traceback)
if not ok then fail(message) end
stop_emulator()
