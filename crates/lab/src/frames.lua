-- Writes the emulator's frame number to a file. So the number can be read during a run without a request to any script.
local file = assert(io.open("frames.json", "w"))
file:setvbuf("full", 256)
callbacks:add("frame", function()
  file:seek("set")
  -- The text always has the same length, so a reader gets the old or the new number even during a write.
  file:write(string.format('{"frame": %10d}', emu:currentFrame()))
  file:flush()
end)
