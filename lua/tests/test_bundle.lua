local harness = require "harness"

harness.test("framewire.lua is what the parts give", function()
  local check = ("%s %slua/bundle.lua --check"):format(arg[-1], harness.root)
  harness.eq(os.execute(check), true)
end)

harness.test("the script loads without an emulator when it is tested", function()
  local before = {}
  for name in pairs(_G) do
    before[name] = true
  end
  framewire = { testing = true }
  dofile(harness.root .. "lua/framewire.lua")
  harness.eq(framewire.version, require "version".script)
  harness.eq(framewire.operations[0x20].format, "<I4")
  framewire = nil
  for name in pairs(_G) do
    harness.eq(before[name], true, "the global " .. name)
  end
end)
