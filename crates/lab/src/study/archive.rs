//! The study's results, in one compressed file. It has a line for each result and a line about the study itself, so an
//! interrupted study can continue.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use framewire_loadtest::report::machine::Machine;
use framewire_loadtest::report::{Report, format};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::plan::{self, IDLE};
use super::results::Idle;
use super::steps::{Kind, Lengths, Step};
use crate::setup::Script;

/// The file's name in the study's folder.
pub const FILE: &str = "data.jsonl.gz";
/// The name of the line about the study itself.
const ABOUT: &str = "study";
const SCHEMA: &str = "framewire-study";
const SCHEMA_VERSION: u32 = 1;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    result: Box<RawValue>,
}

/// The programs, the machines and the options of the study, and the times at which it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyInfo {
    /// Always `framewire-study`.
    pub schema: String,
    /// Always 1.
    pub schema_version: u32,
    /// The load tester and its version.
    pub tool: String,
    /// The version of the stock mGBA.
    pub mgba: String,
    /// The version of libmgba in the embedded core.
    pub libmgba: String,
    /// The machine on which the study began.
    pub machine: Machine,
    /// How many times each row is measured.
    #[serde(default = "once")]
    pub passes: usize,
    /// The length of one measurement of a row, in seconds.
    pub seconds: f64,
    /// The shortest time for which a connection is kept idle, in seconds.
    pub idle_seconds: f64,
    /// The first start of the study, and each continuation.
    pub sessions: Vec<StudySession>,
}

/// A period of measuring without interruption.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudySession {
    /// When it began, in UTC and the format of RFC 3339.
    pub started: String,
    /// The command line.
    pub command: Vec<String>,
    /// The machine, if it is not the one on which the study began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// How many mGBA windows were measured at the same time at low rates, if more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<usize>,
}

fn once() -> usize {
    1
}

impl StudyInfo {
    /// A study that begins now.
    pub fn new(mgba: String, lengths: &Lengths) -> StudyInfo {
        StudyInfo {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            tool: format!("framewire {}", env!("CARGO_PKG_VERSION")),
            mgba,
            libmgba: framewire_libmgba::version(),
            machine: Machine::here(),
            passes: lengths.passes,
            seconds: lengths.row.as_secs_f64(),
            idle_seconds: lengths.idle.as_secs_f64(),
            sessions: Vec::new(),
        }
    }

    /// If the rows of these two studies cannot be in one study, returns the first difference that prevents it.
    fn differs(&self, other: &StudyInfo, machines: Machines) -> Option<String> {
        let words = |about: &StudyInfo| {
            let StudyInfo { tool, mgba, passes, seconds, machine, .. } = about;
            let machine = if machines == Machines::One { machine_words(machine) } else { String::new() };
            [tool.clone(), mgba.clone(), format!("{passes} passes"), format!("rows of {seconds} s"), machine]
        };
        let pairs = words(self).into_iter().zip(words(other));
        pairs.into_iter().find(|(one, other)| one != other).map(|(one, other)| format!("{one}, not {other}"))
    }

    /// The machines on which the study was measured. The first is the one on which it began.
    pub fn machines(&self) -> Vec<&Machine> {
        let mut machines = vec![&self.machine];
        for machine in self.sessions.iter().filter_map(|session| session.machine.as_ref()) {
            if !machines.iter().any(|known| machine_words(known) == machine_words(machine)) {
                machines.push(machine);
            }
        }
        machines
    }
}

/// Whether a study may have rows of several machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machines {
    /// All rows must be from one machine.
    One,
    /// Rows of several machines are allowed. Each row says where it was measured.
    Several,
}

/// Describes a machine. Machines with different descriptions count as different machines.
pub fn machine_words(machine: &Machine) -> String {
    let Machine { processor, processors, kernel, .. } = machine;
    format!("{processors} x {processor}, kernel {kernel}")
}

/// The options of a [`StudySession`].
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// The command line.
    pub command: Vec<String>,
    /// Whether the session may be measured on a machine other than the one on which the study began.
    pub machines: Machines,
    /// How many mGBA windows are measured at the same time at low rates.
    pub windows: usize,
}

/// The results of a study, in a folder that also contains the page's pictures.
#[derive(Debug, Clone)]
pub struct Archive {
    folder: PathBuf,
    results: BTreeMap<String, Box<RawValue>>,
}

impl Archive {
    /// Opens the results in `folder`. If there is no file, there are no results yet.
    ///
    /// # Errors
    /// If the file is broken.
    pub fn open(folder: &Path) -> anyhow::Result<Archive> {
        let mut archive = Archive { folder: folder.to_owned(), results: BTreeMap::new() };
        let path = archive.file();
        if path.exists() {
            archive.results = read(&path)
                .with_context(|| format!("{} is broken; begin again with --fresh", path.display()))?;
        }
        Ok(archive)
    }

    /// Creates the folder, and checks that files can be written in it.
    pub fn prepare(folder: &Path) -> anyhow::Result<()> {
        let problem = || format!("cannot write {}; name another folder with --out", folder.display());
        fs::create_dir_all(folder).with_context(problem)?;
        let trial = folder.join(".trial");
        fs::write(&trial, "").and_then(|()| fs::remove_file(&trial)).with_context(problem)
    }

    /// Removes all results in `folder`.
    pub fn clear(folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        if path.exists() {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Begins the study `about`, or continues the study that is already in this folder.
    ///
    /// # Errors
    /// If the results in this folder were measured in a different way.
    pub fn begin(&mut self, mut about: StudyInfo, how: SessionOptions) -> anyhow::Result<StudyInfo> {
        let mut machine = None;
        if let Some(known) = self.about()? {
            if let Some(difference) = known.differs(&about, how.machines) {
                bail!(
                    "{} holds another study ({difference}); remove its results with --fresh, name another folder with \
                     --out, or, if only the machine differs, add rows of this machine with --add-machine",
                    self.folder.display()
                );
            }
            if machine_words(&known.machine) != machine_words(&about.machine) {
                machine = Some(about.machine);
            }
            about = known;
        }
        let started = format::now();
        let windows = Some(how.windows).filter(|windows| *windows > 1);
        about.sessions.push(StudySession { started, command: how.command, machine, windows });
        self.keep(ABOUT, &about)?;
        Ok(about)
    }

    /// Replaces the results about idle connections in this study with those of another study.
    ///
    /// # Errors
    /// If one of the folders has no study, or if the other study used another mGBA or has no idle connection.
    pub fn take_idle(&mut self, other: &Archive, how: SessionOptions) -> anyhow::Result<()> {
        let (Some(mut about), Some(theirs)) = (self.about()?, other.about()?) else {
            bail!("{} and {} must both hold a study", self.folder.display(), other.folder.display());
        };
        if about.mgba != theirs.mgba {
            bail!(
                "{} was measured with {}, not {}; measure an idle connection here with --only {IDLE}",
                other.folder.display(),
                theirs.mgba,
                about.mgba
            );
        }
        let results =
            Script::BOTH.map(plan::idle).into_iter().filter_map(|name| Some((other.result(&name)?, name)));
        let results: Vec<(Idle, String)> = results.collect();
        if results.is_empty() {
            bail!(
                "{0} has no idle connection; measure one with --only {IDLE} --out {0}",
                other.folder.display()
            );
        }
        for (result, name) in results {
            self.keep(&name, &result)?;
        }
        let first = machine_words(&about.machine);
        let continued = |session: StudySession| {
            let machine = session.machine.unwrap_or_else(|| theirs.machine.clone());
            let machine = if machine_words(&machine) == first { None } else { Some(machine) };
            StudySession { windows: None, machine, ..session }
        };
        about.sessions.extend(theirs.sessions.into_iter().map(continued));
        let started = format::now();
        about.sessions.push(StudySession { started, command: how.command, ..StudySession::default() });
        self.keep(ABOUT, &about)
    }

    /// The description of the study in this folder; `None` if there is no study.
    ///
    /// # Errors
    /// If the file has another schema version.
    pub fn about(&self) -> anyhow::Result<Option<StudyInfo>> {
        let Some(about) = self.result::<StudyInfo>(ABOUT) else { return Ok(None) };
        if (about.schema.as_str(), about.schema_version) != (SCHEMA, SCHEMA_VERSION) {
            bail!(
                "{} is {} version {}; begin again with --fresh",
                self.file().display(),
                about.schema,
                about.schema_version
            );
        }
        Ok(Some(about))
    }

    /// Whether a step has a result.
    pub fn is_done(&self, step: &Step) -> bool {
        match &step.kind {
            Kind::Run(_) | Kind::Trial { .. } => self.report(&step.name).is_some(),
            Kind::Limit(_) => self.limit(&step.name).is_some(),
            _ => self.results.contains_key(&step.name),
        }
    }

    /// The report of a run with this name; `None` if there is no complete one.
    pub fn report(&self, name: &str) -> Option<Report> {
        let report = Report::from_json(self.results.get(name)?.get()).ok()?;
        (!report.cut_short && report.rows.len() == 1).then_some(report)
    }

    /// The report of a search for a limit with this name; `None` if there is no complete one.
    pub fn limit(&self, name: &str) -> Option<Report> {
        let report = Report::from_json(self.results.get(name)?.get()).ok()?;
        (!report.cut_short && report.limit.as_ref().is_some_and(|limit| !limit.cut_short)).then_some(report)
    }

    /// The result of a step of any other kind; `None` if there is no result that can be read as `T`.
    pub fn result<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.results.get(name)?.get()).ok()
    }

    /// Adds a step's result and writes the file.
    pub fn keep<T: Serialize>(&mut self, name: &str, result: &T) -> anyhow::Result<()> {
        self.results.insert(name.to_owned(), serde_json::value::to_raw_value(result)?);
        // The compression is fast, because this happens after each step, while other steps are measured.
        self.write(Compression::fast()).with_context(|| format!("cannot write {}", self.file().display()))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Writes the file again, with the best compression.
    pub fn finish(&self) -> anyhow::Result<()> {
        self.write(Compression::best())
    }

    fn write(&self, compression: Compression) -> anyhow::Result<()> {
        let mut text = Vec::new();
        for (name, result) in &self.results {
            serde_json::to_writer(&mut text, &Entry { name: name.clone(), result: result.clone() })?;
            text.push(b'\n');
        }
        let part = self.folder.join(format!("{FILE}.part"));
        let mut encoder = GzEncoder::new(File::create(&part)?, compression);
        encoder.write_all(&text)?;
        encoder.finish()?;
        Ok(fs::rename(&part, self.file())?)
    }
}

fn read(path: &Path) -> anyhow::Result<BTreeMap<String, Box<RawValue>>> {
    let lines = BufReader::new(GzDecoder::new(File::open(path)?)).lines();
    lines
        .map(|line| {
            let line: Entry = serde_json::from_str(&line?)?;
            Ok((line.name, line.result))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn about(seconds: f64) -> StudyInfo {
        let lengths = Lengths { row: Duration::from_secs_f64(seconds), ..Lengths::default() };
        StudyInfo::new("mgba-qt 0.10.1".to_owned(), &lengths)
    }

    fn how(command: &str) -> SessionOptions {
        SessionOptions { command: vec![command.to_owned()], machines: Machines::One, windows: 1 }
    }

    #[test]
    fn a_study_continues_where_it_was_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        Archive::prepare(&folder).unwrap();
        let mut archive = Archive::open(&folder).unwrap();
        archive.begin(about(5.0), how("first")).unwrap();
        let steps = plan::all();
        let idle = steps.iter().find(|step| matches!(step.kind, Kind::Idle { .. })).unwrap();
        assert!(!archive.is_done(idle));
        let result = Idle { seconds: 20.0, before: 1.5, after: Some(2.5), error: None, then: vec![] };
        archive.keep(&idle.name, &result).unwrap();

        let mut again = Archive::open(&folder).unwrap();
        let about = again.begin(about(5.0), how("second")).unwrap();
        assert_eq!(about.sessions.len(), 2);
        assert!(again.is_done(idle));
        assert_eq!(again.result::<Idle>(&idle.name), Some(result));
        Archive::clear(&folder).unwrap();
        let fresh = Archive::open(&folder).unwrap();
        assert!(!fresh.is_done(idle) && fresh.about().unwrap().is_none());
    }

    #[test]
    fn a_study_with_another_row_length_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(dir.path()).unwrap();
        archive.begin(about(5.0), how("first")).unwrap();
        let error = archive.begin(about(30.0), how("second")).unwrap_err().to_string();
        assert!(error.contains("rows of 5 s, not rows of 30 s") && error.contains("--fresh"), "{error}");
    }

    #[test]
    fn rows_of_another_machine_are_added_only_with_add_machine() {
        let dir = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(dir.path()).unwrap();
        archive.begin(about(5.0), how("first")).unwrap();
        let mut elsewhere = about(5.0);
        elsewhere.machine.processor = "another".to_owned();
        let error = archive.begin(elsewhere.clone(), how("second")).unwrap_err().to_string();
        assert!(error.contains("x another") && error.contains("--add-machine"), "{error}");
        let several = SessionOptions { machines: Machines::Several, ..how("second") };
        let both = archive.begin(elsewhere, several).unwrap();
        let machines: Vec<_> = both.machines().into_iter().map(|machine| &machine.processor).collect();
        assert_eq!(machines, [&about(5.0).machine.processor, "another"]);
    }

    #[test]
    fn take_idle_replaces_the_idle_connection_with_that_of_another_study() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [mut here, mut there] = dirs.each_ref().map(|dir| Archive::open(dir.path()).unwrap());
        here.begin(about(5.0), how("here")).unwrap();
        there.begin(about(30.0), how("there")).unwrap();
        let error = here.take_idle(&there, how("take")).unwrap_err().to_string();
        assert!(error.contains("has no idle connection"), "{error}");
        let idle = |seconds| Idle { seconds, before: 1.5, after: Some(2.5), error: None, then: vec![] };
        let name = plan::idle(Script::Ours);
        here.keep(&name, &idle(60.0)).unwrap();
        there.keep(&name, &idle(6000.0)).unwrap();
        here.take_idle(&there, how("take")).unwrap();
        assert_eq!(here.result(&name), Some(idle(6000.0)));
        let commands = |archive: &Archive| -> Vec<_> {
            archive
                .about()
                .unwrap()
                .unwrap()
                .sessions
                .into_iter()
                .map(|session| session.command[0].clone())
                .collect()
        };
        assert_eq!(commands(&here), ["here", "there", "take"]);

        // If a session of the other study was measured on a different machine, it keeps that machine.
        let mut further = about(30.0);
        further.machine.processor = "further".to_owned();
        let several = SessionOptions { machines: Machines::Several, ..how("further") };
        there.begin(further, several).unwrap();
        here.take_idle(&there, how("take")).unwrap();
        let info = here.about().unwrap().unwrap();
        assert_eq!(info.machines().last().unwrap().processor, "further");

        let mut elsewhere = about(5.0);
        elsewhere.mgba = "mgba-qt 0.11".to_owned();
        let other = tempfile::tempdir().unwrap();
        let mut other = Archive::open(other.path()).unwrap();
        other.begin(elsewhere, how("other")).unwrap();
        let error = here.take_idle(&other, how("take")).unwrap_err().to_string();
        assert!(error.contains("mgba-qt 0.11") && error.contains("--only idle"), "{error}");
    }

    #[test]
    fn an_incomplete_report_is_measured_again_and_a_broken_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(dir.path()).unwrap();
        let steps = plan::all();
        let run = steps.iter().find(|step| matches!(step.kind, Kind::Run(_))).unwrap();
        archive.keep(&run.name, &serde_json::json!({"schema": "framewire-bench"})).unwrap();
        assert!(!archive.is_done(run));
        fs::write(dir.path().join(FILE), "half").unwrap();
        assert!(Archive::open(dir.path()).unwrap_err().to_string().contains("--fresh"));
    }
}
