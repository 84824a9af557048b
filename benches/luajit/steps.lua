--- Runs an emulator on a channel frame by frame. After each frame, it reads 64 bytes of memory and two pixels of the
-- picture. `luajit steps.lua NAME FRAMES [CORE]` prints frames per second. NAME is the channel's name, and CORE is the
-- number of the processor core on which this program runs.

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/../../luajit/?.lua;" .. package.path

local ffi = require "ffi"
local emulator = require "framewire.emulator"
local time = require "framewire.time"
local worker = require "framewire.worker"

local name, frames, core = arg[1], tonumber(arg[2]), tonumber(arg[3])
if not frames then
  io.stderr:write("usage: luajit steps.lua NAME FRAMES [CORE]\n")
  os.exit(2)
end
if core then assert(worker.pin(core)) end

local game = assert(emulator.connect(name, { wait = 10 }))
local memory = assert(game:watch(0x02000000, 64))
assert(game:call("reset"))
assert(game:step(0, 300))

local counter = ffi.cast("const uint32_t *", memory + 8) -- `frame` in rom/memory-map.toml
local before, seen = counter[0], 0
local start = time.monotonic()
for number = 1, frames do
  assert(game:step())
  -- The game counts its frames in memory, so this detects memory of another frame.
  if counter[0] ~= before + number then error("memory of another frame") end
  for word = 0, 15 do seen = seen + ffi.cast("const uint32_t *", memory)[word] % 2 end
  seen = seen + game:pixel(208, 136) % 2 + game:pixel(120, 80) % 2
end
local seconds = time.monotonic() - start
game:close()
-- Uses `seen`, so that LuaJIT cannot remove the reads. It is never negative.
io.stderr:write(seen < 0 and "?" or "")
print(("%.1f"):format(frames / seconds))
