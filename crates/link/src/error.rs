/// Why a batch has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Nothing listens at the address, or the connection to it was refused.
    #[error(
        "no emulator at {address} ({problem}); start mGBA, load a ROM and then the script \
         (Tools > Scripting... > File > Load script; `framewire script` prints it), or run `framewire doctor`"
    )]
    Absent {
        /// Where it was looked for.
        address: String,
        /// What the system said.
        problem: String,
    },
    /// Connected, but nothing was heard for a while, and nothing by the deadline.
    #[error(
        "the emulator at {address} is connected but does not answer; it is paused, has no ROM loaded, or a menu is \
         open: continue it in mGBA's window. The request was withdrawn"
    )]
    Stalled {
        /// Where it is.
        address: String,
    },
    /// Connected, and heard of lately, but this request was not answered by its deadline.
    #[error(
        "the emulator at {address} is connected but did not answer in time: it is busy with earlier requests, or with the \
         frames of an advance, or was paused a moment ago. The request was withdrawn; try again"
    )]
    Late {
        /// Where it is.
        address: String,
    },
    /// Too many requests are open.
    #[error("{0} requests wait for the emulator already")]
    Busy(usize),
    /// The connection broke behind a request that changes something, and the script lost its memory in between.
    #[error(
        "the script at {address} was loaded anew while this request was under way; whether it was done cannot be \
         known. Look before you repeat it"
    )]
    Lost {
        /// Where it is.
        address: String,
    },
    /// The connection to mGBA-http's script broke behind an operation that changes something; that script has no memory
    /// to ask.
    #[error(
        "the connection to mGBA-http's script at {address} broke ({problem}) while this request was under way; whether it \
         was done cannot be known. Look before you repeat it"
    )]
    Interrupted {
        /// Where it is.
        address: String,
        /// How it broke.
        problem: String,
    },
    /// mGBA-http's script did not answer by the deadline; what was sent to it changes something and cannot be withdrawn.
    #[error(
        "mGBA-http's script at {address} did not answer in time, and what it was sent cannot be withdrawn: it may still be \
         done when mGBA goes on. Look before you repeat it. Framewire's script (`framewire script`) can withdraw"
    )]
    Overdue {
        /// Where it is.
        address: String,
    },
    /// The link is being stopped.
    #[error("the link is being stopped")]
    Stopped,
}
