-- luacheck: globals init request wrk
-- For wrk: sixteen requests at once.

local all

function init()
  all = wrk.format("GET", "/"):rep(16)
end

function request()
  return all
end
