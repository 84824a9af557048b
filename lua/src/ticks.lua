-- The script's clock: the number of frames since it was loaded. Unlike the emulator's frame counter, it never goes back.

return { now = 0, per_second = 60 }
