//! Tests of a link with peers that the tests implement, so that they can misbehave in ways that a real script cannot.

mod binary;
mod flood;
mod greeting;
mod notices;
mod peer;
mod silence;
mod text;
#[path = "../../../../tests/src/until_good.rs"]
mod until_good;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use framewire_link::{Config, Link, LinkError, Status};
use framewire_protocol::{Batch, Op, OpError, Outcome, Value};
use tokio::runtime::Runtime;

type Answer = Result<Outcome, LinkError>;

/// A runtime with one worker, so that a task that never yields would stop all others.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A link to `address` on a runtime of its own.
struct Client {
    link: Link,
    runtime: Runtime,
}

impl Client {
    fn start(address: &str) -> Client {
        Client::with(Config { address: address.to_owned(), ..Config::default() })
    }

    fn with(config: Config) -> Client {
        let runtime = runtime();
        Client { link: Link::start(config, runtime.handle()), runtime }
    }

    /// Submits a batch. The answer arrives in the channel.
    fn submit(&self, batch: impl Into<Batch>, limit: Duration) -> mpsc::Receiver<Answer> {
        let (sender, receiver) = mpsc::channel();
        let respond = Box::new(move |answer| drop(sender.send(answer)));
        self.link.submit(batch.into(), Instant::now() + limit, respond);
        receiver
    }

    fn call(&self, batch: impl Into<Batch>) -> Answer {
        soon(&self.submit(batch, Duration::from_secs(10)))
    }

    /// Waits until the link's status fulfils the condition.
    fn wait_for(&self, what: &str, condition: impl Fn(&Status) -> bool) {
        let limit = Instant::now() + Duration::from_secs(20);
        while !condition(&self.link.status()) {
            assert!(Instant::now() < limit, "{what}: {:?}", self.link.status());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Closes the link. Returns whether it was closed within 5 s.
    fn closes(&self) -> bool {
        let limit = Duration::from_secs(5);
        self.runtime.block_on(async { tokio::time::timeout(limit, self.link.close()).await.is_ok() })
    }
}

/// Waits for the answer.
fn soon(answer: &mpsc::Receiver<Answer>) -> Answer {
    answer.recv_timeout(Duration::from_secs(20)).expect("an answer")
}

/// The refusal in an outcome with one result.
fn refusal(answer: Answer) -> OpError {
    answer.expect("an outcome").single().expect_err("a refusal")
}

/// The value in an outcome with one result.
fn value(answer: Answer) -> Value {
    answer.expect("an outcome").single().expect("a value")
}

fn write8() -> Op {
    Op::Write8 { address: 0x0200_0000, value: 1 }
}

fn read8() -> Op {
    Op::Read8 { address: 0x0200_0000 }
}
