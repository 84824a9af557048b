//! A stock mGBA with the demo game and Framewire's script, for tests that are written in other languages.
//!
//! Prints `attach HOST:PORT` when the script listens. Then it reads commands from its standard input, one per line:
//! `pause` or `resume`. After each command it prints `done`. It exits at the end of the input.

use std::error::Error;
use std::io::stdin;

use framewire_lab::{StockMgba, StockOptions, paths, ports};

fn main() -> Result<(), Box<dyn Error>> {
    let options = StockOptions::new(&paths::rom()).script(&paths::script()).port(ports::free());
    let mut mgba = StockMgba::start(&options)?;
    println!("attach {}", mgba.address());
    for line in stdin().lines() {
        match line?.as_str() {
            "pause" => mgba.pause()?,
            "resume" => mgba.resume()?,
            other => return Err(format!("{other:?} is not a command; use pause or resume").into()),
        }
        println!("done");
    }
    Ok(())
}
