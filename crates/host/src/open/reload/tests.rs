use std::{fs, path::Path};

use super::*;
use crate::{
    Extras,
    load::{LoadCache, LoadedTool},
};

/// Records which tools are active when callers are swapped.
struct ObservingFollower<'t> {
    toolgate: &'t Toolgate,
    found: Option<usize>,
}

impl ConfigFollower for ObservingFollower<'_> {
    fn watch(&mut self, _: &Config) -> WatchStart {
        WatchStart::Already
    }

    fn prepare(&mut self, _: &Config) -> Result<(), LoadProblem> {
        assert_eq!(self.toolgate.loaded().tools.len(), 0, "nothing has changed yet");
        Ok(())
    }

    fn activate(&mut self) {
        self.found = Some(self.toolgate.loaded().tools.len());
    }
}

fn config(folder: &Path) -> Config {
    let file = folder.join("toolgate.yaml");
    fs::write(&file, "version: 1\ncatalog: {preset: none}\n").unwrap();
    fs::create_dir(folder.join("tools")).unwrap();
    Config::load(&file, &|_| None, &Overrides::default()).unwrap()
}

/// An edit may allow more callers and tighten policies. New callers must never meet the old policies.
#[tokio::test]
async fn tools_and_policies_apply_before_callers() {
    let folder = tempfile::tempdir().unwrap();
    let toolgate = Toolgate::open(config(folder.path()), Extras::default()).await.unwrap();
    let document = serde_json::json!({
        "name": "say", "description": "Says nothing, for tests.", "codeType": "Javascript", "code": "return 1",
        "params": [],
    });
    fs::write(folder.path().join("tools/say.json"), document.to_string()).unwrap();
    let mut observer = ObservingFollower { toolgate: &toolgate, found: None };
    let reloaded = toolgate.reload_with(&Overrides::default(), &mut observer).await.unwrap();
    assert_eq!(observer.found, Some(1));
    assert!(reloaded.unrecorded.is_none());
    toolgate.close().unwrap();
}

/// The author of an edit may see a secret in an error message, but the journal is kept for years.
#[tokio::test]
async fn secret_in_a_rejected_edit_is_redacted_in_the_journal() {
    let token = format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
    let folder = tempfile::tempdir().unwrap();
    let toolgate = Toolgate::open(config(folder.path()), Extras::default()).await.unwrap();
    let document = serde_json::json!({
        "name": "say", "description": "Says nothing, for tests.", "codeType": "Javascript", "code": "return 1",
        "params": [], "staticVariables": token,
    });
    let mut observer = ObservingFollower { toolgate: &toolgate, found: None };
    let config = format!("version: 1\naudit: {{webhook: {{url: \"hooks.example/{token}\"}}}}\n");
    for (file, text) in [("tools/say.json", document.to_string()), ("toolgate.yaml", config)] {
        fs::write(folder.path().join(file), text).unwrap();
        let problems = toolgate.reload_with(&Overrides::default(), &mut observer).await.unwrap_err();
        assert!(problems.iter().any(|problem| problem.what.contains(&token)), "{problems:?}");
    }
    toolgate.close().unwrap();
    let journal = folder.path().join(".toolgate/journal");
    let records = toolgate_audit::read(&journal, toolgate_audit::TimeRange::default()).unwrap();
    let entries: Vec<_> = records.map(|record| record.unwrap().entry).collect();
    let rejected: Vec<String> = entries
        .iter()
        .filter(|entry| entry["kind"] == "tools.rejected")
        .map(|entry| entry["problems"][0].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(rejected.len(), 2);
    for (text, place) in rejected.iter().zip(["say.json", "toolgate.yaml"]) {
        assert!(text.contains(place) && text.contains("[REDACTED]") && !text.contains(&token), "{text}");
    }
}

#[tokio::test]
async fn failed_record_of_a_reload_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let toolgate = Toolgate::open(config(folder.path()), Extras::default()).await.unwrap();
    // A closed journal cannot be written.
    toolgate.close().unwrap();
    let mut observer = ObservingFollower { toolgate: &toolgate, found: None };
    let reloaded = toolgate.reload_with(&Overrides::default(), &mut observer).await.unwrap();
    assert_eq!(reloaded.unrecorded.unwrap().part, "journal");
    assert_eq!(observer.found, Some(0), "the reload is active");
    fs::write(folder.path().join("toolgate.yaml"), "version: 1\ntolls: []\n").unwrap();
    let problems = toolgate.reload_with(&Overrides::default(), &mut observer).await.unwrap_err();
    let places: Vec<&str> = problems.iter().map(|problem| problem.place.as_str()).collect();
    let file = folder.path().join("toolgate.yaml").display().to_string();
    assert_eq!(places, [file.as_str(), "journal"]);
}

/// A gateway with this many tools.
async fn workspace(count: usize) -> (tempfile::TempDir, Toolgate) {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    for number in 0..count {
        write_tool(folder.path(), number, "return 1");
    }
    let toolgate = Toolgate::open(config, Extras::default()).await.unwrap();
    let work = toolgate.loaded().work;
    assert_eq!((work.parsed, work.assessed), (count, count));
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

fn tool_at(toolgate: &Toolgate, number: usize) -> Arc<LoadedTool> {
    Arc::clone(toolgate.loaded().tools.iter().nth(number).unwrap())
}

struct NoFollower;

impl ConfigFollower for NoFollower {
    fn watch(&mut self, _: &Config) -> WatchStart {
        WatchStart::Already
    }

    fn prepare(&mut self, _: &Config) -> Result<(), LoadProblem> {
        Ok(())
    }

    fn activate(&mut self) {}
}

/// Parsed documents and assessed tools of a reload after these changes.
async fn work(toolgate: &Toolgate, changes: FileChanges) -> (usize, usize) {
    let reloaded = toolgate.reload_changed(&Overrides::default(), &mut NoFollower, changes).await.unwrap();
    (reloaded.loaded.work.parsed, reloaded.loaded.work.assessed)
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
        assert_eq!(toolgate.loaded().work.visited, 1, "of {count}");
        let after = toolgate.loaded();
        for (at, (one, other)) in before.tools.iter().zip(&after.tools).enumerate() {
            assert_eq!(Arc::ptr_eq(one, other), at != 3, "only the edited tool is new");
        }
        assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 0));
        assert_eq!(work(&toolgate, FileChanges::Everything).await, (0, 0), "no bytes differ");
        toolgate.close().unwrap();
    }
}

#[tokio::test]
async fn changed_pass_reloads_one_tool() {
    let (_folder, toolgate) = workspace(100).await;
    let candidate = tool_at(&toolgate, 7).candidate.clone().unwrap();
    assert!(toolgate.changed_passes().unwrap().is_empty());
    let id = candidate.tool.spec().id.as_str().to_owned();
    toolgate.publisher().unpublish(&id, &candidate.tool.spec().name, std::time::SystemTime::now()).unwrap();
    assert_eq!(toolgate.changed_passes().unwrap(), [id]);
    assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 1));
    assert_eq!(toolgate.loaded().work.visited, 1);
    assert!(tool_at(&toolgate, 7).candidate.as_ref().unwrap().is_withdrawn);
    assert!(toolgate.changed_passes().unwrap().is_empty());
    // A tool is also withdrawn by name, so a new id does not publish it again.
    toolgate.publisher().unpublish("another id", "tool 9", std::time::SystemTime::now()).unwrap();
    assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 1));
    assert!(tool_at(&toolgate, 9).candidate.as_ref().unwrap().is_withdrawn);
    toolgate.close().unwrap();
}

/// Changed rules require a new assessment, although the documents did not change.
#[tokio::test]
async fn changed_rules_assess_every_tool_again() {
    let (folder, toolgate) = workspace(80).await;
    let overrides = folder.path().join("overrides.yaml");
    fs::write(&overrides, "tools: {}\n").unwrap();
    let file = folder.path().join("toolgate.yaml");
    let with =
        |more: &str| fs::write(&file, format!("version: 1\ncatalog: {{preset: none}}\n{more}")).unwrap();
    with("limits: {depth: 7}\n");
    assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 0), "limits do not affect tools");
    with("policy: {overrides: overrides.yaml}\n");
    assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 80), "one more file is blocked for tools");
    let tool = || tool_at(&toolgate, 5).candidate.as_ref().unwrap().tool.clone();
    let before = tool();
    fs::write(&overrides, "tools: {tool 5: {capability: {approval: {level: ask}}}}\n").unwrap();
    assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 80));
    assert!(!before.is_same_as(&tool()), "the override applies");
    with("exposure: {excluded: [tool 6]}\npolicy: {overrides: overrides.yaml}\n");
    assert_eq!(work(&toolgate, FileChanges::default()).await, (0, 0));
    assert!(!tool_at(&toolgate, 6).is_exposed);
    toolgate.forget_assessments();
    assert_eq!(work(&toolgate, FileChanges::Everything).await, (0, 80));
    toolgate.close().unwrap();
}

/// The real target of each guarded path is blocked for tools.
#[tokio::test]
async fn changed_symlink_of_a_guarded_path_assesses_every_tool_again() {
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

/// Of two tools with one name, the first is used. If it is removed, the second is used.
#[tokio::test]
async fn duplicates_are_found_without_assessing_other_tools() {
    let (folder, toolgate) = workspace(100).await;
    let twin = fs::read_to_string(path_of(folder.path(), 50)).unwrap();
    fs::write(path_of(folder.path(), 99), &twin).unwrap();
    let reload = async |numbers: &[usize]| {
        let changes = files(folder.path(), numbers.iter().copied());
        toolgate.reload_changed(&Overrides::default(), &mut NoFollower, changes).await
    };
    let problems = reload(&[99]).await.unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].what.contains("there are two tools `tool 50`"), "{problems:?}");
    fs::remove_file(path_of(folder.path(), 50)).unwrap();
    let reloaded = reload(&[50]).await.unwrap();
    assert_eq!(reloaded.loaded.tools.len(), 99);
    assert_eq!(reloaded.loaded.work, crate::LoadWork { parsed: 0, visited: 99, assessed: 1 });
    // The first one is restored, so the second one is refused again.
    fs::write(path_of(folder.path(), 50), &twin).unwrap();
    let problems = reload(&[50]).await.unwrap_err();
    assert!(problems[0].place.contains("0099.json"), "{problems:?}");
    toolgate.close().unwrap();
}

/// Everything that a load determines.
fn summary(loaded: &Loaded) -> (Vec<String>, Vec<String>, Vec<LoadProblem>) {
    let describe = |tool: &Arc<LoadedTool>| {
        let state = tool.candidate.as_ref().map(|candidate| {
            (candidate.lifecycle.state, candidate.is_withdrawn, candidate.tool.digest().to_owned())
        });
        format!("{} {:?} {} {state:?}", tool.name, tool.origin, tool.is_exposed)
    };
    let live = loaded.live.all().map(|tool| format!("{} {}", tool.name(), tool.digest())).collect();
    (loaded.tools.iter().map(describe).collect(), live, loaded.problems.clone())
}

/// Applies one kind of edit: a collision, an error, a removal, two tools in a file, a changed pass, or a plain edit.
fn apply_edit(toolgate: &Toolgate, path: &Path, (step, file): (usize, usize), edit: u64) {
    let document = |name: &str| {
        serde_json::json!({
            "name": name, "description": "Says nothing, for tests.", "codeType": "Javascript",
            "code": format!("return {step}"), "params": [],
        })
    };
    let own = document(&format!("tool {file}"));
    match edit {
        0 => fs::write(path, document("tool 3").to_string()).unwrap(),
        1 => fs::write(path, document("tooI 4").to_string()).unwrap(),
        2 | 3 => {
            let mut document = own;
            document["toolId"] = "11111111-2222-4333-8444-555555555555".into();
            fs::write(path, document.to_string()).unwrap();
        }
        4 => fs::write(path, "{").unwrap(),
        5 => drop(fs::remove_file(path)),
        6 => {
            fs::write(path, serde_json::json!([own, document(&format!("more {file}"))]).to_string()).unwrap();
        }
        7 => {
            for tool in &toolgate.loaded().tools {
                let Ok(candidate) = &tool.candidate else { continue };
                let now = std::time::SystemTime::now();
                toolgate.publisher().accept_release_pass(candidate, now, &|| Ok(())).unwrap();
            }
        }
        8 => {
            let (id, name) = (toolgate_spec::model::ToolId::of_name("tool 5"), "tool 5");
            toolgate.publisher().unpublish(id.as_str(), name, std::time::SystemTime::now()).unwrap();
        }
        _ => fs::write(path, own.to_string()).unwrap(),
    }
}

/// A long chain of patched loads gives the same result as one full load, also with errors and collisions.
#[tokio::test]
async fn patched_load_equals_a_full_load() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let toolgate = Toolgate::open(config.clone(), Extras::default()).await.unwrap();
    let rules = toolgate.rules(toolgate.publisher(), &config);
    let mut random = 7_u64;
    let mut below = |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let (mut patched, mut rejected) = (0, 0);
    let mut to_fix = None;
    for step in 0..300 {
        // Errors are rare and are fixed soon, because a load with an error is not patched.
        let fixed = to_fix.take();
        let file = fixed.unwrap_or_else(|| usize::try_from(below(12)).unwrap());
        let edit = if fixed.is_some() { 9 } else { below(16) };
        to_fix = (edit < 5).then_some(file);
        apply_edit(&toolgate, &path_of(folder.path(), file), (step, file), edit);
        let loaded = toolgate.load_by(&config, &rules, &files(folder.path(), [file]));
        let passes = toolgate.state.passes_changed_after(0).unwrap();
        let full = LoadCache::default().load(
            &config,
            &rules,
            &toolgate.in_code,
            &FileChanges::Everything,
            Some(&passes),
        );
        assert_eq!(summary(&loaded), summary(&full), "step {step}");
        patched += usize::from(loaded.work.visited < full.work.visited);
        rejected += usize::from(!loaded.problems.is_empty());
        if loaded.problems.is_empty() {
            toolgate.activate(loaded, &config).unwrap();
        }
    }
    assert!(patched > 50 && rejected > 20, "{patched} {rejected}");
    toolgate.close().unwrap();
}
