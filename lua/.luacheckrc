std = "lua54"
max_line_length = 128
read_globals = { "C", "callbacks", "console", "emu", "socket" }

files["src/main.lua"] = { globals = { "framewire" }, read_globals = { "SETTINGS" } }
files["src/head.lua"] = { ignore = { "211/SETTINGS" } }
files["tests"] = { globals = { "SETTINGS", "callbacks", "console", "emu", "framewire", "socket" } }
