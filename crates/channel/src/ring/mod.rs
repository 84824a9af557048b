//! Sends and receives messages. Each side writes its own slots in order: message `n` is in slot `n % slots`. The slot
//! of a message of more than 112 bytes holds only its length and its place in the writer's bulk room, the memory for
//! long messages. If the other side has read all earlier messages, a message of up to 19 bytes is not in its slot, but
//! in the writer's half of the mailbox, a cache line that both sides share. Each slot and each half begins with a
//! stamp. Message `n` is complete when the stamp of its slot or half is `n + 1`.

mod receiver;
mod sender;

pub use receiver::{Message, Receiver};
pub use sender::{Reserved, Sender};
