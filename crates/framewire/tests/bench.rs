//! Tests `framewire bench` as users run it: against `framewire serve`, its script, and the embedded core.
#![cfg(feature = "embedded")]

#[path = "../../../tests/src/reserved_port.rs"]
mod reserved_port;
#[path = "../../../tests/src/until_good.rs"]
mod until_good;
#[path = "../../../tests/src/without_settings.rs"]
mod without_settings;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use framewire_loadtest::report::Report;
use framewire_loadtest::row::Row;
use reserved_port::reserved_port;
use tokio::net::TcpSocket;
use until_good::until_good;
use without_settings::without_settings;

const PROGRAM: &str = env!("CARGO_BIN_EXE_framewire");

/// A process of `framewire serve` with the demo game and the script. It ends with the test.
struct Server {
    child: Child,
    http: String,
    script: u16,
    /// Keeps the script's port for the script.
    _reserved: TcpSocket,
}

impl Server {
    fn start() -> Server {
        Server::start_with(&[])
    }

    fn start_with(options: &[&str]) -> Server {
        // The script takes its port from the environment variable FRAMEWIRE_SCRIPT_PORT.
        let (reserved, address) = reserved_port();
        let script = address.port();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut child = program()
            .args(["serve", "--quiet", "--listen", "127.0.0.1:0"])
            .arg("--rom")
            .arg(root.join("rom/framewire-demo.gba"))
            .arg("--lua")
            .arg(framewire_script::PATH)
            .args(options)
            .env("FRAMEWIRE_SCRIPT_PORT", script.to_string())
            // Not the folder of the user's snapshots and recordings.
            .env("FRAMEWIRE_DATA", env!("CARGO_TARGET_TMPDIR"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let http = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Server { child, http, script, _reserved: reserved }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that runs the program without the caller's settings in the environment.
fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    without_settings(&mut command);
    command
}

fn bench(args: &[&str]) -> Output {
    program().arg("bench").args(args).output().unwrap()
}

/// Runs `framewire bench` and reads its report.
fn report(args: &[&str]) -> Report {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut all = args.to_vec();
    all.extend(["--json", file.path().to_str().unwrap()]);
    let output = bench(&all);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Report::from_json(&std::fs::read_to_string(file.path()).unwrap()).unwrap()
}

fn assert_no_failures(row: &Row) {
    assert_eq!((row.success, row.failures.len()), (100.0, 0), "{row:?}");
}

/// Runs `framewire bench` until the game keeps its speed in all rows, and returns the last report. No request may fail.
fn clean(args: &[&str]) -> Report {
    let mut last = None;
    let measure = || {
        let report = report(args);
        assert!(!report.rows.is_empty());
        report.rows.iter().for_each(assert_no_failures);
        let held = |row: &Row| row.pace.expect("the frame counter is read").mean;
        let all: Vec<f64> = report.rows.iter().map(held).collect();
        last = Some(report);
        all
    };
    // The range is wide, because a busy machine runs fewer frames. After a delay, the game runs up to 200 ms of
    // additional frames. In a run of one second, that can exceed the range; then the measurement is repeated.
    until_good(measure, |all| all.iter().all(|held| (5.0..70.0).contains(held)));
    last.expect("a report")
}

/// The endpoint is the echo route of the load-test study that docs/study.md repeats.
#[test]
fn the_endpoint_of_the_study_keeps_up_with_its_rates() {
    let server = Server::start();
    let url = format!("{}/mgbaendpoint", server.http);
    let report = clean(&[&url, "--rates", "1,5,10,20,40", "--duration", "2s", "--rest", "50ms"]);
    assert_eq!(report.rows.len(), 5);
    for (row, asked) in report.rows.iter().zip([1.0, 5.0, 10.0, 20.0, 40.0]) {
        assert_eq!(row.asked, Some(asked));
        assert_eq!(row.requests, 2 * asked as u64);
    }
}

/// A server with a certificate and a token, and the options with which `framewire bench` can reach it.
fn secured(folder: &Path) -> (Server, Vec<String>) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let secret = |name: &str, text: &str| {
        std::fs::write(path(name), text).unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(path(name), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path(name)
    };
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let certificate = secret("cert.pem", &key.cert.pem());
    let private = secret("key.pem", &key.signing_key.serialize_pem());
    let token = secret("token", "0123456789abcdef0123456789abcdef0123456789abcdef");
    let options = ["--tls-cert", &certificate, "--tls-key", &private, "--token-file", &token];
    let server = Server::start_with(&options);
    let options = ["--cacert", &certificate, "--token-file", &token].map(str::to_owned);
    (server, options.to_vec())
}

#[test]
fn a_batch_over_tls_with_a_token_is_measured_like_the_echo() {
    let folder = tempfile::tempdir().unwrap();
    let (server, options) = secured(folder.path());
    let run = |path: &str, more: &[&str]| {
        let url = format!("{}{path}", server.http);
        let mut args = vec![url.as_str(), "-r", "50", "-d", "1s"];
        args.extend(options.iter().map(String::as_str));
        args.extend(more);
        clean(&args)
    };
    run("/mgbaendpoint", &[]);
    let read = r#"{"ops": [{"op": "read", "address": "0x02000044", "type": "u32"}]}"#;
    let batch = run("/v1/batch", &["--body", read, "--check", "contains=results"]);
    assert_eq!(batch.rows[0].statuses.get(&200), Some(&50));
    assert_eq!(batch.target.requests, ["POST /v1/batch"]);

    let list = folder.path().join("list.toml");
    let text =
        format!("[[request]]\npath = '/v1/emulator'\n[[request]]\npath = '/v1/batch'\nbody = '{read}'\n");
    std::fs::write(&list, text).unwrap();
    run("/", &["--requests", list.to_str().unwrap()]);

    // First without the token, then without trust in the certificate.
    let without = report(&[&format!("{}/v1/emulator", server.http), "-r", "50", "-d", "1s", "--insecure"]);
    assert_eq!(without.rows[0].statuses.get(&401), Some(&50), "{:?}", without.rows[0]);
    let output = bench(&[&format!("{}/v1/emulator", server.http)]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("--cacert"), "{text}");
}

#[test]
fn every_strategy_in_both_dialects_reaches_the_script() {
    let server = Server::start();
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.1", server.script)).is_err() {
        assert!(Instant::now() < deadline, "the script does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    for scheme in ["link", "marker"] {
        for strategy in ["single", "per-request", "pool", "pool-retry", "pool-keep-broken", "mux"] {
            let url = format!("{scheme}://127.0.0.1:{}", server.script);
            let report = clean(&[&url, "-s", strategy, "-r", "50", "-d", "1s", "-p", "5000"]);
            assert_eq!(report.rows[0].requests, 50);
        }
    }
}

#[test]
fn the_embedded_core_answers_and_a_goal_decides_the_exit_code() {
    clean(&["embedded", "-r", "500", "-d", "2s", "--goal", "success=100%,p50<2s"]);
    let output = bench(&["embedded", "-r", "100", "-d", "500ms", "-q", "--goal", "p50<1us"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Missed at 100: p50<1us: it was"));
}

#[test]
fn a_limit_is_found_and_confirmed() {
    // There is one connection, and each request takes 10 ms. At 125 requests per second, the replies are 250 ms late
    // after one second.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/?message={{}}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer_slowly(stream));
        }
    });
    let goal = ["--find-limit", "--goal", "success=100%,p99<250ms"];
    let args = [&[url.as_str(), "-s", "single", "-r", "20", "-d", "1s", "--rest", "0s"], &goal[..]].concat();
    // On a busy machine, a request takes longer, and a search can end too low.
    until_good(
        || report(&args).limit.unwrap(),
        |limit| limit.confirmations == 3 && limit.rate.is_some_and(|rate| (70.0..=130.0).contains(&rate)),
    );
}

#[test]
fn a_search_without_a_limit_fails() {
    let (_reserved, address) = reserved_port();
    let url = format!("http://{address}/");
    let search = ["--find-limit", "--goal", "success=100%", "-r", "10", "-d", "300ms", "--rest", "0s"];
    let output = bench(&[&[url.as_str(), "--skip-check", "--emulator", "none"], &search[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("no rate met success=100%"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

fn answer_slowly(stream: TcpStream) -> Option<()> {
    let mut out = stream.try_clone().ok()?;
    let mut message = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line.ok()?;
        if let Some((_, rest)) = line.split_once("?message=") {
            message = rest.split(' ').next()?.to_owned();
        } else if line.is_empty() {
            std::thread::sleep(Duration::from_millis(10));
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{message}", message.len());
            out.write_all(response.as_bytes()).ok()?;
        }
    }
    None
}

#[cfg(unix)]
#[test]
fn a_low_limit_on_open_files_does_not_limit_the_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(2));
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                    .ok()?;
                // Reads to the end, because a connection that is closed with unread bytes ends with a reset.
                stream.read_to_end(&mut Vec::new()).ok()
            });
        }
    });
    let json = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("sh");
    without_settings(&mut command);
    // The tester raises the soft limit.
    command.args([
        "-c",
        "ulimit -S -n 64 && exec \"$@\"",
        "sh",
        PROGRAM,
        "bench",
        &url,
        "--emulator",
        "none",
    ]);
    command.args(["-r", "100", "-d", "1s", "--json"]).arg(json.path());
    assert!(command.output().unwrap().status.success());
    let report = Report::from_json(&std::fs::read_to_string(json.path()).unwrap()).unwrap();
    assert_no_failures(&report.rows[0]);
    assert!(report.rows[0].connections > 64, "{}", report.rows[0].connections);
}

#[test]
fn two_reports_are_compared_and_a_broken_rule_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["a.json", "b.json"] {
        let file = path(name);
        assert!(bench(&["embedded", "-r", "50", "-d", "500ms", "-q", "--json", &file]).status.success());
    }
    let compare = |rule| bench(&["compare", &path("a.json"), &path("b.json"), "--fail-on", rule]);
    assert_eq!(compare("success<-1%").status.code(), Some(0));
    let output = compare("p99>0ms");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Failed: p99>0ms at 50"));

    // A missing row breaks the rules. Without rules, it is only reported.
    let file = path("b.json");
    let args = ["embedded", "-r", "50,60", "-d", "500ms", "--speed", "2", "-q", "--json", &file];
    assert!(bench(&args).status.success());
    let before = path("a.json");
    let backwards = ["compare", &file, &before, "--fail-on", "success<-1%"];
    let output = bench(&backwards);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Only in the first report: 60") && text.contains("Failed: 60:"), "{text}");
    assert!(text.contains("Not the same: options: speed 2 before, none now"), "{text}");
    assert_eq!(bench(&backwards[..3]).status.code(), Some(0));
    std::fs::write(&before, "{}").unwrap();
    let output = bench(&backwards[..3]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("this is not a report") && !text.contains("missing field"), "{text}");
}

#[test]
fn files_are_written_in_all_formats() {
    let folder = tempfile::tempdir().unwrap();
    let [json, html, hdr, csv, prom] =
        ["o.json", "o.html", "o.hdr", "o.csv", "o.prom"].map(|name| folder.path().join(name));
    let args = ["embedded", "-r", "100", "-d", "500ms", "-q", "--json", json.to_str().unwrap()];
    let more = ["--html", html.to_str().unwrap(), "--hdr", hdr.to_str().unwrap()];
    let plain = ["--csv", csv.to_str().unwrap(), "--prometheus", prom.to_str().unwrap()];
    assert!(bench(&[&args[..], &more[..], &plain[..]].concat()).status.success());
    let report = Report::from_json(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert!(report.command.iter().any(|word| word == "embedded"));
    assert!(report.rows[0].bytes.is_none(), "bytes are not counted: {:?}", report.rows[0]);
    assert!(std::fs::read_to_string(html).unwrap().contains("</html>"));
    assert!(std::fs::read_to_string(csv).unwrap().contains("\nembedded,in this process,100,100,"));
    assert!(std::fs::read_to_string(prom).unwrap().contains("framewire_bench_requests{target=\"embedded\""));
    let log = std::fs::read_to_string(hdr).unwrap();
    assert!(log.contains("Tag=asked-100-intended") && log.contains("Tag=asked-100-sent"), "{log}");
}

#[test]
fn the_last_report_stays_until_the_next_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["json", "html", "hdr"].map(|name| folder.path().join(name));
    for path in &paths {
        std::fs::write(path, "the last").unwrap();
    }
    let [json, html, hdr] = paths.each_ref().map(|path| path.to_str().unwrap());
    let mut child = program()
        .args(["bench", "embedded", "-r", "100", "-d", "60s", "--json", json, "--html", html, "--hdr", hdr])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    for path in &paths {
        assert_eq!(std::fs::read_to_string(path).unwrap(), "the last", "{line}");
    }
}

#[test]
fn a_file_that_cannot_be_written_does_not_cost_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let (gone, csv) = (folder.path().join("gone"), folder.path().join("o.csv"));
    std::fs::create_dir(&gone).unwrap();
    let mut child = program()
        .args(["bench", "embedded", "-r", "100", "-d", "2s", "--json"])
        .arg(gone.join("o.json"))
        .arg("--csv")
        .arg(&csv)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line comes during the run. By then, the program has checked the folder.
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    lines.read_line(&mut text).unwrap();
    std::fs::remove_dir_all(&gone).unwrap();
    lines.read_to_string(&mut text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(text.contains("cannot write") && output.status.code() == Some(1), "{text}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("| asked |"));
    assert!(std::fs::read_to_string(csv).unwrap().contains("\nembedded,"));
}

#[test]
fn the_report_is_written_even_if_nothing_reads_the_output() {
    let json = tempfile::NamedTempFile::new().unwrap();
    let mut child = program()
        .args(["bench", "embedded", "-r", "100", "-d", "500ms", "--json", json.path().to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(Report::from_json(&std::fs::read_to_string(json.path()).unwrap()).is_ok());
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_in_the_file_of_standard_output_does_not_replace_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.txt");
    let stdout = std::fs::File::create(&path).unwrap();
    let args = ["bench", "embedded", "-q", "-r", "100", "-d", "500ms", "--json", "/dev/stdout"];
    assert!(program().args(args).stdout(stdout).status().unwrap().success());
    let text = std::fs::read_to_string(&path).unwrap();
    let (json, result) = text.split_once("\n}\n").expect("the report comes first");
    assert!(json.starts_with('{') && result.contains("| asked |"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_path_that_is_not_utf_8_can_be_an_output() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.json"));
    let args = ["bench", "embedded", "-q", "-r", "100", "-d", "500ms", "--json"];
    assert!(program().args(args).arg(&path).status().unwrap().success());
    let report = Report::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(report.rows[0].correct > 0);
}

#[test]
fn progress_is_printed_each_second_while_the_last_replies_are_awaited() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("marker://{}", silent.local_addr().unwrap());
    let output = bench(&[&url, "--emulator", "none", "-r", "5", "-d", "1s", "--timeout", "3s"]);
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().filter(|line| line.contains(" of 1 s: ")).collect();
    assert!((1..=6).contains(&lines.len()), "{text}");
}

#[test]
fn two_outputs_need_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("same").to_str().unwrap().to_owned();
    // The same file with another spelling of its path.
    let other = folder.path().join(".").join("same").to_str().unwrap().to_owned();
    let output = bench(&["embedded", "-d", "500ms", "--json", &path, "--html", &other]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("--json and --html are both"), "{text}");
    assert!(!folder.path().join("same").exists());
}

#[test]
fn a_folder_cannot_be_an_output_even_if_it_does_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("{}/", folder.path().join("new").display());
    let output = bench(&["embedded", "-d", "500ms", "--json", &name]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("name a file in a folder"), "{text}");
    assert!(output.stdout.is_empty(), "nothing is measured");
}

/// Starts `framewire bench embedded` with these arguments. Its standard error can be read, and its report goes to `json`.
#[cfg(unix)]
fn watched(args: &[&str], json: &Path) -> Child {
    program()
        .args(["bench", "embedded"])
        .args(args)
        .arg("--json")
        .arg(json)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Sends SIGINT to a command that [`watched`] started, waits until it ends, and reads its report. `lines` is its
/// standard error.
#[cfg(unix)]
fn interrupt(mut child: Child, mut lines: impl BufRead, json: &Path) -> Report {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    std::io::copy(&mut lines, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    Report::from_json(&std::fs::read_to_string(json).unwrap()).unwrap()
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_reports_what_it_measured() {
    let json = tempfile::NamedTempFile::new().unwrap();
    let mut child = watched(&["-r", "100", "-d", "60s"], json.path());
    // The program prints a line each second, such as `1/1 100/s: 1 of 60 s: 99.5/s, p50 ...`. On a busy machine, the
    // first second can have fewer replies.
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut rate: f64 = 0.0;
    while rate < 50.0 {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the run is over");
        let figures = line.split_once(" s: ").and_then(|(_, figures)| figures.split_once("/s"));
        rate = figures.map_or(0.0, |(rate, _)| rate.parse().unwrap());
    }
    let report = interrupt(child, lines, json.path());
    assert!(report.cut_short && report.rows[0].cut_short);
    assert!(report.rows[0].correct >= 50, "{:?}", report.rows[0]);
}

#[cfg(unix)]
#[test]
fn no_run_begins_after_a_signal_in_the_pause_between_two_runs() {
    let json = tempfile::NamedTempFile::new().unwrap();
    let mut child = watched(&["-r", "100,200", "-d", "500ms", "--rest", "60s"], json.path());
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("1/2 100/s: ") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the command is over");
    }
    let report = interrupt(child, lines, json.path());
    assert!(report.cut_short);
    assert_eq!(report.rows.len(), 1, "{:?}", report.rows);
}

#[test]
fn a_closed_load_has_one_request_in_flight_for_each_client() {
    let report = report(&["embedded", "--concurrency", "300", "--workers", "260", "-d", "500ms"]);
    assert_eq!(report.settings.connections, 300);
}

#[test]
fn the_embedded_core_refuses_options_of_marker_targets() {
    for option in ["--raw", "--unframed"] {
        let output = bench(&["embedded", option, "-d", "500ms"]);
        let text = String::from_utf8_lossy(&output.stderr);
        let advice = format!("{option} is for marker:// targets; leave it out");
        assert!(!output.status.success() && text.contains(&advice), "{option}: {text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_an_end_is_refused() {
    let cases: [(&[&str], &str); 4] = [
        (&["http://localhost:1/", "--requests", "/dev/zero"], "at most 67108864 bytes"),
        (&["http://localhost:1/", "--token-file", "/dev/zero"], "at most 65536 bytes"),
        (&["https://localhost:1/", "--cacert", "/dev/zero"], "at most 67108864 bytes"),
        (&["compare", "/dev/zero", "/dev/zero"], "at most 268435456 bytes"),
    ];
    for (args, limit) in cases {
        let output = bench(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(limit), "{args:?}: {text}");
    }
}

#[test]
fn an_option_without_an_effect_is_refused() {
    let http = "http://localhost:1/";
    let cases: [(&[&str], &str); 6] = [
        (&[http, "--payload", "5000"], "write {} where it goes"),
        (&[http, "--unix-socket", "socket", "--nagle"], "leave --nagle out"),
        (&[http, "--header", "Content-Length: 3"], "leave this header out"),
        (&[http, "--header", "authorization: x", "--token-file", "/nowhere"], "leave one of them out"),
        (&["embedded", "-d", "500ms", "--counter", "score", "--emulator", "none"], "leave --counter out"),
        (
            &["link://localhost:1", "--counter", "score", "--emulator", "none", "--skip-check"],
            "leave --counter out",
        ),
    ];
    for (args, advice) in cases {
        let output = bench(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(advice), "{args:?}: {text}");
    }
}

#[test]
fn http2_does_not_apply_to_another_server_with_the_counter() {
    let server = Server::start();
    // The target accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let counter = format!("{}/v1/emulator", server.http);
    let run = ["--http2", "--emulator", &counter, "-r", "5", "-d", "500ms", "--timeout", "500ms"];
    let report = report(&[&[url.as_str()], &run[..]].concat());
    assert_eq!(report.target.counter.as_deref(), Some("frames"));
}

#[test]
fn a_counter_that_the_target_does_not_have_is_an_error() {
    let server = Server::start();
    let output = bench(&[&server.http, "-d", "500ms", "--counter", "frmae"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("\"frmae\""), "{text}");
}

#[test]
fn a_welcome_that_does_not_end_does_not_delay_the_first_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("marker://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // Together, these pauses are longer than the assertion below allows.
                for _ in 0..300 {
                    stream.write_all(b"x").ok()?;
                    std::thread::sleep(Duration::from_millis(200));
                }
                Some(())
            });
        }
    });
    let start = Instant::now();
    let report = report(&[&url, "--skip-check", "-r", "10", "-d", "300ms", "--timeout", "500ms"]);
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    assert_eq!((report.target.counter, report.rows[0].correct), (None, 0));
}

#[test]
fn errors_say_what_to_type() {
    let cases: [(&[&str], &str); 27] = [
        (&[], "http://127.0.0.1:5000/mgbaendpoint"),
        (&["http://127.0.0.1:1/"], "framewire serve"),
        (&["embedded", "--rates", "0"], "numbers above 0"),
        (&["embedded", "--concurrency", "0"], "at least 1"),
        (&["embedded", "--goal", "p99<40"], "40ms"),
        (&["embedded", "--duration", "0s"], "5s"),
        (&["embedded", "--json", "/nowhere/at/all.json"], "a folder that exists"),
        (&["ftp://localhost/"], "https://"),
        (&["link://localhost:1", "--strategy", "many"], "per-request"),
        (&["embedded", "--body", "x"], "--body is for http://"),
        (&["http://localhost:1/", "--rom", "game.gba"], "--rom is for the target `embedded`"),
        (&["link://localhost:1", "--speed", "2"], "--speed is for the target `embedded`"),
        (&["http://localhost:1/", "--check", "echo"], "write {} where it goes"),
        (&["http://localhost:1/", "--check", "yes"], "contains=TEXT"),
        (&["http://localhost:1/", "--requests", "/nowhere.toml"], "cannot read /nowhere.toml"),
        (&["http://localhost:1/", "--token-file", "/nowhere"], "cannot read the token"),
        (&["http://me:secret@localhost:1/"], "--token-file"),
        (&["https://localhost:1/", "--cacert", "/nowhere.pem"], "/nowhere.pem"),
        (&["http://localhost:1/", "--stages", "10s"], "TIME@RATE"),
        (&["http://localhost:1/", "--http2", "--strategy", "pool"], "per-request"),
        (
            &["http://localhost:1/", "--strategy", "per-request", "--retries", "1s"],
            "leave it out for per-request",
        ),
        (&["link://localhost:1", "--retries", "1s"], "--retries is for --strategy pool-retry"),
        (&["embedded", "--retries", "1s"], "leave --retries out"),
        (&["http://localhost:1/", "--strategy", "single", "--concurrency", "2"], "use --concurrency 1"),
        (&["embedded", "-d", "500ms", "--check", "status=404"], "have no status"),
        (&["marker://localhost:1", "--check", "status=404"], "have no status"),
        (&["embedded", "-d", "500ms", "--counter", "score"], "leave --counter out"),
    ];
    for (args, advice) in cases {
        let output = bench(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(advice), "{args:?}: {text}");
        assert!(output.stdout.is_empty(), "{args:?}: standard output must be empty");
    }
}
