//! Runs the tests of tools on files that they may change.
//!
//! A shipped tool gets the fixtures of the catalog. A document that writes gets a copy of the workspace. Anything else a test
//! run could change needs a person's consent first.

use std::{
    collections::BTreeSet, fmt, fs::Permissions, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc,
    time::SystemTime,
};

use tempfile::TempDir;
use toolgate_gate::{Candidate, Publisher, TestEffects, Trial};
use toolgate_handlers::{CopyLimits, Places, ToolHandlers, copy_workspace};
use toolgate_store::FileChanges;

use super::{OpenError, Toolgate};
use crate::{
    catalog,
    load::{Loaded, ToolOrigin, TrialSelection},
};

/// The effects that test runs may have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TestRuns {
    /// No effect on the operator's files and hosts. A tool that writes gets a copy of the workspace; a tool that could change
    /// more is not run.
    #[default]
    Contained,
    /// Every effect that the tool is granted, on the workspace itself. Needs an operator's consent.
    ForReal,
}

/// Why a tool was not tested.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TestRunError {
    /// The run could change real data, and was not confirmed.
    NeedsConsent(String),
    Failed(String),
}

impl fmt::Display for TestRunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsConsent(why) => {
                write!(formatter, "its test run could change real data: {why}")
            }
            Self::Failed(why) => formatter.write_str(why),
        }
    }
}

impl Toolgate {
    /// Tests a tool in the sandbox that will serve it. Stores the result. A pass alone does not publish the tool.
    pub async fn local_pass(
        &self,
        candidate: &Candidate,
        origin: &ToolOrigin,
        runs: TestRuns,
    ) -> Result<Trial, TestRunError> {
        let effects = TestEffects::of(&candidate.tool);
        if let (TestEffects::Beyond(why), TestRuns::Contained) = (&effects, runs) {
            return Err(TestRunError::NeedsConsent(why.clone()));
        }
        // Each run gets new files, so no tool sees the changes of another.
        let bench = match (origin, effects, runs) {
            (ToolOrigin::Shipped, ..) => Some(self.bench_with_fixtures().map_err(TestRunError::Failed)?),
            (ToolOrigin::File(_), TestEffects::Workspace, TestRuns::Contained) => {
                Some(self.bench_with_copy(candidate).await?)
            }
            (ToolOrigin::File(_) | ToolOrigin::Program, ..) => None,
        };
        let moved = bench.as_ref().map(|bench| candidate.run_by(&bench.handlers));
        let moved = moved.transpose().map_err(TestRunError::Failed)?;
        let candidate = moved.as_ref().unwrap_or(candidate);
        let publisher = self.publisher();
        // Boxed, because the future of a whole call is large.
        let passed = Box::pin(publisher.local_pass(&self.gate, candidate, SystemTime::now())).await;
        passed.map_err(TestRunError::Failed)
    }

    /// Tests all tools and publishes those that pass, at any risk level. For programs that trust their own tools. Returns the
    /// test runs.
    ///
    /// - A tool whose run could change real data is an error, unless the program called `Builder::test_for_real`.
    /// - A tool that passed before and did not change is not run again, unless a part of it is code.
    /// - A tool that was unpublished stays unpublished until it is published by name.
    /// - A document whose texts attack models or contain a secret is not run. The error names it, after the other tools were
    ///   published. A program cannot accept such findings; a person must read them.
    pub async fn publish_all(&self) -> Result<Vec<Trial>, OpenError> {
        let _alone = self.changing.lock().await;
        let (config, publisher) = (self.config(), self.publisher());
        let (mut trials, mut refused) = (Vec::new(), Vec::new());
        // Load again, because the last load may be long ago.
        for tool in self.load(&config, Arc::clone(&publisher), &FileChanges::Everything).tools.iter() {
            let Ok(candidate) = &tool.candidate else { continue };
            if candidate.is_withdrawn {
                continue;
            }
            let failed = |problem: String| OpenError {
                part: "passes",
                problem: format!("`{}`: {problem}", tool.name),
            };
            if let Some(refusal) = candidate.refusal() {
                refused.push(format!("`{}`: {refusal}", tool.name));
                continue;
            }
            if self.has_passed_as_it_is(candidate) {
                self.publish_passed(&publisher, candidate).map_err(failed)?;
                continue;
            }
            if tool.origin == ToolOrigin::Shipped && candidate.tool.reaches_out() {
                self.accept_release_pass(&publisher, candidate, "library").map_err(failed)?;
                continue;
            }
            let trial = self.local_pass(candidate, &tool.origin, self.test_runs).await;
            let trial = trial.map_err(|error| failed(error.to_string()))?;
            if trial.was_unpublished {
                self.note_publication("tool.unpublished", &candidate.tool, "library")?;
            }
            if trial.has_passed() {
                let passed = trial.publishable(candidate).map_err(failed)?;
                self.publish_passed(&publisher, &passed).map_err(failed)?;
            }
            trials.push(trial);
        }
        self.activate(self.load(&config, Arc::clone(&publisher), &FileChanges::Everything), &config)?;
        if refused.is_empty() {
            Ok(trials)
        } else {
            Err(OpenError { part: "documents", problem: refused.join("; ") })
        }
    }

    /// Whether the tool has a valid pass and no part in code. A pass covers the document only; a command line, parser or
    /// function in code may have changed since.
    fn has_passed_as_it_is(&self, candidate: &Candidate) -> bool {
        let (handlers, name) = (&self.handlers, &candidate.tool.spec().name);
        let is_made_in_code = handlers.cli.commands.contains_key(name)
            || handlers.cli.parsers.contains_key(name)
            || handlers.rust.functions.contains_key(name);
        candidate.holding_pass().is_some() && !is_made_in_code
    }

    fn publish_passed(&self, publisher: &Publisher, passed: &Candidate) -> Result<(), String> {
        if passed.holding_pass().is_some_and(|pass| pass.is_published) {
            return Ok(());
        }
        let note = || {
            let noted = self.note_published(passed, "library");
            noted.map_err(|error| error.to_string())
        };
        publisher.publish(passed, &note)
    }

    /// Tests the selected shipped tools, and publishes those that pass. They are live after the next load. Tools that reach other
    /// hosts are not run; they keep the pass of their release. If the future is dropped, the remaining tools stay untested.
    pub async fn test_shipped(&self, which: TrialSelection) {
        Box::pin(self.test_untested(&self.loaded(), which)).await;
    }

    /// The ids of the shipped tools that `test_shipped` would test.
    pub fn untested(&self, which: TrialSelection) -> BTreeSet<String> {
        let loaded = self.loaded();
        loaded.untested(which).map(|candidate| candidate.tool.spec().id.as_str().to_owned()).collect()
    }

    /// Returns whether any tool was tested or got the pass of its release.
    pub(super) async fn test_untested(&self, loaded: &Loaded, which: TrialSelection) -> bool {
        let publisher = self.publisher();
        let (released, untested): (Vec<&Candidate>, Vec<&Candidate>) =
            loaded.untested(which).partition(|candidate| candidate.tool.reaches_out());
        // The gateway sends no request that neither an operator nor a caller asked for. A tool whose pass cannot be recorded is not
        // live, and the next start tries again.
        let recorded = released
            .into_iter()
            .filter(|candidate| self.accept_release_pass(&publisher, candidate, "catalog").is_ok())
            .count();
        if untested.is_empty() {
            return recorded > 0;
        }
        // Without a scratch directory the tools stay untested, and are not live.
        let Ok(bench) = self.bench_with_fixtures() else { return recorded > 0 };
        for candidate in untested {
            let Ok(candidate) = candidate.run_by(&bench.handlers) else { continue };
            let note = || {
                let noted = self.note_published(&candidate, "catalog");
                noted.map_err(|error| error.to_string())
            };
            let now = SystemTime::now();
            // If the pass cannot be recorded, the tool is not live, and the next start tries again.
            let tried = publisher.local_pass_and_publish(&self.gate, &candidate, now, &note).await;
            if tried.is_ok_and(|trial| trial.was_unpublished) {
                // The tool is unpublished already. If this record fails, the next record reports the failure.
                let _ = self.note_publication("tool.unpublished", &candidate.tool, "catalog");
            }
        }
        true
    }

    /// Publishes a shipped tool that reaches other hosts. It was tested with fake hosts when it was released.
    fn accept_release_pass(
        &self,
        publisher: &Publisher,
        candidate: &Candidate,
        by: &str,
    ) -> Result<(), String> {
        let note = || {
            let noted = self.note_publication("tool.published", &candidate.tool, by);
            noted.map_err(|error| error.to_string())
        };
        publisher.accept_release_pass(candidate, SystemTime::now(), &note).map(drop)
    }

    fn bench_with_fixtures(&self) -> Result<Bench, String> {
        let failed =
            |error: std::io::Error| format!("cannot create a scratch directory for the test run: {error}");
        let (files, root) = scratch().map_err(failed)?;
        let (workspace, state) = (root.join("workspace"), root.join("state"));
        catalog::write_fixtures(&workspace).map_err(failed)?;
        let places = Places { workspace, home: root.join("home"), state, guarded: Vec::new() };
        Ok(self.bench(files, places))
    }

    async fn bench_with_copy(&self, candidate: &Candidate) -> Result<Bench, TestRunError> {
        let (tool, places) = (Arc::clone(&candidate.tool), self.handlers.js.places.clone());
        let copied = tokio::task::spawn_blocking(move || {
            let (files, workspace) = scratch().map_err(|error| error.to_string())?;
            copy_workspace(tool.policy(), &places, &workspace, CopyLimits::default())?;
            Ok::<_, String>((files, moved(places, workspace)))
        });
        let copied = copied.await.unwrap_or_else(|error| Err(error.to_string()));
        let (files, places) = copied.map_err(|why| {
            TestRunError::NeedsConsent(format!(
                "it writes files, and the workspace cannot be copied for the test: {why}"
            ))
        })?;
        Ok(self.bench(files, places))
    }

    fn bench(&self, files: TempDir, places: Places) -> Bench {
        let mut handlers = self.handlers.as_ref().clone();
        handlers.cli.host.places = places.clone();
        handlers.rust.places = places.clone();
        handlers.js.places = places;
        Bench { handlers, _files: files }
    }
}

/// The same paths with a copy of the workspace. The gateway's own files are blocked in the copy too.
fn moved(mut places: Places, copy: PathBuf) -> Places {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let own: Vec<PathBuf> = places.guarded.iter().flat_map(|path| [path.clone(), real(path)]).collect();
    let below = own.iter().filter_map(|path| path.strip_prefix(&places.workspace).ok());
    places.guarded.extend(below.map(|inside| copy.join(inside)));
    Places { workspace: copy, ..places }
}

/// A directory that only this user can open, and its real path.
fn scratch() -> std::io::Result<(TempDir, PathBuf)> {
    // Without explicit permissions `tempfile` follows the umask, and other users could read a copied workspace.
    let private = Permissions::from_mode(0o700);
    let files = tempfile::Builder::new().permissions(private).tempdir()?;
    let root = files.path().canonicalize()?;
    Ok((files, root))
}

/// Handlers with a temporary workspace.
struct Bench {
    handlers: ToolHandlers,
    /// Removed with the bench.
    _files: TempDir,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_directory_is_private() {
        let (_files, root) = scratch().unwrap();
        assert_eq!(root.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
