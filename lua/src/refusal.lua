-- Why an operation is refused: a status (docs/protocol.md lists them) and a sentence for people.

local format, gsub, sub = string.format, string.gsub, string.sub

local refusal = {
  BAD_ARGUMENT = 1,
  UNSUPPORTED = 2,
  NO_GAME = 3,
  FAILED = 4,
  BUSY = 5,
  TOO_LARGE = 6,
  LOST = 7,
  NOT_DONE = 8,
  NOT_FOUND = 9,
}

-- Raises a refusal.
function refusal.refuse(status, text, ...)
  error({ status = status, text = format(text, ...) }, 0)
end

-- Text that other programs can read: UTF-8, whatever the header of a game or a path contains.
function refusal.printable(text)
  if utf8.len(text) then
    return text
  end
  return (gsub(text, "[\128-\255]", function(char)
    return format("\\x%02x", char:byte())
  end))
end

-- Text of others for one of our lines: its first line, shortened.
function refusal.sentence(text)
  text = gsub(refusal.printable(tostring(text)), "\n.*", "")
  return #text > 300 and refusal.printable(sub(text, 1, 300)) .. "..." or text
end

return refusal
