//! The table of the study's questions. Each has a short answer, the steps that show it, and how sure the answer is.

use framewire_lab::Signal;
use framewire_loadtest::report::format::{millis, percent, rate, thousands};
use framewire_loadtest::report::table::Table;
use framewire_loadtest::row::Row;

use super::answers::{FIRST_RETRY, IDLE_2025};
use super::evidence::{Evidence, failures};
use super::table::MISSING;
use super::trials;
use crate::setup::Script;
use crate::study::passes::Spread;
use crate::study::plan;
use crate::study::steps::{Search, Way};
use crate::study::trials::{ALLOCATIONS, SEARCHES, garbage, name as trial};

struct Answer {
    /// The answer itself.
    text: String,
    /// The names of the steps that show it.
    steps: Vec<String>,
    /// How sure it is.
    sure: &'static str,
}

// Texts that say how sure an answer is.
const COMPARED: &str = "sure: measured with and without the cause";
const ROWS: &str = "fairly sure: the tables below have the spread of each row";
const ONCE: &str = "fairly sure: one run";
const LINUX: &str = "sure on Linux; Windows was not measured";

/// A question, and a function that returns its answer if the necessary steps are measured.
type Answered = (&'static str, fn(&Evidence) -> Option<Answer>);

/// The questions in the order of the study's versions.
const QUESTIONS: [Answered; 18] = [
    ("What is the cleanest way to disconnect?", disconnect),
    ("“disconnected” or “unknown error”: what decides?", disconnect_reason),
    ("Does the collapse at 15 to 20 requests/s come from a socket per request?", collapse),
    ("Does a pool help?", pool),
    ("Why “forcibly closed” (10054)?", forcibly_closed),
    ("Why “already connected” (10056), although each request has a socket of its own?", already_connected),
    ("Can one socket take concurrent requests?", multiplexing),
    ("Must connections cool off (TIME_WAIT)?", cooling),
    ("What do retries cost?", retries),
    ("Are the slowest requests those that connect first?", first_connection),
    ("Does a warm-up change anything?", warm),
    ("Does Nagle's algorithm save packets?", nagle),
    ("What happens to messages of more than 1,024 bytes?", truncation),
    ("Do 5,000 bytes cost more than 36?", size),
    ("Where does the limit lie?", limit),
    ("Why does the result vary from run to run?", variation),
    ("Does an idle socket stay good?", idle),
    ("Is there anything to save in allocations?", allocations),
];

/// The section of the page.
pub fn section(evidence: &Evidence) -> String {
    let mut table = Table::new(&["<question", "<answer", "<evidence", "<how sure"]);
    for (question, answer) in QUESTIONS {
        let cells = match answer(evidence) {
            Some(Answer { text, steps, sure }) => {
                let links: Vec<_> = steps.iter().map(|step| evidence.source(step, step)).collect();
                vec![text, links.join(", "), sure.to_owned()]
            }
            None => vec![MISSING.to_owned()],
        };
        table.row([question.to_owned()].into_iter().chain(cells));
    }
    format!(
        "## The study's questions\n\nThis table answers each question of the study briefly. The sections below have the figures.\n\n{}",
        table.markdown()
    )
}

fn answer(text: String, steps: impl IntoIterator<Item = String>, sure: &'static str) -> Option<Answer> {
    Some(Answer { text, steps: steps.into_iter().collect(), sure })
}

fn failed(row: &Row) -> String {
    format!("{} of {}", thousands(row.requests - row.correct), thousands(row.requests))
}

/// Whether two latencies differ by more than a factor of two.
fn differ(one: f64, other: f64) -> bool {
    one.max(other) > 2.0 * one.min(other)
}

fn disconnect(evidence: &Evidence) -> Option<Answer> {
    let steps = Script::BOTH.map(|script| plan::ending(script, Way::Signal(Signal::INT)));
    let [study, ours] = [evidence.ending(&steps[0])?, evidence.ending(&steps[1])?];
    let lines = |quiet: bool| if quiet { "no warning" } else { "warnings or errors" };
    answer(
        format!(
            "End the program with SIGINT or SIGTERM, and let the script handle every end of a connection as a normal event. \
             After SIGINT, the study's kind of script wrote {}, Framewire's {}; a second later, they held {} and {} connections.",
            lines(study.quiet()),
            lines(ours.quiet()),
            study.connections_left,
            ours.connections_left
        ),
        steps,
        LINUX,
    )
}

fn disconnect_reason(evidence: &Evidence) -> Option<Answer> {
    let steps = [Way::Signal(Signal::INT), Way::Signal(Signal::KILL), Way::Orderly]
        .map(|way| plan::ending(Script::Study, way));
    let count = |step: &str, text: &str| -> Option<usize> {
        Some(evidence.ending(step)?.console.iter().filter(|line| line.contains(text)).count())
    };
    let [abrupt, orderly] = [&steps[..2], &steps[2..]].map(|steps| {
        ["unknown error", "disconnected"]
            .map(|text| steps.iter().filter_map(|step| count(step, text)).sum::<usize>())
    });
    evidence.ending(&steps[0])?;
    evidence.ending(&steps[2])?;
    answer(
        format!(
            "On Linux, the system's last error number, not the way in which the connection ended. If mGBA's `receive` gets no \
             bytes, it returns “disconnected” if that number is 0, and “unknown error” if mGBA has no name for it. If the other \
             end closes a connection in order, Linux leaves the number unchanged, so it is that of an earlier error. Clients that \
             closed after their reply caused “disconnected” {} times and “unknown error” {} times; SIGINT and SIGKILL caused \
             “disconnected” {} times and “unknown error” {} times.",
            orderly[1], orderly[0], abrupt[1], abrupt[0]
        ),
        steps,
        LINUX,
    )
}

fn collapse(evidence: &Evidence) -> Option<Answer> {
    let steps = [
        plan::version_row("v4", Script::Study, None, 20),
        plan::beyond_row(Script::Study, framewire_loadtest::Strategy::PerRequest, 60),
        plan::beyond_row(Script::Study, framewire_loadtest::Strategy::PerRequest, 80),
        plan::beyond_row(Script::Ours, framewire_loadtest::Strategy::PerRequest, 80),
    ];
    let [low, middle, high, ours] = evidence.rows(&steps)?;
    let tried_again = |row: &Row| row.intended.max >= FIRST_RETRY;
    let verdict = if tried_again(high) && !tried_again(low) && !tried_again(ours) {
        "On Linux, such a collapse comes from the queue for new connections."
    } else {
        "These rows do not show whether such a collapse comes from the queue for new connections."
    };
    answer(
        format!(
            "{verdict} The queue is short, and the script accepts one connection per frame, so the queue overflows if clients \
             come more often than frames, that is, more than about 60 times per second. The slowest reply took {} ms at \
             20/s, {} ms at 60/s and {} ms at 80/s; with Framewire's queue, {} ms at 80/s.",
            millis(low.intended.max),
            millis(middle.intended.max),
            millis(high.intended.max),
            millis(ours.intended.max)
        ),
        steps,
        LINUX,
    )
}

fn pool(evidence: &Evidence) -> Option<Answer> {
    let steps = ["v4", "v5"].map(|version| plan::version_row(version, Script::Study, None, 20));
    let [each, pool] = evidence.rows(&steps)?;
    let verdict = if pool.success > each.success {
        "Yes, because a pool opens few connections: the queue for new connections overflows less often, and Lua collects \
         fewer closed sockets."
    } else {
        "Not in these rows."
    };
    let (mean, pool_mean) = (each.intended.mean, pool.intended.mean);
    answer(
        format!(
            "{verdict} It {} the latency of a single request. At 20/s, with a socket per request: {} failed, mean {} ms, {} \
             connections; with a pool: {} failed, mean {} ms, {} connections.",
            if differ(mean, pool_mean) { "also changes" } else { "hardly changes" },
            failed(each),
            millis(mean),
            each.connections,
            failed(pool),
            millis(pool_mean),
            pool.connections
        ),
        steps,
        ROWS,
    )
}

fn forcibly_closed(evidence: &Evidence) -> Option<Answer> {
    let with = plan::beyond_row(Script::Study, framewire_loadtest::Strategy::PerRequest, plan::KEPT);
    let steps = [with, plan::KEPT_ROW.to_owned()];
    let [with, without] = evidence.rows(&steps)?;
    answer(
        format!(
            "mGBA closes a socket's descriptor twice, the second time when Lua collects the socket as garbage. By then, the \
             descriptor can belong to another connection. Resets: {} if Lua collects closed sockets, {} if it does not.",
            failures(with, "reset"),
            failures(without, "reset")
        ),
        steps,
        COMPARED,
    )
}

fn already_connected(evidence: &Evidence) -> Option<Answer> {
    let steps = ["15-after", "15-after-pool"].map(|name| trial("broken", Script::Study, name));
    let [study, drops] = evidence.rows(&steps)?;
    let text = study.failure_texts.keys().find(|text| text.contains("connected"));
    answer(
        format!(
            "The pool keeps a socket after it was reset, and tries to connect it again, which systems refuse. So one reset costs \
             every request that gets this socket: {} failed ({}), and {} with a pool that drops broken sockets.",
            failed(study),
            text.map_or("no such error in this run".to_owned(), |text| format!("“{text}”")),
            failed(drops)
        ),
        steps,
        COMPARED,
    )
}

fn multiplexing(evidence: &Evidence) -> Option<Answer> {
    let load = crate::bench::Load::Rate(1000);
    let steps = [plan::row(plan::MUX_STUDY, None, load), plan::row(plan::MUX_OURS, None, load)];
    let [study, ours] = evidence.rows(&steps)?;
    let verdict = match failures(study, "wrong reply") + failures(ours, "wrong reply") {
        0 => "no reply went to another request".to_owned(),
        wrong => format!("wrong replies: {}", thousands(wrong)),
    };
    answer(
        format!(
            "Yes. Text replies come in the order of their requests, and binary frames carry request ids. At 1,000/s on one \
             socket, {} failed with the study's kind of script, {} with Framewire's; {verdict}.",
            failed(study),
            failed(ours)
        ),
        steps,
        ROWS,
    )
}

fn cooling(evidence: &Evidence) -> Option<Answer> {
    let steps = [
        trial("waiting", Script::Study, "20"),
        plan::version_row("v4", Script::Study, None, 20),
        trial("waiting", Script::Ours, "20"),
    ];
    let [study, usual, ours] = evidence.rows(&steps)?;
    let [study_waiting, ours_waiting] =
        [evidence.system(&steps[0])?.waiting, evidence.system(&steps[2])?.waiting];
    answer(
        format!(
            "Not on Linux. With the study's kind of script, runs followed each other without a pause and began with up to {} \
             connections in TIME_WAIT, and {} requests failed; in the row of version 4 at the same rate, {} failed. With \
             Framewire's script, such runs began with up to {}, and {} failed. The system has some 28,000 ports for such \
             connections.",
            study_waiting[0],
            failed(study),
            failed(usual),
            ours_waiting[0],
            failed(ours)
        ),
        steps,
        LINUX,
    )
}

fn retries(evidence: &Evidence) -> Option<Answer> {
    let steps = [trial("retries", Script::Study, "40"), plan::version_row("v6", Script::Study, None, 40)];
    let [long_waits, short_waits] = evidence.rows(&steps)?;
    answer(
        format!(
            "They hide resets, but a request that is tried again takes longer: with the study's wait of 400 ms, the slowest of \
             {} requests took {} ms ({} were tried again); with 50 ms, {} ms. A script that resets no connection needs no \
             retries.",
            thousands(long_waits.requests),
            millis(long_waits.intended.max),
            long_waits.retries,
            millis(short_waits.intended.max)
        ),
        steps,
        ROWS,
    )
}

fn first_connection(evidence: &Evidence) -> Option<Answer> {
    let steps = [
        plan::version_row("v6", Script::Study, None, 160),
        trial("warm", Script::Study, "160"),
        plan::version_row("v4", Script::Study, None, 5),
        plan::version_row("v5", Script::Study, None, 10),
    ];
    let [cold, warm, each, pool] = evidence.rows(&steps)?;
    answer(
        format!(
            "Connecting takes {} ms (mean of version 4 at 5/s), and the script accepts a connection in the frame in which it would \
             answer anyway. The mean is {} ms with a socket per request at 5/s, and {} ms with a pool at 10/s. At 160/s, the first \
             sockets of the pool overflow the queue for new connections. The slowest request there takes {} ms cold, {} ms warm.",
            millis(each.connect.mean),
            millis(each.intended.mean),
            millis(pool.intended.mean),
            millis(cold.intended.max),
            millis(warm.intended.max)
        ),
        steps,
        LINUX,
    )
}

fn warm(evidence: &Evidence) -> Option<Answer> {
    let steps = [
        plan::version_row("v6", Script::Study, None, 160),
        trial("warm", Script::Study, "160"),
        plan::version_row("v6", Script::Ours, None, 160),
        trial("warm", Script::Ours, "160"),
    ];
    let [study, study_warm, ours, ours_warm] = evidence.rows(&steps)?;
    let changes = |value: fn(&Row) -> f64| {
        [(study, study_warm), (ours, ours_warm)].iter().any(|(cold, warm)| differ(value(cold), value(warm)))
    };
    let verdict = if changes(|row| row.intended.mean) {
        "Yes, it changes even the mean."
    } else if changes(|row| row.intended.max) {
        "It changes only the slowest requests, see above."
    } else {
        "Hardly."
    };
    let shown = |row: &Row| {
        let [mean, p99, max] = [row.intended.mean, row.intended.p99, row.intended.max].map(millis);
        format!("{} failed, mean {mean} ms, p99 {p99} ms, slowest {max} ms", failed(row))
    };
    answer(
        format!(
            "{verdict} At 160/s with the study's kind of script, cold: {}; warm: {}. With Framewire's, cold: {}; warm: {}.",
            shown(study),
            shown(study_warm),
            shown(ours),
            shown(ours_warm)
        ),
        steps,
        ROWS,
    )
}

fn nagle(evidence: &Evidence) -> Option<Answer> {
    let steps = ["pool-20-off", "pool-20-on", "mux-400-off", "mux-400-on"]
        .map(|name| trial("nagle", Script::Study, name));
    let shown = |step: &String| -> Option<String> {
        let (row, packets) = (evidence.row(step)?, evidence.system(step)?.packets?);
        Some(format!("{} packets, mean {} ms", thousands(packets), millis(row.intended.mean)))
    };
    let shown: Vec<_> = steps.iter().filter_map(shown).collect();
    let [pool_off, pool_on, mux_off, mux_on] = &shown[..] else { return None };
    answer(
        format!(
            "Not with one request at a time, as in the study: {pool_on} with it; {pool_off} without. With 400/s on one socket, it \
             combines messages: {mux_on} with it; {mux_off} without."
        ),
        steps,
        ROWS,
    )
}

fn truncation(evidence: &Evidence) -> Option<Answer> {
    let steps = ["5000-5", "mixed-20", "uuid-20"].map(|name| trial("unframed", Script::Study, name));
    let [long, mixed, short] = evidence.rows(&steps)?;
    let framed = plan::version_row("v7", Script::Study, Some(5000), 40);
    let wrong = |row: &Row| percent(100.0 * failures(row, "wrong reply") as f64 / row.requests.max(1) as f64);
    let framed_wrong = evidence.row(&framed).map(wrong)?;
    answer(
        format!(
            "Without marks at their end they are cut, and the client takes the rest for the next reply: {} of the replies were \
             wrong with 5,000 bytes, {} with 36 to 5,000 bytes (a fifth of these fit into one read), {} with UUIDs. With marks: \
             {framed_wrong}.",
            wrong(long),
            wrong(mixed),
            wrong(short)
        ),
        steps.into_iter().chain([framed]),
        COMPARED,
    )
}

fn size(evidence: &Evidence) -> Option<Answer> {
    let means = |script, bytes: Option<usize>| {
        let rows = evidence.versions(script).filter(|(version, published, _)| {
            *version == "v7" && published.bytes == bytes && published.asked <= 40
        });
        Spread::of(rows.filter_map(|(.., measured)| Some(measured.row?.intended.mean)))
    };
    let (study, study_long) = (means(Script::Study, None)?, means(Script::Study, Some(5000))?);
    let (ours, ours_long) = (means(Script::Ours, None)?, means(Script::Ours, Some(5000))?);
    let verdict = |short: &Spread, long: &Spread| {
        if long.high > 2.0 * short.high { "yes, at some rates" } else { "hardly" }
    };
    let range = |spread: &Spread| format!("{} to {}", millis(spread.low), millis(spread.high));
    answer(
        format!(
            "With the study's kind of script, {}: the means of the rows up to 40/s are {} ms with 36 bytes, and {} ms with 5,000. \
             With Framewire's, {}: {} ms and {} ms.",
            verdict(&study, &study_long),
            range(&study),
            range(&study_long),
            verdict(&ours, &ours_long),
            range(&ours),
            range(&ours_long)
        ),
        [
            plan::version_row("v7", Script::Study, None, 10),
            plan::version_row("v7", Script::Study, Some(5000), 10),
            plan::version_row("v7", Script::Ours, None, 10),
            plan::version_row("v7", Script::Ours, Some(5000), 10),
        ],
        ROWS,
    )
}

fn limit(evidence: &Evidence) -> Option<Answer> {
    let found = |search: &Search| -> Option<String> {
        let report = evidence.limit(search)?;
        let best = trials::best_run(&report).map_or("none".to_owned(), |value| format!("{}/s", rate(value)));
        let limit = report.limit?;
        let shown = match limit.rate {
            Some(value) => format!("{}/s", rate(value)),
            None => format!("none confirmed, best single run {best}"),
        };
        Some(format!(
            "{}: {shown}{}",
            search.way,
            if limit.tester_limited { " (the tester's limit)" } else { "" }
        ))
    };
    let found: Vec<_> = SEARCHES.iter().filter_map(found).collect();
    if found.is_empty() {
        return None;
    }
    let steps = SEARCHES.iter().filter(|search| evidence.limit(search).is_some());
    let steps: Vec<_> = steps.map(crate::study::trials::limit).collect();
    answer(
        format!(
            "The highest rates that a search found, with every request answered and 99% within 60 ms: {}.",
            found.join("; ")
        ),
        steps,
        "sure where three runs confirmed it; it depends on the machine",
    )
}

fn variation(evidence: &Evidence) -> Option<Answer> {
    let widest = |script| {
        let rows = evidence.versions(script).filter(|(.., measured)| measured.passes.len() > 1);
        let ranges = rows.filter_map(|(.., measured)| {
            let spread = Spread::of(measured.passes.iter().map(|row| row.success))?;
            Some((spread.high - spread.low, measured.name))
        });
        ranges.max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let [(study, study_row), (ours, ours_row)] = [widest(Script::Study)?, widest(Script::Ours)?];
    let rerun = evidence.rerun().map(|rerun| rerun.verdict(|name| evidence.passes(name)));
    let sure = match rerun {
        Some(verdict) if verdict.agrees() => {
            "sure: a random tenth of the rows, measured again, agrees with the spread"
        }
        Some(_) => "not sure: a random tenth of the rows, measured again, does not agree with the spread",
        None => ROWS,
    };
    answer(
        format!(
            "It is chance which connection is cut off when Lua collects a closed socket. In the rows of versions 4 to 7, the share \
             of correct replies differs from pass to pass by up to {study:.1} percentage points with the study's kind of script, \
             by up to {ours:.1} with Framewire's."
        ),
        [study_row, ours_row],
        sure,
    )
}

fn idle(evidence: &Evidence) -> Option<Answer> {
    let [study, ours] = [evidence.idle(Script::Study)?, evidence.idle(Script::Ours)?];
    let good = |after: Option<f64>| if after.is_some() { "good" } else { "not good" };
    let longest = study.seconds.max(ours.seconds);
    let limit = if longest < IDLE_2025 {
        format!(
            " The 3 h 20 min of 2025 were not repeated; the longest time here is {:.0} minutes.",
            longest / 60.0
        )
    } else {
        String::new()
    };
    answer(
        format!(
            "{}: {} after {:.0} minutes with the study's kind of script, {} after {:.0} with Framewire's.{limit}",
            if study.after.is_some() && ours.after.is_some() { "Yes" } else { "Not always" },
            good(study.after),
            study.seconds / 60.0,
            good(ours.after),
            ours.seconds / 60.0,
        ),
        Script::BOTH.map(plan::idle),
        "fairly sure: one connection for each script",
    )
}

fn allocations(evidence: &Evidence) -> Option<Answer> {
    let counted = evidence.allocations()?;
    let most = counted.runs.iter().max_by_key(|run| run.rate)?;
    let [study, ours] =
        Script::BOTH.map(|script| evidence.system(&garbage(script)).and_then(|system| system.garbage));
    let bytes = |bytes: Option<f64>| {
        bytes.map_or(MISSING.to_owned(), |bytes| format!("{} bytes", thousands(format!("{bytes:.0}"))))
    };
    answer(
        format!(
            "`framewire serve` makes {:.0} allocations per request. In Lua, a request makes {} of garbage with the study's kind \
             of script, {} with Framewire's.",
            most.allocated.times as f64 / most.requests.max(1) as f64,
            bytes(study),
            bytes(ours)
        ),
        [ALLOCATIONS.to_owned(), garbage(Script::Study), garbage(Script::Ours)],
        ONCE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_is_asked_once() {
        let mut questions: Vec<_> = QUESTIONS.iter().map(|(question, _)| *question).collect();
        questions.sort_unstable();
        questions.dedup();
        assert_eq!(questions.len(), QUESTIONS.len());
    }
}
