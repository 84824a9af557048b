--- Controls an emulator in another process through shared memory. `framewire serve --channel NAME` runs the emulator.
-- This works only on Linux on x86-64.
--
--   local game = assert(emulator.connect("demo"))
--   local score = game:watch(0x02000044, 4)          -- uint8_t *: four bytes, which each step updates
--   game:step(emulator.keys.A)                       -- hold A, run a frame
--   print(ffi.cast("uint32_t *", score)[0], game:pixel(120, 80))
--   print(game:call("game_title"))
--
-- The first `step` *takes the clock*: from then on, the game is paused between steps, until `run` or `close`. The
-- picture and the watched memory are in shared memory and need not be copied. While both sides are busy, neither makes
-- a system call. docs/emulator-channel.md describes the messages on the channel.

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
  volatile uint32_t sequence; // odd while the picture or the game may be changing
  uint32_t frame;             // the core's frame counter
  uint32_t tick;              // frames run since the channel was created
  uint32_t width, height;     // of the picture in pixels
  uint32_t stride;            // bytes from row to row
  uint32_t picture;           // offset of the picture
  uint32_t clock;             // 1 if the client has the clock: the game is paused between its steps
  uint32_t platform;          // 0 Game Boy Advance, 1 Game Boy
  uint32_t keys;              // the keys that are held
  uint32_t watched;           // bytes of watched memory
  uint32_t watch;             // offset of the watched memory
};
]]

-- The message with which a client names the ranges that it watches: an address and a length for each.
local watch_message = ffi.typeof "struct { uint8_t kind, zero; uint16_t count; uint32_t ranges[?]; }"

-- Kinds of messages: the first four are requests, the others replies.
local STEP, RUN, LOOK, WATCH, DONE, REFUSED = 64, 65, 66, 67, 72, 73
local KEEP_KEYS = 65535
-- Seconds to poll. An emulator usually runs a frame in less time, so a program that waits for a step does not sleep.
local SPIN = 2e-3
-- Seconds to wait for a reply.
local PATIENCE = 10

local M = {
  --- Bits of a mask of keys.
  keys = { A = 1, B = 2, Select = 4, Start = 8, Right = 16, Left = 32, Up = 64, Down = 128, R = 256, L = 512 },
}

local Emulator = {}
Emulator.__index = Emulator

--- Connects to a running emulator. One client at a time can connect.
---@param name string of the channel
---@param options? table `wait`: seconds to wait until the channel exists and has no client, 0.2 by default, so that the
--- emulator can finish with an earlier client; `spin`: seconds to poll for a reply before sleeping, 0.002 by default;
--- `patience`: seconds to wait for a reply before it counts as missing, 10 by default
---@return table|nil emulator
---@return string? message
function M.connect(name, options)
  options = options or {}
  local endpoint, message = channel.connect(name, options.wait or 0.2, { spin = options.spin or SPIN })
  if not endpoint then return nil, message end
  local screen = cast("struct fw_screen *", endpoint.extra)
  -- The emulator fills the memory shortly after it has created the channel. It writes the magic last.
  local deadline = time.monotonic() + 1
  while endpoint.extra_size >= 4096 and screen.magic[1] == 0 and time.monotonic() < deadline do time.sleep(1e-3) end
  if endpoint.extra_size < 4096 or ffi.string(endpoint.extra, 8) ~= "FWFRAME1" or screen.version ~= 1 then
    endpoint:close()
    return nil, ("channel '%s' does not belong to an emulator, or has another version"):format(name)
  end
  return setmetatable({
    endpoint = endpoint,
    screen = screen,
    sender = endpoint.sender,
    receiver = endpoint.receiver,
    patience = options.patience or PATIENCE,
    watches = {},
    ids = 0,
    --- How many replies have not arrived yet.
    owed = 0,
  }, Emulator)
end

-- Waits for the reply to the message that was just sent. Results as for a receiver's `await`. Every message gets one
-- reply, in the order of the messages.
local function await_reply(self)
  local receiver, deadline = self.receiver, time.deadline(self.patience)
  self.owed = self.owed + 1
  while true do
    local data, length = receiver:await(math.max(0, deadline - time.monotonic()))
    if data == nil then return nil, length end
    self.owed = self.owed - 1
    if self.owed == 0 then return data, length end
    -- The late reply to a message whose call has timed out.
    receiver:release()
  end
end

-- Waits for `done`; returns the frame counter.
local function await_done(self)
  local receiver = self.receiver
  local data, length = await_reply(self)
  if data == nil then return nil, length end
  if data[0] ~= DONE then
    local message = data[0] == REFUSED and length >= 6 and ffi.string(data + 6, length - 6)
      or select(2, codec.reply(data, length)) or "the answer belongs to another request"
    receiver:release()
    return nil, message
  end
  local frame = cast("const uint32_t *", data)[1]
  receiver:release()
  return frame
end

--- Holds keys and runs frames. The first step takes the clock, so the game is then paused between steps. After each
-- step, the picture and the watched memory are up to date.
---@param keys? integer mask of all keys that are held; if left out, the keys do not change
---@param frames? integer 1 by default; with 0, it takes the clock and holds the keys, but runs no frame
---@return integer|nil frame the core's frame counter
---@return string? message
function Emulator:step(keys, frames)
  local mask, count = keys or 0, frames or 1
  if type(mask) ~= "number" or type(count) ~= "number" or mask % 1 ~= 0 or count % 1 ~= 0
    or mask < 0 or mask >= KEEP_KEYS or count < 0 or count > 4294967295 then
    return nil, ("step needs a mask of keys (emulator.keys has its bits) and a whole number of frames, not %s and %s")
      :format(tostring(keys), tostring(frames))
  end
  local place, message = self.sender:reserve(8, self.patience)
  if place == nil then return nil, message end
  place[0], place[1] = STEP, 0
  cast("uint16_t *", place)[1] = keys or KEEP_KEYS
  cast("uint32_t *", place)[1] = frames or 1
  self.sender:commit()
  return await_done(self)
end

local function ask(self, message)
  local ok, problem = self.sender:send(message, self.patience)
  if not ok then return nil, problem end
  return await_done(self)
end

--- Gives the clock back: the game runs on its own again. Results as for `step`.
function Emulator:run()
  return ask(self, string.char(RUN))
end

--- Updates the picture and the watched memory while the game runs by itself. The picture is then a copy, which does not
--- change until the next look or step. Results as for `step`.
function Emulator:look()
  return ask(self, string.char(LOOK))
end

local function send_watches(self)
  local message = watch_message(2 * #self.watches)
  message.kind, message.count = WATCH, #self.watches
  for index, watch in ipairs(self.watches) do
    message.ranges[2 * index - 2], message.ranges[2 * index - 1] = watch.address, watch.length
  end
  return ask(self, ffi.string(message, 4 + 8 * #self.watches))
end

--- Watches a range of memory. Each step or look copies the range's bytes to the returned address in shared memory. At
--- most 1,024 ranges with 64 KiB in total can be watched, where each range is rounded up to a multiple of four bytes.
---@param address integer an address on the bus
---@param length integer bytes
---@return ffi.cdata*|nil bytes uint8_t *, aligned to four bytes
---@return string? message
function Emulator:watch(address, length)
  for _, number in ipairs { address or false, length or false } do
    if type(number) ~= "number" or number % 1 ~= 0 or number < 0 or number > 4294967295 then
      return nil, ("a watch needs an address and a length as whole numbers from 0 to 4294967295, not %s and %s")
        :format(tostring(address), tostring(length))
    end
  end
  if length < 1 then return nil, "a watch needs a length of at least one byte" end
  local used = 0
  for _, watch in ipairs(self.watches) do used = used + math.ceil(watch.length / 4) * 4 end
  if used + length > 65536 or #self.watches == 1024 then
    return nil, "at most 1,024 ranges with 65,536 bytes in total can be watched"
  end
  self.watches[#self.watches + 1] = { address = address, length = length }
  local ok, message = send_watches(self)
  if not ok then
    self.watches[#self.watches] = nil
    return nil, message
  end
  local place = self.screen.watch + used
  if place + length > self.endpoint.extra_size then
    return nil, "the channel is damaged: the watched memory lies outside of it"
  end
  return self.endpoint.extra + place
end

--- Stops watching all ranges. The addresses that `watch` has returned are then not updated any more, and new watches
--- use their memory. Call this after a change to a game for another console: each `watch` also requests the earlier
--- ranges again, and is refused if the bus of the new console does not have them. Results as for `step`.
function Emulator:unwatch()
  local watches = self.watches
  self.watches = {}
  local frame, message = send_watches(self)
  if not frame then self.watches = watches end
  return frame, message
end

--- The picture of the last step or look, in shared memory. The top row is first. A pixel has four bytes: red,
--- green, blue and an unused one.
---@return ffi.cdata* pixels const uint8_t *
---@return integer width in pixels
---@return integer height in pixels
---@return integer stride bytes from row to row
function Emulator:picture()
  local screen = self.screen
  local place, width, height, stride = screen.picture, screen.width, screen.height, screen.stride
  if width * 4 > stride or place + height * stride > self.endpoint.extra_size then
    error("the channel is damaged: the picture lies outside of it", 2)
  end
  return self.endpoint.extra + place, width, height, stride
end

--- A pixel of the picture. Raises an error if it is outside of the picture.
---@param x integer from the left, from 0
---@param y integer from the top, from 0
---@return integer colour 0xRRGGBB
function Emulator:pixel(x, y)
  local screen, endpoint = self.screen, self.endpoint
  local width, height = screen.width, screen.height
  if not (x >= 0 and x < width and y >= 0 and y < height and x % 1 == 0 and y % 1 == 0) then
    error(("there is no pixel %s, %s; the picture has %d x %d pixels, counted from 0"):format(x, y, width, height), 2)
  end
  local place = screen.picture + y * screen.stride + x * 4
  if place + 3 >= endpoint.extra_size then error("the channel is damaged: the picture lies outside of it", 2) end
  local at = endpoint.extra + place
  return at[0] * 65536 + at[1] * 256 + at[2]
end

--- A number that changes whenever the game or the picture changes. It is odd during a change. Only a program that
--- shares the emulator with HTTP clients needs this number: it shows whether the picture changed while the program read
--- the picture.
---@return integer
function Emulator:sequence()
  -- The call keeps the compiler from reading the number earlier.
  ffi.C.abs(0)
  return self.screen.sequence
end

--- Performs several operations in order, without running a frame between them. Stops at the first that is refused.
---@param calls table[] up to 4,096; each is a list of an operation's name and its arguments
---@return table|nil values the result of each operation under its number, and `frame`; nil if one was refused
---@return string? message
function Emulator:batch(calls)
  self.ids = tobit(self.ids + 1)
  local bytes, message = codec.request(self.ids, calls)
  if not bytes then return nil, message end
  local ok
  ok, message = self.sender:send(bytes, self.patience)
  if not ok then return nil, message end
  local data, length = await_reply(self)
  if data == nil then return nil, length end
  local outcome
  outcome, message = codec.reply(data, length)
  self.receiver:release()
  if outcome and tobit(outcome.id) ~= self.ids then return nil, "the answer belongs to another request" end
  return outcome, message
end

--- Performs one operation.
---@param name string as in docs/operations.md, such as "read8"
---@param ... any the operation's arguments
---@return any value true if the operation has no result; nil if it was refused or got no reply
---@return string? message
function Emulator:call(name, ...)
  local outcome, message = self:batch { { name, ... } }
  if not outcome then return nil, message end
  if outcome[1] == nil then return true end
  return outcome[1]
end

local Closed = closed.of(Emulator, "the emulator is closed; connect again", { picture = true, pixel = true })

--- Disconnects. The game then runs by itself, and the keys that were held are released. Afterwards, the addresses of
--- the picture and the watched memory read as zeros.
function Emulator:close()
  self.endpoint:close()
  self.screen = nil
  setmetatable(self, Closed)
end

return M
