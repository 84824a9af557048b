//! Runs the program without the caller's settings. The tests of other crates include this file by its path.

use std::process::Command;

/// Removes the user's own settings for the program and for the script from the environment.
pub fn without_settings(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("FRAMEWIRE") {
            command.env_remove(name);
        }
    }
    command
}
