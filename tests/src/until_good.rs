//! Repeats measurements that a busy machine can spoil. The tests of other crates include this file by its path.

use std::fmt::Debug;
use std::time::Duration;

/// Measures until a result is good, at most ten times. The pauses let a burst of load on the machine pass.
///
/// # Panics
///
/// If none of the results is good.
#[track_caller]
pub fn until_good<T: Debug>(mut measure: impl FnMut() -> T, is_good: impl Fn(&T) -> bool) {
    let mut bad = Vec::new();
    while bad.len() < 10 {
        let result = measure();
        if is_good(&result) {
            return;
        }
        bad.push(result);
        std::thread::sleep(Duration::from_secs(1));
    }
    panic!("no result is good: {bad:?}");
}
