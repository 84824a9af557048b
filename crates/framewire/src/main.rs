//! The `framewire` program.
fn main() {}
