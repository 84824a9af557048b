-- Keeps the emulator's frame number in a file, so that it can be read beside a run without a request to any script.
local file = assert(io.open("frames.json", "w"))
file:setvbuf("full", 256)
callbacks:add("frame", function()
  file:seek("set")
  -- Always as long, so that whoever reads while it is written reads one number or the other.
  file:write(string.format('{"frame": %10d}', emu:currentFrame()))
  file:flush()
end)
