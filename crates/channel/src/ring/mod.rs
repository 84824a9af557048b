//! Sends and receives messages. Each side writes its own slots in order: message `n` is in slot `n % slots`. But if the
//! other side has read all earlier messages, a short message is in the writer's half of the mailbox, a cache line that
//! both sides share. A message is complete when its stamp is `n + 1`.

mod receiver;
mod sender;

pub use receiver::{Message, Receiver};
pub use sender::{Reserved, Sender};
