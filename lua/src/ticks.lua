-- The script's clock: a *tick* for each frame since the script was loaded. While a frame waits in lockstep, about 60
-- ticks per second are added too. Unlike the emulator's frame counter, this number never goes back.

return { now = 0, per_second = 60 }
