-- Detects resets, loaded states and newly loaded games. The script cannot use mGBA's callbacks for this: if a script
-- resets the console in a frame callback, mGBA's `reset` callback ends that frame callback (see `emulator.reset`).
-- An operation that resets the console, or loads a state or a game, reports this itself (`game.note`). The script
-- detects other resets and loaded states by the frame counter, and another game by its title, code or checksum.
--
-- After a reset or a loaded state, the next frame does not follow from the frame before. This is called a *break* in
-- the order of frames.

local eventqueue = require "eventqueue"

local game = {
  RESET = 1, -- kinds of breaks; watches report these numbers
  STATE = 2,
  GAME = 3,
  breaks = 0, -- how many breaks there were
  broken_by = nil, -- the kind of the last break; `GAME` if another game was found after it
  games = 0, -- how many times another game was loaded
}

local FIRST = 1 -- after a reset, the number of the first frame is at most this
local last_frame -- the number of the last frame; nil before the first
local identity -- the title, the code and the checksum of the game, joined
local noted = false -- whether an operation has reported a break since the last frame

-- Counts a break. Reports a reset or a loaded state as an event.
local function add_break(by)
  game.breaks, game.broken_by = game.breaks + 1, by
  if by == game.RESET then
    eventqueue.add(eventqueue.RESET)
  elseif by == game.STATE then
    eventqueue.add(eventqueue.STATE)
  end
end

-- Checks whether another game was loaded since the last call. If so, reports it as an event.
function game.check()
  if not emu then
    return
  end
  local before = identity
  identity = table.concat({ emu:getGameTitle() or "", emu:getGameCode() or "", emu:checksum() or "" }, "\0")
  if before and identity ~= before then
    eventqueue.add(eventqueue.GAME)
    game.games, game.broken_by = game.games + 1, game.GAME
  end
end

-- Notes that an operation has reset the console, or loaded a state or a game.
function game.note(by)
  noted = true
  add_break(by)
end

-- Like `note`, for an operation that may have loaded a state. Returns whether it did.
function game.note_state(loaded)
  if loaded then
    game.note(game.STATE)
  end
  return loaded
end

-- Called after each frame. If the frame's number does not follow the last one, there was a reset (if the number is that
-- of a first frame) or a loaded state.
function game.advance()
  local frame = emu and emu:currentFrame()
  if last_frame and frame and frame ~= last_frame + 1 then
    if not noted then
      add_break(frame <= FIRST and game.RESET or game.STATE)
    end
    -- Not only after a reset: mGBA can load another game together with one of its states.
    game.check()
  end
  last_frame, noted = frame, false
end

return game
