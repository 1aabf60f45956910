//! Puts edits in force while the gateway runs.
//!
//! Without a mistake all of them are swapped in one piece. With a mistake only what narrows is: tools whose documents were removed
//! or edited, or that were unpublished or excluded, go. A tool whose own document has the mistake stays as it was.

use std::{collections::HashMap, sync::Arc};

use serde_json::json;
use toolgate_config::{Config, Overrides, model::Approvals};
use toolgate_gate::{LiveTool, Workshop, text_for_journal};
use toolgate_store::FileChanges;

use super::{OpenError, Toolgate, approval_settings, argument_limits, narrowed::narrowed, workshop};
use crate::{
    exposure::is_exposed,
    handlers::own_variables,
    load::{Loaded, Origin, Problem, Surveyed},
};

/// Was all that a configuration names watched before it was read?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watched {
    Already,
    /// From now on: what was read before may be another thing by now.
    FromNow,
}

/// What stands beside a gateway and follows its configuration.
pub trait Beside {
    /// Told of the configuration as it was read, be it found wanting or not, before anything is read that it names: whoever
    /// mends that is heard.
    fn watch(&mut self, read: &Config) -> Watched;

    /// Makes ready what this configuration asks for. A mistake in it leaves everything as it was.
    fn prepare(&mut self, config: &Config) -> Result<(), Problem>;

    /// Puts in force what was made ready last.
    fn put_in_force(&mut self);
}

/// What is in force since a reload.
#[derive(Debug)]
pub struct Reloaded {
    pub loaded: Arc<Loaded>,
    /// Why the journal does not say so. It is in force all the same: what is tighter waits for no record.
    pub unrecorded: Option<OpenError>,
}

impl Toolgate {
    /// Reads configuration, policies and documents. With a mistake in any document no tool is added or changed, policies are
    /// put in force, and callers, approvals and limits as far as they are tighter. A mistake in those leaves them as they were. Of the
    /// configuration, `IN_FORCE_AT_ONCE` counts at once; the rest after a restart.
    ///
    /// Nothing waits for test runs here, so that what is tighter is in force at once; shipped tools that have no pass under
    /// the new policies are not live until `try_shipped` and the next reload.
    pub async fn reload_with(
        &self,
        overrides: &Overrides,
        beside: &mut impl Beside,
    ) -> Result<Reloaded, Vec<Problem>> {
        self.reload_changed(overrides, beside, FileChanges::Everything).await
    }

    /// As `reload_with`, if it is known which files changed since the last reload. Other documents are not read.
    pub async fn reload_changed(
        &self,
        overrides: &Overrides,
        beside: &mut impl Beside,
        changes: FileChanges,
    ) -> Result<Reloaded, Vec<Problem>> {
        let _alone = self.changing.lock().await;
        self.take_over(overrides, beside, changes).map_err(|problems| self.note_rejection(problems))
    }

    /// Makes the next reload judge every tool again, also those whose documents did not change.
    pub fn forget_judgements(&self) {
        self.cache().forget();
    }

    /// The ids of tools whose Local Pass or publication changed since the last load.
    pub fn changed_passes(&self) -> Result<Vec<String>, OpenError> {
        let seen = self.cache().passes_seen();
        let broken =
            |error: toolgate_store::StateError| OpenError { part: "state", problem: error.to_string() };
        let changes = self.state.passes_changed_after(seen).map_err(broken)?;
        Ok(changes.tools.into_iter().map(|(id, _)| id).collect())
    }

    fn take_over(
        &self,
        overrides: &Overrides,
        beside: &mut impl Beside,
        mut changes: FileChanges,
    ) -> Result<Reloaded, Vec<Problem>> {
        let (config, awaits_restart) = loop {
            let read = self.read_config(overrides).inspect_err(|_| {
                let config = self.config();
                self.drop_changed(&config, &self.workshop(), &changes);
            })?;
            // The file itself may have been edited while the watch began. One that stands still names the same again.
            if beside.watch(&read.0) == Watched::Already {
                break read;
            }
            // The new watch knows nothing of changes before it.
            changes = FileChanges::Everything;
        };
        // What the configuration names anew is guarded anew.
        let own = own_variables(config.own_variables());
        let handlers = self.handlers.as_ref().clone().guarding(config.guarded_paths(), own);
        let workshop = workshop(&config, &Arc::new(handlers), &self.state).map_err(|error| {
            self.drop_changed(&config, &self.workshop(), &changes);
            broken(error)
        })?;
        let workshop = self.current_or(workshop, &config);
        let mut loaded = Loaded { awaits_restart, ..self.load(&config, &workshop, &changes) };
        let about_callers = beside.prepare(&config).err();
        if loaded.policies.is_err() || about_callers.is_some() {
            loaded.problems.extend(about_callers);
            let staying = self.staying(&loaded, &config, &workshop);
            self.gate.retain(|tool| staying.includes(tool));
            return Err(loaded.problems);
        }
        if !loaded.problems.is_empty() {
            return Err(self.take_over_narrowed(loaded, config, workshop, beside));
        }
        // INVARIANT: tools and policies before callers. Whoever is let in anew meets the new policies, never the old ones.
        let (loaded, record) = self.swap(loaded, &config);
        self.config.store(Arc::new(config));
        self.workshop.store(workshop);
        beside.put_in_force();
        Ok(Reloaded { loaded, unrecorded: self.note_loaded(&record).err() })
    }

    /// Whatever was wrong, the journal says that something was asked for and is not in force.
    fn note_rejection(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        // What is wrong is quoted, and may be a secret that somebody wrote into the wrong place.
        let tell = |one: &Problem| text_for_journal(&self.secrets, one.to_string());
        let told: Vec<String> = problems.iter().map(tell).collect();
        if let Err(error) = self.note(&json!({ "kind": "tools.rejected", "problems": told })) {
            problems.extend(broken(error));
        }
        problems
    }

    /// The mistakes are in tool documents alone: policies are put in force, callers, approvals and limits as far as they are
    /// tighter, and the set of tools only shrinks.
    fn take_over_narrowed(
        &self,
        mut loaded: Loaded,
        config: Config,
        workshop: Arc<Workshop>,
        beside: &mut impl Beside,
    ) -> Vec<Problem> {
        let policies = std::mem::replace(&mut loaded.policies, Ok(None)).unwrap_or_default();
        let config = narrowed(&self.config(), config);
        let are_callers_ready = beside.prepare(&config).is_ok();
        let staying = self.staying(&loaded, &config, &workshop);
        let (approvals, arguments) = (approval_settings(&config.approvals), argument_limits(&config));
        // INVARIANT: as without mistakes, tools and policies before callers.
        self.gate.narrow(|tool| staying.includes(tool), policies, approvals, arguments);
        self.config.store(Arc::new(config));
        self.workshop.store(workshop);
        if are_callers_ready {
            beside.put_in_force();
        }
        loaded.problems
    }

    /// The workshop in force, if a new one would judge every tool alike. Then the results of the last load still hold.
    fn current_or(&self, workshop: Workshop, config: &Config) -> Arc<Workshop> {
        let (current, in_force) = (self.workshop(), self.config());
        let is_same = current.policies == workshop.policies
            && current.overrides == workshop.overrides
            && in_force.guarded_paths() == config.guarded_paths()
            && in_force.own_variables() == config.own_variables();
        if is_same { current } else { Arc::new(workshop) }
    }

    /// The live tools that may stay although not everything that was read can be put in force.
    fn staying<'l>(&self, loaded: &'l Loaded, config: &'l Config, workshop: &'l Workshop) -> Staying<'l> {
        Staying {
            published: self.state.published_digests().unwrap_or_default(),
            found: loaded.tools.iter().map(|tool| (tool.name.as_str(), tool.as_ref())).collect(),
            before: self.loaded(),
            loaded,
            config,
            workshop,
        }
    }

    /// For a configuration or policies that cannot be used: what was removed or edited is not served any more, by the last good
    /// policies.
    fn drop_changed(&self, config: &Config, workshop: &Arc<Workshop>, changes: &FileChanges) {
        let loaded = self.load(config, workshop, changes);
        let staying = self.staying(&loaded, config, workshop);
        self.gate.retain(|tool| staying.includes(tool));
    }

    /// Stops serving tools that were unpublished or are not exposed any more, without a reload.
    pub fn drop_taken_back(&self) {
        let config = self.config();
        let published = self.state.published_digests().unwrap_or_default();
        let stays =
            |tool: &LiveTool| is_published(&published, tool) && is_exposed(&config.exposure, tool.spec());
        if self.gate.all().iter().any(|tool| !stays(tool)) {
            self.gate.retain(stays);
        }
    }

    /// The file as it is now, with what was fixed at the start: what is in force from now on, and the keys that await a restart.
    fn read_config(&self, overrides: &Overrides) -> Result<(Config, Vec<String>), Vec<Problem>> {
        let current = self.config();
        let Some(file) = &current.file else { return Ok((current.as_ref().clone(), Vec::new())) };
        let read = Config::load(file, &|name| std::env::var(name).ok(), overrides).map_err(|errors| {
            let problem = |error: &toolgate_config::ConfigError| Problem {
                place: file.display().to_string(),
                what: error.to_string(),
            };
            errors.iter().map(problem).collect::<Vec<_>>()
        })?;
        let awaits_restart = awaiting_restart(&read, &current);
        let mut config = current.as_ref().clone();
        (config.tools, config.catalog, config.exposure, config.policy) =
            (read.tools, read.catalog, read.exposure, read.policy);
        config.auth = read.auth;
        let kept = &current.approvals;
        config.approvals = Approvals {
            // The doors were opened with it, and a flag may have closed it.
            client_may_answer: kept.client_may_answer,
            max_pending: kept.max_pending,
            max_pending_per_caller: kept.max_pending_per_caller,
            ..read.approvals
        };
        (config.limits.arguments, config.limits.depth) = (read.limits.arguments, read.limits.depth);
        Ok((config, awaits_restart))
    }
}

/// Decides which live tools stay in force.
struct Staying<'l> {
    published: HashMap<String, String>,
    found: HashMap<&'l str, &'l Surveyed>,
    before: Arc<Loaded>,
    loaded: &'l Loaded,
    config: &'l Config,
    workshop: &'l Workshop,
}

impl Staying<'_> {
    fn includes(&self, tool: &LiveTool) -> bool {
        if !is_published(&self.published, tool) || !is_exposed(&self.config.exposure, tool.spec()) {
            return false;
        }
        let has_mistake = |problem: &String| self.loaded.problems.iter().any(|known| known.what == *problem);
        let found = self.found.get(tool.spec().name.as_str());
        match found.map(|found| &found.candidate) {
            Some(Ok(candidate)) => candidate.lifecycle.state.is_exposed() && candidate.tool.is_same_as(tool),
            // The last good version of a broken document.
            Some(Err(problem)) => has_mistake(problem) && self.workshop.is_under_current_policy(tool),
            None => self.is_in_unread_file(tool) && self.workshop.is_under_current_policy(tool),
        }
    }

    /// Was the tool read from a file that cannot be read now?
    fn is_in_unread_file(&self, tool: &LiveTool) -> bool {
        let known = self.before.tools.iter().find(|known| known.name == tool.spec().name);
        match known.map(|known| &known.origin) {
            Some(Origin::File(file)) => {
                self.loaded.unread.iter().any(|unread| file.starts_with(&unread.place))
            }
            Some(Origin::Shipped | Origin::Program) | None => false,
        }
    }
}

/// Is the very document of the tool still published?
fn is_published(published: &HashMap<String, String>, tool: &LiveTool) -> bool {
    published.get(tool.spec().id.as_str()).is_some_and(|digest| digest == tool.digest())
}

fn broken(error: OpenError) -> Vec<Problem> {
    vec![Problem { place: error.part.to_owned(), what: error.problem }]
}

/// Keys that the file says otherwise than when the gateway was started, and that count only after a restart.
fn awaiting_restart(read: &Config, current: &Config) -> Vec<String> {
    let counts_at_once = |key: &str| {
        let rest_behind = |section: &&'static str| key.strip_prefix(*section);
        IN_FORCE_AT_ONCE.iter().filter_map(rest_behind).any(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let value_in = |config: &Config, key: &str| {
        config.entries().iter().find(|entry| entry.key == key).map(|entry| entry.value.clone())
    };
    let both = read.entries().iter().chain(current.entries());
    let mut keys: Vec<String> = both
        .map(|entry| entry.key.as_str())
        .filter(|key| !counts_at_once(key) && value_in(read, key) != value_in(current, key))
        .map(str::to_owned)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The sections and keys of the configuration that a reload takes over.
const IN_FORCE_AT_ONCE: [&str; 12] = [
    "auth",
    "tools",
    "catalog",
    "exposure",
    "policy",
    "approvals.ask_from",
    "approvals.self_approval",
    "approvals.timeout",
    "approvals.expires",
    "approvals.trust",
    "limits.arguments",
    "limits.depth",
];

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::Extras;

    /// Looks at what is in force when callers are swapped.
    struct Looking<'t> {
        toolgate: &'t Toolgate,
        found: Option<usize>,
    }

    impl Beside for Looking<'_> {
        fn watch(&mut self, _: &Config) -> Watched {
            Watched::Already
        }

        fn prepare(&mut self, _: &Config) -> Result<(), Problem> {
            assert_eq!(self.toolgate.loaded().tools.len(), 0, "nothing has changed yet");
            Ok(())
        }

        fn put_in_force(&mut self) {
            self.found = Some(self.toolgate.loaded().tools.len());
        }
    }

    fn config(folder: &Path) -> Config {
        let file = folder.join("toolgate.yaml");
        fs::write(&file, "version: 1\ncatalog: {preset: none}\n").unwrap();
        fs::create_dir(folder.join("tools")).unwrap();
        Config::load(&file, &|_| None, &Overrides::default()).unwrap()
    }

    /// An edit that lets in more callers and tightens policies: the newcomers never meet the old ones.
    #[tokio::test]
    async fn tools_and_policies_are_in_force_before_callers() {
        let folder = tempfile::tempdir().unwrap();
        let toolgate = Toolgate::open(config(folder.path()), Extras::default()).await.unwrap();
        let document = serde_json::json!({
            "name": "say", "description": "Says nothing, for tests.", "codeType": "Javascript", "code": "return 1",
            "params": [],
        });
        fs::write(folder.path().join("tools/say.json"), document.to_string()).unwrap();
        let mut looking = Looking { toolgate: &toolgate, found: None };
        let reloaded = toolgate.reload_with(&Overrides::default(), &mut looking).await.unwrap();
        assert_eq!(looking.found, Some(1));
        assert!(reloaded.unrecorded.is_none());
        toolgate.close().unwrap();
    }

    /// Whoever writes a secret into the wrong place is shown it; the journal is kept for years.
    #[tokio::test]
    async fn no_secret_in_a_rejected_edit_reaches_the_journal() {
        let token = format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
        let folder = tempfile::tempdir().unwrap();
        let toolgate = Toolgate::open(config(folder.path()), Extras::default()).await.unwrap();
        let document = serde_json::json!({
            "name": "say", "description": "Says nothing, for tests.", "codeType": "Javascript", "code": "return 1",
            "params": [], "staticVariables": token,
        });
        let mut looking = Looking { toolgate: &toolgate, found: None };
        let config = format!("version: 1\naudit: {{webhook: {{url: \"hooks.example/{token}\"}}}}\n");
        for (file, text) in [("tools/say.json", document.to_string()), ("toolgate.yaml", config)] {
            fs::write(folder.path().join(file), text).unwrap();
            let problems = toolgate.reload_with(&Overrides::default(), &mut looking).await.unwrap_err();
            assert!(problems.iter().any(|problem| problem.what.contains(&token)), "{problems:?}");
        }
        toolgate.close().unwrap();
        let journal = folder.path().join(".toolgate/journal");
        let records = toolgate_audit::read(&journal, toolgate_audit::Span::default()).unwrap();
        let entries: Vec<_> = records.map(|record| record.unwrap().entry).collect();
        let rejected: Vec<String> = entries
            .iter()
            .filter(|entry| entry["kind"] == "tools.rejected")
            .map(|entry| entry["problems"][0].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(rejected.len(), 2);
        for (told, place) in rejected.iter().zip(["say.json", "toolgate.yaml"]) {
            assert!(told.contains(place) && told.contains("[REDACTED]") && !told.contains(&token), "{told}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_recorded_is_told_beside_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let toolgate = Toolgate::open(config(folder.path()), Extras::default()).await.unwrap();
        // Nothing can be written to a journal that is closed.
        toolgate.close().unwrap();
        let mut looking = Looking { toolgate: &toolgate, found: None };
        let reloaded = toolgate.reload_with(&Overrides::default(), &mut looking).await.unwrap();
        assert_eq!(reloaded.unrecorded.unwrap().part, "journal");
        assert_eq!(looking.found, Some(0), "it is in force");
        fs::write(folder.path().join("toolgate.yaml"), "version: 1\ntolls: []\n").unwrap();
        let problems = toolgate.reload_with(&Overrides::default(), &mut looking).await.unwrap_err();
        let places: Vec<&str> = problems.iter().map(|problem| problem.place.as_str()).collect();
        let file = folder.path().join("toolgate.yaml").display().to_string();
        assert_eq!(places, [file.as_str(), "journal"]);
    }

    /// A workspace of this many tools, loaded.
    async fn workspace(count: usize) -> (tempfile::TempDir, Toolgate) {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        for number in 0..count {
            write_tool(folder.path(), number, "return 1");
        }
        let toolgate = Toolgate::open(config, Extras::default()).await.unwrap();
        let work = toolgate.loaded().work;
        assert_eq!((work.parsed, work.judged), (count, count));
        (folder, toolgate)
    }

    fn write_tool(folder: &Path, number: usize, code: &str) {
        let document = serde_json::json!({
            "name": format!("tool {number}"), "description": "Says nothing, for tests.", "codeType": "Javascript",
            "code": code, "params": [],
        });
        fs::write(path_of(folder, number), document.to_string()).unwrap();
    }

    fn path_of(folder: &Path, number: usize) -> std::path::PathBuf {
        fs::canonicalize(folder).unwrap().join(format!("tools/{number:04}.json"))
    }

    struct NothingBeside;

    impl Beside for NothingBeside {
        fn watch(&mut self, _: &Config) -> Watched {
            Watched::Already
        }

        fn prepare(&mut self, _: &Config) -> Result<(), Problem> {
            Ok(())
        }

        fn put_in_force(&mut self) {}
    }

    /// Parsed documents and judged tools of a reload after these changes.
    async fn work(toolgate: &Toolgate, changes: FileChanges) -> (usize, usize) {
        let reloaded =
            toolgate.reload_changed(&Overrides::default(), &mut NothingBeside, changes).await.unwrap();
        (reloaded.loaded.work.parsed, reloaded.loaded.work.judged)
    }

    fn files(folder: &Path, numbers: impl IntoIterator<Item = usize>) -> FileChanges {
        FileChanges::Paths(numbers.into_iter().map(|number| path_of(folder, number)).collect())
    }

    #[tokio::test]
    async fn work_of_an_edit_does_not_grow_with_the_number_of_tools() {
        for count in [10, 300] {
            let (folder, toolgate) = workspace(count).await;
            let before = toolgate.loaded();
            write_tool(folder.path(), 3, "return 2");
            assert_eq!(work(&toolgate, files(folder.path(), [3])).await, (1, 1), "{count}");
            let after = toolgate.loaded();
            for (at, (one, other)) in before.tools.iter().zip(&after.tools).enumerate() {
                assert_eq!(Arc::ptr_eq(one, other), at != 3, "only the edited tool is another one");
            }
            assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 0));
            assert_eq!(work(&toolgate, FileChanges::Everything).await, (0, 0), "no bytes differ");
            toolgate.close().unwrap();
        }
    }

    #[tokio::test]
    async fn changed_pass_is_seen_and_costs_one_tool() {
        let (_folder, toolgate) = workspace(100).await;
        let candidate = toolgate.loaded().tools[7].candidate.clone().unwrap();
        assert!(toolgate.changed_passes().unwrap().is_empty());
        let id = candidate.tool.spec().id.as_str().to_owned();
        toolgate
            .workshop()
            .unpublish(&id, &candidate.tool.spec().name, std::time::SystemTime::now())
            .unwrap();
        assert_eq!(toolgate.changed_passes().unwrap(), [id]);
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 1));
        assert!(toolgate.loaded().tools[7].candidate.as_ref().unwrap().is_withdrawn);
        assert!(toolgate.changed_passes().unwrap().is_empty());
        // A new id does not undo it: the name is withdrawn.
        toolgate.workshop().unpublish("another id", "tool 9", std::time::SystemTime::now()).unwrap();
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 1));
        assert!(toolgate.loaded().tools[9].candidate.as_ref().unwrap().is_withdrawn);
        toolgate.close().unwrap();
    }

    /// Tools under other rules are judged again, although their documents did not change.
    #[tokio::test]
    async fn changed_rules_judge_every_tool_again() {
        let (folder, toolgate) = workspace(80).await;
        let overrides = folder.path().join("overrides.yaml");
        fs::write(&overrides, "tools: {}\n").unwrap();
        let file = folder.path().join("toolgate.yaml");
        let with =
            |more: &str| fs::write(&file, format!("version: 1\ncatalog: {{preset: none}}\n{more}")).unwrap();
        with("limits: {depth: 7}\n");
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 0), "limits of calls concern no tool");
        with("policy: {overrides: overrides.yaml}\n");
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 80), "another file is guarded");
        let tool = || toolgate.loaded().tools[5].candidate.as_ref().unwrap().tool.clone();
        let before = tool();
        fs::write(&overrides, "tools: {tool 5: {capability: {approval: {level: ask}}}}\n").unwrap();
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 80));
        assert!(!before.is_same_as(&tool()), "the override is in force");
        with("exposure: {excluded: [tool 6]}\npolicy: {overrides: overrides.yaml}\n");
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 0));
        assert!(!toolgate.loaded().tools[6].is_exposed);
        toolgate.forget_judgements();
        assert_eq!(work(&toolgate, FileChanges::Everything).await, (0, 80));
        toolgate.close().unwrap();
    }

    /// Tools keep away from the real target of each guarded path, so a switched symlink judges them again.
    #[tokio::test]
    async fn switched_symlink_of_a_guarded_path_judges_every_tool_again() {
        let (folder, toolgate) = workspace(10).await;
        for name in ["one", "two"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("overrides.yaml"), "tools: {}\n").unwrap();
        }
        let link = folder.path().join("current");
        std::os::unix::fs::symlink("one", &link).unwrap();
        let config = "version: 1\ncatalog: {preset: none}\npolicy: {overrides: current/overrides.yaml}\n";
        fs::write(folder.path().join("toolgate.yaml"), config).unwrap();
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 10));
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 0));
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("two", &link).unwrap();
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 10));
        toolgate.close().unwrap();
    }

    /// The first of two tools with one name counts. If it goes, the other one takes its place.
    #[tokio::test]
    async fn duplicates_are_found_without_judging_the_others() {
        let (folder, toolgate) = workspace(100).await;
        let twin = fs::read_to_string(path_of(folder.path(), 50)).unwrap();
        fs::write(path_of(folder.path(), 99), &twin).unwrap();
        let reload = async |numbers: &[usize]| {
            let changes = files(folder.path(), numbers.iter().copied());
            toolgate.reload_changed(&Overrides::default(), &mut NothingBeside, changes).await
        };
        let problems = reload(&[99]).await.unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].what.contains("there are two tools `tool 50`"), "{problems:?}");
        fs::remove_file(path_of(folder.path(), 50)).unwrap();
        let reloaded = reload(&[50]).await.unwrap();
        assert_eq!(reloaded.loaded.tools.len(), 99);
        assert_eq!(reloaded.loaded.work, crate::LoadWork { parsed: 0, judged: 1 });
        // The first one comes back, and the one that was fine is refused.
        fs::write(path_of(folder.path(), 50), &twin).unwrap();
        let problems = reload(&[50]).await.unwrap_err();
        assert!(problems[0].place.contains("0099.json"), "{problems:?}");
        toolgate.close().unwrap();
    }
}
