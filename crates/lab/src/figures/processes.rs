//! The memory and file descriptors of a process, from `/proc`.

use procfs::process::Process;

/// The resident memory of a process in bytes; `None` if the process is gone.
pub fn resident(pid: u32) -> Option<u64> {
    Some(1024 * process(pid)?.status().ok()?.vmrss?)
}

/// The number of open file descriptors of a process; `None` if the process is gone.
pub fn descriptors(pid: u32) -> Option<usize> {
    process(pid)?.fd_count().ok()
}

fn process(pid: u32) -> Option<Process> {
    Process::new(pid.try_into().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_descriptors() {
        let pid = std::process::id();
        let before = resident(pid).unwrap();
        let block = vec![1u8; 64 << 20];
        assert!(resident(pid).unwrap() > before + (32 << 20));
        drop(block);
        assert!(descriptors(pid).unwrap() >= 3);
        assert_eq!(resident(u32::MAX), None);
    }
}
