--- Whether a header that is a list of words, such as Connection, contains a word.
---@param header string|nil
---@param word string in lower case
---@return boolean
return function(header, word)
  if not header then return false end -- most requests have no such header
  for one in header:lower():gmatch("[^,%s]+") do
    if one == word then return true end
  end
  return false
end
