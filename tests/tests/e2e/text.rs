//! Clients that use the text protocol on a plain socket, like those of mGBA-http's users. They connect to the script in
//! a stock mGBA.

use std::net::TcpStream;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use framewire_e2e::{StockMgba, TextClient, demo, paths, until_good};

use super::served::{PATIENCE, stock};

#[test]
fn text_clients_of_a_stock_mgba_get_every_reply() {
    let mgba = stock(&paths::rom());
    a_message_split_in_any_way(&mgba);
    messages_sent_together(&mgba);
    a_large_state_and_a_message_after_it(&mgba);
    errors_are_always_replies(&mgba);
    values_are_read_as_they_were_written(&mgba);
    a_hundred_clients_within_100_ms(&mgba);
}

fn a_message_split_in_any_way(mgba: &StockMgba) {
    let message = b"core.getGameTitle<|END|>";
    let mut other = TextClient::connect(mgba.address(), PATIENCE).unwrap();
    for cut in 1..message.len() {
        let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
        client.send(&message[..cut]).unwrap();
        // During the serving time, the script accepts connections only once per millisecond, and prefers the client
        // that sent the last request. At the start of each frame, it accepts and serves all clients. So after more than
        // a frame, it has read the first part.
        let sent = Instant::now();
        while sent.elapsed() < Duration::from_millis(30) {
            assert_eq!(other.ask("core.platform").unwrap(), "0");
        }
        client.send(&message[cut..]).unwrap();
        assert_eq!(client.reply().unwrap(), "FRAMEWIRE", "cut at {cut}");
    }
    let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
    for byte in message {
        client.send(&[*byte]).unwrap();
    }
    assert_eq!(client.reply().unwrap(), "FRAMEWIRE", "byte by byte");
}

fn messages_sent_together(mgba: &StockMgba) {
    let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
    let numbers = 0..500;
    let all: String = numbers.clone().map(|number| format!("framewire.echo,n {number}<|END|>")).collect();
    client.send(all.as_bytes()).unwrap();
    for number in numbers {
        assert_eq!(client.reply().unwrap(), format!("n {number}"));
    }
}

fn a_large_state_and_a_message_after_it(mgba: &StockMgba) {
    let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
    for _ in 0..3 {
        let state = client.ask("core.saveStateBuffer,0").unwrap();
        assert_eq!(state.len(), 3 * 0x61000 - 1);
        assert_eq!(client.ask("core.platform").unwrap(), "0");
        assert_eq!(client.ask(&format!("core.loadStateBuffer,[{state}],29")).unwrap(), "true");
    }
}

fn errors_are_always_replies(mgba: &StockMgba) {
    let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
    assert_eq!(client.ask("core.platform").unwrap(), "0");
    for message in [
        "",
        "nonsense",
        "core.read8",
        "core.read8,",
        "core.read8,zzz",
        "core.read8,-1",
        "core.readRange,0x02000000,-1",
        "core.readRange,0x02000000,99999999999",
        "core.write8,0x02000100,300",
        "core.addKey,10",
        "core.readRegister,r99",
        "memoryDomain.read8,nothing,0",
        "mgba-http.button.add,a",
        "mgba-http.button.holdMany,,5",
        "core.loadStateBuffer,[zz],29",
    ] {
        assert_eq!(client.ask(message).unwrap(), "<|ERROR|>", "{message:?}");
    }
    assert_eq!(client.ask("core.platform").unwrap(), "0");
}

fn values_are_read_as_they_were_written(mgba: &StockMgba) {
    let scratch = demo::field("scratch");
    let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
    assert_eq!(client.ask(&format!("core.write32,{scratch:#x},4294967295")).unwrap(), "<|SUCCESS|>");
    assert_eq!(client.ask(&format!("core.read32,{scratch}")).unwrap(), "4294967295");
    assert_eq!(client.ask(&format!("core.readRange,{scratch:#010x},4")).unwrap(), "ff,ff,ff,ff");
    assert_eq!(client.ask("console.log,h\u{e9}, w\u{f6}rld").unwrap(), "<|SUCCESS|>");
    assert!(mgba.console().contains("h\u{e9}, w\u{f6}rld"), "{}", mgba.console());
    let file = mgba.dir().join("a, b \u{e9}.ss");
    let path = file.to_str().unwrap();
    assert_eq!(client.ask(&format!("core.saveStateFile,{path},31")).unwrap(), "true");
    assert_eq!(client.ask(&format!("core.loadStateFile,{path}")).unwrap(), "true");
    assert!(file.exists());
}

fn a_hundred_clients_within_100_ms(mgba: &StockMgba) {
    let slowest = || {
        // These clients disconnect immediately. They must not delay the next clients.
        let gone: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(mgba.address()).unwrap()).collect();
        drop(gone);
        let barrier = Barrier::new(100);
        let times: Vec<Duration> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..100).map(|_| scope.spawn(|| a_clients_time(mgba, &barrier))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        times.into_iter().max().unwrap()
    };
    until_good(slowest, |time| *time <= Duration::from_millis(100));
}

/// Connects when all clients are ready. Returns the time until the reply.
fn a_clients_time(mgba: &StockMgba, barrier: &Barrier) -> Duration {
    barrier.wait();
    let begun = Instant::now();
    let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
    assert_eq!(client.ask("core.getGameTitle").unwrap(), "FRAMEWIRE");
    begun.elapsed()
}
