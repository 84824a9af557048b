//! Moving messages. Each side writes its own slots, in order; message `n` lies in slot `n % slots`, or, if it is short and
//! the other side has read all before it, in the writer's half of the express line. A message is there once its stamp is
//! its number and one more.

mod receiver;
mod sender;

pub use receiver::{Message, Receiver};
pub use sender::{Reserved, Sender};
