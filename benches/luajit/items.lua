-- luacheck: globals init request wrk
-- A script for wrk. It requests a thousand different items in turn, so that the server cannot reuse the results of the
-- previous request.

local all, place = {}, 0

function init()
  for i = 0, 999 do all[i] = wrk.format("GET", "/items/" .. i * 7919) end
end

function request()
  place = (place + 1) % 1000
  return all[place]
end
