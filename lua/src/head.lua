-- Framewire's script: lets other programs control this mGBA (0.10.1 or newer).
--
-- Load it in mGBA: Tools > Scripting... > File > Load script. If you load it again, the new copy replaces the running
-- one. It accepts mGBA-http's text messages and Framewire's binary frames on one port; docs/protocol.md describes both.
--
-- You can change the settings below in this file. You can also leave the file as it is: set a global table such as
-- `framewire = {port = 8889}` before you load the file, or set FRAMEWIRE_SCRIPT_PORT, FRAMEWIRE_SCRIPT_ADDRESS,
-- FRAMEWIRE_SCRIPT_LOG_LEVEL or FRAMEWIRE_SCRIPT_ALLOW_SCRIPT in mGBA's environment.

local SETTINGS = {
  address = "127.0.0.1", -- where to listen; "" listens on every interface, so other machines can connect
  port = 8888,
  log_level = "info", -- debug, info, warn, error or none
  allow_script = false, -- true lets clients run their own Lua code in this mGBA
}
