//! What a process takes, by `/proc`.

use std::fs;

/// Bytes of its memory that are resident, or none if it is gone.
pub fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(1024 * kib)
}

/// File descriptors it holds, or none if it is gone.
pub fn descriptors(pid: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
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
