//! Measures how many frames per second this machine can run without environments. Bare cores run and draw the same
//! frames as environments, on several threads. `python/benches/envs.py` compares environments with this program.
//!
//!     bare ROM CORES THREADS FRAME_SKIP SECONDS    prints frames per second
//!
//! With FRAME_SKIP 4, each core runs four frames, of which the last is drawn, before the next core runs. The cores mix
//! their sound, as libmgba itself does by default. Environments do not mix sound that nobody reads.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use framewire_libmgba::Core;

const USAGE: &str = "usage: bare ROM CORES THREADS FRAME_SKIP SECONDS";

/// The number of frames that are run before the measurement, so that the demo game has started.
const WARM_UP: u32 = 120;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rom, cores, threads, skip, seconds] = arguments.as_slice() else { return Err(USAGE.into()) };
    let rom = PathBuf::from(rom);
    let (cores, threads, skip): (usize, usize, u32) = (cores.parse()?, threads.parse()?, skip.parse()?);
    let time = Duration::from_secs_f64(seconds.parse()?);

    let mut all: Vec<Core> = (0..cores).map(|_| Core::open(&rom)).collect::<Result<_, _>>()?;
    for core in &mut all {
        core.mix_all_sound(true);
        (0..WARM_UP).for_each(|_| core.run_frame());
    }
    let share = cores.div_ceil(threads);
    let begin = Instant::now();
    let frames: u64 = std::thread::scope(|scope| {
        let run = |cores| scope.spawn(move || run(cores, skip, begin + time));
        let threads: Vec<_> = all.chunks_mut(share).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    println!("{:.0}", frames as f64 / begin.elapsed().as_secs_f64());
    Ok(())
}

/// Runs these cores in turn until `end`, and returns how many frames they ran.
fn run(cores: &mut [Core], skip: u32, end: Instant) -> u64 {
    let mut frames = 0;
    while Instant::now() < end {
        for core in &mut *cores {
            for left in (0..skip).rev() {
                core.set_drawing(left == 0);
                core.run_frame();
            }
            frames += u64::from(skip);
        }
    }
    frames
}
