//! Runs frames: steps with keys, each for a number of frames or until a condition on memory holds.
//!
//! The emulator stands still between the frames that a run asks for. One that was running is stopped at the beginning and goes
//! on at the end. An embedded core is paused; an mGBA in its window is in lockstep. So keys go down and up in exactly the
//! frames of their steps, whatever the connection's delay.

use framewire_protocol::{Key, Keys};
use serde_json::{Value as Json, json};

use crate::session::Session;
use crate::tools::ToolError;
use crate::values::{Numbers, Values};

/// Most frames of a run: ten minutes.
pub(crate) const MAX_FRAMES: u32 = 36_000;
/// Most steps of a run.
pub(crate) const MAX_STEPS: usize = 1024;
/// Most frames that a batch may advance.
const MAX_ADVANCE: u32 = 3_600;
/// How long a window waits for the next frame of a run, in milliseconds.
const LOCKSTEP: u32 = 10_000;

/// A part of a run.
pub(crate) struct Step {
    /// A mask.
    pub(crate) keys: u16,
    pub(crate) frames: u32,
    /// Ends the step; if it does not hold within the step's frames, the run ends there.
    pub(crate) until: Option<Values>,
}

/// A run.
pub(crate) struct Run {
    pub(crate) steps: Vec<Step>,
    /// Conditions of which any ends the run.
    pub(crate) stop: Values,
    /// What is read at the beginning and at the end.
    pub(crate) watched: Values,
    /// Whether to look at `watched` after each frame.
    pub(crate) each_frame: bool,
    /// Whether to take a picture at the end.
    pub(crate) picture: bool,
}

/// What came of a run.
pub(crate) struct Played {
    /// The frame counter at the end.
    pub(crate) frame: u32,
    /// Frames that were run.
    pub(crate) frames: u32,
    /// The step in which it ended, from 1 on.
    pub(crate) step: usize,
    pub(crate) ended: Ended,
    /// The watched numbers at the beginning and at the end; with `each_frame`, wherever they differ.
    pub(crate) watched: Vec<Numbers>,
    /// A PNG in base64.
    pub(crate) picture: Json,
}

/// Why a run ended.
pub(crate) enum Ended {
    /// All its steps are over.
    Done,
    /// The condition of its last step holds.
    Until(String),
    /// This condition holds, which ends the run.
    Stop(String),
    /// The condition of the step did not hold within its frames.
    Timeout,
}

/// The keys of a text such as `Up+B`; `.` or nothing means that no key is down.
pub(crate) fn mask(text: &str) -> Result<u16, ToolError> {
    if matches!(text.trim(), "" | ".") {
        return Ok(0);
    }
    let key = |name: &str| {
        Key::ALL.into_iter().find(|key| key.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            ToolError(format!("{name:?} is not a key; use A, B, Select, Start, Right, Left, Up, Down, R or L, with + between"))
        })
    };
    text.split('+').map(|name| key(name.trim())).collect::<Result<Keys, ToolError>>().map(Keys::mask)
}

/// The steps of a sequence such as `A:2 .:10 Up+B:30`.
pub(crate) fn sequence(text: &str) -> Result<Vec<Step>, ToolError> {
    let step = |part: &str| {
        let (keys, frames) = part.rsplit_once(':').unwrap_or((part, "1"));
        let frames: u32 = match frames.parse() {
            Ok(frames @ 1..=MAX_FRAMES) => frames,
            _ => {
                let accepts =
                    format!("use a number of frames from 1 to {MAX_FRAMES} after the colon, such as A:2");
                return Err(ToolError(format!("keys: {part:?} is not a press; {accepts}")));
            }
        };
        Ok(Step { keys: mask(keys)?, frames, until: None })
    };
    text.split_whitespace().map(step).collect()
}

/// Reads numbers and takes a picture, without a frame.
pub(crate) async fn look(
    session: &Session,
    values: &Values,
    picture: bool,
) -> Result<(Numbers, Json), ToolError> {
    let mut ops = values.ops();
    if picture {
        ops.push(json!({"op": "screenshot"}));
    }
    if ops.is_empty() {
        ops.push(json!({"op": "current_frame"}));
    }
    let (frame, mut read) = session.batch(ops).await?;
    let shot = if picture { read.pop().unwrap_or_default() } else { Json::Null };
    Ok((values.numbers(frame, &read), shot))
}

impl Run {
    /// Refuses a run that is too long.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        if self.steps.len() > MAX_STEPS {
            let count = self.steps.len();
            return Err(ToolError(format!(
                "{count} steps are too many; use at most {MAX_STEPS} in one call"
            )));
        }
        let frames = self.steps.iter().fold(0_u32, |all, step| all.saturating_add(step.frames));
        if frames > MAX_FRAMES {
            return Err(ToolError(format!(
                "the steps take {frames} frames; use at most {MAX_FRAMES} in one call"
            )));
        }
        Ok(())
    }

    /// Performs it.
    pub(crate) async fn perform(&self, session: &Session) -> Result<Played, ToolError> {
        let _playing = session.playing.lock().await;
        let state = session.call("emulatorState", json!({})).await?;
        let in_window = state["kind"] == "attached";
        let stopped = state["run"] == "paused" || state["lockstep"] == true;
        let clock = Clock { session, in_window };
        if !stopped {
            clock.stop().await?;
        }
        let played = self.perform_stopped(&clock).await;
        if played.is_err() {
            // The first error is the one to report.
            let _ = session.batch(vec![json!({"op": "clear_keys", "keys": self.keys()})]).await;
        }
        if !stopped {
            clock.go_on().await?;
        }
        played
    }

    /// All keys that it uses.
    fn keys(&self) -> u16 {
        self.steps.iter().fold(0, |all, step| all | step.keys)
    }

    async fn perform_stopped(&self, clock: &Clock<'_>) -> Result<Played, ToolError> {
        let looks = self.each_frame || !self.stop.is_empty();
        let (first, _) = look(clock.session, &self.watched, false).await?;
        let mut played = Played {
            frame: first.frame,
            frames: 0,
            step: 0,
            ended: Ended::Done,
            watched: vec![first],
            picture: Json::Null,
        };
        // Operations that nothing has to wait for yet, and how many frames they run.
        let (mut ops, mut advanced) = (Vec::new(), 0);
        if let Some(condition) = self.check_stop(clock).await? {
            played.ended = Ended::Stop(condition);
        } else {
            for step in &self.steps {
                played.step += 1;
                if step.until.is_none() && !looks {
                    let mut left = step.frames;
                    ops.push(json!({"op": "add_keys", "keys": step.keys}));
                    while left > 0 {
                        if advanced == MAX_ADVANCE {
                            clock.perform(std::mem::take(&mut ops)).await?;
                            advanced = 0;
                        }
                        let frames = left.min(MAX_ADVANCE - advanced);
                        ops.push(json!({"op": "advance", "frames": frames}));
                        left -= frames;
                        advanced += frames;
                    }
                    ops.push(json!({"op": "clear_keys", "keys": step.keys}));
                    played.frames += step.frames;
                    continue;
                }
                clock.perform(std::mem::take(&mut ops)).await?;
                advanced = 0;
                let ended = self.perform_step(clock, step, &mut played).await?;
                clock.perform(vec![json!({"op": "clear_keys", "keys": step.keys})]).await?;
                match ended {
                    Some(Ended::Until(condition)) => played.ended = Ended::Until(condition),
                    Some(ended) => {
                        played.ended = ended;
                        break;
                    }
                    None => played.ended = Ended::Done,
                }
            }
        }
        clock.perform(ops).await?;
        let (last, picture) = look(clock.session, &self.watched, self.picture).await?;
        played.frame = last.frame;
        if !self.each_frame {
            played.watched.push(last);
        }
        played.picture = picture;
        Ok(played)
    }

    /// A step whose frames are looked at one by one. `None` if its frames have passed and it has no condition.
    async fn perform_step(
        &self,
        clock: &Clock<'_>,
        step: &Step,
        played: &mut Played,
    ) -> Result<Option<Ended>, ToolError> {
        if let Some(until) = &step.until
            && let Some(condition) = until.holds(&look(clock.session, until, false).await?.0)
        {
            return Ok(Some(Ended::Until(condition.to_owned())));
        }
        let conditions = [Some(&self.stop), step.until.as_ref()];
        for frame in 0..step.frames {
            let mut ops = Vec::new();
            if frame == 0 {
                ops.push(json!({"op": "add_keys", "keys": step.keys}));
            }
            ops.push(json!({"op": "advance", "frames": 1}));
            let before = ops.len();
            ops.extend(conditions.iter().flatten().flat_map(|values| values.ops()));
            if self.each_frame {
                ops.extend(self.watched.ops());
            }
            let (counter, read) = clock.perform(ops).await?;
            played.frames += 1;
            let mut read = &read[before..];
            for (index, values) in conditions.iter().enumerate() {
                let Some(values) = values else { continue };
                let (own, rest) = read.split_at(values.ops().len());
                read = rest;
                if let Some(condition) = values.holds(&values.numbers(counter, own)) {
                    let condition = condition.to_owned();
                    self.note(counter, rest, played);
                    return Ok(Some(if index == 0 {
                        Ended::Stop(condition)
                    } else {
                        Ended::Until(condition)
                    }));
                }
            }
            self.note(counter, read, played);
        }
        Ok(if step.until.is_some() { Some(Ended::Timeout) } else { None })
    }

    /// Keeps the watched numbers, which are read last, if they differ from those before.
    fn note(&self, frame: u32, read: &[Json], played: &mut Played) {
        if !self.each_frame {
            return;
        }
        let own = &read[read.len().saturating_sub(self.watched.ops().len())..];
        let numbers = self.watched.numbers(frame, own);
        let last = played.watched.last().map(|last| self.watched.evaluate(last));
        if last.is_none_or(|last| last != self.watched.evaluate(&numbers)) {
            played.watched.push(numbers);
        }
    }

    async fn check_stop(&self, clock: &Clock<'_>) -> Result<Option<String>, ToolError> {
        if self.stop.is_empty() {
            return Ok(None);
        }
        let (numbers, _) = look(clock.session, &self.stop, false).await?;
        Ok(self.stop.holds(&numbers).map(str::to_owned))
    }
}

/// An emulator whose frames wait for a run.
struct Clock<'a> {
    session: &'a Session,
    in_window: bool,
}

impl Clock<'_> {
    async fn stop(&self) -> Result<(), ToolError> {
        let op = if self.in_window {
            json!({"op": "lockstep", "timeout": LOCKSTEP})
        } else {
            json!({"op": "pause"})
        };
        self.session.batch(vec![op]).await.map(drop)
    }

    async fn go_on(&self) -> Result<(), ToolError> {
        self.session.batch(vec![json!({"op": "resume"})]).await.map(drop)
    }

    /// Performs operations. The frame counter is that after the last of them.
    async fn perform(&self, ops: Vec<Json>) -> Result<(u32, Vec<Json>), ToolError> {
        if ops.is_empty() {
            return Ok((0, Vec::new()));
        }
        if !self.in_window {
            // The counter of a batch is the one at its beginning.
            let at = ops.iter().rposition(|op| op["op"] == "advance");
            let (frame, values) = self.session.batch(ops).await?;
            let counter = at.and_then(|at| u32::try_from(values[at].as_u64()?).ok());
            return Ok((counter.unwrap_or(frame), values));
        }
        // In a window, an advance has to be the last of its batch.
        let (mut all, mut part, mut counter) = (Vec::new(), Vec::new(), 0);
        for op in ops {
            let is_advance = op["op"] == "advance";
            part.push(op);
            if is_advance {
                let (_, values) = self.session.batch(std::mem::take(&mut part)).await?;
                let last = values.last().and_then(Json::as_u64);
                counter = last.and_then(|last| u32::try_from(last).ok()).unwrap_or(counter);
                all.extend(values);
            }
        }
        if !part.is_empty() {
            let (frame, values) = self.session.batch(part).await?;
            counter = frame;
            all.extend(values);
        }
        Ok((counter, all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_steps_and_a_pause_at_its_end_counts() {
        let steps = sequence("A:2 . up+b:30 .:10").unwrap();
        let read: Vec<(u16, u32)> = steps.iter().map(|step| (step.keys, step.frames)).collect();
        assert_eq!(read, [(1, 2), (0, 1), (0x42, 30), (0, 10)]);
    }

    #[test]
    fn what_is_not_a_press_is_refused() {
        for (text, says) in
            [("A:0", "\"A:0\""), ("A:x", "1 to 36000"), ("Q:2", "\"Q\" is not a key"), ("A+:2", "\"\"")]
        {
            let error = sequence(text).err().unwrap().0;
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
