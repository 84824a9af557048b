use std::ffi::c_int;

/// `enum fw_status`, without its `FW_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    NoMemory,
    NotARom,
    Truncated,
    OtherPlatform,
    Failed,
    StateOtherPlatform,
    StateOtherGame,
    NoScripting,
    ScriptFailed,
    CheatLine,
    CheatIncomplete,
    CheatAddress,
    CheatOutside,
    CheatOtherGame,
    NotABios,
}

/// All statuses, in the order of the C enum, from 1 on.
const ALL: [Status; 15] = [
    Status::NoMemory,
    Status::NotARom,
    Status::Truncated,
    Status::OtherPlatform,
    Status::Failed,
    Status::StateOtherPlatform,
    Status::StateOtherGame,
    Status::NoScripting,
    Status::ScriptFailed,
    Status::CheatLine,
    Status::CheatIncomplete,
    Status::CheatAddress,
    Status::CheatOutside,
    Status::CheatOtherGame,
    Status::NotABios,
];

/// Converts a return value of the shim to a result.
pub fn check(code: c_int) -> Result<(), Status> {
    match usize::try_from(code) {
        Ok(0) => Ok(()),
        Ok(n) => Err(ALL.get(n - 1).copied().unwrap_or(Status::Failed)),
        Err(_) => Err(Status::Failed),
    }
}
