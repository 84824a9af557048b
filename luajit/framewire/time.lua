--- Clocks, sleeping and dates. All times are in seconds.

local ffi = require "ffi"
local sys = require "framewire.sys"

local C = ffi.C
local date = os.date

local M = {}

if sys.name == "windows" then
  M.monotonic, M.wall, M.cpu, M.sleep = sys.monotonic, sys.wall, sys.cpu, sys.sleep
else
  local spec = ffi.new("struct fw_timespec")

  local function clock(id)
    C.clock_gettime(id, spec)
    return tonumber(spec.sec) + tonumber(spec.nsec) * 1e-9
  end

  --- Time since an arbitrary start, on a clock that never jumps. For time-outs and measurements.
  ---@return number seconds
  function M.monotonic()
    return clock(sys.CLOCK_MONOTONIC)
  end

  --- The present time, as seconds since 1970-01-01 UTC, with fractions.
  ---@return number seconds
  function M.wall()
    return clock(sys.CLOCK_REALTIME)
  end

  --- Processor time that this process has used.
  ---@return number seconds
  function M.cpu()
    return clock(sys.CLOCK_PROCESS_CPUTIME_ID)
  end

  --- Sleeps. A signal can end the sleep early.
  ---@param seconds number
  function M.sleep(seconds)
    if seconds <= 0 then return end
    spec.sec = math.floor(seconds)
    spec.nsec = (seconds % 1) * 1e9
    C.nanosleep(spec, nil)
  end
end

--- The time at which a wait has to end.
---@param timeout? number seconds; nil for no time-out
---@return number deadline on the clock of `monotonic`; math.huge without a time-out
function M.deadline(timeout)
  if timeout == nil then return math.huge end
  if type(timeout) ~= "number" or timeout ~= timeout then
    error(("a time-out is a number of seconds, or nil for no time-out, not '%s'"):format(tostring(timeout)), 3)
  end
  return M.monotonic() + timeout
end

local days = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" }
local months = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" }
local month_number = {}
for number, name in ipairs(months) do month_number[name] = number end

-- The first second of the year 0 and the last second of the year 9999. The year in an HTTP date has four digits.
local FIRST, LAST = -62167219200, 253402300799

--- A time in HTTP's format, such as `Sun, 06 Nov 1994 08:49:37 GMT`. It does not depend on the locale. For a time
--- outside of the years 0 to 9999, returns the first or the last second of these years.
---@param seconds number since 1970
---@return string
function M.http_date(seconds)
  local t = date("!*t", math.max(FIRST, math.min(LAST, math.floor(seconds))))
  return ("%s, %02d %s %04d %02d:%02d:%02d GMT"):format(
    days[t.wday], t.day, months[t.month], t.year, t.hour, t.min, t.sec)
end

-- Days from 1970-01-01 to a date in the Gregorian calendar. In this calculation, years begin in March, so the leap day
-- is the last day of a year, and a linear formula gives the days before a month.
local function days_since_1970(year, month, day)
  if month <= 2 then year, month = year - 1, month + 12 end
  local leaps = math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
  return 365 * year + leaps + math.floor((153 * (month - 3) + 2) / 5) + day - 719469
end

--- Reads an HTTP date in the format of `http_date`.
---@param text string
---@return integer|nil seconds since 1970; nil for any other format
function M.parse_http_date(text)
  local day, name, year, hour, minute, second =
    text:match("^%a%a%a, (%d%d) (%a%a%a) (%d%d%d%d) (%d%d):(%d%d):(%d%d) GMT$")
  local month = month_number[name]
  if not month then return nil end
  return days_since_1970(tonumber(year), month, tonumber(day)) * 86400
    + tonumber(hour) * 3600 + tonumber(minute) * 60 + tonumber(second)
end

return M
