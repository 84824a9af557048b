--- Checks a table of options: whether each option exists, and whether its value has the right type.
---@param owner string what has the options, such as "a WebSocket"
---@param options table
---@param types table<string, string> for each option the type of its value, "amount" (a number of at least 0) or "any"
---@return true|nil ok
---@return string? message
return function(owner, options, types)
  for name, value in pairs(options) do
    local wanted = types[name]
    if not wanted then return nil, ("%s has no option '%s'"):format(owner, tostring(name)) end
    if wanted == "amount" then
      if type(value) ~= "number" or value < 0 or value ~= value then
        return nil, ("%s is %s; use a number of at least 0"):format(name, tostring(value))
      end
    elseif wanted ~= "any" and type(value) ~= wanted then
      return nil, ("%s must be a %s, not a %s"):format(name, wanted, type(value))
    end
  end
  return true
end
