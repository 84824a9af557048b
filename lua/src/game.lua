-- Detects resets, loaded states and newly loaded games. The script cannot use mGBA's callbacks for this: if a script resets
-- the console in a frame callback, mGBA's `reset` callback ends that frame callback (see `emulator.reset`). Operations report
-- immediately what they do. The frame counter shows everything else.

local happenings = require "happenings"

local game = {
  RESET = 1, -- what breaks the order of frames, as watches report it
  STATE = 2,
  GAME = 3,
  breaks = 0, -- how often the order of frames was broken
  broken_by = nil, -- what broke it the last time
  games = 0, -- how often another game was loaded
}

local FIRST = 1 -- the highest number that the first frame after a reset may have
local last_frame -- the number of the last frame; nil before the first
local identity -- identifies the game
local noted = false -- whether an operation has broken the order since the last frame

local function broken(by)
  game.breaks, game.broken_by = game.breaks + 1, by
  if by == game.RESET then
    happenings.add(happenings.RESET)
  elseif by == game.STATE then
    happenings.add(happenings.STATE)
  end
end

-- Checks whether the game has changed since the last call. If so, notes it and returns true.
function game.check()
  if not emu then
    return false
  end
  local before = identity
  identity = table.concat({ emu:getGameTitle() or "", emu:getGameCode() or "", emu:checksum() or "" }, "\0")
  local other = before ~= nil and identity ~= before
  if other then
    happenings.add(happenings.GAME)
    game.games = game.games + 1
  end
  return other
end

-- Like `check`, but after a reset. If the game has changed, that is noted as the reason for the break in the order of frames.
function game.check_break()
  if game.check() then
    game.broken_by = game.GAME
  end
end

-- Notes that an operation has reset the console, or loaded a state or a game.
function game.note(by)
  noted = true
  broken(by)
end

-- Like `note`, for an operation that may have loaded a state. Returns whether it did.
function game.note_state(loaded)
  if loaded then
    game.note(game.STATE)
  end
  return loaded
end

-- Notes that a frame was run. If it does not follow the last one, there was a reset (if its number is one of the
-- first) or a loaded state.
function game.advance()
  local frame = emu and emu:currentFrame()
  if last_frame and frame and frame ~= last_frame + 1 then
    if not noted then
      broken(frame <= FIRST and game.RESET or game.STATE)
    end
    if frame <= FIRST then
      game.check_break()
    end
  end
  last_frame, noted = frame, false
end

return game
