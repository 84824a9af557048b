//! Tests of vectors of environments, with the demo game.

use std::path::Path;

use framewire_game::GameFile;
use framewire_vecenv::{Autoreset, Batch, Error, Options, Task, VectorEnv};

#[path = "../../../tests/src/keypad_counter.rs"]
mod keypad_counter;

const GAME: &str = r#"
[game]
name = "Demo"
rom = "framewire-demo.gba"
symbols = ["memory-map.toml"]

[scenario.play]
start = { inputs = ".:80 A:2" }
actions = [".", "Left", "Right", "A"]
frame_skip = 4
max_frames = 2000
reward = "delta(score)"
terminated = "lives == 0"
info = { score = "score", lives = "lives" }
[scenario.play.observe]
screen = { size = [84, 84], grey = true, stack = 4, max = 2 }
memory = ["paddle_x", "ball_x", "bytes[bricks, 70]"]

[scenario.blind]
start = { inputs = ".:80 A:2" }
actions = [".", "Left", "Right", "A"]
frame_skip = 4
max_frames = 2000
terminated = "lives == 0"
[scenario.blind.observe]
memory = ["score"]

[scenario.sticky]
start = { inputs = ".:80" }
actions = "buttons"
frame_skip = 3
sticky = 0.25
max_noops = 30
max_frames = 300
reward = "delta(score) * 0.5"
[scenario.sticky.observe]
memory = ["paddle_x"]
"#;

#[test]
fn a_state_from_after_the_last_frame_of_an_episode_is_refused() {
    let one = || Options { envs: 1, ..Options::default() };
    let long = GAME.replace("max_frames = 300", "max_frames = 600");
    let states = |text: &str, steps: usize| {
        let mut vector = VectorEnv::new(task_of(text, "sticky"), &one()).unwrap();
        let mut arrays = Arrays::new(&vector, false);
        vector.reset(&[Some(1)], None, arrays.batch()).unwrap();
        for _ in 0..steps {
            vector.step(&[0], arrays.batch()).unwrap();
        }
        vector.save(&[true]).unwrap()
    };
    let mut vector = VectorEnv::new(task("sticky"), &one()).unwrap();
    let late = states(&long, 100);
    let error = vector.restore(&[late[0].as_deref()]).unwrap_err().to_string();
    assert!(error.contains("episodes of this environment end after 300 frames"), "{error}");
    let early = states(&long, 10);
    vector.restore(&[early[0].as_deref()]).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_start_state_without_an_end_is_refused() {
    let rom = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rom");
    let text = GAME.replacen("inputs = \".:80 A:2\"", "state = \"/dev/zero\"", 1);
    let file = GameFile::parse(&rom.join("game.toml"), &text).unwrap();
    let error = Task::new(&file, Some("play"), None).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
    let says = "cannot read /dev/zero: it is too large; use a file of at most 16777216 bytes";
    assert_eq!(error.to_string(), says);
}

#[test]
fn an_environment_continues_from_its_state() {
    for scenario in ["play", "sticky"] {
        let options = Options { envs: 3, ..Options::default() };
        let mut whole = VectorEnv::new(task(scenario), &options).unwrap();
        let mut arrays = Arrays::new(&whole, false);
        let steps = |vector: &mut VectorEnv, arrays: &mut Arrays| {
            for step in 0..25 {
                vector.step(&[step % 4, 1, 2], arrays.batch()).unwrap();
            }
        };
        whole.reset(&[Some(1), Some(2), Some(3)], None, arrays.batch()).unwrap();
        steps(&mut whole, &mut arrays);
        let states = whole.save(&[true; 3]).unwrap();
        steps(&mut whole, &mut arrays);

        let mut other = VectorEnv::new(task(scenario), &options).unwrap();
        let mut others = Arrays::new(&other, false);
        let slices: Vec<Option<&[u8]>> = states.iter().map(Option::as_deref).collect();
        other.restore(&slices).unwrap();
        steps(&mut other, &mut others);
        assert_eq!(others, arrays);
        assert_eq!(other.hashes().unwrap(), whole.hashes().unwrap());

        let damaged = &slices[0].unwrap()[..500];
        let before = other.hashes().unwrap();
        for states in [[Some(damaged), None, None], [slices[0], slices[1], Some(damaged)]] {
            assert!(other.restore(&states).unwrap_err().to_string().contains("damaged"));
        }
        let error = VectorEnv::new(task("blind"), &options).unwrap().restore(&slices).unwrap_err();
        assert!(error.to_string().contains("this environment is of blind"), "{error}");
        assert_eq!(other.hashes().unwrap(), before);
    }
}

#[test]
fn keys_that_were_held_before_a_reset_or_a_loaded_state_do_not_change_a_step() {
    let demo = include_bytes!("../../../rom/framewire-demo.gba");
    let rom = Path::new(env!("CARGO_TARGET_TMPDIR")).join("keypad-counter.gba");
    std::fs::write(&rom, keypad_counter::keypad_counter(demo)).unwrap();
    let text = GAME.replace("terminated = \"lives == 0\"\n", "");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rom");
    let file = GameFile::parse(&folder.join("game.toml"), &text).unwrap();
    let task = Task::new(&file, Some("blind"), Some(&rom)).unwrap();
    let mut vector = VectorEnv::new(task, &Options { envs: 1, ..Options::default() }).unwrap();
    let mut arrays = Arrays::new(&vector, false);
    let mut step = |vector: &mut VectorEnv, action| {
        vector.step(&[action], arrays.batch()).unwrap();
        vector.with_core(0, |core, _| core.read32(0x0200_0000)).unwrap()
    };
    let mut first = Arrays::new(&vector, false);
    vector.reset(&[Some(1)], None, first.batch()).unwrap();
    let released = vector.save(&[true]).unwrap();
    let pressed = step(&mut vector, 3);
    let held = vector.save(&[true]).unwrap();
    let longer = step(&mut vector, 3);
    for before in [0, 3] {
        for (state, count) in [(&released, pressed), (&held, longer)] {
            step(&mut vector, before);
            vector.restore(&[state[0].as_deref()]).unwrap();
            assert_eq!(step(&mut vector, 3), count, "after action {before}");
        }
        step(&mut vector, before);
        vector.reset(&[None], None, first.batch()).unwrap();
        assert_eq!(step(&mut vector, 3), pressed, "after action {before}");
    }
}

#[test]
fn a_reset_of_some_environments_returns_the_observations_of_loaded_states() {
    let text = GAME.replace("\"ball_x\", ", "\"delta(ball_x)\", ");
    let options = Options { envs: 2, ..Options::default() };
    let new = || VectorEnv::new(task_of(&text, "play"), &options).unwrap();
    let mut vector = new();
    let mut arrays = Arrays::new(&vector, false);
    vector.reset(&[Some(1), Some(2)], None, arrays.batch()).unwrap();
    for _ in 0..25 {
        vector.step(&[1, 2], arrays.batch()).unwrap();
    }
    let states = vector.save(&[true; 2]).unwrap();
    let slices: Vec<Option<&[u8]>> = states.iter().map(Option::as_deref).collect();
    let saved = arrays.clone();
    for _ in 0..25 {
        vector.step(&[2, 1], arrays.batch()).unwrap();
    }
    for mut other in [vector, new()] {
        other.restore(&slices).unwrap();
        let mut found = Arrays::new(&other, false);
        other.reset(&[None, None], Some(&[true, false]), found.batch()).unwrap();
        let (screen, memory, info) = (found.screens.len() / 2, found.memory.len() / 2, found.info.len() / 2);
        assert_eq!(found.screens[screen..], saved.screens[screen..]);
        assert_eq!(found.memory[memory..], saved.memory[memory..]);
        assert_eq!(found.info[info..], saved.info[info..]);
        assert_ne!(found.memory[..memory], saved.memory[..memory]);
    }
}

fn task(scenario: &str) -> Task {
    task_of(GAME, scenario)
}

fn task_of(text: &str, scenario: &str) -> Task {
    let rom = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rom");
    let file = GameFile::parse(&rom.join("game.toml"), text).unwrap();
    Task::new(&file, Some(scenario), None).unwrap()
}

/// The arrays of a batch.
#[derive(Clone, Debug, PartialEq)]
struct Arrays {
    screens: Vec<u8>,
    memory: Vec<f32>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
    info: Vec<f64>,
    finals: (Vec<u8>, Vec<f32>, Vec<f64>),
}

impl Arrays {
    fn new(vector: &VectorEnv, finals: bool) -> Arrays {
        let (task, envs) = (vector.task(), vector.count());
        let kept = if finals { envs } else { 0 };
        let infos = task.info_names().count();
        Arrays {
            screens: vec![0; envs * task.screen_len()],
            memory: vec![0.0; envs * task.memory_len()],
            rewards: vec![0.0; envs],
            terminated: vec![false; envs],
            truncated: vec![false; envs],
            info: vec![0.0; envs * infos],
            finals: (
                vec![0; kept * task.screen_len()],
                vec![0.0; kept * task.memory_len()],
                vec![0.0; kept * infos],
            ),
        }
    }

    fn batch(&mut self) -> Batch<'_> {
        Batch {
            screens: &mut self.screens,
            memory: &mut self.memory,
            rewards: &mut self.rewards,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            info: &mut self.info,
            final_screens: &mut self.finals.0,
            final_memory: &mut self.finals.1,
            final_info: &mut self.finals.2,
        }
    }
}

fn vector(scenario: &str, envs: usize, threads: usize, autoreset: Autoreset) -> (VectorEnv, Arrays) {
    let options = Options { envs, threads, autoreset, ..Options::default() };
    let mut vector = VectorEnv::new(task(scenario), &options).unwrap();
    let mut arrays = Arrays::new(&vector, autoreset == Autoreset::SameStep);
    let seeds: Vec<Option<u64>> = (0..envs as u64).map(|index| Some(7 + index)).collect();
    vector.reset(&seeds, None, arrays.batch()).unwrap();
    (vector, arrays)
}

/// Actions that differ from environment to environment and from step to step.
fn actions(envs: usize, step: usize, count: usize) -> Vec<i64> {
    (0..envs).map(|env| ((env * 7 + step / 5 * 3 + env * step) % count) as i64).collect()
}

#[test]
fn observations_and_states_are_equal_with_any_number_of_threads() {
    for (scenario, count) in [("play", 4), ("sticky", 1024)] {
        let mut results: Vec<(Vec<Arrays>, Vec<[u8; 32]>)> = Vec::new();
        for threads in [1, 2, 8] {
            let (mut vector, mut arrays) = vector(scenario, 6, threads, Autoreset::NextStep);
            let mut steps = vec![arrays.clone()];
            for step in 0..150 {
                vector.step(&actions(6, step, count), arrays.batch()).unwrap();
                steps.push(arrays.clone());
            }
            results.push((steps, vector.hashes().unwrap()));
        }
        assert!(results.iter().all(|result| *result == results[0]), "{scenario}");
        let hashes = &results[0].1;
        assert!(hashes[1..].iter().any(|hash| *hash != hashes[0]), "the environments differ: {scenario}");
    }
}

#[test]
fn rewards_add_up_to_the_score_and_episodes_end() {
    let (mut vector, mut arrays) = vector("play", 2, 2, Autoreset::Disabled);
    let mut score = arrays.info[1];
    let first = score;
    for step in 0.. {
        vector.step(&[0, 0], arrays.batch()).unwrap();
        score += arrays.rewards[0];
        assert_eq!(score, arrays.info[1], "the rewards add up to the score");
        if arrays.terminated[0] || arrays.truncated[0] {
            assert!(step > 10);
            break;
        }
    }
    assert!(score > first);
    let before = vector.hashes().unwrap();
    let message = vector.step(&[0, 0], arrays.batch()).unwrap_err().to_string();
    assert!(message.contains("has ended; reset it first"), "{message}");
    assert_eq!(vector.hashes().unwrap(), before, "nothing has changed");
    // Only the first environment is reset.
    vector.reset(&[None, None], Some(&[true, false]), arrays.batch()).unwrap();
    let after = vector.hashes().unwrap();
    assert!(after[0] != before[0] && after[1] == before[1]);
}

#[test]
fn a_reset_in_the_same_step_keeps_the_last_observation() {
    let (mut same, mut same_arrays) = vector("play", 1, 1, Autoreset::SameStep);
    let (mut next, mut next_arrays) = vector("play", 1, 1, Autoreset::NextStep);
    let first = next_arrays.clone();
    loop {
        same.step(&[0], same_arrays.batch()).unwrap();
        next.step(&[0], next_arrays.batch()).unwrap();
        assert_eq!(same_arrays.rewards, next_arrays.rewards);
        if next_arrays.terminated[0] || next_arrays.truncated[0] {
            break;
        }
    }
    assert_eq!(same_arrays.finals.0, next_arrays.screens);
    assert_eq!(same_arrays.finals.1, next_arrays.memory);
    assert_eq!(same_arrays.screens, first.screens);
    // The other vector resets its environment in the next step and ignores the action.
    next.step(&[3], next_arrays.batch()).unwrap();
    assert_eq!(next_arrays.screens, first.screens);
    assert_eq!((next_arrays.rewards[0], next_arrays.terminated[0]), (0.0, false));
    assert_eq!(same.hashes().unwrap(), next.hashes().unwrap());
}

#[test]
fn an_environment_plays_no_step_before_its_first_reset() {
    let new = || VectorEnv::new(task("play"), &Options { envs: 2, ..Options::default() }).unwrap();
    let mut vector = new();
    let mut arrays = Arrays::new(&vector, false);
    let before = vector.hashes().unwrap();
    let check = |vector: &mut VectorEnv, arrays: &mut Arrays, number: usize| {
        let step = vector.step(&[0, 0], arrays.batch()).unwrap_err();
        let send = vector.send(&[0, 1], &[0, 0]).unwrap_err();
        for error in [step, send] {
            let message = error.to_string();
            let says = format!("environment {number} has not begun an episode; call reset first");
            assert!(message.contains(&says), "{message}");
        }
    };
    check(&mut vector, &mut arrays, 0);
    assert_eq!(vector.hashes().unwrap(), before, "nothing has changed");
    vector.reset(&[None, None], Some(&[true, false]), arrays.batch()).unwrap();
    check(&mut vector, &mut arrays, 1);
    // Another vector can continue from the states, but only where an episode has begun.
    let states = vector.save(&[true; 2]).unwrap();
    let slices: Vec<Option<&[u8]>> = states.iter().map(Option::as_deref).collect();
    let mut other = new();
    other.restore(&slices).unwrap();
    check(&mut other, &mut arrays, 1);
    other.restore(&[None, slices[0]]).unwrap();
    other.step(&[0, 0], arrays.batch()).unwrap();
}

#[test]
fn an_unknown_action_changes_nothing() {
    let (mut vector, mut arrays) = vector("play", 2, 2, Autoreset::NextStep);
    let before = vector.hashes().unwrap();
    for (actions, message) in
        [(&[0, 4][..], "no action 4"), (&[-1, 0], "no action -1"), (&[0], "1 values for 2")]
    {
        let error = vector.step(actions, arrays.batch()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(vector.hashes().unwrap(), before);
}

#[test]
fn states_are_equal_whether_frames_are_drawn_or_not() {
    let hashes = ["play", "blind"].map(|scenario| {
        let (mut vector, mut arrays) = vector(scenario, 2, 2, Autoreset::NextStep);
        for step in 0..300 {
            vector.step(&actions(2, step, 4), arrays.batch()).unwrap();
        }
        vector.hashes().unwrap()
    });
    assert_eq!(hashes[0], hashes[1]);
}
