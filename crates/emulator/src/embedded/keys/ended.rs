//! How earlier timelines ended.

use std::collections::{HashMap, VecDeque};

use framewire_protocol::{OpError, Value};

/// EndedTimelines timelines that are remembered. The script remembers as many.
const REMEMBERED: usize = 16_384;

/// The last timelines that ended.
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
    /// A timeline ended in `frame`.
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
    /// If that is not known.
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
    fn the_oldest_are_forgotten() {
        let mut ended = EndedTimelines::default();
        for id in 0..=REMEMBERED as u32 {
            ended.remember(id, 7, false);
        }
        assert!(ended.describe(0).is_err());
        assert!(ended.describe(1).is_ok());
        assert_eq!((ended.by_id.len(), ended.order.len()), (REMEMBERED, REMEMBERED));
    }
}
