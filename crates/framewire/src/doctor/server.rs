//! Asks a Framewire server that is already running for its version and its emulators.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use framewire_http::{CHALLENGE, HTTPS_ONLY, Token};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Finding, ok, with_advice, wrong};
use crate::settings::Settings;

/// How long to wait for the answer to each request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 1 << 20;

#[derive(Deserialize)]
struct EmulatorList {
    emulators: Vec<Emulator>,
}

#[derive(Deserialize)]
struct Emulator {
    name: String,
    kind: String,
    connected: bool,
    run: String,
    frames_per_second: f64,
    frame: u32,
    title: Option<String>,
    address: Option<String>,
    problem: Option<String>,
}

/// The findings about the Framewire server at `address`; `None` if no Framewire server answers there.
pub(super) async fn findings(settings: &Settings, address: SocketAddr) -> Option<Vec<Finding>> {
    // 0.0.0.0 and [::] mean every address of the machine.
    let address = match address.ip() {
        ip if ip.is_unspecified() && ip.is_ipv4() => SocketAddr::from(([127, 0, 0, 1], address.port())),
        ip if ip.is_unspecified() => SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], address.port())),
        _ => address,
    };
    let health = get(address, "/healthz", None).await.ok()?;
    if health.asks_for_https() {
        return Some(vec![serves_https(address)]);
    }
    // The token is sent only to a Framewire server, not to another program.
    if !health.is_framewires() {
        return None;
    }
    Some(match token(settings) {
        Ok(token) => ask(address, token.as_ref()).await.unwrap_or_else(|error| {
            vec![wrong(
                format!("framewire serves at {address} but does not answer: {error:#}"),
                "read its log; if it hangs, stop it and start it again",
            )]
        }),
        Err(error) => vec![wrong(
            format!("framewire serves at {address}; its token cannot be read: {error:#}"),
            "name a readable file with --token-file or --read-token-file",
        )],
    })
}

/// The finding for a Framewire server that was started with a certificate.
fn serves_https(address: SocketAddr) -> Finding {
    let owner = super::owner(&address.to_string());
    let text = format!("framewire serves HTTPS at {address}{owner}; its emulators are not checked");
    let advice = format!(
        "GET https://{address}/v1/emulators lists them; a second server needs another address: `framewire serve \
         --listen 127.0.0.1:0`"
    );
    with_advice(ok(text), advice)
}

/// The token for reading: the one of `--read-token-file`, or else the one of `--token-file`.
fn token(settings: &Settings) -> anyhow::Result<Option<Token>> {
    let file = settings.read_token_file.as_deref().or(settings.token_file.as_deref());
    Ok(file.map(Token::from_file).transpose()?)
}

/// The findings about the server and its emulators, from its HTTP API.
async fn ask(address: SocketAddr, token: Option<&Token>) -> anyhow::Result<Vec<Finding>> {
    let list = get(address, "/v1/emulators", token).await?;
    if list.status == 401 {
        let problem = format!("framewire serves at {address} and requires a token");
        let advice = match token {
            None => "name the file of its token with --token-file or --read-token-file",
            Some(_) => "the server has another token: name the file that it was started with",
        };
        return Ok(vec![wrong(problem, advice)]);
    }
    if list.status != 200 {
        bail!("{}: {}", list.status, list.body);
    }
    let list: EmulatorList = serde_json::from_str(&list.body).context("its list of emulators")?;
    let metrics = get(address, "/metrics", token).await?;
    let mut findings = vec![program(address, version(&metrics.body))];
    findings.extend(list.emulators.iter().map(emulator));
    Ok(findings)
}

fn program(address: SocketAddr, version: Option<&str>) -> Finding {
    let mine = env!("CARGO_PKG_VERSION");
    let text = format!(
        "framewire {} serves at {address}{}",
        version.unwrap_or("(of unknown version)"),
        super::owner(&address.to_string())
    );
    if version == Some(mine) {
        let advice = "a second one needs another address: `framewire serve --listen 127.0.0.1:0`";
        return with_advice(ok(text), advice);
    }
    wrong(
        format!("{text}; this program is {mine}"),
        "to serve with this version, stop that server and start this program",
    )
}

fn emulator(emulator: &Emulator) -> Finding {
    let Emulator { name, kind, run, frame, frames_per_second, .. } = emulator;
    let place = emulator.address.as_ref().map_or_else(String::new, |address| format!(" at {address}"));
    let game = emulator.title.as_deref().unwrap_or("no game");
    if !emulator.connected {
        let problem = emulator.problem.as_deref().unwrap_or("no reason is known");
        return wrong(
            format!("its emulator {name}: no connection to the mGBA{place}: {problem}"),
            "start mGBA, load a ROM, then Tools > Scripting... > File > Load script with the file that `framewire script -o \
             framewire.lua` writes; the server connects by itself",
        );
    }
    if run == "stalled" {
        return wrong(
            format!("its emulator {name} ({kind}{place}) does not answer; it was at frame {frame} of {game}"),
            "if it is paused or has no ROM: load a ROM, continue (Ctrl+P) and close open menus",
        );
    }
    ok(format!(
        "its emulator {name} ({kind}{place}) is {run}: {game}, frame {frame}, {frames_per_second:.1} frames/s"
    ))
}

/// The server's version, from its metrics.
fn version(metrics: &str) -> Option<&str> {
    let line = metrics.lines().find(|line| line.starts_with("framewire_build_info"))?;
    line.split_once("version=\"")?.1.split('"').next()
}

/// The reply of `/healthz`, with all of its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only their presence matters")]
struct Health {
    status: String,
    connected: bool,
    run: String,
}

struct Response {
    status: u16,
    /// The status line and the headers.
    head: String,
    body: String,
}

impl Response {
    /// Whether this is a Framewire server's answer to `/healthz`.
    fn is_framewires(&self) -> bool {
        match self.status {
            200 => serde_json::from_str::<Health>(&self.body).is_ok_and(|health| health.status == "ok"),
            401 => self.header("www-authenticate") == Some(CHALLENGE),
            _ => false,
        }
    }

    /// Whether this is the answer that a Framewire server with a certificate sends to plain HTTP.
    fn asks_for_https(&self) -> bool {
        self.status == 400 && self.body == HTTPS_ONLY
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

async fn get(address: SocketAddr, path: &str, token: Option<&Token>) -> anyhow::Result<Response> {
    let answer = timeout(TIMEOUT, exchange(address, path, token)).await;
    let answer = answer.with_context(|| format!("no answer to GET {path} within {TIMEOUT:?}"))??;
    let (head, body) = answer.split_once("\r\n\r\n").context("it does not speak HTTP")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.context("it does not speak HTTP")?;
    Ok(Response { status, head: head.to_owned(), body: body.to_owned() })
}

/// Sends a request on a new connection and reads until the server closes it. With HTTP/1.0 the answer is not chunked.
async fn exchange(address: SocketAddr, path: &str, token: Option<&Token>) -> io::Result<String> {
    let authorization =
        token.map_or_else(String::new, |token| format!("Authorization: Bearer {}\r\n", token.reveal()));
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{authorization}\r\n");
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
