--- An emulator in another process, through shared memory: `framewire serve --channel NAME`. Linux on x86-64.
--
--   local game = assert(emulator.connect("demo"))
--   local score = game:watch(0x02000044, 4)          -- uint8_t *: these bytes, after each step
--   game:step(emulator.keys.A)                       -- hold A, run a frame
--   print(ffi.cast("uint32_t *", score)[0], game:pixel(120, 80))
--   print(game:call("game_title"))
--
-- After the first `step`, the game is paused between steps, until `run` or `close`. The picture and the watched
-- memory are read in place, without copies. While both sides are busy, neither makes a system call.
-- docs/emulator-channel.md describes the messages on the channel.

local ffi = require "ffi"
local bit = require "bit"
local channel = require "framewire.channel"
local closed = require "framewire.closed"
local codec = require "framewire.emulator.codec"
local time = require "framewire.time"

local cast = ffi.cast
local tobit = bit.tobit

ffi.cdef [[
struct fw_screen {
  volatile uint32_t magic[2];
  uint32_t version;
  volatile uint32_t sequence; // odd while the emulator may draw
  uint32_t frame;             // the core's frame counter
  uint32_t tick;              // frames run since the channel was made
  uint32_t width, height;     // of the picture in pixels
  uint32_t stride;            // bytes from row to row
  uint32_t picture;           // where it lies
  uint32_t clock;             // 1 if the client says when frames are run
  uint32_t platform;          // 0 Game Boy Advance, 1 Game Boy
  uint32_t keys;              // held
  uint32_t watched;           // bytes of watched memory
  uint32_t watch;             // where it lies
};
]]

local STEP, RUN, LOOK, WATCH, DONE, REFUSED = 64, 65, 66, 67, 72, 73
local KEEP_KEYS = 65535
-- Longer than a frame takes, so a side that waits for a frame does not sleep.
local SPIN = 2e-3
local PATIENCE = 10

local M = {
  --- Bits of a mask of keys.
  keys = { A = 1, B = 2, Select = 4, Start = 8, Right = 16, Left = 32, Up = 64, Down = 128, R = 256, L = 512 },
}

local Emulator = {}
Emulator.__index = Emulator

--- Connects to a running emulator. One client at a time can connect.
---@param name string of the channel
---@param options? table `wait`: seconds until the channel must be there and free, 0.2 by default, so that the emulator
--- can finish with an earlier client; `spin`: seconds to poll for an answer before sleeping; `patience`: seconds until
--- a missing answer is an error, 10 by default
---@return table|nil emulator
---@return string? message
function M.connect(name, options)
  options = options or {}
  local line, message = channel.connect(name, options.wait or 0.2, { spin = options.spin or SPIN })
  if not line then return nil, message end
  local screen = cast("struct fw_screen *", line.extra)
  -- The channel exists a moment before its contents.
  local deadline = time.monotonic() + 1
  while line.extra_size >= 4096 and screen.magic[1] == 0 and time.monotonic() < deadline do time.sleep(1e-3) end
  if line.extra_size < 4096 or ffi.string(line.extra, 8) ~= "FWFRAME1" or screen.version ~= 1 then
    line:close()
    return nil, ("channel '%s' is not an emulator's, or of another version"):format(name)
  end
  return setmetatable({
    line = line,
    screen = screen,
    sender = line.sender,
    receiver = line.receiver,
    patience = options.patience or PATIENCE,
    watches = {},
    ids = 0,
  }, Emulator)
end

-- The reason for an answer other than the expected one.
local function refusal(data, length)
  if data == nil then return nil, length end
  if data[0] == REFUSED and length >= 6 then return nil, ffi.string(data + 6, length - 6) end
  return codec.reply(data, length)
end

-- Waits for `done`; returns the frame counter.
local function await_done(self)
  local receiver = self.receiver
  local data, length = receiver:await(self.patience)
  if data == nil or data[0] ~= DONE then
    local _, message = refusal(data, length)
    if data ~= nil then receiver:release() end
    return nil, message or "an answer to something else"
  end
  local frame = cast("const uint32_t *", data)[1]
  receiver:release()
  return frame
end

--- Holds keys and runs frames; takes the clock if necessary. Afterwards the picture and the watched memory are up to
-- date.
---@param keys? integer mask of the keys to hold, and no others; without it the keys do not change
---@param frames? integer 1 by default; 0 stops the game and runs none
---@return integer|nil frame the core's frame counter
---@return string? message
function Emulator:step(keys, frames)
  local place, message = self.sender:reserve(8, self.patience)
  if place == nil then return nil, message end
  place[0], place[1] = STEP, 0
  cast("uint16_t *", place)[1] = keys or KEEP_KEYS
  cast("uint32_t *", place)[1] = frames or 1
  self.sender:commit()
  return await_done(self)
end

local function ask(self, kind)
  local ok, message = self.sender:send(string.char(kind), self.patience)
  if not ok then return nil, message end
  return await_done(self)
end

--- Gives the clock back: the game runs at its own speed. Results as for `step`.
function Emulator:run()
  return ask(self, RUN)
end

--- Updates the picture and the watched memory while the game runs by itself. The picture is then a copy, which does not
--- change until the next look or step. Results as for `step`.
function Emulator:look()
  return ask(self, LOOK)
end

local function send_watches(self)
  local message = ffi.new("struct { uint8_t kind, zero; uint16_t count; uint32_t ranges[?]; }", 2 * #self.watches)
  message.kind, message.count = WATCH, #self.watches
  for index, watch in ipairs(self.watches) do
    message.ranges[2 * index - 2], message.ranges[2 * index - 1] = watch.address, watch.length
  end
  local ok, problem = self.sender:send(ffi.string(message, 4 + 8 * #self.watches), self.patience)
  if not ok then return nil, problem end
  return await_done(self)
end

--- Watches a range of memory. The returned place has its bytes as of the last step or look. At most 64 KiB can be
--- watched in total.
---@param address integer on the bus
---@param length integer bytes
---@return ffi.cdata*|nil place uint8_t *, aligned to four bytes
---@return string? message
function Emulator:watch(address, length)
  local used = 0
  for _, watch in ipairs(self.watches) do used = used + math.ceil(watch.length / 4) * 4 end
  if length < 1 or used + length > 65536 or #self.watches == 1024 then
    return nil, "at most 1,024 ranges of together 65,536 bytes can be watched"
  end
  self.watches[#self.watches + 1] = { address = address, length = length }
  local ok, message = send_watches(self)
  if not ok then
    self.watches[#self.watches] = nil
    return nil, message
  end
  local place = self.screen.watch + used
  if place + length > self.line.extra_size then
    return nil, "the channel is damaged: the watched memory lies outside of it"
  end
  return self.line.extra + place
end

--- The picture of the last step or look, in place: rows from the top; red, green, blue and an unused byte per pixel.
---@return ffi.cdata* pixels const uint8_t *
---@return integer width in pixels
---@return integer height in pixels
---@return integer stride bytes from row to row
function Emulator:picture()
  local screen = self.screen
  local place, width, height, stride = screen.picture, screen.width, screen.height, screen.stride
  if width * 4 > stride or place + height * stride > self.line.extra_size then
    error("the channel is damaged: the picture lies outside of it", 2)
  end
  return self.line.extra + place, width, height, stride
end

--- A pixel of the picture. Raises an error for a place outside of it.
---@param x integer from the left, from 0
---@param y integer from the top, from 0
---@return integer colour 0xRRGGBB
function Emulator:pixel(x, y)
  local screen, line = self.screen, self.line
  local width, height = screen.width, screen.height
  if not (x >= 0 and x < width and y >= 0 and y < height and x % 1 == 0 and y % 1 == 0) then
    error(("there is no pixel %s, %s; the picture has %d x %d, counted from 0"):format(x, y, width, height), 2)
  end
  local place = screen.picture + y * screen.stride + x * 4
  if place + 3 >= line.extra_size then error("the channel is damaged: the picture lies outside of it", 2) end
  local at = line.extra + place
  return at[0] * 65536 + at[1] * 256 + at[2]
end

--- A number that changes whenever the game or the picture changes, no matter what changed it. It is odd during the
--- change. Only a client that shares the emulator with others needs it.
---@return integer
function Emulator:sequence()
  ffi.C.abs(0)
  return self.screen.sequence
end

--- Performs several operations between two frames, in order, and stops at the first that is refused.
---@param calls table[] each an operation's name, then its arguments
---@return table|nil values by number, and `frame`
---@return string? message
function Emulator:batch(calls)
  self.ids = tobit(self.ids + 1)
  local bytes, message = codec.request(self.ids, calls)
  if not bytes then return nil, message end
  local ok
  ok, message = self.sender:send(bytes, self.patience)
  if not ok then return nil, message end
  local data, length = self.receiver:await(self.patience)
  if data == nil then return nil, length end
  local outcome
  outcome, message = codec.reply(data, length)
  self.receiver:release()
  if outcome and tobit(outcome.id) ~= self.ids then return nil, "an answer to something else" end
  return outcome, message
end

--- Performs one operation.
---@param name string as in docs/protocol.md's table, such as "read8"
---@param ... any its arguments
---@return any value true if the operation has no result; nil if it was refused
---@return string? message
function Emulator:call(name, ...)
  local outcome, message = self:batch { { name, ... } }
  if not outcome then return nil, message end
  if outcome[1] == nil then return true end
  return outcome[1]
end

local Closed = closed.of(Emulator, "the emulator is closed; connect again", { picture = true, pixel = true })

--- Disconnects. The game runs by itself, and its keys are released. The picture and watched memory read as zeros
--- afterwards.
function Emulator:close()
  self.line:close()
  self.screen = nil
  setmetatable(self, Closed)
end

return M
