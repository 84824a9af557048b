-- A refusal says why an operation was not performed, or why it failed: a status and a sentence. docs/protocol.md lists
-- all statuses.

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

-- Returns the status and the text of an error that `pcall` has caught: a refusal, or an error of mGBA.
function refusal.of(problem)
  if type(problem) == "table" then
    return problem.status, problem.text
  end
  return refusal.FAILED, "mGBA refused: " .. refusal.sentence(problem)
end

-- Converts any text, such as a path or a game's title, to valid UTF-8.
function refusal.printable(text)
  if utf8.len(text) then
    return text
  end
  return (gsub(text, "[\128-\255]", function(char)
    return format("\\x%02x", char:byte())
  end))
end

-- Prepares text from outside the script for a log line or a refusal: returns its first line, shortened.
function refusal.sentence(text)
  text = gsub(refusal.printable(tostring(text)), "\n.*", "")
  return #text > 300 and sub(text, 1, utf8.offset(text, 0, 301) - 1) .. "..." or text
end

return refusal
