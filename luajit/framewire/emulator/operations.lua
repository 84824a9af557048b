--- The table of operations; crates/protocol/src/op.rs has the same, and a test holds the two together.
-- A row: code, name, and its arguments' types, in order.

local rows = {
  { 0x01, "echo", "bytes" },

  { 0x10, "current_frame" }, { 0x11, "frame_cycles" }, { 0x12, "frequency" }, { 0x13, "game_code" },
  { 0x14, "game_title" }, { 0x15, "platform" }, { 0x16, "rom_size" }, { 0x17, "checksum" },

  { 0x20, "read8", "u32" }, { 0x21, "read16", "u32" }, { 0x22, "read32", "u32" }, { 0x23, "read_range", "u32 u32" },
  { 0x24, "write8", "u32 u8" }, { 0x25, "write16", "u32 u16" }, { 0x26, "write32", "u32 u32" },
  { 0x27, "write_range", "u32 bytes" },

  { 0x30, "domains" }, { 0x31, "domain_base", "text" }, { 0x32, "domain_bound", "text" },
  { 0x33, "domain_name", "text" }, { 0x34, "domain_size", "text" }, { 0x35, "domain_read8", "text u32" },
  { 0x36, "domain_read16", "text u32" }, { 0x37, "domain_read32", "text u32" },
  { 0x38, "domain_read_range", "text u32 u32" }, { 0x39, "domain_write8", "text u32 u8" },
  { 0x3a, "domain_write16", "text u32 u16" }, { 0x3b, "domain_write32", "text u32 u32" },

  { 0x40, "read_register", "text" }, { 0x41, "write_register", "text i32" },

  { 0x50, "get_keys" }, { 0x51, "get_key", "u8" }, { 0x52, "set_keys", "u16" }, { 0x53, "add_keys", "u16" },
  { 0x54, "clear_keys", "u16" }, { 0x55, "hold_keys", "u16 u32" }, { 0x56, "play_keys", "bytes" },
  { 0x57, "cancel_keys", "u32" }, { 0x58, "timeline", "u32" },

  { 0x60, "save_state", "u8" }, { 0x61, "load_state", "bytes u8" }, { 0x62, "save_state_file", "text u8" },
  { 0x63, "load_state_file", "text u8" }, { 0x64, "save_state_slot", "u32 u8" },
  { 0x65, "load_state_slot", "u32 u8" },

  { 0x70, "load_file", "text" }, { 0x71, "load_rom", "text" }, { 0x72, "load_save_file", "text bool" },
  { 0x73, "autoload_save" },

  { 0x80, "reset" }, { 0x81, "step" }, { 0x82, "pause" }, { 0x83, "resume" }, { 0x84, "set_speed", "u32" },
  { 0x85, "advance", "u32" }, { 0x86, "lockstep", "u32" },

  { 0x90, "screenshot" }, { 0x91, "screenshot_file", "text" },

  { 0xa0, "console_log", "text" }, { 0xa1, "console_warn", "text" }, { 0xa2, "console_error", "text" },

  { 0xb0, "watch", "u32 u32 u8 bytes" }, { 0xb1, "unwatch", "u32" },
}

local by_name = {}
for _, row in ipairs(rows) do
  local types = {}
  for word in (row[3] or ""):gmatch("%S+") do types[#types + 1] = word end
  by_name[row[2]] = { code = row[1], name = row[2], types = types }
end

return by_name
