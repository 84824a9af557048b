//! The study's folder: a JSON file a step, so that what is done stays done, and one about the study itself.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use framewire_loadtest::report::Report;
use framewire_loadtest::report::format::time;
use framewire_loadtest::report::machine::Machine;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::steps::{Kind, Step};

const ABOUT: &str = "study.json";
const SCHEMA: &str = "framewire-study";
const SCHEMA_VERSION: u32 = 1;

/// What the study was made with, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// `framewire-study`.
    pub schema: String,
    /// 1.
    pub schema_version: u32,
    /// This program and its version.
    pub tool: String,
    /// The mGBA in the window.
    pub mgba: String,
    /// The library of the embedded core.
    pub libmgba: String,
    /// Where.
    pub machine: Machine,
    /// Length of a row in seconds.
    pub seconds: f64,
    /// Least time that a connection is kept idle, in seconds.
    pub idle_seconds: f64,
    /// Its beginning and its continuations.
    pub sessions: Vec<Session>,
}

/// A stretch of measuring without interruption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// The command line.
    pub command: Vec<String>,
}

impl About {
    /// A study that begins now.
    pub fn new(mgba: String, seconds: f64, idle_seconds: f64) -> About {
        About {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            tool: format!("framewire {}", env!("CARGO_PKG_VERSION")),
            mgba,
            libmgba: framewire_libmgba::version().to_string(),
            machine: Machine::here(),
            seconds,
            idle_seconds,
            sessions: Vec::new(),
        }
    }

    /// What differs so that rows of the two do not belong into one study.
    fn differs(&self, other: &About) -> Option<String> {
        let words = |about: &About| {
            let About { tool, mgba, seconds, idle_seconds, machine, .. } = about;
            let Machine { processor, processors, kernel, .. } = machine;
            [
                tool.clone(),
                mgba.clone(),
                format!("rows of {seconds} s"),
                format!("{idle_seconds} s idle"),
                format!("{processors} x {processor}, kernel {kernel}"),
            ]
        };
        let pairs = words(self).into_iter().zip(words(other));
        pairs.into_iter().find(|(one, other)| one != other).map(|(one, other)| format!("{one}, not {other}"))
    }
}

/// The folder.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    data: PathBuf,
}

impl Folder {
    /// The folder at `root`, which is made if need be.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn open(root: &Path) -> anyhow::Result<Folder> {
        let data = root.join("data");
        let problem = || format!("cannot write {}; name another folder with --out", data.display());
        fs::create_dir_all(&data).with_context(problem)?;
        let trial = data.join(".trial");
        fs::write(&trial, "").and_then(|()| fs::remove_file(&trial)).with_context(problem)?;
        Ok(Folder { root: root.to_owned(), data })
    }

    /// The folder at `root` as it is, for reading.
    pub fn existing(root: &Path) -> Folder {
        Folder { root: root.to_owned(), data: root.join("data") }
    }

    /// Throws away the results that are there.
    ///
    /// # Errors
    /// If one of them cannot be removed.
    pub fn clear(&self, steps: &[Step]) -> anyhow::Result<()> {
        let names = steps.iter().map(|step| self.file(step)).chain([self.data.join(ABOUT)]);
        for path in names.filter(|path| path.exists()) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Begins `about`, or goes on with the study that is here.
    ///
    /// # Errors
    /// If what is here was measured otherwise.
    pub fn begin(&self, mut about: About, command: Vec<String>) -> anyhow::Result<About> {
        if let Some(known) = self.about()? {
            if let Some(difference) = known.differs(&about) {
                bail!(
                    "{} holds another study ({difference}); throw that away with --fresh, or name another folder with \
                     --out",
                    self.root.display()
                );
            }
            about = known;
        }
        let started = time(std::time::SystemTime::now());
        about.sessions.push(Session { started, command });
        self.write(&self.data.join(ABOUT), &about)?;
        Ok(about)
    }

    /// The study that is here.
    ///
    /// # Errors
    /// If its file is broken.
    pub fn about(&self) -> anyhow::Result<Option<About>> {
        let path = self.data.join(ABOUT);
        if !path.exists() {
            return Ok(None);
        }
        let about: About = read(&path)?;
        if (about.schema.as_str(), about.schema_version) != (SCHEMA, SCHEMA_VERSION) {
            bail!(
                "{} is {} version {}; begin anew with --fresh",
                path.display(),
                about.schema,
                about.schema_version
            );
        }
        Ok(Some(about))
    }

    /// Whether a step has its result.
    pub fn is_done(&self, step: &Step) -> bool {
        match &step.kind {
            Kind::Run(_) => self.report(&step.name).is_some(),
            // Written whole or not at all.
            _ => self.file(step).exists(),
        }
    }

    /// The report of a run that was not cut short.
    pub fn report(&self, name: &str) -> Option<Report> {
        let text = fs::read_to_string(self.data.join(format!("{name}.json"))).ok()?;
        let report = Report::from_json(&text).ok()?;
        (!report.cut_short && report.rows.len() == 1).then_some(report)
    }

    /// Another step's result.
    pub fn result<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        read(&self.data.join(format!("{name}.json"))).ok()
    }

    /// Keeps a step's result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep<T: Serialize>(&self, step: &Step, result: &T) -> anyhow::Result<()> {
        self.write(&self.file(step), result)
    }

    /// Where a step's result lies.
    pub fn file(&self, step: &Step) -> PathBuf {
        self.data.join(format!("{}.json", step.name))
    }

    /// The folder of the results.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The folder itself, with the pictures.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn write<T: Serialize>(&self, path: &Path, value: &T) -> anyhow::Result<()> {
        let part = path.with_extension("json.part");
        let text = serde_json::to_string_pretty(value)? + "\n";
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, path))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is broken; remove it to have it measured again", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::plan;
    use crate::study::results::Idle;

    fn about(seconds: f64) -> About {
        About::new("mgba-qt 0.10.1".to_owned(), seconds, 20.0)
    }

    #[test]
    fn a_study_goes_on_where_it_was_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(&dir.path().join("a/b")).unwrap();
        folder.begin(about(5.0), vec!["first".to_owned()]).unwrap();
        let steps = plan::all();
        let idle = steps.iter().find(|step| matches!(step.kind, Kind::Idle { .. })).unwrap();
        assert!(!folder.is_done(idle));
        let result = Idle { seconds: 20.0, before: 1.5, after: Some(2.5), error: None, then: vec![] };
        folder.keep(idle, &result).unwrap();

        let again = Folder::open(&dir.path().join("a/b")).unwrap();
        let about = again.begin(about(5.0), vec!["second".to_owned()]).unwrap();
        assert_eq!(about.sessions.len(), 2);
        assert!(again.is_done(idle));
        assert_eq!(again.result::<Idle>(&idle.name), Some(result));
        again.clear(&steps).unwrap();
        assert!(!again.is_done(idle) && again.about().unwrap().is_none());
    }

    #[test]
    fn rows_of_another_length_are_not_mixed_in() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        folder.begin(about(5.0), vec![]).unwrap();
        let error = folder.begin(about(30.0), vec![]).unwrap_err().to_string();
        assert!(error.contains("rows of 5 s, not rows of 30 s") && error.contains("--fresh"), "{error}");
    }

    #[test]
    fn a_broken_or_half_report_is_measured_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let steps = plan::all();
        let run = steps.iter().find(|step| matches!(step.kind, Kind::Run(_))).unwrap();
        fs::write(folder.file(run), "{\"schema\": \"framewire-bench\"").unwrap();
        assert!(!folder.is_done(run));
    }
}
