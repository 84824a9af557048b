//! Tests of the page `docs/study.md`, with small, invented studies.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use framewire_loadtest::probe::Pace;
use framewire_loadtest::report::machine::Machine;
use framewire_loadtest::report::{Report, SCHEMA, SCHEMA_VERSION, Settings, TargetInfo};
use framewire_loadtest::row::{Phase, Row, Summary};
use framewire_loadtest::search::Limit;
use tempfile::TempDir;

use super::{Evidence, text, write};
use crate::bench::Load;
use crate::setup::Script;
use crate::study::archive::{self, Archive, Machines, SessionOptions, StudyInfo};
use crate::study::measure::system_name;
use crate::study::plan;
use crate::study::rerun::{Rerun, RerunRow, RowFigures};
use crate::study::results::{Allocated, AllocatedIn, Allocations, Ending, Idle, Stampede, SystemCounters};
use crate::study::steps::{Kind, Lengths, Run, Search, Step};
use crate::study::trials;

/// A folder with a study. Its rows take 30 s.
struct StudyFolder {
    dir: TempDir,
    archive: Archive,
}

impl StudyFolder {
    fn begin() -> StudyFolder {
        let dir = tempfile::tempdir().unwrap();
        Archive::prepare(&dir.path().join("study")).unwrap();
        let archive = begun(&dir, 30);
        StudyFolder { dir, archive }
    }

    /// A study with a result for each step.
    fn whole() -> StudyFolder {
        let mut study = StudyFolder::begin();
        let steps = plan::all();
        for step in (1..=2).flat_map(|number| plan::pass(&steps, number)) {
            match &step.kind {
                Kind::Run(run) => study.keep_row(&step, row(run, 0)),
                Kind::Trial { run, .. } => {
                    study.keep_row(&step, row(run, 0));
                    let system =
                        SystemCounters { packets: Some(1234), waiting: [0, 600], garbage: Some(321.0) };
                    study.archive.keep(&system_name(&step.name), &system).unwrap();
                }
                Kind::Limit(search) => study.archive.keep(&step.name, &limit(search)).unwrap(),
                Kind::Allocations => study.archive.keep(&step.name, &allocations()).unwrap(),
                Kind::Stampede { clients, .. } => {
                    study.archive.keep(&step.name, &stampede(*clients, *clients)).unwrap()
                }
                Kind::Ending { .. } => study.archive.keep(&step.name, &ending()).unwrap(),
                Kind::Idle { .. } => study.archive.keep(&step.name, &idle()).unwrap(),
            }
        }
        let figures = RowFigures { requests: 150, success: 100.0, mean: Some(9.0), p99: Some(17.0) };
        study.keep_rerun(figures);
        study
    }

    /// Stores a rerun of two rows, with the same figures in each of three passes.
    fn keep_rerun(&mut self, figures: RowFigures) {
        let again = |name: &str| RerunRow { name: name.to_owned(), passes: vec![figures; 3] };
        let rerun = Rerun {
            started: "2026-01-01T00:00:00Z".to_owned(),
            command: vec!["framewire-lab".to_owned(), "study".to_owned(), "--rerun".to_owned()],
            seed: 7,
            machine: Machine::here(),
            rows: ["v4-study-uuid-5", "v4-framewire-uuid-5"].map(again).to_vec(),
        };
        self.archive.keep("rerun", &rerun).unwrap();
    }

    fn keep_row(&mut self, step: &Step, row: Row) {
        self.archive.keep(&step.name, &report(row)).unwrap();
    }

    /// Stores both passes of a row, with this many connection resets in total, in place of any earlier passes.
    fn keep_resets(&mut self, name: &str, resets: u64) {
        let step = step(name);
        let Kind::Run(run) = &step.kind else { panic!("{name} is not a run") };
        let second = Step { name: plan::pass_name(name, 2), ..step.clone() };
        self.keep_row(&second, row(run, resets / 2));
        self.keep_row(&step, row(run, resets - resets / 2));
    }

    fn page(&self) -> String {
        text(&Evidence::read(&self.archive).unwrap())
    }
}

/// Removes all results from the folder, and begins a study there.
fn begun(dir: &TempDir, seconds: u64) -> Archive {
    let folder = dir.path().join("study");
    Archive::clear(&folder).unwrap();
    let mut archive = Archive::open(&folder).unwrap();
    let lengths = Lengths { passes: 2, row: Duration::from_secs(seconds), ..Lengths::default() };
    let about = StudyInfo::new("mgba-qt 0.10.1".to_owned(), &lengths);
    let how =
        SessionOptions { command: vec!["framewire-lab".to_owned()], machines: Machines::One, windows: 1 };
    archive.begin(about, how).unwrap();
    archive
}

fn step(name: &str) -> Step {
    plan::all().into_iter().find(|step| step.name == name).unwrap()
}

fn row(run: &Run, resets: u64) -> Row {
    let (asked, concurrency) = match run.load {
        Load::Rate(rate) => (Some(f64::from(rate)), None),
        Load::Clients(clients) => (None, Some(clients)),
    };
    let requests = asked.map_or(1000, |asked| asked as u64 * 30).max(resets);
    Row {
        phase: Phase::Measure,
        asked,
        concurrency,
        seconds: 30.0,
        achieved: asked.unwrap_or(500.0),
        requests,
        correct: requests - resets,
        success: 100.0 * (requests - resets) as f64 / requests as f64,
        failures: if resets > 0 { BTreeMap::from([("reset".to_owned(), resets)]) } else { BTreeMap::new() },
        intended: summary(requests),
        sent: summary(requests),
        late: summary(0),
        tester_busy: Some(0.2),
        connections: 1,
        most_in_flight: 1,
        pace: Some(Pace { mean: 59.7, min: 59.0, max: 60.0, samples: 120 }),
        ..Row::default()
    }
}

fn summary(count: u64) -> Summary {
    Summary {
        count,
        mean: 9.0,
        p50: 8.0,
        p90: 15.0,
        p95: 16.0,
        p99: 17.0,
        p999: 18.0,
        p9999: 19.0,
        max: 20.0,
        curve: vec![(0.0, 0.0), (50.0, 8.0), (99.0, 17.0), (100.0, 20.0)],
    }
}

fn report(row: Row) -> Report {
    Report {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        tool: "framewire".to_owned(),
        command: Vec::new(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        machine: Machine::here(),
        target: TargetInfo { strategy: "pool".to_owned(), ..TargetInfo::default() },
        settings: Settings {
            arrivals: "constant".to_owned(),
            payload: "uuid".to_owned(),
            payload_bytes: 36,
            checked: true,
            seconds: 30.0,
            warmup: 0.0,
            workers: 1,
            connections: 256,
            timeout: 10.0,
        },
        rows: vec![row],
        limit: None,
        verdict: None,
        cut_short: false,
    }
}

fn stampede(clients: usize, answered: usize) -> Stampede {
    let failed = match clients - answered {
        0 => BTreeMap::new(),
        count => BTreeMap::from([("timed out".to_owned(), count)]),
    };
    Stampede { clients, patience: 20_000.0, answered: vec![3.5; answered], failed }
}

/// The report of a search whose result is its first rate.
fn limit(search: &Search) -> Report {
    let rate = f64::from(search.start);
    let limit = Limit {
        goal: trials::GOAL.to_owned(),
        rate: Some(rate),
        missed_at: Some(rate * 1.03),
        missed: vec!["p99<60ms: it was 70 ms".to_owned()],
        tester_limited: false,
        confirmations: 3,
        cut_short: false,
    };
    let run = Run {
        target: search.target,
        strategy: search.strategy,
        bytes: None,
        load: Load::Rate(search.start),
        keeps: false,
    };
    let confirmed = Row { phase: Phase::Confirm, ..row(&run, 0) };
    Report { limit: Some(limit), rows: vec![row(&run, 0), confirmed], ..report(row(&run, 0)) }
}

fn allocations() -> Allocations {
    let run = |rate: u32| AllocatedIn {
        rate,
        requests: u64::from(rate) * 30,
        correct: u64::from(rate) * 30,
        allocated: Allocated {
            times: u64::from(rate) * 300 + 600,
            bytes: u64::from(rate) * 30_000,
            freed: u64::from(rate) * 300,
        },
    };
    let start = Allocated { times: 50_000, bytes: 9_000_000, freed: 40_000 };
    Allocations { start, runs: vec![run(10), run(400)] }
}

fn ending() -> Ending {
    Ending {
        ending: Some(1.5),
        console: vec!["error client 7: a|b <i>".to_owned()],
        new_client: Some(2.5),
        silence: Some(15_000.0),
        ..Ending::of("a client", "exit status: 0".to_owned())
    }
}

fn idle() -> Idle {
    Idle { seconds: 1200.0, before: 8.0, after: Some(16.0), error: None, then: vec![16.0] }
}

/// The targets of a page's links.
fn targets(page: &str) -> Vec<&str> {
    page.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
}

/// Fails if tags do not match, or if a value or a text is not valid in XML.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        for (at, _) in piece.match_indices('&') {
            let entity =
                ["&amp;", "&lt;", "&gt;", "&quot;"].iter().any(|entity| piece[at..].starts_with(entity));
            assert!(entity, "{piece}");
        }
        assert!(!text.contains('>') || open.last() == Some(&"style"), "{text}");
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("var("), "{svg}");
}

#[test]
fn the_page_of_a_complete_study_has_all_tables_and_pictures_and_no_broken_link() {
    let study = StudyFolder::whole();
    let page_path = study.dir.path().join("study.md");
    write(&study.archive, &page_path).unwrap();
    let page = fs::read_to_string(&page_path).unwrap();
    for absent in ["not measured\u{201d}", "Not measured yet", "| not measured |  |", "NaN", "inf "] {
        assert!(!page.contains(absent), "{absent}");
    }
    let mut pictures = 0;
    for target in targets(&page).into_iter().filter(|target| !target.starts_with("http")) {
        if target.starts_with("study/") {
            assert!(study.dir.path().join(target.split('#').next().unwrap()).exists(), "{target}");
        }
        if target.ends_with(".svg") {
            pictures += 1;
            assert_well_formed(&fs::read_to_string(study.dir.path().join(target)).unwrap());
        }
    }
    assert_eq!(pictures, 9);
    for step in plan::all() {
        let name = format!("study/data.jsonl.gz#{}", step.name);
        assert!(page.contains(&name), "{name}");
    }
    // A `|` in a cell is escaped, so it does not end the cell.
    assert!(page.contains("`error client N: a\\|b <i>`"));
}

#[test]
fn the_page_of_a_study_without_results_says_so_and_has_no_pictures() {
    let study = StudyFolder::begin();
    let page_path = study.dir.path().join("study.md");
    write(&study.archive, &page_path).unwrap();
    let page = fs::read_to_string(&page_path).unwrap();
    let steps = plan::all().len() + plan::pass(&plan::all(), 2).len();
    assert!(page.contains(&format!("**This study is not complete:** 0 of {steps} steps")), "{page}");
    assert!(page.contains("Too little is measured yet.") && page.contains("Not measured yet:"), "{page}");
    assert!(!page.contains(".svg"));
    assert_eq!(
        fs::read_dir(study.archive.folder()).unwrap().count(),
        1,
        "the folder contains only the file of results"
    );
}

#[test]
fn the_page_of_an_incomplete_study_shows_what_is_missing() {
    let mut study = StudyFolder::begin();
    study.keep_resets("v4-study-uuid-5", 3);
    study.keep_resets("v4-framewire-uuid-5", 0);
    write(&study.archive, &study.dir.path().join("study.md")).unwrap();
    let page = study.page();
    assert!(page.contains("4 of ") && page.contains("| 10 | Framewire | not measured |"), "{page}");
    assert!(page.contains("3 of 300 requests had no correct reply"), "{page}");
    assert!(page.contains("is met in 0 of 1 rows") && page.contains("in 1 of 1 with Framewire"), "{page}");
    assert!(page.contains("study/v4.svg") && !page.contains("study/v5.svg"));
    assert_well_formed(&fs::read_to_string(study.archive.folder().join("v4.svg")).unwrap());

    // A picture whose results are gone is removed.
    study.archive = begun(&study.dir, 30);
    write(&study.archive, &study.dir.path().join("study.md")).unwrap();
    assert!(!study.archive.folder().join("v4.svg").exists());
}

#[test]
fn sentences_about_resets_agree_with_the_figures() {
    let mut study = StudyFolder::whole();
    assert!(study.page().contains("Neither had resets in this run"));
    study.keep_resets("beyond-study-per-request-40", 2);
    assert!(study.page().contains("so few resets could be chance"));
    study.keep_resets("beyond-study-per-request-40", 18);
    assert!(study.page().contains("That accounts for all resets of this row."));
    study.keep_resets(plan::KEPT_ROW, 3);
    assert!(study.page().contains("most resets of this row, not for all"));
    study.keep_resets(plan::KEPT_ROW, 18);
    assert!(study.page().contains("made no clear difference"));
}

#[test]
fn the_answer_about_time_wait_names_the_largest_number_at_the_beginning_of_a_pass() {
    let mut study = StudyFolder::whole();
    let second = plan::pass_name("waiting-study-20", 2);
    let system = SystemCounters { packets: None, waiting: [250, 310], garbage: None };
    study.archive.keep(&system_name(&second), &system).unwrap();
    let page = study.page();
    assert!(page.contains("began with up to 250 connections in TIME_WAIT"), "{page}");
}

#[test]
fn sentences_about_connecting_agree_with_the_figures() {
    let mut study = StudyFolder::whole();
    assert!(study.page().contains("In this run the short queue delayed no client by a second."));
    let largest = *plan::STAMPEDES.last().unwrap();
    study.archive.keep(&plan::stampede(Script::Study, largest), &stampede(largest, 10)).unwrap();
    assert!(study.page().contains("none of its clients had to try again"));
    study.archive.keep(&plan::stampede(Script::Ours, largest), &stampede(largest, 99)).unwrap();
    assert!(study.page().contains("some of its clients still waited or got no reply"));
}

#[test]
fn short_answers_agree_with_the_figures() {
    let mut study = StudyFolder::whole();
    let page = study.page();
    for answer in [
        "These rows do not show whether such a collapse comes from the queue",
        "Not in these rows. It hardly changes the latency",
        "Hardly. At 160/s",
        "Yes: good after 20 minutes",
    ] {
        assert!(page.contains(answer), "{answer}: {page}");
    }

    study.keep_resets("v4-study-uuid-20", 3);
    for name in ["beyond-study-per-request-80", "v6-study-uuid-160"] {
        let step = step(name);
        let Kind::Run(run) = &step.kind else { panic!("{name} is not a run") };
        let slow = row(run, 0);
        let slow = Row { intended: Summary { max: 3000.0, ..slow.intended.clone() }, ..slow };
        study.keep_row(&step, slow);
    }
    study.archive.keep(&plan::idle(Script::Ours), &Idle { after: None, ..idle() }).unwrap();
    let page = study.page();
    for answer in [
        "On Linux, such a collapse comes from the queue",
        "Yes, because a pool opens few connections",
        "It changes only the slowest requests",
        "Not always: good after 20 minutes",
    ] {
        assert!(page.contains(answer), "{answer}: {page}");
    }
}

#[test]
fn sentences_about_limits_agree_with_the_figures() {
    let mut study = StudyFolder::whole();
    assert!(study.page().contains("400/s with version 7 with the study's kind of script"));
    // A failure at a lower rate limits the result, even if rows at higher rates went well.
    study.keep_resets("v7-study-uuid-200", 1);
    assert!(study.page().contains("100/s with version 7 with the study's kind of script"));
}

#[test]
fn an_idle_connection_that_broke_is_reported_as_a_failure() {
    let mut study = StudyFolder::whole();
    assert!(study.page().contains("the idle connection stayed good"));
    let lost = Idle { after: None, error: Some("reset".to_owned()), then: vec![], ..idle() };
    study.archive.keep(&plan::idle(Script::Ours), &lost).unwrap();
    let page = study.page();
    assert!(page.contains("was not answered: reset.") && page.contains("did not stay good here"), "{page}");
}

#[test]
fn a_miss_at_the_lowest_rate_does_not_hide_that_higher_rates_went_well() {
    let mut study = StudyFolder::whole();
    let rates: Vec<_> = plan::all()
        .into_iter()
        .filter(|step| step.name.starts_with("v7-study-uuid-"))
        .filter_map(|step| match step.kind {
            Kind::Run(Run { load: Load::Rate(rate), .. }) => Some(rate),
            _ => None,
        })
        .collect();
    let lowest = rates.iter().min().unwrap();
    study.keep_resets(&plan::version_row("v7", Script::Study, None, *lowest), 2);
    let page = study.page();
    let (_, reason) = page.split_once(&format!("none, as {lowest}/s missed; ")).expect(&page);
    assert!(reason.contains("/s went well"), "{page}");
}

#[test]
fn the_section_about_the_goal_names_the_tables_that_it_uses() {
    // In 2025, a debug build of version 6 took up to 304 ms, but the published rows in `figures::VERSIONS` are only
    // those of release builds.
    let page = StudyFolder::whole().page();
    assert!(
        page.contains("in its tables of release builds, the slowest replies at this rate took 109 to 274 ms"),
        "{page}"
    );
}

#[test]
fn the_tables_show_the_range_of_the_passes() {
    let mut study = StudyFolder::begin();
    study.keep_resets("v4-study-uuid-5", 15);
    let page = study.page();
    // There are 8 resets in 150 requests in the first pass, and 7 in the second.
    assert!(page.contains("95% (94.7% to 95.3%)") && page.contains("| 15 reset |"), "{page}");
    assert!(page.contains("2 passes over all of them"), "{page}");
}

#[test]
fn a_rerun_is_compared_and_its_verdict_is_on_the_page() {
    assert!(StudyFolder::begin().page().contains("Not measured yet: `framewire-lab study --rerun`."));
    let mut study = StudyFolder::whole();
    let page = study.page();
    assert!(page.contains("The rerun agrees with the study") && page.contains("0 of 6 figures"), "{page}");
    assert!(page.contains("(seed 7)") && !page.contains("| no:"), "{page}");

    study.keep_rerun(RowFigures { requests: 150, success: 100.0, mean: Some(90.0), p99: Some(170.0) });
    let page = study.page();
    assert!(page.contains("The rerun does not agree with the study"), "{page}");
    assert!(page.contains("| no: mean, p99 |"), "{page}");
}

#[test]
fn the_page_of_a_quick_study_says_that_it_is_quick() {
    let mut study = StudyFolder::begin();
    assert!(!study.page().contains("A quick study"));
    study.archive = begun(&study.dir, 2);
    assert!(study.page().contains("2 passes of 2 s instead of 4 of 3 s"));
}

#[test]
fn the_committed_page_and_pictures_match_the_committed_results() {
    let docs = framewire_lab::paths::root().join("docs");
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("study");
    fs::create_dir(&folder).unwrap();
    fs::copy(docs.join("study").join(archive::FILE), folder.join(archive::FILE)).unwrap();
    write(&Archive::open(&folder).unwrap(), &dir.path().join("study.md")).unwrap();
    let same = |name: &Path| {
        let [made, committed] = [dir.path(), &docs].map(|root| fs::read(root.join(name)).unwrap());
        assert!(made == committed, "{} differs; run framewire-lab study --report", name.display());
    };
    same(Path::new("study.md"));
    for entry in fs::read_dir(docs.join("study")).unwrap() {
        same(&Path::new("study").join(entry.unwrap().file_name()));
    }
}
