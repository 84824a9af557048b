//! Keeps the caller's settings away from the programs that tests start. The tests of other crates include this file by
//! its path.

use std::process::Command;

/// Keeps the command from inheriting the caller's variables whose names begin with `FRAMEWIRE`.
pub fn without_settings(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("FRAMEWIRE") {
            command.env_remove(name);
        }
    }
    command
}
