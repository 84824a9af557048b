/// The memory into which a vector writes its results. Each slice consists of rows, one row for each environment.
/// [`VectorEnv::recv`](crate::VectorEnv::recv) writes rows only for environments that have finished their steps; the
/// other methods need rows for all environments. The caller owns the memory.
#[derive(Debug)]
pub struct Batch<'a> {
    /// Observed pictures, [`Task::screen_len`](crate::Task::screen_len) bytes each.
    pub screens: &'a mut [u8],
    /// Observed memory, [`Task::memory_len`](crate::Task::memory_len) numbers each.
    pub memory: &'a mut [f32],
    /// Rewards of the step.
    pub rewards: &'a mut [f64],
    /// Whether the episode has ended.
    pub terminated: &'a mut [bool],
    /// Whether the episode has been cut off.
    pub truncated: &'a mut [bool],
    /// Values of the scenario's `info`, in the order of the scenario; NaN for a formula without a value.
    pub info: &'a mut [f64],
    /// Like `screens`, for the last observation of each episode that ended and was reset in the same step. Rows of
    /// other environments are unchanged, or 0 after [`VectorEnv::recv`](crate::VectorEnv::recv). Empty unless the
    /// vector uses [`Autoreset::SameStep`](crate::Autoreset::SameStep).
    pub final_screens: &'a mut [u8],
    /// Like `final_screens`, for the observed memory.
    pub final_memory: &'a mut [f32],
    /// Like `final_screens`, for the values of `info`.
    pub final_info: &'a mut [f64],
}

/// The part of a batch for one environment.
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

/// A row with its own memory.
pub(crate) struct OwnedRow {
    // Each array has the values after the step, and those at the end of an episode that was reset in the same step.
    screens: [Vec<u8>; 2],
    memory: [Vec<f32>; 2],
    info: [Vec<f64>; 2],
    reward: f64,
    terminated: bool,
    truncated: bool,
}

impl OwnedRow {
    /// A row with memory for this many values of each kind. With `finals`, it also has memory for the last observation
    /// of an episode.
    pub(crate) fn new(screen: usize, memory: usize, info: usize, finals: bool) -> OwnedRow {
        let kept = |count: usize| if finals { count } else { 0 };
        OwnedRow {
            screens: [vec![0; screen], vec![0; kept(screen)]],
            memory: [vec![0.0; memory], vec![0.0; kept(memory)]],
            info: [vec![0.0; info], vec![0.0; kept(info)]],
            reward: 0.0,
            terminated: false,
            truncated: false,
        }
    }

    pub(crate) fn row(&mut self) -> Row<'_> {
        let [screen, final_screen] = &mut self.screens;
        let [memory, final_memory] = &mut self.memory;
        let [info, final_info] = &mut self.info;
        Row {
            screen,
            memory,
            reward: &mut self.reward,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            info,
            final_screen,
            final_memory,
            final_info,
        }
    }

    /// Copies the values to a row of the same size.
    pub(crate) fn copy_to(&self, row: &mut Row<'_>) {
        row.screen.copy_from_slice(&self.screens[0]);
        row.final_screen.copy_from_slice(&self.screens[1]);
        row.memory.copy_from_slice(&self.memory[0]);
        row.final_memory.copy_from_slice(&self.memory[1]);
        row.info.copy_from_slice(&self.info[0]);
        row.final_info.copy_from_slice(&self.info[1]);
        *row.reward = self.reward;
        *row.terminated = self.terminated;
        *row.truncated = self.truncated;
    }
}

/// Takes `count` values off the front of a slice, or none if it has fewer.
fn take<'a, T>(slice: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    slice.split_off_mut(..count).unwrap_or_default()
}

impl<'a> Batch<'a> {
    /// Splits the batch into one row per environment. Each row has this many values of each kind.
    pub(crate) fn rows(mut self, screen: usize, memory: usize, info: usize) -> Vec<Row<'a>> {
        let flags = self.terminated.iter_mut().zip(self.truncated);
        let rows = self.rewards.iter_mut().zip(flags).map(|(reward, (terminated, truncated))| Row {
            screen: take(&mut self.screens, screen),
            memory: take(&mut self.memory, memory),
            reward,
            terminated,
            truncated,
            info: take(&mut self.info, info),
            final_screen: take(&mut self.final_screens, screen),
            final_memory: take(&mut self.final_memory, memory),
            final_info: take(&mut self.final_info, info),
        });
        rows.collect()
    }
}
