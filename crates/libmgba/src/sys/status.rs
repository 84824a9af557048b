use std::ffi::c_int;

/// Defines `Status`, and `ALL` with its values in order.
macro_rules! statuses {
    ($($status:ident)*) => {
        /// `enum fw_status`, without its `FW_OK`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Status {
            $($status),*
        }

        const ALL: &[Status] = &[$(Status::$status),*];
    };
}

// In the order of the C enum, from 1 on.
statuses! {
    NoMemory NotARom Truncated OtherPlatform Failed StateOtherPlatform StateOtherGame NoScripting ScriptFailed
    CheatLine CheatIncomplete CheatAddress CheatOutside CheatOtherGame NotABios
}

/// Converts a return value of the shim to a result.
pub fn check(code: c_int) -> Result<(), Status> {
    match usize::try_from(code) {
        Ok(0) => Ok(()),
        Ok(n) => Err(ALL.get(n - 1).copied().unwrap_or(Status::Failed)),
        Err(_) => Err(Status::Failed),
    }
}
