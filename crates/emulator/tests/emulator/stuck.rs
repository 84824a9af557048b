//! A script in the embedded core that does not end, or not for long.

use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Embedded, Speed};
use framewire_emulator::{Emulator, EmulatorError, Happening, Run};
use framewire_protocol::Op;

use super::support::{config, script, seconds, soon, wait_for};

/// Loops from its tenth frame on. Not for ever: the thread outlives its test.
const LOOPS: &str = "
local frames = 0
callbacks:add('frame', function()
  frames = frames + 1
  if frames == 10 then
    local start = os.clock()
    while os.clock() - start < 8 do end
  end
end)";

#[test]
fn requests_are_answered_by_their_deadline_and_the_end_is_not_held_up() {
    let script = script(LOOPS);
    let config = config(Speed::Times(1.0), false, vec![script.path().to_owned()]);
    let emulator = Embedded::start(config).expect("the script loads");
    let mut events = emulator.events();
    wait_for("a request without an answer", || {
        let asked = Instant::now();
        let answer = emulator.submit(Op::CurrentFrame {}.into(), seconds(0.2)).wait();
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
        matches!(answer, Err(EmulatorError::Deadline(text)) if text.contains("script"))
    });
    wait_for("stalled", || emulator.state().run == Run::Stalled);
    assert_eq!(emulator.state().frames_per_second, 0.0);
    assert_eq!(soon(async { events.recv().await.ok() }).what, Happening::Stalled);

    // With a full queue too.
    let pending: Vec<_> =
        std::iter::repeat_with(|| emulator.submit(Op::CurrentFrame {}.into(), seconds(0.3)))
            .take(10_000)
            .collect();
    for pending in pending {
        assert!(matches!(pending.wait(), Err(EmulatorError::Deadline(_) | EmulatorError::Busy(_))));
    }
    let dropped = Instant::now();
    drop(emulator);
    assert!(dropped.elapsed() < Duration::from_secs(3), "{:?}", dropped.elapsed());
}

#[test]
fn a_deadline_is_kept_within_an_async_runtime() {
    let script = script(LOOPS);
    let config = config(Speed::Unlimited, false, vec![script.path().to_owned()]);
    let emulator = Embedded::start(config).expect("the script loads");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    wait_for("a request without an answer", || {
        let answer = runtime.block_on(emulator.submit(Op::CurrentFrame {}.into(), seconds(0.2)));
        matches!(answer, Err(EmulatorError::Deadline(_)))
    });
}
