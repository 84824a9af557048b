--- Removes spaces and tabs from both ends of a text. With the pattern "^[ \t]*(.-)[ \t]*$", the time would grow with
-- the square of the text's length, and one request with many spaces would stop the server for seconds.
---@param text string
---@return string
return function(text)
  local first = text:find("[^ \t]")
  return first and text:match("^.*[^ \t]", first) or ""
end
