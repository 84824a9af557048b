-- Framewire's script: lets other programs drive this mGBA (0.10.1 or newer).
--
-- Load it in mGBA: Tools > Scripting... > File > Load script. Loaded again, it replaces the one that runs.
-- It speaks mGBA-http's text messages and Framewire's binary frames on one port; docs/protocol.md describes both.
--
-- The settings below can be changed here. Or, without touching this file, in a global table that is set before it is
-- loaded, `framewire = {port = 8889}`, or by FRAMEWIRE_SCRIPT_PORT, FRAMEWIRE_SCRIPT_ADDRESS,
-- FRAMEWIRE_SCRIPT_LOG_LEVEL and FRAMEWIRE_SCRIPT_ALLOW_SCRIPT in mGBA's environment.

local SETTINGS = {
  address = "127.0.0.1", -- where to listen; "" is every interface, and lets the whole network in
  port = 8888,
  log_level = "info", -- debug, info, warn, error or none
  allow_script = false, -- true lets clients run their own Lua code in this mGBA
}
