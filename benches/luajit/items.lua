-- luacheck: globals init request wrk
-- For wrk: a thousand items in turn, so that the server cannot remember the request.

local all, place = {}, 0

function init()
  for i = 0, 999 do all[i] = wrk.format("GET", "/items/" .. i * 7919) end
end

function request()
  place = (place + 1) % 1000
  return all[place]
end
