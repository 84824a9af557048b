local harness = require "harness"
local inbox = require "inbox"
local limits = require "limits"
local test, eq = harness.test, harness.eq

local function all_messages(box, found)
  local text = inbox.next_message(box)
  while text do
    table.insert(found, text)
    text = inbox.next_message(box)
  end
end

test("text messages are found, whatever pieces they arrive in", function()
  local stream = "core.step<|END|>framewire.echo,<|EN<|END|>\r\n a,<|END|><|END|>rest"
  local wanted = "core.step;framewire.echo,<|EN;a,;"
  for size = 1, #stream do
    for start = 1, size do
      local box, found = inbox.new(), {}
      inbox.push(box, stream:sub(1, start))
      all_messages(box, found)
      for at = start + 1, #stream, size do
        inbox.push(box, stream:sub(at, at + size - 1))
        all_messages(box, found)
      end
      eq(table.concat(found, ";"), wanted, ("in pieces of %d after %d"):format(size, start))
      eq(box.size, #"rest")
    end
  end
end)

test("binary frames are found, whatever pieces they arrive in", function()
  local bodies = { "\4abcd", "\6", ("x"):rep(100), "\1" }
  local stream = ""
  for _, body in ipairs(bodies) do
    stream = stream .. string.pack("<s4", body)
  end
  for size = 1, #stream do
    local box, found = inbox.new(), {}
    for at = 1, #stream, size do
      inbox.push(box, stream:sub(at, at + size - 1))
      local first, stop = inbox.next_frame(box)
      while first do
        table.insert(found, box.data:sub(first, stop - 1))
        first, stop = inbox.next_frame(box)
      end
    end
    eq(table.concat(found, ";"), table.concat(bodies, ";"), "in pieces of " .. size)
    eq(box.size, 0)
  end
end)

test("a frame with an impossible length is distinguished from an incomplete frame", function()
  for length, wanted in pairs { [0] = false, [limits.frame + 1] = false } do
    local box = inbox.new()
    inbox.push(box, string.pack("<I4", length))
    eq(inbox.next_frame(box), wanted)
  end
  local box = inbox.new()
  inbox.push(box, string.pack("<I4", limits.frame))
  eq(inbox.next_frame(box), nil)
end)

test("a message longer than the limit is reported", function()
  local box = inbox.new()
  inbox.push(box, ("x"):rep(limits.message + 1) .. inbox.END .. "next" .. inbox.END)
  local text, too_long = inbox.next_message(box)
  eq(text, nil)
  eq(too_long, true)
end)

-- The next two tests would take far longer if each piece were joined to all pieces before it.
test("a megabyte that arrives byte by byte is read in a reasonable time", function()
  local box, start = inbox.new(), os.clock()
  for _ = 1, 1024 * 1024 do
    inbox.push(box, "x")
    eq(inbox.next_message(box), nil)
  end
  inbox.push(box, inbox.END)
  eq(#inbox.next_message(box), 1024 * 1024)
  eq(os.clock() - start < 20, true, "in time")
end)

test("a large frame in many pieces is read in a reasonable time", function()
  local box, start = inbox.new(), os.clock()
  inbox.push(box, string.pack("<I4", limits.frame))
  local piece = ("x"):rep(4096)
  for _ = 1, limits.frame // #piece do
    eq(inbox.next_frame(box), nil)
    inbox.push(box, piece)
  end
  local first, stop = inbox.next_frame(box)
  eq(stop - first, limits.frame)
  eq(os.clock() - start < 20, true, "in time")
end)
