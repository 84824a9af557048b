--- Plays the demo game: predicts where the ball will come down, moves the paddle there, and returns the ball in the
-- direction that promises the most points per frame.

local bit = require "bit"
local ffi = require "ffi"
local balls = require "bot.ball"
local keys = require("framewire.emulator").keys

ffi.cdef [[
// The game's memory from `frame` to `bricks`, as in rom/memory-map.toml.
struct fw_demo_game {
  uint32_t frame;
  uint16_t held, state;
  uint32_t presses[10];
  int16_t ball_x, ball_y, ball_dx, ball_dy, paddle_x;
  uint16_t paddle_width;
  uint32_t score, high_score;
  uint16_t lives, level, bricks_left, timer;
  uint32_t random;
  uint16_t rally, factor;
  uint32_t games, last_score;
  uint8_t bricks[70];
};
]]

local SERVE, PLAY, OVER = 0, 1, 3
-- How far the paddle moves in a frame, in sixteenths of a pixel: with Left or Right, and with L or R. With both keys,
-- the distances add up.
local STEP, DASH = 48, 96
local LOOK_AHEAD = 600 -- frames
-- Where the paddle can hit the ball: distances from the middle, as fractions of half the paddle's width.
local SPOTS = { -0.8, -0.6, -0.4, -0.2, 0, 0.2, 0.4, 0.6, 0.8 }
-- Samples of the random change of direction that the game adds to a bounce.
local CHANCES = { -6, -1, 5 }

local M = {
  --- The start and the length of the memory that the player needs.
  ADDRESS = 0x02000008,
  SIZE = ffi.sizeof("struct fw_demo_game"),
}

local Player = {}
Player.__index = Player

--- Creates a player.
---@param memory ffi.cdata* the game's memory, from `ADDRESS` on
function M.new(memory)
  return setmetatable({
    game = ffi.cast("const struct fw_demo_game *", memory),
    ball = balls.new(),
    trial = balls.new(),
    planned = nil, -- the level and rally for which `spot` was chosen
    spot = 0,
  }, Player)
end

local function read_ball(self)
  local game, ball = self.game, self.ball
  ball.x, ball.y, ball.dx, ball.dy = game.ball_x, game.ball_y, game.ball_dx, game.ball_dy
  ball.left, ball.points = game.bricks_left, 0
  ffi.copy(ball.bricks, game.bricks, 70)
end

-- Estimates the points per frame of the flight after a bounce. The ball has come down and hits the paddle `offset` to
-- the right of the paddle's middle.
local function worth(self, offset)
  local game, trial = self.game, self.trial
  local speed = balls.speed(game.level, game.rally + 1)
  local points, frames = 0, 0
  for _, chance in ipairs(CHANCES) do
    balls.copy(trial, self.ball)
    trial.points = 0
    balls.bounce(trial, offset, game.paddle_width, speed, chance)
    local _, flown = balls.fly(trial, LOOK_AHEAD)
    points, frames = points + trial.points, frames + flown
    if trial.left == 0 then points = points + 100 * game.level end
  end
  return points / frames
end

local function choose_spot(self)
  local half = self.game.paddle_width / 2
  local best, most = 0, -1
  for _, spot in ipairs(SPOTS) do
    local offset = math.floor(spot * half)
    local value = worth(self, offset)
    if value > most then best, most = offset, value end
  end
  return best
end

-- The keys that move the paddle as near to `target` as possible in one frame.
local function move_to(self, target)
  local distance = target - self.game.paddle_x
  local reach = math.abs(distance)
  if reach >= DASH + STEP / 2 then return distance < 0 and keys.L + keys.Left or keys.R + keys.Right end
  if reach >= DASH - STEP / 2 then return distance < 0 and keys.L or keys.R end
  if reach >= STEP / 2 then return distance < 0 and keys.Left or keys.Right end
  return 0
end

local function play(self)
  local game, ball = self.game, self.ball
  read_ball(self)
  -- If the ball hits the last brick before it comes down, or does not come down soon, the paddle does not have to
  -- return it.
  if not balls.fly(ball, LOOK_AHEAD) then return move_to(self, ball.x) end
  local plan = game.level * 65536 + game.rally
  if self.planned ~= plan then
    -- The whole flight can be predicted when it begins, so the spot is chosen only once per flight.
    self.planned, self.spot = plan, choose_spot(self)
  end
  return move_to(self, ball.x - self.spot)
end

--- Decides on the keys of the next frame.
---@return integer mask
function Player:decide()
  local game = self.game
  if game.state == PLAY then return play(self) end
  self.planned = nil
  -- The game reacts only when a key goes down. So if the key is held already, it is released first.
  if game.state == SERVE then return bit.band(game.held, keys.A) == 0 and keys.A or 0 end
  if game.state == OVER then return bit.band(game.held, keys.Start) == 0 and keys.Start or 0 end
  return 0
end

return M
