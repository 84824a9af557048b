//! Runs `wrk`, a common load tester for HTTP servers. Each of its connections sends the next request as soon as the
//! reply to the previous one has arrived.

use std::time::Duration;

use anyhow::{Context, bail};
use framewire_lab::Process;
use framewire_loadtest::metric::{self, Unit};
use tempfile::TempDir;

use super::sample::{Latency, Sample};

/// The time that a run may take in addition to its length.
const SLACK: Duration = Duration::from_secs(20);

/// Requests `url` for `length` on 60 connections from one thread.
///
/// # Errors
/// If wrk is missing or fails, or its output cannot be understood.
pub fn run(url: &str, length: Duration) -> anyhow::Result<Sample> {
    let logs = TempDir::new().context("no folder for wrk's output")?;
    let args = ["-t1", "-c60", &format!("-d{}s", length.as_secs().max(1)), "--latency"];
    let mut process = Process::spawn("wrk", logs.path(), |command| {
        command.args(args).arg(url);
    })?;
    let status = process.wait_exit(length + SLACK)?;
    let words = process.stdout();
    if !status.success() {
        bail!("wrk ended with {status}: {words}{}", process.stderr());
    }
    read(&words).with_context(|| format!("unexpected output of wrk: {words}"))
}

fn read(words: &str) -> Option<Sample> {
    let after = |mark: &str| {
        let line = words.lines().map(str::trim).find(|line| line.starts_with(mark))?;
        Some(line[mark.len()..].split_whitespace().collect::<Vec<_>>())
    };
    let millis = |text: &str| metric::value(Unit::Milliseconds, text);
    let total = words.lines().find(|line| line.contains(" requests in "))?;
    let requests: u64 = total.split_whitespace().next()?.parse().ok()?;
    let seconds = total.split(" requests in ").nth(1)?.split(',').next()?;
    let wrong = after("Non-2xx or 3xx responses:").map_or(Some(0), |rest| rest.first()?.parse().ok())?;
    // Example of the line: "Socket errors: connect 0, read 0, write 0, timeout 0"
    let broken = after("Socket errors:").map_or(0, |rest| {
        rest.iter().filter_map(|word| word.trim_end_matches(',').parse::<u64>().ok()).sum()
    });
    let correct = requests.saturating_sub(wrong);
    // The rate that wrk prints also counts replies with a wrong status.
    let rate: f64 = after("Requests/sec:")?.first()?.parse().ok()?;
    let correct_share = correct as f64 / requests.max(1) as f64;
    // wrk prints two lines that begin with "Latency". This is the first one, with the mean, the deviation and the
    // maximum.
    let latency = after("Latency").unwrap_or_default().into_iter().map(millis).collect::<Vec<_>>();
    let failures = [("status", wrong), ("broken", broken)].into_iter().filter(|(_, count)| *count > 0);
    Some(Sample {
        seconds: millis(seconds)? / 1e3,
        requests: requests + broken,
        correct,
        failures: failures.map(|(name, count)| (name.to_owned(), count)).collect(),
        rate: Some(rate * correct_share),
        latency: Some(Latency {
            mean: (*latency.first()?)?,
            p50: millis(after("50%")?.first()?)?,
            p99: millis(after("99%")?.first()?)?,
            max: (*latency.get(2)?)?,
        }),
        ..Sample::of("wrk -t1 -c60 --latency")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "Running 2s test @ http://127.0.0.1:5000/
  1 threads and 60 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   812.47us  402.11us   9.41ms   83.20%
    Req/Sec    73.31k     2.90k   78.10k    70.00%
  Latency Distribution
     50%  770.00us
     75%    0.97ms
     90%    1.22ms
     99%    2.10ms
  146112 requests in 2.00s, 16.30MB read
Requests/sec:  72976.11
Transfer/sec:      8.14MB
";

    #[test]
    fn the_output_of_wrk_is_read() {
        let sample = read(WORDS).unwrap();
        assert_eq!((sample.requests, sample.correct, sample.rate), (146_112, 146_112, Some(72_976.11)));
        let latency = sample.latency.unwrap();
        assert_eq!((latency.p50, latency.p99, latency.max), (0.77, 2.1, 9.41));
        assert!((latency.mean - 0.81247).abs() < 1e-9 && (sample.seconds - 2.0).abs() < 1e-9);
    }

    #[test]
    fn errors_do_not_count_as_correct_replies() {
        let words = WORDS.replace(
            "Requests/sec",
            "  Socket errors: connect 0, read 3, write 0, timeout 1\n  Non-2xx or 3xx responses: 12\nRequests/sec",
        );
        let sample = read(&words).unwrap();
        assert_eq!((sample.requests, sample.correct), (146_116, 146_100));
        assert_eq!(sample.failures["status"], 12);
        let correct_share = sample.rate.unwrap() / 72_976.11;
        assert!((correct_share - 146_100.0 / 146_112.0).abs() < 1e-9, "{correct_share}");
        assert!(read("wrk: unable to connect").is_none());
    }
}
