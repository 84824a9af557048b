/// Where a vector writes its results: slices with the values of each environment one after another. The caller owns the
/// memory.
#[derive(Debug)]
pub struct Batch<'a> {
    /// Observed pictures, [`Task::screen_len`](crate::Task::screen_len) bytes each.
    pub screens: &'a mut [u8],
    /// Observed memory, [`Task::memory_len`](crate::Task::memory_len) numbers each.
    pub memory: &'a mut [f32],
    /// Rewards of the step.
    pub rewards: &'a mut [f64],
    /// Whether the episode ended.
    pub terminated: &'a mut [bool],
    /// Whether the episode was cut off.
    pub truncated: &'a mut [bool],
    /// Values of the scenario's `info`, in its order; NaN for one without a value.
    pub info: &'a mut [f64],
    /// As `screens`, for the last observation of episodes that ended and were reset in the same step. Other rows are
    /// unchanged. Empty unless the vector resets so.
    pub final_screens: &'a mut [u8],
    /// As `memory`, likewise.
    pub final_memory: &'a mut [f32],
    /// As `info`, likewise.
    pub final_info: &'a mut [f64],
}

/// The values of one environment.
pub(crate) struct Row<'a> {
    pub(crate) screen: &'a mut [u8],
    pub(crate) memory: &'a mut [f32],
    pub(crate) reward: &'a mut f64,
    pub(crate) terminated: &'a mut bool,
    pub(crate) truncated: &'a mut bool,
    pub(crate) info: &'a mut [f64],
    pub(crate) final_screen: &'a mut [u8],
    pub(crate) final_memory: &'a mut [f32],
    pub(crate) final_info: &'a mut [f64],
}

/// Takes `count` values off the front of a slice.
fn take<'a, T>(slice: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let all = std::mem::take(slice);
    let count = count.min(all.len());
    let (front, rest) = all.split_at_mut(count);
    *slice = rest;
    front
}

impl<'a> Batch<'a> {
    /// One row per environment, of these numbers of values.
    pub(crate) fn rows(self, screen: usize, memory: usize, info: usize) -> Vec<Row<'a>> {
        let Batch {
            mut screens,
            memory: mut all_memory,
            rewards,
            terminated,
            truncated,
            info: mut all_info,
            ..
        } = self;
        let (mut final_screens, mut final_memory, mut final_info) =
            (self.final_screens, self.final_memory, self.final_info);
        let flags = terminated.iter_mut().zip(truncated.iter_mut());
        rewards
            .iter_mut()
            .zip(flags)
            .map(|(reward, (terminated, truncated))| Row {
                screen: take(&mut screens, screen),
                memory: take(&mut all_memory, memory),
                reward,
                terminated,
                truncated,
                info: take(&mut all_info, info),
                final_screen: take(&mut final_screens, screen),
                final_memory: take(&mut final_memory, memory),
                final_info: take(&mut final_info, info),
            })
            .collect()
    }
}
