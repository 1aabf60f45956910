//! On whose files does a tool take its test run? A document on those of the workspace, which it was written for; a shipped tool
//! on files of our own, for nobody who lists, tests or publishes tools wants their notes rewritten.

use std::{collections::BTreeSet, sync::Arc, time::SystemTime};

use tempfile::TempDir;
use toolgate_gate::{Candidate, Trial, Unfit, Workshop};
use toolgate_handlers::Places;

use super::{OpenError, Toolgate};
use crate::{
    catalog,
    journals::Writes,
    load::{self, Loaded, Origin, ToTry},
};

impl Toolgate {
    /// The test run of a tool that was found, in the sandbox that it will be served in. What came of it is remembered; a pass does
    /// not publish by itself.
    pub async fn local_pass(&self, candidate: &Candidate, origin: &Origin) -> Result<Trial, String> {
        let (workshop, now) = (self.workshop(), SystemTime::now());
        match origin {
            Origin::File(_) => workshop.local_pass(&self.gate, candidate, now).await,
            Origin::Shipped => {
                // One for each run: what a tool did to its files is nothing for the next one.
                let bench = self.workbench(&workshop)?;
                let candidate = bench.candidate(&candidate.tool.spec().name)?;
                bench.workshop.local_pass(&self.gate, &candidate, now).await
            }
        }
    }

    /// Publishes every tool that passes, for programs whose tools are their own. One that has passed as it is now is not run
    /// again, unless its command line is made in code; one that somebody took back stays so until it is published by its name.
    /// Returns the runs that there were. A document whose texts attack models or hold a secret is not run; the error names it, after the
    /// others were published. A program cannot accept such findings; a person must read them.
    pub async fn publish_all(&self) -> Result<Vec<Trial>, OpenError> {
        let _alone = self.changing.lock().await;
        let (config, workshop) = (self.config(), self.workshop());
        let (mut trials, mut refused) = (Vec::new(), Vec::new());
        // By what is known of them now: the last load may be long ago.
        for tool in load::load(&config, &workshop).tools {
            let Ok(candidate) = &tool.candidate else { continue };
            if candidate.is_withdrawn {
                continue;
            }
            let told = |problem: String| OpenError {
                part: "passes",
                problem: format!("`{}`: {problem}", tool.name),
            };
            if let Some(refusal) = candidate.refusal() {
                refused.push(format!("`{}`: {refusal}", tool.name));
                continue;
            }
            if self.has_passed_as_it_is(candidate) {
                self.publish_passed(&workshop, candidate).map_err(told)?;
                continue;
            }
            let trial = self.local_pass(candidate, &tool.origin).await.map_err(told)?;
            if trial.took_back {
                self.note_publication("tool.unpublished", &candidate.tool, "library")?;
            }
            if trial.has_passed() {
                let passed = trial.publishable(candidate).map_err(told)?;
                self.publish_passed(&workshop, &passed).map_err(told)?;
            }
            trials.push(trial);
        }
        self.put_in_force(load::load(&config, &workshop), &config)?;
        if refused.is_empty() {
            Ok(trials)
        } else {
            Err(OpenError { part: "documents", problem: refused.join("; ") })
        }
    }

    /// A pass is for the document: it says nothing about a command line that is made in code, which may be another one by now.
    fn has_passed_as_it_is(&self, candidate: &Candidate) -> bool {
        let is_made_in_code = self.handlers.cli.commands.contains_key(&candidate.tool.spec().name);
        candidate.holding_pass().is_some() && !is_made_in_code
    }

    fn publish_passed(&self, workshop: &Workshop, passed: &Candidate) -> Result<(), String> {
        if passed.holding_pass().is_some_and(|pass| pass.is_published) {
            return Ok(());
        }
        let note = || {
            let noted = self.note_published(passed, "library");
            noted.map_err(|error| error.to_string())
        };
        workshop.publish(passed, &note)
    }

    /// Shipped tools that were chosen and have no pass, or `which` besides, take their test run here, and are published by passing:
    /// they are live after the next load. Dropped, it leaves the rest untried.
    pub async fn try_shipped(&self, which: ToTry) {
        self.try_untried(&self.loaded(), which).await;
    }

    /// The ids of the shipped tools that `try_shipped` would try.
    pub fn untried(&self, which: ToTry) -> BTreeSet<String> {
        let loaded = self.loaded();
        let untried = loaded.untried(which).filter(|candidate| self.may_try(candidate));
        untried.map(|candidate| candidate.tool.spec().id.as_str().to_owned()).collect()
    }

    /// Was there anything to try?
    pub(super) async fn try_untried(&self, loaded: &Loaded, which: ToTry) -> bool {
        let workshop = self.workshop();
        let untried: Vec<&str> = loaded
            .untried(which)
            .filter(|candidate| self.may_try(candidate))
            .map(|candidate| candidate.tool.spec().name.as_str())
            .collect();
        if untried.is_empty() {
            return false;
        }
        // Where there is no room for a scratch folder the tools stay untried, and are not live.
        let Ok(bench) = self.workbench(&workshop) else { return false };
        for name in untried {
            let Ok(candidate) = bench.candidate(name) else { continue };
            let note = || {
                let noted = self.note_published(&candidate, "catalog");
                noted.map_err(|error| error.to_string())
            };
            let now = SystemTime::now();
            // Without its record it is not live, and the next start tries again.
            let tried = bench.workshop.local_pass_and_publish(&self.gate, &candidate, now, &note).await;
            if tried.is_ok_and(|trial| trial.took_back) {
                // It is over already; a journal that cannot be written is told of with the next record.
                let _ = self.note_publication("tool.unpublished", &candidate.tool, "catalog");
            }
        }
        true
    }

    /// A command does not reach out for tools that somebody may want to serve.
    fn may_try(&self, candidate: &Candidate) -> bool {
        self.writes == Writes::Gateway || !candidate.tool.reaches_out()
    }

    fn workbench(&self, workshop: &Workshop) -> Result<Workbench, String> {
        let told = |error: std::io::Error| format!("no scratch folder for the test run: {error}");
        let files = tempfile::tempdir().map_err(told)?;
        let root = files.path().canonicalize().map_err(told)?;
        let (workspace, state) = (root.join("workspace"), root.join("state"));
        catalog::write_fixtures(&workspace).map_err(told)?;
        let mut handlers = self.handlers.as_ref().clone();
        let places = Places { workspace, home: root.join("home"), state, guarded: Vec::new() };
        handlers.cli.host.places = places.clone();
        handlers.js.places = places;
        let workshop = Workshop { handlers: Arc::new(handlers), ..workshop.clone() };
        Ok(Workbench { workshop, _files: files })
    }
}

/// Where shipped tools are tested: a workshop whose workspace is a copy of the catalog's fixtures.
struct Workbench {
    workshop: Workshop,
    /// Removed with the bench.
    _files: TempDir,
}

impl Workbench {
    /// The shipped tool as it is tested here.
    fn candidate(&self, name: &str) -> Result<Candidate, String> {
        let shipped = catalog::shipped_tools().iter().find(|tool| tool.name == name);
        let shipped = shipped.ok_or_else(|| format!("`{name}` is no shipped tool"))?;
        self.workshop.assess(&shipped.check).map_err(|unfit| match unfit {
            Unfit::Findings(findings) => {
                findings.into_iter().next().map_or_else(|| "it has errors".to_owned(), |one| one.message)
            }
            Unfit::NotOffered(what) | Unfit::Unreadable(what) => what,
        })
    }
}
