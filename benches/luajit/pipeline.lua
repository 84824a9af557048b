-- luacheck: globals init request wrk
-- A script for wrk. It sends sixteen requests at once on each connection (pipelining).

local all

function init()
  all = wrk.format("GET", "/"):rep(16)
end

function request()
  return all
end
