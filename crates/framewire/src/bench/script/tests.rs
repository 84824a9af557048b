//! Tests the strategies and the dialects against an endpoint that can drop connections and answer late.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use framewire_link::LinkError;
use framewire_loadtest::{Call, Client, Failure, Retries, Strategy};
use framewire_protocol::{Decoder, Frame, Op, Outcome, Reply, Value};

use super::connection::Connection;
use super::session::link_failure;
use super::{Dialect, Options, ScriptSession, ScriptTarget};

/// How the endpoint reacts to a message.
#[derive(Clone, Copy)]
enum Act {
    Echo,
    Late(Duration),
    /// It sends a second reply, which belongs to no message. Only for text.
    Surplus,
    Drop,
}

struct Endpoint {
    address: String,
    connections: Arc<AtomicUsize>,
}

impl Endpoint {
    /// Starts an endpoint. `act` gets the number of each message, from 0, and says how to react to it.
    fn start(act: fn(usize) -> Act) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&connections);
        let messages = Arc::<AtomicUsize>::default();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let messages = Arc::clone(&messages);
                thread::spawn(move || serve(stream, act, &messages));
            }
        });
        Endpoint { address, connections }
    }

    /// A session whose requests should not time out.
    fn session(&self, strategy: Strategy, dialect: &Dialect) -> ScriptSession {
        self.session_within(Duration::from_secs(20), strategy, dialect)
    }

    /// A session with this time limit for each request.
    fn session_within(&self, timeout: Duration, strategy: Strategy, dialect: &Dialect) -> ScriptSession {
        let retries = Retries::new([Duration::from_millis(5), Duration::from_millis(10)]);
        let options = Options { timeout, retries, ..Options::default() };
        ScriptSession::new(ScriptTarget::new(self.address.clone(), strategy, dialect.clone(), options))
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Serves a connection. Messages are text until a hello arrives, and frames after it.
fn serve(mut stream: TcpStream, act: fn(usize) -> Act, messages: &AtomicUsize) -> Option<()> {
    let act = || act(messages.fetch_add(1, Ordering::SeqCst));
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    let mut decoder: Option<Decoder> = None;
    loop {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        let mut out = Vec::new();
        if let Some(decoder) = &mut decoder {
            decoder.push(&piece[..count]);
            while let Some(frame) = decoder.next_frame().ok()? {
                answer(frame, &act, &mut out)?;
            }
        } else {
            text.push_str(std::str::from_utf8(&piece[..count]).ok()?);
            while let Some((message, rest)) = text.split_once("<|END|>") {
                if message.starts_with("framewire.hello,") {
                    out.extend_from_slice(b"framewire.welcome,1,0.1.0,boot,0<|END|>");
                    decoder = Some(Decoder::new());
                } else {
                    let act = act();
                    obey(act)?;
                    let reply = message.strip_prefix("framewire.echo,").unwrap_or(message);
                    out.extend_from_slice(format!("{reply}<|END|>").as_bytes());
                    if matches!(act, Act::Surplus) {
                        out.extend_from_slice(b"more<|END|>");
                    }
                }
                text = rest.to_owned();
            }
        }
        stream.write_all(&out).ok()?;
    }
}

fn answer(frame: Frame, act: &dyn Fn() -> Act, out: &mut Vec<u8>) -> Option<()> {
    match frame {
        Frame::Request(request) => {
            obey(act())?;
            let results = request.batch.ops.into_iter().map(|op| match op {
                Op::Echo { data } => Ok(Value::Bytes(data)),
                other => panic!("{other:?}"),
            });
            let outcome = Outcome { frame: 1, results: results.collect() };
            Frame::Reply(Reply { id: request.id, outcome }).encode(out);
        }
        Frame::Ping(id) => Frame::Pong { id, frame: 1 }.encode(out),
        _ => {}
    }
    Some(())
}

/// Waits if the answer must be late. Returns `None` if the connection must be dropped.
fn obey(act: Act) -> Option<()> {
    match act {
        Act::Echo | Act::Surplus => {}
        Act::Late(time) => thread::sleep(time),
        Act::Drop => return None,
    }
    Some(())
}

fn dialects() -> [Dialect; 3] {
    [Dialect::Binary, Dialect::marker(), Dialect::Marker { prefix: String::new() }]
}

/// Sends one message. Returns the reply and the number of connections that were opened for it.
async fn exchange(session: &ScriptSession, payload: &[u8]) -> Result<(Vec<u8>, u32), Failure> {
    let mut reply = Vec::new();
    let mut call = Call::new(payload, &mut reply);
    session.clone().exchange(&mut call).await?;
    let trace = call.trace();
    assert!(trace.sent.is_some());
    assert_eq!((trace.bytes_sent, trace.bytes_received), (0, 0), "bytes are not counted");
    Ok((reply, trace.connected))
}

/// Sends `count` messages at the same time, and checks that each comes back to its sender. Returns the number of
/// connections that were opened for them.
async fn at_once(session: &ScriptSession, count: usize) -> u32 {
    let send = |index| {
        let session = session.clone();
        tokio::spawn(async move {
            let payload = format!("message {index}");
            let (reply, connected) = exchange(&session, payload.as_bytes()).await.unwrap();
            assert_eq!(reply, payload.as_bytes());
            connected
        })
    };
    let tasks: Vec<_> = (0..count).map(send).collect();
    let mut connected = 0;
    for task in tasks {
        connected += task.await.unwrap();
    }
    connected
}

#[tokio::test]
async fn each_strategy_opens_the_expected_number_of_connections() {
    for dialect in dialects() {
        for strategy in Strategy::ALL {
            let endpoint = Endpoint::start(|_| Act::Late(Duration::from_millis(2)));
            let session = endpoint.session(strategy, &dialect);
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert_eq!(endpoint.connections(), 0, "{strategy}: nothing is opened before it is needed");
            let mut connected = at_once(&session, 8).await;
            connected += at_once(&session, 8).await;
            let expected = match strategy {
                Strategy::Single | Strategy::Mux => 1,
                Strategy::PerRequest => 16,
                Strategy::Pool | Strategy::PoolRetry | Strategy::PoolKeepBroken => 8,
            };
            assert_eq!(connected, expected, "{strategy} {dialect:?}");
            assert_eq!(endpoint.connections(), connected as usize, "{strategy} {dialect:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_costs_one_message_and_a_retry_hides_it() {
    for dialect in dialects() {
        for strategy in [Strategy::Single, Strategy::PerRequest, Strategy::Pool] {
            let endpoint = Endpoint::start(|number| if number == 0 { Act::Drop } else { Act::Echo });
            let session = endpoint.session(strategy, &dialect);
            let lost = exchange(&session, b"lost").await;
            assert!(matches!(lost, Err(Failure::Reset)), "{strategy}: {lost:?}");
            at_once(&session, 1).await;
        }
        let endpoint = Endpoint::start(|number| if number < 2 { Act::Drop } else { Act::Echo });
        assert_eq!(at_once(&endpoint.session(Strategy::PoolRetry, &dialect), 1).await, 3);
    }
}

#[tokio::test]
async fn a_pool_that_keeps_a_broken_socket_fails_on_it_again_and_again() {
    for dialect in dialects() {
        let endpoint = Endpoint::start(|number| if number == 0 { Act::Drop } else { Act::Echo });
        let session = endpoint.session(Strategy::PoolKeepBroken, &dialect);
        assert_eq!(exchange(&session, b"lost").await, Err(Failure::Reset));
        for _ in 0..3 {
            let again = exchange(&session, b"again").await;
            assert!(
                matches!(&again, Err(Failure::Other(text)) if text.contains("connected")),
                "{dialect:?}: {again:?}"
            );
        }
        assert_eq!(endpoint.connections(), 1);
    }
}

#[tokio::test]
async fn small_packets_are_held_back_only_with_nagle() {
    let endpoint = Endpoint::start(|_| Act::Echo);
    for nagle in [false, true] {
        let options = Options { nagle, ..Options::default() };
        let opened = Connection::open(&endpoint.address, &Dialect::marker(), &options).await.unwrap();
        assert_eq!(opened.into_parts().0.nodelay().unwrap(), !nagle);
    }
}

#[tokio::test]
async fn without_frames_a_long_message_is_cut_and_its_rest_spoils_the_next_reply() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut piece = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            stream.write_all(&piece[..count]).unwrap();
        }
    });
    let options = Options { timeout: Duration::from_secs(3), ..Options::default() };
    let session = ScriptSession::new(ScriptTarget::new(address, Strategy::Pool, Dialect::Unframed, options));
    let (short, _) = exchange(&session, b"short").await.unwrap();
    assert_eq!(short, b"short");
    let long: Vec<u8> = (0..5000).map(|index| (index % 251) as u8).collect();
    assert_eq!(exchange(&session, &long).await, Err(Failure::Wrong));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(exchange(&session, b"short").await, Err(Failure::Wrong), "the rest of the long reply");
}

#[tokio::test]
async fn a_late_reply_reaches_no_other_request() {
    for dialect in dialects() {
        for strategy in [Strategy::Single, Strategy::PerRequest, Strategy::Pool, Strategy::Mux] {
            let endpoint = Endpoint::start(|number| match number {
                0 => Act::Late(Duration::from_millis(1000)),
                _ => Act::Echo,
            });
            // Shorter than the delay, but long enough for the next request, which may have to wait for the delayed one.
            let session = endpoint.session_within(Duration::from_millis(600), strategy, &dialect);
            let late = exchange(&session, b"late").await;
            assert!(matches!(late, Err(Failure::TimedOut)), "{strategy} {dialect:?}: {late:?}");
            at_once(&session, 1).await;
        }
    }
}

#[tokio::test]
async fn a_connection_with_a_surplus_reply_is_not_used_again() {
    let endpoint = Endpoint::start(|_| Act::Surplus);
    for strategy in [Strategy::Single, Strategy::Pool, Strategy::Mux] {
        let session = endpoint.session_within(Duration::from_secs(5), strategy, &Dialect::marker());
        for message in [b"one", b"two"] {
            assert_eq!(exchange(&session, message).await, Ok((message.to_vec(), 1)), "{strategy}");
        }
    }
}

#[test]
fn a_full_queue_of_the_link_is_not_an_answer_of_the_script() {
    let failure = link_failure(LinkError::Busy(4096));
    assert_eq!(failure, Failure::Other("4096 requests are already waiting for the emulator".to_owned()));
}

#[tokio::test]
async fn a_port_without_a_listener_is_reported_as_refused() {
    let (_reserved, address) = crate::reserved_port::reserved_port();
    let address = address.to_string();
    for dialect in dialects() {
        for strategy in Strategy::ALL {
            let retries = Retries::new([Duration::from_millis(5)]);
            let options = Options { timeout: Duration::from_secs(3), retries, ..Options::default() };
            let target = ScriptTarget::new(address.clone(), strategy, dialect.clone(), options);
            let refused = exchange(&ScriptSession::new(target), b"x").await;
            assert_eq!(refused, Err(Failure::Refused), "{strategy}");
        }
    }
}
