/// Why a batch has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The link has no connection to a script: it cannot connect, or what listens at the address is another program or
    /// a script with another protocol.
    #[error(
        "no emulator at {address} ({problem}); start mGBA, load a ROM and then the script \
         (Tools > Scripting... > File > Load script; `framewire script` prints it), or run `framewire doctor`"
    )]
    Absent {
        /// Where the emulator was expected.
        address: String,
        /// Why there is no connection.
        problem: String,
    },
    /// Connected, but the emulator has answered nothing for a while. It did not answer this request by its deadline.
    #[error(
        "the emulator at {address} is connected but does not answer; it is paused, has no ROM loaded, or a menu is \
         open: continue it in mGBA's window. The request was withdrawn. If it changes something, it may already have \
         been done. Check before you repeat it"
    )]
    Stalled {
        /// Its address.
        address: String,
    },
    /// Connected, and the emulator answered recently, but it did not answer this request by its deadline.
    #[error(
        "the emulator at {address} is connected but did not answer in time: it is busy with earlier requests, or with the \
         frames of an advance, or was paused a moment ago. The request was withdrawn. If it changes something, it may \
         already have been done. Check before you repeat it"
    )]
    Late {
        /// Its address.
        address: String,
    },
    /// Too many requests are open: this many, as [`Config::capacity`](crate::Config) allows.
    #[error("{0} requests are already waiting for the emulator")]
    Busy(usize),
    /// The connection broke after a request that changes something was sent, and the script no longer remembers the
    /// session: it was loaded again, or many other sessions have begun since.
    #[error(
        "the script at {address} no longer remembers this request: while the request was open, the script was loaded \
         again, or many other clients connected. Whether it was done cannot be known. Check before you repeat it"
    )]
    Lost {
        /// Its address.
        address: String,
    },
    /// The connection broke after a request that changes something was sent, and there was no new connection by the
    /// request's deadline.
    #[error(
        "the connection to the emulator at {address} broke while this request was open, and there was no new one in time \
         ({problem}); whether the request was done cannot be known. Check before you repeat it"
    )]
    Broken {
        /// Its address.
        address: String,
        /// Why there is no connection.
        problem: String,
    },
    /// The connection to mGBA-http's script broke after an operation that changes something was sent. That script does
    /// not remember what it has done.
    #[error(
        "the connection to mGBA-http's script at {address} broke ({problem}) while this request was open; whether it was \
         done cannot be known. Check before you repeat it"
    )]
    Interrupted {
        /// Its address.
        address: String,
        /// Why the connection broke.
        problem: String,
    },
    /// mGBA-http's script did not answer by the deadline. The request changes something and cannot be withdrawn.
    #[error(
        "mGBA-http's script at {address} did not answer in time. The request cannot be withdrawn and may still be done \
         when mGBA continues. Check before you repeat it. With Framewire's script (`framewire script`) requests can be \
         withdrawn"
    )]
    Overdue {
        /// Its address.
        address: String,
    },
    /// The link is being stopped.
    #[error("the link is being stopped")]
    Stopped,
}
