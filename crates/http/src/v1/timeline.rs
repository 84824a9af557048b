//! Timelines: plans that say which keys are held in which frames. A caller can write one in three ways; the emulator
//! gets a list of steps; and the reply lists the frames of each press.

use std::borrow::Cow;
use std::collections::BTreeMap;

use framewire_protocol::sequence::{self, PRESSES, WrongPress};
use framewire_protocol::timeline::{self, KeyStep, MAX_STEPS};
use framewire_protocol::{Key, Keys, Op, OpError, Status};
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

use super::schemas::{KeyName, reference, string};
use crate::reading::{Whole, fields, refusal};
use crate::routing::prelude::*;

/// Keys by name or as a mask.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub(crate) struct KeySet(pub(crate) Keys);

impl TryFrom<serde_json::Value> for KeySet {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<KeySet, String> {
        fields::keys(&value).map(KeySet).ok_or_else(|| refusal(&value, fields::KEYS))
    }
}

/// Keys to press, in one of three ways.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"sequence": "A:2 .:10 Up+B:30"}))]
pub(crate) struct Input {
    /// Presses one after the other, such as `A:2 .:10 Up+B:30`: keys joined by `+`, or `.` for no key; then a colon and
    /// the number of frames, which is 1 if left out.
    #[schema(example = "A:2 .:10 Up+B:30")]
    pub(super) sequence: Option<String>,
    /// Presses in any order, which may overlap.
    #[schema(max_items = 32768)]
    pub(super) presses: Option<Vec<Press>>,
    /// Each step says which keys are held from its frame on. The last step must release all keys.
    #[schema(max_items = 65536)]
    pub(super) steps: Option<Vec<Step>>,
    /// Whether the timeline begins after all timelines that play or wait, instead of with the next frame.
    #[serde(default)]
    pub(super) append: bool,
}

/// A press.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Press {
    /// The frame in which it begins; 0 is the next one.
    at: u32,
    /// The keys.
    keys: KeySet,
    /// How many frames to hold them.
    #[serde(default = "Whole::constant::<1>")]
    #[schema(value_type = u32, minimum = 1, default = 1)]
    frames: Whole<1, { u32::MAX }>,
}

/// From this frame on, these keys are held, and the timeline's other keys are up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// The frame; 0 is the next one.
    offset: u32,
    /// The keys.
    keys: KeySet,
}

impl PartialSchema for KeySet {
    fn schema() -> RefOr<Schema> {
        let names = ArrayBuilder::new().items(reference::<KeyName>());
        let mask = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(Keys::MASK));
        let description = "A list of names of keys; or names joined by +, such as Up+B; or a mask, which is the sum of \
                           the keys' numbers: A is 1, B 2, Select 4, Start 8, Right 16, Left 32, Up 64, Down 128, \
                           R 256, L 512.";
        let one = Key::ALL.map(Key::name).join("|");
        let joined = string().pattern(Some(format!("^({one})(\\+({one}))*$")));
        OneOfBuilder::new().item(names).item(mask).item(joined).description(Some(description)).into()
    }
}

impl ToSchema for KeySet {
    fn name() -> Cow<'static, str> {
        "Keys".into()
    }
}

/// A timeline that an emulator can play.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timeline(Vec<KeyStep>);

/// Keys that are held together, and the frames in which they are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PlannedPress {
    /// The keys.
    #[schema(value_type = Vec<String>)]
    keys: Vec<&'static str>,
    /// The first frame in which they are held, by the frame counter.
    first: u64,
    /// The last frame in which they are held.
    last: u64,
}

impl TryFrom<Input> for Timeline {
    type Error = Problem;

    fn try_from(input: Input) -> Result<Timeline> {
        match input {
            Input { sequence: Some(text), presses: None, steps: None, .. } => Timeline::of_sequence(&text),
            Input { sequence: None, presses: Some(presses), steps: None, .. } => {
                Timeline::of_presses(&presses)
            }
            Input { sequence: None, presses: None, steps: Some(steps), .. } => {
                let steps =
                    steps.iter().map(|step| KeyStep { offset: step.offset, keys: step.keys.0.mask() });
                Timeline(steps.collect()).checked("steps")
            }
            _ => Err(Problem::bad_request("exactly one of sequence, presses and steps is accepted")),
        }
    }
}

/// The [`Problem`] for a valid timeline that the emulator refuses, usually because its keys are in use.
pub(crate) fn unplayed(error: OpError) -> Problem {
    match error.status {
        // `is_key_reused` is about the key that identifies a request, not about the console's keys.
        Status::BadArgument if !error.is_key_reused() => Problem::conflict(error.message),
        _ => error.into(),
    }
}

impl Timeline {
    /// A timeline that holds these keys for this number of frames (default: 1), from the next frame on.
    pub(crate) fn press(keys: Keys, frames: Option<Whole<1, { u32::MAX }>>) -> Result<Timeline> {
        if keys == Keys::default() {
            return Err(Problem::parameter("keys", "is empty", fields::KEYS));
        }
        let frames = frames.map_or(1, Whole::get);
        let steps = vec![KeyStep { offset: 0, keys: keys.mask() }, KeyStep { offset: frames, keys: 0 }];
        Timeline(steps).checked("keys")
    }

    fn of_sequence(text: &str) -> Result<Timeline> {
        let wrong = |problem: String| Problem::parameter("sequence", &problem, PRESSES);
        let presses = sequence::parse(text).map_err(|WrongPress(word)| wrong(format!("holds {word:?}")))?;
        let steps = timeline::of_presses(&presses).map_err(wrong)?;
        Timeline(steps).checked("sequence")
    }

    fn of_presses(presses: &[Press]) -> Result<Timeline> {
        if presses.is_empty() {
            let accepts = "at least one press, such as {\"at\": 0, \"keys\": [\"A\"], \"frames\": 2}";
            return Err(Problem::parameter("presses", "is empty", accepts));
        }
        // For each frame in which presses begin or end: the change in the number of presses that hold each key.
        let mut ends: BTreeMap<u32, [i32; Key::ALL.len()]> = BTreeMap::new();
        for (index, Press { at, keys, frames }) in presses.iter().enumerate() {
            let frames = frames.get();
            let accepts = "at least one key, and at least 1 frame, with at + frames up to 4294967295";
            let wrong = |problem| Problem::parameter(format!("presses[{index}]"), problem, accepts);
            let end = at.checked_add(frames).ok_or_else(|| wrong("ends too late"))?;
            if keys.0 == Keys::default() {
                return Err(wrong("presses nothing"));
            }
            for key in keys.0.iter() {
                ends.entry(*at).or_default()[key as usize] += 1;
                ends.entry(end).or_default()[key as usize] -= 1;
            }
        }
        let mut held = [0; Key::ALL.len()];
        let mut steps: Vec<KeyStep> = Vec::with_capacity(ends.len());
        for (offset, changes) in ends {
            held.iter_mut().zip(changes).for_each(|(held, change)| *held += change);
            let keys: Keys = Key::ALL.into_iter().filter(|key| held[*key as usize] > 0).collect();
            if steps.last().map_or(0, |last| last.keys) != keys.mask() {
                steps.push(KeyStep { offset, keys: keys.mask() });
            }
        }
        Timeline(steps).checked("presses")
    }

    /// Checks the timeline as an emulator does.
    fn checked(self, name: &'static str) -> Result<Timeline> {
        if self.0.len() > MAX_STEPS {
            let problem = format!("has {} steps", self.0.len());
            return Err(Problem::parameter(name, &problem, format!("at most {MAX_STEPS}")));
        }
        match timeline::check(&self.0) {
            Ok(()) => Ok(self),
            Err(problem) => Err(Problem::at(name, &problem)),
        }
    }

    /// The operation that plays the timeline. If `append` is true, it plays after all other timelines; otherwise, from
    /// the next frame on.
    pub(crate) fn op(&self, append: bool) -> Op {
        let steps = timeline::encode(&self.0);
        if append { Op::AppendKeys { steps } } else { Op::PlayKeys { steps } }
    }

    /// The number of steps.
    pub(crate) fn steps(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_steps(self) -> Vec<KeyStep> {
        self.0
    }

    /// The number of frames until it is over.
    pub(crate) fn frames(&self) -> u32 {
        self.0.last().map_or(0, |last| last.offset)
    }

    /// The frames in which keys are held, by the frame counter, if the frame `next` is the first to be played. Keys
    /// that go down and up together are listed together.
    pub(crate) fn planned_presses(&self, next: u64) -> Vec<PlannedPress> {
        let mut down: [Option<u32>; Key::ALL.len()] = Default::default();
        let mut seen: BTreeMap<(u32, u32), Vec<&'static str>> = BTreeMap::new();
        for step in &self.0 {
            for key in Key::ALL {
                let held = step.keys & Keys::from(key).mask() != 0;
                let since = &mut down[key as usize];
                match (*since, held) {
                    (None, true) => *since = Some(step.offset),
                    (Some(first), false) => {
                        seen.entry((first, step.offset - 1)).or_default().push(key.name());
                        *since = None;
                    }
                    _ => {}
                }
            }
        }
        let frame = |offset: u32| next.saturating_add(offset.into());
        let seen = seen.into_iter();
        seen.map(|((first, last), keys)| PlannedPress { keys, first: frame(first), last: frame(last) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(json: &str) -> Result<Timeline> {
        let input: Input = crate::reading::body(json.as_bytes())?;
        input.try_into()
    }

    fn steps(json: &str) -> Vec<(u32, u16)> {
        timeline(json).expect(json).0.iter().map(|step| (step.offset, step.keys)).collect()
    }

    #[test]
    fn the_three_ways_make_the_same_timeline() {
        let expected = [(0, 1), (2, 0), (12, 0x42), (42, 0)];
        for json in [
            r#"{"sequence": "A:2 .:10 Up+B:30"}"#,
            r#"{"sequence": "A,A .:5 .:5\nB+Up:30"}"#,
            r#"{"presses": [{"at": 12, "keys": ["Up", "B"], "frames": 30}, {"at": 0, "keys": 1, "frames": 2}]}"#,
            r#"{"presses": [{"at": 0, "keys": "A"}, {"at": 1, "keys": ["A"]}, {"at": 12, "keys": ["B"], "frames": 30},
                {"at": 12, "keys": ["Up"], "frames": 30}]}"#,
            r#"{"steps": [{"offset": 0, "keys": ["A"]}, {"offset": 2, "keys": []}, {"offset": 12, "keys": 66},
                {"offset": 42, "keys": 0}]}"#,
        ] {
            assert_eq!(steps(json), expected, "{json}");
        }
        assert_eq!(steps(r#"{"sequence": ".:10 A"}"#), [(10, 1), (11, 0)]);
        assert_eq!(steps(r#"{"sequence": "A:2 .:4 .:6"}"#), [(0, 1), (2, 0), (12, 0)]);
        assert_eq!(timeline(r#"{"sequence": "A:2 .:10"}"#).unwrap().frames(), 12);
    }

    #[test]
    fn each_of_several_overlapping_presses_is_listed_with_all_its_frames() {
        let json = r#"{"presses": [{"at": 0, "keys": ["A", "L"], "frames": 4}, {"at": 2, "keys": ["B"], "frames": 4},
            {"at": 8, "keys": ["A"]}]}"#;
        let seen = |keys: &[&'static str], first, last| PlannedPress { keys: keys.to_vec(), first, last };
        let expected = [seen(&["A", "L"], 101, 104), seen(&["B"], 103, 106), seen(&["A"], 109, 109)];
        assert_eq!(timeline(json).unwrap().planned_presses(101), expected);
        assert_eq!(timeline(json).unwrap().frames(), 9);
    }

    #[test]
    fn errors_name_the_place_of_the_value() {
        for (json, place) in [
            ("{}", "exactly one"),
            (r#"{"sequence": "A", "presses": []}"#, "exactly one"),
            (r#"{"sequence": ""}"#, "sequence"),
            (r#"{"sequence": ".:5"}"#, "sequence"),
            (r#"{"sequence": "A:0"}"#, "\"A:0\""),
            (r#"{"sequence": "A:-1"}"#, "\"A:-1\""),
            (r#"{"sequence": "A+:2"}"#, "\"A+:2\""),
            (r#"{"sequence": "a:2"}"#, "\"a:2\""),
            (r#"{"sequence": "A:4294967295 B"}"#, "\"B\""),
            (r#"{"presses": []}"#, "presses is empty; accepted is at least one"),
            (r#"{"presses": [{"at": 0, "keys": ["A"], "frames": 0}]}"#, "presses[0]"),
            (r#"{"presses": [{"at": 4294967295, "keys": ["A"], "frames": 9}]}"#, "presses[0]"),
            (r#"{"presses": [{"at": 0, "keys": []}]}"#, "presses[0]"),
            (r#"{"presses": [{"at": 0, "keys": ["X"]}]}"#, "presses[0].keys"),
            (r#"{"steps": [{"offset": 1, "keys": ["A"]}]}"#, "release"),
            (r#"{"steps": [{"offset": 1, "keys": 1}, {"offset": 1, "keys": 0}]}"#, "rise"),
            (r#"{"steps": [{"at": 1, "keys": 1}]}"#, "steps[0].at"),
        ] {
            let detail = timeline(json).expect_err(json);
            assert!(detail.detail().contains(place), "{json}: {}", detail.detail());
        }
    }
}
