//! Timelines: plans of which keys are down in which frames. `lua/src/timelines.lua` follows the same rules.

use std::collections::{HashMap, VecDeque};

use framewire_protocol::timeline::{self, KeyStep};
use framewire_protocol::{Keys, OpError, Status, Value};

use super::KeyChange;
use super::holds::{Holds, Owner};

/// The largest number of timelines that wait for the end of others.
const MAX_WAITING: usize = 1024;

/// All timelines. A running timeline owns its keys as a hold does, and counts the same ticks. A timeline that no longer
/// owns any key is over. So there cannot be more running timelines than keys.
#[derive(Debug, Default)]
pub struct Timelines {
    running: Vec<Timeline>,
    /// The appended timelines that have not begun, in the order of their first ticks. They own no keys yet.
    waiting: VecDeque<Timeline>,
    last_id: u32,
    /// The timelines that have ended since the last `take_ended`: their ids, and whether they ended before their last
    /// step.
    over: Vec<(u32, bool)>,
}

#[derive(Debug)]
struct Timeline {
    id: u32,
    steps: Vec<KeyStep>,
    /// The index of the next step.
    next: usize,
    /// The tick at which the timeline begins. The offsets of steps count from here.
    start: u64,
}

impl Timeline {
    /// The tick of the next step; `None` after the last one.
    fn due(&self) -> Option<u64> {
        self.steps.get(self.next).map(|step| self.start + u64::from(step.offset))
    }

    /// The tick of the last step.
    fn end(&self) -> u64 {
        self.start + self.steps.last().map_or(0, |step| u64::from(step.offset))
    }

    /// Performs the next step.
    fn step(&mut self, holds: &Holds) -> KeyChange {
        let owned = holds.owned(Owner::Timeline(self.id));
        let keys = self.steps[self.next].keys;
        self.next += 1;
        KeyChange { add: owned & keys, clear: owned & !keys }
    }
}

impl Timelines {
    /// Plays a timeline. A step at offset 0 is performed now, for the next frame. Returns the timeline's id.
    ///
    /// # Errors
    /// If another timeline uses one of the keys.
    pub fn play(&mut self, steps: Vec<KeyStep>, holds: &mut Holds) -> Result<(u32, KeyChange), OpError> {
        let keys = timeline::union(&steps);
        let playing = self.running.iter().map(|other| (other.id, holds.owned(Owner::Timeline(other.id))));
        let waiting = self.waiting.iter().map(|other| (other.id, timeline::union(&other.steps)));
        for (id, owned) in playing.chain(waiting) {
            if let Some(both) = Keys::from_mask(owned & keys)
                && both.mask() != 0
            {
                let names = both.names(", ");
                let message = format!("timeline {id} plays {names}; cancel it first, or wait for its end");
                return Err(OpError::bad_argument(message));
            }
        }
        let timeline = self.numbered(steps, holds.tick());
        Ok((self.last_id, self.begin(timeline, holds)))
    }

    /// Plays a timeline after all other timelines that are playing or waiting. Returns its id, and how many ticks pass
    /// before its first frame.
    ///
    /// # Errors
    /// If too many timelines wait.
    pub fn append(
        &mut self,
        steps: Vec<KeyStep>,
        holds: &mut Holds,
    ) -> Result<(u32, u64, KeyChange), OpError> {
        let Some(end) = self.running.iter().chain(&self.waiting).map(Timeline::end).max() else {
            let (id, change) = self.play(steps, holds)?;
            return Ok((id, 0, change));
        };
        if self.waiting.len() == MAX_WAITING {
            let message = format!(
                "{MAX_WAITING} timelines are already waiting, which is the limit; append after one has begun"
            );
            return Err(OpError::new(Status::Busy, message));
        }
        let timeline = self.numbered(steps, end);
        self.waiting.push_back(timeline);
        Ok((self.last_id, end - holds.tick(), KeyChange::default()))
    }

    /// A timeline with a new id.
    fn numbered(&mut self, steps: Vec<KeyStep>, start: u64) -> Timeline {
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        Timeline { id: self.last_id, steps, next: 0, start }
    }

    /// Begins a timeline with the next frame.
    fn begin(&mut self, mut timeline: Timeline, holds: &mut Holds) -> KeyChange {
        let held = holds.take(timeline::union(&timeline.steps), timeline.id);
        let mut change = KeyChange { add: 0, clear: held };
        if timeline.due() == Some(timeline.start) {
            change.then(timeline.step(holds));
        }
        self.running.push(timeline);
        change
    }

    /// Called after each frame, after `holds` was advanced.
    pub fn advance(&mut self, holds: &mut Holds) -> KeyChange {
        let mut change = KeyChange::default();
        self.running.retain_mut(|timeline| {
            if timeline.due() != Some(holds.tick()) {
                return true;
            }
            change.then(timeline.step(holds));
            if timeline.due().is_some() {
                return true;
            }
            change.then(KeyChange { add: 0, clear: holds.finish(Owner::Timeline(timeline.id)) });
            self.over.push((timeline.id, false));
            false
        });
        while self.waiting.front().is_some_and(|first| first.start <= holds.tick())
            && let Some(timeline) = self.waiting.pop_front()
        {
            change.then(self.begin(timeline, holds));
        }
        change
    }

    /// Ends each timeline that no longer owns any key. Called after keys were set directly and `holds` was updated.
    pub fn release(&mut self, holds: &Holds) {
        self.running.retain(|timeline| {
            let plays = holds.owned(Owner::Timeline(timeline.id)) != 0;
            if !plays {
                self.over.push((timeline.id, true));
            }
            plays
        });
    }

    /// Ends timeline `id`, or all timelines if `id` is 0. Returns whether there was such a timeline, and the keys to
    /// release.
    pub fn cancel(&mut self, id: u32, holds: &mut Holds) -> (bool, u16) {
        let (count, mut keys) = (self.running.len() + self.waiting.len(), 0);
        let mut stays = |timeline: &Timeline| {
            let ends = id == 0 || timeline.id == id;
            if ends {
                // A waiting timeline owns no keys.
                keys |= holds.finish(Owner::Timeline(timeline.id));
                self.over.push((timeline.id, true));
            }
            !ends
        };
        self.running.retain(&mut stays);
        self.waiting.retain(stays);
        (self.running.len() + self.waiting.len() < count, keys)
    }

    /// Whether timeline `id` is playing or waiting.
    pub fn plays(&self, id: u32) -> bool {
        self.running.iter().chain(&self.waiting).any(|timeline| timeline.id == id)
    }

    /// The first timeline that is playing or waiting.
    pub fn first(&self) -> Option<u32> {
        self.running.iter().chain(&self.waiting).map(|timeline| timeline.id).next()
    }

    /// The timelines that have ended since the last call: their ids, and whether they ended before their last step.
    pub fn take_ended(&mut self) -> Option<Vec<(u32, bool)>> {
        if self.over.is_empty() { None } else { Some(std::mem::take(&mut self.over)) }
    }
}

/// The largest number of ended timelines whose end is stored. The script has the same limit.
const REMEMBERED: usize = 16_384;

/// The ends of the most recent timelines.
#[derive(Debug, Default)]
pub struct EndedTimelines {
    by_id: HashMap<u32, TimelineEnd>,
    /// The ids in the order in which they ended.
    order: VecDeque<u32>,
}

#[derive(Debug)]
struct TimelineEnd {
    frame: u32,
    cancelled: bool,
}

impl EndedTimelines {
    /// Stores that a timeline ended in `frame`. If there are too many, drops the oldest end.
    pub fn remember(&mut self, id: u32, frame: u32, cancelled: bool) {
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
        self.order.push_back(id);
        self.by_id.insert(id, TimelineEnd { frame, cancelled });
    }

    /// How and in which frame a timeline ended.
    ///
    /// # Errors
    /// If there never was such a timeline, or it ended too long ago.
    pub fn describe(&self, id: u32) -> Result<Value, OpError> {
        let Some(TimelineEnd { frame, cancelled }) = self.by_id.get(&id) else {
            return Err(OpError::bad_argument(format!(
                "timeline {id} is not known: none had this number, or it ended too long ago"
            )));
        };
        let how = if *cancelled { "cancelled" } else { "over" };
        Ok(Value::List(vec![Value::Text(how.to_owned()), Value::Text(frame.to_string())]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_ends_are_dropped() {
        let mut ended = EndedTimelines::default();
        for id in 0..=REMEMBERED as u32 {
            ended.remember(id, 7, false);
        }
        assert!(ended.describe(0).is_err());
        assert!(ended.describe(1).is_ok());
        assert_eq!((ended.by_id.len(), ended.order.len()), (REMEMBERED, REMEMBERED));
    }
}
