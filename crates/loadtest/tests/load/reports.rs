//! Tests the reports of real runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use framewire_loadtest::compare::{self, FailOn};
use framewire_loadtest::goal::Goal;
use framewire_loadtest::http::Reuse;
use framewire_loadtest::report::hdr_log::HdrLog;
use framewire_loadtest::report::{Report, TargetInfo, Verdict, export, html, markdown};
use framewire_loadtest::row::{Phase, Row};
use framewire_loadtest::{Arrivals, Check, Load, Plan, Stop};

use crate::server::{Action, Server};
use crate::until_good::until_good;

fn report(plan: &Plan, rows: Vec<Row>) -> Report {
    let target = TargetInfo {
        url: "http://<here>/".to_owned(),
        strategy: "pool".to_owned(),
        check: "echo".to_owned(),
        ..TargetInfo::default()
    };
    let mut report = Report::new("test 1.0".to_owned(), vec!["bench".to_owned()], target, plan);
    report.rows = rows;
    report
}

/// The rows of runs at 50 and 100 requests per second, and the plan of the first run. One request of the first run
/// fails.
fn rows(delay: Duration) -> (Plan, Vec<Row>) {
    let server = Server::start(move |number| match number {
        7 => Action::Status(500),
        _ => Action::Silence(delay),
    });
    let plan = crate::plan(50.0, Duration::from_secs(1));
    let other = crate::plan(100.0, Duration::from_secs(1));
    let rows = [&plan, &other].map(|plan| crate::run(server.port, Reuse::default(), plan));
    (plan, rows.to_vec())
}

#[test]
fn a_page_says_which_runs_missed_the_goal_and_each_warning_once() {
    let (plan, mut rows) = rows(Duration::ZERO);
    for row in &mut rows {
        row.warnings = vec!["the machine was busy".to_owned()];
    }
    let mut report = report(&plan, rows);
    let goal: Goal = "p50<1us".parse().unwrap();
    report.verdict = Some(Verdict::of(&goal, &report.rows));
    let page = html::page(&report);
    let (verdict, tables) =
        (page.find("Missed p50&lt;1us at 50, 100.").unwrap(), page.find("<table").unwrap());
    assert!(verdict < tables, "the verdict comes before the figures");
    assert_eq!(page.matches("the machine was busy").count(), 1, "{page}");
    assert!(page.contains("At 50, 100: the machine was busy."));
    let read = Report::from_json(&report.to_json()).unwrap();
    assert_eq!(read.verdict, report.verdict);
}

#[test]
fn a_report_that_was_cut_short_does_not_say_that_every_run_meets_the_goal() {
    let plan = crate::plan(50.0, Duration::from_secs(1));
    let goal: Goal = "success=100%".parse().unwrap();
    let rows = vec![Row { asked: Some(50.0), success: 100.0, ..Row::default() }];
    let verdict = Some(Verdict::of(&goal, &rows));
    for (cut_short, sentence) in
        [(false, "- Every run meets success=100%."), (true, "- Every run so far meets")]
    {
        let report = Report { verdict: verdict.clone(), cut_short, ..report(&plan, rows.clone()) };
        assert!(markdown::report(&report).contains(sentence), "{}", markdown::report(&report));
    }
}

#[test]
fn json_is_read_back_and_pages_are_complete() {
    let (plan, rows) = rows(Duration::ZERO);
    let report = report(&plan, rows);
    let read = Report::from_json(&report.to_json()).unwrap();
    assert_eq!(read.rows.len(), 2);
    assert_eq!((read.rows[0].success, read.rows[0].failures["status"]), (98.0, 1));
    assert_eq!(read.rows[0].intended, report.rows[0].intended);

    let text = markdown::report(&report);
    assert!(text.contains("| asked | achieved | mean |") && text.contains("| 98% |"), "{text}");
    assert!(text.contains("1 x status 500"), "{text}");
    let page = html::page(&report);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(
        page.contains("Errors by kind")
            && page.contains("1 status of 50 requests")
            && page.contains("http://&lt;here&gt;/")
            && !page.contains("NaN")
    );
    let csv = export::csv(&report);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
    let column = lines[0].iter().position(|name| *name == "correct").unwrap();
    assert_eq!((lines[1][column], lines[2][2]), ("49", "100"));
    let metrics = export::prometheus(&report);
    let labels = r#"target="http://<here>/",strategy="pool",load="50""#;
    for line in [
        format!("framewire_bench_correct_replies{{{labels}}} 49"),
        format!("framewire_bench_failures{{{labels},kind=\"status\"}} 1"),
        format!("framewire_bench_responses{{{labels},status=\"500\"}} 1"),
    ] {
        assert!(metrics.lines().any(|known| known == line), "{line} in {metrics}");
    }
    for elsewhere in ["<script", "<link", "src=", "@import", "url("] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
}

#[test]
fn exports_separate_stages_by_commas() {
    let (plan, rows) = rows(Duration::ZERO);
    let stages = "10s@100,30s@100..1000";
    let staged = Row { asked: None, stages: Some(stages.to_owned()), ..rows[0].clone() };
    let fast = Row { asked: Some(1000.0), ..rows[0].clone() };
    let report = report(&plan, vec![staged, fast]);
    let csv = export::csv(&report);
    assert!(csv.contains(&format!(",\"{stages}\",")) && csv.contains(",pool,1000,"), "{csv}");
    let metrics = export::prometheus(&report);
    assert!(
        metrics.contains(&format!("load=\"{stages}\"")) && metrics.contains("load=\"1000\""),
        "{metrics}"
    );
}

#[test]
fn metrics_of_runs_with_the_same_load_have_no_sample_twice() {
    let (plan, rows) = rows(Duration::ZERO);
    let again = Row { correct: 7, ..rows[0].clone() };
    let metrics = export::prometheus(&report(&plan, vec![rows[0].clone(), again]));
    let replies: Vec<_> = metrics.lines().filter(|line| line.contains("correct_replies{")).collect();
    assert!(replies.len() == 1 && replies[0].ends_with(" 7"), "{metrics}");
}

#[test]
fn another_schema_is_refused() {
    let json = report(&Plan::default(), vec![]).to_json();
    let newer = json.replace("\"schema_version\": 1", "\"schema_version\": 2");
    assert!(Report::from_json(&newer).unwrap_err().to_string().contains("version 2"));
    assert!(Report::from_json("{}").is_err());
}

#[test]
fn a_slower_server_fails_the_comparison_and_the_goal() {
    let _alone = crate::alone();
    let (mut plan, mut quick, mut slow) = (Plan::default(), Vec::new(), Vec::new());
    let goal: Goal = "p50<20ms".parse().unwrap();
    let missed = || {
        (plan, quick) = rows(Duration::ZERO);
        goal.missed(&quick[0])
    };
    until_good(missed, |missed| missed.is_empty());
    let missed = || {
        slow = rows(Duration::from_millis(300)).1;
        goal.missed(&slow[0])
    };
    until_good(missed, |missed| missed[0].starts_with("p50<20ms: it was 30"));

    let (before, after) = (report(&plan, quick), report(&plan, slow));
    let pairs = compare::matched(&before, &after).pairs;
    assert_eq!(pairs.len(), 2);
    let rule: FailOn = "p50>+10%".parse().unwrap();
    assert!(pairs[0].fails(&rule).unwrap().contains("p50>+10% at 50"));
    assert_eq!(compare::matched(&after, &before).pairs[0].fails(&rule), None);
}

#[test]
fn a_comparison_reports_loads_of_one_side_and_every_setting_that_differs() {
    let row = |asked| Row { asked: Some(asked), ..Row::default() };
    let before = report(&Plan::default(), vec![row(50.0), row(100.0)]);
    let other = Plan {
        load: Load::Open { rate: 1.0, arrivals: Arrivals::Poisson },
        workers: 2,
        connections: 3,
        timeout: Duration::from_secs(1),
        ..Plan::default()
    };
    let mut after = report(&other, vec![row(100.0), row(200.0)]);
    after.target.check = "status".to_owned();
    let matched = compare::matched(&before, &after);
    let asked = |rows: &[&Row]| rows.iter().filter_map(|row| row.asked).collect::<Vec<_>>();
    assert_eq!((asked(&matched.only_before), asked(&matched.only_after)), (vec![50.0], vec![200.0]));
    let differences = compare::differences(&before, &after);
    let named: Vec<_> = differences.iter().filter_map(|text| text.split(':').next()).collect();
    assert_eq!(named, ["arrivals", "check of replies", "workers", "connections", "time-out seconds"]);
    assert!(differences[0].contains("constant before, poisson now"), "{differences:?}");

    let with = |options: &[&str]| {
        let mut report = report(&Plan::default(), vec![]);
        report.target.options = Some(options.iter().map(|option| (*option).to_owned()).collect());
        Report::from_json(&report.to_json()).unwrap()
    };
    let differences = compare::differences(&with(&[]), &with(&["speed 2", "nagle"]));
    assert_eq!(differences, ["options: none before, speed 2, nagle now"]);
    let older = report(&Plan::default(), vec![]);
    assert!(compare::differences(&older, &with(&["nagle"])).is_empty(), "an older report has no options");
}

#[test]
fn the_hdr_log_holds_every_reply() {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    let server = Server::start(|_| Action::Echo);
    let plan = crate::plan(100.0, Duration::from_secs(1));
    let target = Arc::new(crate::target(server.port, Reuse::default(), Check::Echo));
    let log = HdrLog::begin(SystemTime::now());
    let outcome = framewire_loadtest::run(&target, &plan, &mut None, &Stop::default(), &mut |interval| {
        log.add("asked-100", Duration::ZERO, interval);
    })
    .unwrap();
    let text = log.finish().unwrap();
    let row = Row::new(&plan, &outcome, Phase::Measure);

    let mut total = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    for entry in IntervalLogIterator::new(&text) {
        if let LogEntry::Interval(line) = entry.unwrap()
            && line.tag().is_some_and(|tag| tag.as_str() == "asked-100-intended")
        {
            let bytes = base64(line.encoded_histogram());
            total.add(Deserializer::new().deserialize::<u64, _>(&mut &bytes[..]).unwrap()).unwrap();
        }
    }
    assert_eq!(total.len(), 100);
    assert!((total.max() as f64 / 1e6 / row.intended.max - 1.0).abs() < 0.002);
}

fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        bits = bits << 6 | LETTERS.iter().position(|known| *known == letter).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}
