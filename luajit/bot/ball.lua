--- Simulates the demo game's ball exactly as rom/src/game.c moves it, to predict its path, the bricks that it will hit,
-- and where it will come down. Positions and speeds are in sixteenths of a pixel, as in rom/memory-map.toml.

local bit = require "bit"
local ffi = require "ffi"

local rshift = bit.rshift

ffi.cdef [[
struct fw_ball {
  int32_t x, y, dx, dy;
  int32_t left;      // bricks still standing
  int32_t points;    // for the bricks hit since the flight began, not yet multiplied by the game's `factor`
  uint8_t bricks[70];
};
]]

local SUB = 16
local RADIUS = 3 * SUB
local LEFT, RIGHT, TOP = 8 * SUB + RADIUS, 232 * SUB - RADIUS, 14 * SUB + RADIUS
local REST = 104 * SUB - RADIUS -- y of the ball when it touches the paddle
local COLUMNS, ROWS = 14, 5
local BRICKS_LEFT, BRICKS_TOP = 8, 24
local GEM = 2
local ROW_POINTS, GEM_FACTOR = 10, 5
local LEAST_DX = 5

local M = {}

--- Creates a ball for simulations.
function M.new()
  return ffi.new("struct fw_ball")
end

--- Copies the state of one ball to another.
function M.copy(to, from)
  ffi.copy(to, from, ffi.sizeof("struct fw_ball"))
end

local function break_brick(ball, x, y)
  local left, top = rshift(x, 4) - BRICKS_LEFT, rshift(y, 4) - BRICKS_TOP
  if left < 0 or top < 0 then return false end
  local column, row = rshift(left, 4), rshift(top, 3)
  if column >= COLUMNS or row >= ROWS then return false end
  local cell = row * COLUMNS + column
  local kind = ball.bricks[cell]
  if kind == 0 then return false end
  ball.bricks[cell] = 0
  ball.left = ball.left - 1
  ball.points = ball.points + (ROWS - row) * ROW_POINTS * (kind == GEM and GEM_FACTOR or 1)
  return true
end

local function move_horizontally(ball)
  local x, y = ball.x + ball.dx, ball.y
  if x < LEFT then
    x, ball.dx = LEFT, -ball.dx
  elseif x > RIGHT then
    x, ball.dx = RIGHT, -ball.dx
  end
  local edge = ball.dx < 0 and x - RADIUS or x + RADIUS
  if break_brick(ball, edge, y - RADIUS / 2) or break_brick(ball, edge, y + RADIUS / 2) then
    ball.dx = -ball.dx
  else
    ball.x = x
  end
end

local function move_vertically(ball)
  local x, y = ball.x, ball.y + ball.dy
  if y < TOP then y, ball.dy = TOP, -ball.dy end
  local edge = ball.dy < 0 and y - RADIUS or y + RADIUS
  if break_brick(ball, x - RADIUS / 2, edge) or break_brick(ball, x + RADIUS / 2, edge) then
    ball.dy = -ball.dy
  else
    ball.y = y
  end
end

--- Moves the ball by one frame.
function M.move(ball)
  move_horizontally(ball)
  move_vertically(ball)
end

--- Moves the ball frame by frame until it has come down to the height of the paddle or has hit the last brick.
---@param ball ffi.cdata*
---@param limit integer the most frames to simulate
---@return integer|nil frames until the ball has come down; nil if it has hit the last brick or flies on
---@return integer frames simulated
function M.fly(ball, limit)
  for frame = 1, limit do
    M.move(ball)
    if ball.left == 0 then return nil, frame end
    if ball.dy > 0 and ball.y >= REST and ball.y - ball.dy <= REST then return frame, frame end
  end
  return nil, limit
end

local function clamp(value, low, high)
  return value < low and low or value > high and high or value
end

local function truncate(value)
  return value < 0 and math.ceil(value) or math.floor(value)
end

--- The speed of the ball.
---@param level integer
---@param rally integer how many times the paddle has returned the ball
function M.speed(level, rally)
  return clamp(40 + 3 * (level - 1) + math.floor(rally / 3), 40, 60)
end

--- Makes the ball bounce off the paddle.
---@param ball ffi.cdata* a ball that has just come down
---@param offset integer how far right of the paddle's middle the ball is
---@param width integer width of the paddle
---@param speed integer speed after the bounce
---@param chance integer what the game's random numbers add to `dx`, -8 to 7
function M.bounce(ball, offset, width, speed, chance)
  local dx = truncate(ball.dx / 2) + truncate(offset * speed / (2 * math.floor(width / 2))) + chance
  if dx > -LEAST_DX and dx < LEAST_DX then dx = dx < 0 and -LEAST_DX or LEAST_DX end
  local limit = math.floor(speed * 7 / 8)
  dx = clamp(dx, -limit, limit)
  ball.y = REST
  ball.dx, ball.dy = dx, -math.floor(math.sqrt(speed * speed - dx * dx))
end

return M
