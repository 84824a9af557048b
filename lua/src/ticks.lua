-- Time as this script sees it: frames since it was loaded. Unlike the emulator's own counter, it never goes back.

return { now = 0, per_second = 60 }
