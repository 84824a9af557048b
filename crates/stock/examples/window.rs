//! A stock mGBA with the demo game and our script, for tests that are written in other languages.
//!
//! Prints `attach HOST:PORT` when the script listens. Then each line of the input is a command: `pause` or `resume`, which
//! is answered by `done`. It ends with its input.

use std::error::Error;
use std::io::stdin;
use std::path::Path;

use framewire_stock::{StockMgba, StockOptions, ports};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir()?;
    // A game writes its save beside its ROM.
    let rom = folder.path().join("demo.gba");
    std::fs::copy(root.join("rom/framewire-demo.gba"), &rom)?;
    let options = StockOptions::new(&rom).script(Path::new(framewire_script::PATH)).port(ports::free());
    let mut mgba = StockMgba::start(&options)?;
    println!("attach {}", mgba.address());
    for line in stdin().lines() {
        match line?.as_str() {
            "pause" => mgba.pause()?,
            "resume" => mgba.unpause()?,
            other => return Err(format!("{other:?} is no command; pause and resume are").into()),
        }
        println!("done");
    }
    Ok(())
}
