-- Whether the console was reset, or another game put in. This script has no callback for that: any there is ends the frame
-- callback in which a script resets, see `emulator.reset`.

local happenings = require "happenings"

local game = {}

local FIRST = 1 -- the highest number that the first frame behind a reset may have
local last_frame -- the number of the last frame; nil before the first
local identity -- of the game

-- Notes it if this is another game than the last time.
function game.check()
  if not emu then
    return
  end
  local before = identity
  identity = table.concat({ emu:getGameTitle() or "", emu:getGameCode() or "", emu:checksum() or "" }, "\0")
  if before and identity ~= before then
    happenings.add(happenings.GAME)
  end
end

-- A frame was run. One that does not follow the last is a reset's if it is one of the first, and otherwise a state's.
function game.advance()
  local frame = emu and emu:currentFrame()
  if last_frame and frame and frame ~= last_frame + 1 and frame <= FIRST then
    happenings.add(happenings.RESET)
    game.check()
  end
  last_frame = frame
end

return game
