use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::json;
use toolgate_policy::PolicySet;
use toolgate_spec::Format;

use super::*;

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir_all(workspace.join("src")).unwrap();
        fs::create_dir_all(workspace.join(".toolgate")).unwrap();
        fs::create_dir_all(folder.path().join("outside")).unwrap();
        fs::write(workspace.join("src/main.rs"), "fn main() {}").unwrap();
        fs::write(workspace.join("src/private.key"), "x").unwrap();
        fs::write(workspace.join(".toolgate/state"), "x").unwrap();
        fs::write(folder.path().join("outside/passwd"), "root").unwrap();
        symlink(folder.path().join("outside/passwd"), workspace.join("leads_out")).unwrap();
        symlink("src/main.rs", workspace.join("leads_in")).unwrap();
        symlink("src/private.key", workspace.join("leads_to_blocked")).unwrap();
        Self { folder }
    }

    fn at(&self, path: &str) -> String {
        fs::canonicalize(self.folder.path()).unwrap().join("workspace").join(path).display().to_string()
    }

    fn survey(&self, manifest: &str, arguments: &Value) -> Result<CallSurvey<CallGrants>, Refusal> {
        self.surveyor(manifest).survey(arguments.as_object().unwrap(), &StopFlag::default())
    }

    fn for_command(&self, manifest: &str, arguments: &Value) -> Result<CallSurvey<CallGrants>, Refusal> {
        let surveyor = self.surveyor(manifest).for_command();
        surveyor.survey(arguments.as_object().unwrap(), &StopFlag::default())
    }

    fn surveyor(&self, manifest: &str) -> Surveyor {
        let checked = toolgate_spec::check(manifest.as_bytes(), Format::Yaml);
        let tool = checked.tools.into_iter().next().unwrap();
        let spec = tool.spec.unwrap_or_else(|| panic!("{:?}", tool.findings));
        let policy = toolgate_policy::resolve(&spec, PolicySet::shipped().as_ref().unwrap(), None).unwrap();
        let workspace = self.folder.path().join("workspace");
        let state = workspace.join(".toolgate");
        let home = self.folder.path().join("home");
        let places = Places { guarded: vec![state.clone()], state, workspace, home };
        let upgrade =
            if policy.network.proxy_on_approval.value { NetworkUpgrade::Ask } else { NetworkUpgrade::Refuse };
        Surveyor::new(&spec, &policy, &places, upgrade)
    }

    #[track_caller]
    fn touches(&self, manifest: &str, arguments: &Value) -> Vec<(EffectKind, String)> {
        let found = self.survey(manifest, arguments).unwrap();
        found.touches.into_iter().map(|touch| (touch.kind, touch.target)).collect()
    }

    #[track_caller]
    fn refuses(&self, manifest: &str, arguments: &Value, reason: Reason) {
        let refusal = self.survey(manifest, arguments).unwrap_err();
        assert_eq!(refusal.reason, reason, "{arguments}: {}", refusal.message);
    }
}

const READ: &str = "
name: show
description: Shows a file. Returns its text.
classification: read
input:
  type: object
  required: [file]
  properties:
    file: {type: string, format: path}
    more: {type: array, items: {type: string, format: path}}
testInput: {file: src/main.rs}
handler: {cli: {command: cat, args: ['--', '{file}', {each: more, args: ['{item}']}]}}
capability:
  execution: {allowedPaths: [$WORKSPACE], blockedPaths: ['$WORKSPACE/**/*.key']}
";

const FETCH: &str = "
name: reach
description: Fetches a page. Returns its text.
classification: read
input:
  type: object
  required: [url]
  properties:
    url: {type: string, format: uri}
    method: {type: string, enum: [GET, POST, put]}
testInput: {url: 'https://docs.example.com/'}
handler: {mcp: {upstream: docs, tool: fetch, pin: 'toolpin1:0000000000000000000000000000000000000000000000000000000000000000'}}
capability:
  approval: {askForMethods: [POST, PUT]}
  network:
    access: limited
    allowedHosts: [docs.example.com]
    blockedHosts: [evil.example.com]
    blockedPorts: [22]
    requireApprovalForUnknownHosts: true
";

#[test]
fn path_is_reported_by_its_real_name_and_held_open() {
    let world = World::new();
    let expect = |path| vec![(EffectKind::Read, world.at(path))];
    assert_eq!(world.touches(READ, &json!({ "file": "src/main.rs" })), expect("src/main.rs"));
    assert_eq!(world.touches(READ, &json!({ "file": "src/../leads_in" })), expect("src/main.rs"));
    assert_eq!(world.touches(READ, &json!({ "file": "not/there" })), expect("not/there"));
    let found = world.for_command(READ, &json!({ "file": "leads_in" })).unwrap();
    let granted = &found.granted;
    assert_eq!(granted.paths[0].asked, "leads_in");
    assert_eq!(granted.paths[0].held.as_ref().unwrap().path, world.at("src/main.rs"));
}

fn making(allowed: &str) -> String {
    READ.replace("classification: read", "classification: write").replace("[$WORKSPACE]", allowed)
}

/// A command that creates a file can write to the whole directory, which an approver must know.
#[test]
fn writable_directory_of_a_command_is_reported() {
    let (world, tool) = (World::new(), making("[$WORKSPACE]"));
    let touched = |found: CallSurvey<CallGrants>| -> Vec<String> {
        found.touches.into_iter().map(|touch| format!("{} {}", touch.kind.name(), touch.target)).collect()
    };
    let for_command = |path: &str| world.for_command(&tool, &json!({ "file": path })).unwrap();
    let (new, folder) = (world.at("src/new.txt"), world.at("src"));
    let found = for_command("src/new.txt");
    assert_eq!(found.widened, [format!("to create `{new}` it may write to all of `{folder}`")]);
    assert_eq!(touched(found), [format!("write {new}"), format!("write {folder}")]);
    let found = for_command("src/main.rs");
    assert!(found.widened.is_empty());
    assert_eq!(touched(found), [format!("write {}", world.at("src/main.rs"))]);
    // JavaScript creates only the file.
    let found = world.survey(&tool, &json!({ "file": "src/new.txt" })).unwrap();
    assert_eq!((found.widened.len(), touched(found)), (0, vec![format!("write {new}")]));
}

/// The path is allowed, but the directory that would be opened for it is not.
#[test]
fn denial_of_a_new_file_names_its_directory() {
    let world = World::new();
    for (allowed, path, words) in [
        ("[$WORKSPACE/out]", "out/new.txt", "`out/new.txt` cannot be created: its folder is missing"),
        (
            "[$WORKSPACE/out]",
            "out/deep/new.txt",
            "`out/deep/new.txt` cannot be created: its folder is missing",
        ),
        ("['$WORKSPACE/src/*.txt']", "src/new.txt", "its folder must be among the paths allowed"),
        ("[$WORKSPACE/new.txt]", "new.txt", "its folder must be among the paths allowed"),
        ("[$WORKSPACE/out]", "src/new.txt", "`src/new.txt` is not among the paths allowed to this tool"),
        ("[$WORKSPACE/out]", "src/main.rs", "`src/main.rs` is not among the paths allowed to this tool"),
    ] {
        let refusal = world.survey(&making(allowed), &json!({ "file": path })).unwrap_err();
        assert_eq!(refusal.reason, Reason::PathOutsideRoots, "{path}");
        assert!(refusal.message.contains(words), "{path} of {allowed}: {}", refusal.message);
    }
}

#[test]
fn target_of_a_symlink_is_checked_and_not_its_name() {
    let world = World::new();
    for path in ["leads_out", "../outside/passwd", "/etc/passwd", "src/../../outside/passwd"] {
        world.refuses(READ, &json!({ "file": path }), Reason::PathOutsideRoots);
    }
    for path in ["src/private.key", "leads_to_blocked", ".toolgate/state", "./src//private.key", ".toolgate"]
    {
        world.refuses(READ, &json!({ "file": path }), Reason::PathBlocked);
    }
    for path in ["a\0b", &"x".repeat(5_000)] {
        world.refuses(READ, &json!({ "file": path }), Reason::ArgumentRefused);
    }
    let more = json!({ "file": "src/main.rs", "more": ["src/main.rs", "/etc/passwd"] });
    world.refuses(READ, &more, Reason::PathOutsideRoots);
}

const RULED: &str = "
name: show
description: Shows a file. Returns its text.
classification: read
input:
  type: object
  required: [file]
  properties:
    file: {$ref: '#/$defs/name'}
    more: {type: array, items: {$ref: '#/$defs/name'}}
  $defs:
    name:
      type: string
      format: path
      pattern: '^([a-z_]+/)*[a-z_]+[.](rs|md)$'
      examples: [src/main.rs]
      x-misses: [.npmrc, id_rsa]
testInput: {file: src/main.rs}
handler: {cli: {command: cat, args: ['--', '{file}', {each: more, args: ['{item}']}]}}
capability:
  execution: {allowedPaths: [$WORKSPACE]}
";

#[test]
fn pattern_of_a_path_applies_to_its_target() {
    let world = World::new();
    fs::create_dir_all(world.at("docs")).unwrap();
    fs::write(world.at(".npmrc"), "x").unwrap();
    symlink("../.npmrc", world.at("docs/notes.md")).unwrap();
    symlink("../src/private.key", world.at("docs/key.md")).unwrap();
    symlink("../src/main.rs", world.at("docs/main.md")).unwrap();
    symlink("src", world.at("sources")).unwrap();
    for path in ["docs/notes.md", "docs/key.md"] {
        world.refuses(RULED, &json!({ "file": path }), Reason::ArgumentRefused);
        let more = json!({ "file": "src/main.rs", "more": [path] });
        world.refuses(RULED, &more, Reason::ArgumentRefused);
        // Without a pattern there is nothing to check.
        assert_eq!(world.touches(&READ.replace("**/*.key", "x"), &json!({ "file": path })).len(), 1);
    }
    for path in ["src/main.rs", "docs/main.md", "sources/main.rs", "src/new.rs", "sources/new.rs"] {
        assert_eq!(world.touches(RULED, &json!({ "file": path })).len(), 1, "{path}");
    }
}

/// Files in there name programs that git runs.
#[test]
fn shipped_tools_do_not_write_to_the_git_directory() {
    let world = World::new();
    for folder in ["agent", "files"] {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/tools").join(folder);
        for file in fs::read_dir(tools).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let spec = toolgate_spec::check(text.as_bytes(), Format::Json).tools.remove(0).spec.unwrap();
            let policy =
                toolgate_policy::resolve(&spec, PolicySet::shipped().as_ref().unwrap(), None).unwrap();
            if !policy.files.write.value {
                continue;
            }
            let workspace = world.folder.path().join("workspace");
            let (state, home) = (workspace.join(".toolgate"), world.folder.path().join("home"));
            let places = Places { guarded: Vec::new(), state, workspace, home };
            let files = Files::open(&Arc::new(grants::files(&policy, &places).unwrap()), || false).unwrap();
            for path in
                [".git/config", ".git/hooks/pre-commit", "part/.git/config", ".git", ".git/modules/a/config"]
            {
                let refused = files.locate(path, FileAccess::Write).unwrap_err();
                assert_eq!(refused.reason, "path-blocked", "{} {path}", spec.name);
            }
            assert!(files.locate(".gitignore", FileAccess::Write).is_ok(), "{}", spec.name);
        }
    }
}

#[test]
fn hard_link_to_a_blocked_file_is_blocked() {
    let world = World::new();
    for (number, path) in ["src/private.key", ".toolgate/state"].into_iter().enumerate() {
        let name = format!("pub{number}.txt");
        fs::hard_link(world.at(path), world.at(&name)).unwrap();
        world.refuses(READ, &json!({ "file": name }), Reason::PathBlocked);
    }
    fs::hard_link(world.at("src/main.rs"), world.at("same.rs")).unwrap();
    assert_eq!(world.touches(READ, &json!({ "file": "same.rs" })).len(), 1);
}

#[test]
fn path_to_write_may_not_exist_yet() {
    let world = World::new();
    let write = READ
        .replace("classification: read", "classification: write")
        .replace("execution: {", "execution: {sandbox: process, ")
        + "\nsandboxOverrides: {fileRead: true, fileWrite: true}\n";
    let found = world.for_command(&write, &json!({ "file": "src/new/deep.txt" })).unwrap();
    assert_eq!(found.touches[0], Touch { kind: EffectKind::Write, target: world.at("src/new/deep.txt") });
    let granted = &found.granted;
    assert_eq!(granted.paths[0].held.as_ref().unwrap().path, world.at("src"));
    let top = world.survey(&write, &json!({ "file": "top.txt" })).unwrap();
    assert_eq!(top.touches[0].target, world.at("top.txt"));
    world.refuses(&write, &json!({ "file": "leads_out" }), Reason::PathOutsideRoots);
    world.refuses(&write, &json!({ "file": "src/new.key" }), Reason::PathBlocked);
}

#[test]
fn tool_without_network_may_ask_for_it() {
    let world = World::new();
    let upgradeable = FETCH
        .replace("access: limited", "access: none\n    accessUpgradeable: proxy")
        .replace("    allowedHosts: [docs.example.com]\n", "")
        .replace("    requireApprovalForUnknownHosts: true\n", "")
        .replace("    method: {type: string, enum: [GET, POST, put]}\n", "")
        .replace(
            "{mcp: {upstream: docs, tool: fetch, pin: 'toolpin1:0000000000000000000000000000000000000000000000000000000000000000'}}",
            "{cli: {command: cat, stdin: '{url}'}}",
        );
    let found = world.survey(&upgradeable, &json!({ "url": "https://api.example.com/x" })).unwrap();
    assert_eq!(found.questions[0].source.name(), "network");
    assert_eq!(found.touches[0].target, "api.example.com:443");
    let granted = &found.granted;
    let rules = granted.rules.as_ref().unwrap();
    assert_eq!(
        (rules.mode, &rules.hosts),
        (EgressMode::Allowlist, &vec![HostRule::exact("api.example.com".into())])
    );
    for url in [
        "https://evil.example.com/",
        "https://api.example.com:22/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://localhost/",
        "https://LocalHost.:8443/",
        "http://x.localhost/",
        "http://169.254.169.254/latest",
        "http://metadata.google.internal/",
    ] {
        world.refuses(&upgradeable, &json!({ "url": url }), Reason::HostNotAllowed);
    }
    // Without the setting, a URL is ordinary text.
    let plain = upgradeable.replace("\n    accessUpgradeable: proxy", "");
    let found = world.survey(&plain, &json!({ "url": "https://api.example.com/x" })).unwrap();
    assert!(found.questions.is_empty() && found.touches.is_empty());
}

/// Programs that fetch read some texts as files; these must not pass as hosts.
#[test]
fn file_is_not_accepted_as_a_host() {
    let world = World::new();
    let files = [
        "file:/etc/passwd",
        "FILE:/etc/passwd",
        "file:",
        "file:\\etc",
        "http:/docs.example.com/",
        "/etc",
        "//etc",
    ];
    let open = FETCH
        .replace("access: limited", "access: full")
        .replace("    allowedHosts: [docs.example.com]\n", "")
        .replace("    requireApprovalForUnknownHosts: true\n", "");
    let hostname = open.replace("format: uri", "format: hostname");
    let declared = open.replace("format: uri", "description: x") + "touches: {connect: [.url]}\n";
    for manifest in [FETCH, open.as_str(), hostname.as_str(), declared.as_str()] {
        for file in files {
            world.refuses(manifest, &json!({ "url": file }), Reason::ArgumentRefused);
        }
    }
    for manifest in [FETCH, open.as_str()] {
        for url in [
            "docs/example",
            "docs.example.com",
            "docs.example.com:443/a",
            "file:///etc/passwd",
            "gopher://docs.example.com/_x",
            "dict://docs.example.com/d:x",
            "smb://docs.example.com/x",
            "data:,x",
            "{file:/etc/passwd,x}",
            "@docs.example.com",
            "-K/etc/passwd",
            "https://docs.example.com /x",
        ] {
            world.refuses(manifest, &json!({ "url": url }), Reason::ArgumentRefused);
        }
    }
    for manifest in [&hostname, &declared] {
        let bare = world.survey(manifest, &json!({ "url": "docs.example.com:443" })).unwrap();
        assert_eq!(bare.touches[0].target, "docs.example.com:443");
    }
}

#[test]
fn unknown_host_is_asked_about_and_blocked_host_is_denied() {
    let world = World::new();
    let known = world.survey(FETCH, &json!({ "url": "https://docs.example.com/a" })).unwrap();
    assert_eq!(known.touches, [Touch { kind: EffectKind::Fetch, target: "docs.example.com:443".into() }]);
    assert!(known.questions.is_empty());
    let unknown = world.survey(FETCH, &json!({ "url": "http://other.example.org/a" })).unwrap();
    assert_eq!(unknown.questions[0].source.name(), "unknown_host");
    assert!(unknown.questions[0].why.contains("other.example.org"));
    let granted = &unknown.granted;
    assert!(granted.rules.as_ref().unwrap().hosts.contains(&HostRule::exact("other.example.org".into())));
    for url in [
        "https://evil.example.com/",
        "https://docs.example.com:22/",
        "http://169.254.169.254/latest",
        "http://metadata.google.internal/",
        "http://10.0.0.8/",
        "http://[::1]/",
        "http://0x7f.1/",
        "ftp://docs.example.com/",
        "https://user:pw@docs.example.com/",
    ] {
        let refusal = world.survey(FETCH, &json!({ "url": url })).unwrap_err();
        assert!(matches!(refusal.reason, Reason::HostNotAllowed | Reason::ArgumentRefused), "{url}");
    }
}

/// An approval would open all loopback ports of this machine.
#[test]
fn loopback_names_are_never_asked_about() {
    let world = World::new();
    for host in
        ["localhost", "LOCALHOST", "localhost.", "x.localhost", "a.b.LocalHost.", "loc%61lhost", "ｌocalhost"]
    {
        world.refuses(FETCH, &json!({ "url": format!("http://{host}:8080/a") }), Reason::HostNotAllowed);
    }
    let named = FETCH.replace("[docs.example.com]", "[docs.example.com, localhost]");
    let found = world.survey(&named, &json!({ "url": "http://localhost:8080/a" })).unwrap();
    assert!(found.questions.is_empty());
    let alike = world.survey(FETCH, &json!({ "url": "http://notlocalhost/" })).unwrap();
    assert_eq!(alike.questions[0].source.name(), "unknown_host");
}

#[test]
fn method_that_changes_something_is_asked_about() {
    let world = World::new();
    let url = "https://docs.example.com/";
    let asks = |method: &str| {
        let found = world.survey(FETCH, &json!({ "url": url, "method": method })).unwrap();
        found.questions.first().map(|question| question.source)
    };
    assert_eq!(asks("GET"), None);
    assert_eq!(asks("POST"), Some(DecisionSource::Method));
    assert_eq!(asks("put"), Some(DecisionSource::Method));
}

#[test]
fn declared_field_needs_no_schema() {
    let world = World::new();
    let declared = "
name: show
description: Shows a file. Returns its text.
classification: read
params: [{name: file, type: STRING, required: true, testValue: src/main.rs}]
touches: {read: [.file]}
handler: {cli: {command: cat, args: ['--', '{file}']}}
capability: {extends: read}
";
    assert_eq!(world.touches(declared, &json!({ "file": "leads_in" })).len(), 1);
    world.refuses(declared, &json!({ "file": "/etc/passwd" }), Reason::PathOutsideRoots);
    let without = declared.replace("touches: {read: [.file]}", "");
    assert!(world.touches(&without, &json!({ "file": "/etc/passwd" })).is_empty());
}

/// The search for other names of a hard link may walk a large tree.
#[test]
fn check_stops_when_the_caller_stops_waiting() {
    let world = World::new();
    fs::hard_link(world.at("src/main.rs"), world.at("src/twin.rs")).unwrap();
    let surveyor = world.surveyor(READ);
    let arguments = json!({ "file": "src/twin.rs" });
    let look = |stop: &StopFlag| surveyor.survey(arguments.as_object().unwrap(), stop);
    let stop = StopFlag::default();
    let waiting = stop.stop_on_drop();
    assert!(look(&stop).is_ok());
    drop(waiting);
    let refusal = look(&stop).unwrap_err();
    assert!(refusal.message.contains("the call is over"), "{}", refusal.message);
}

/// Other tools need no blocking thread.
#[test]
fn only_path_arguments_with_file_grants_wait_for_a_disk() {
    let world = World::new();
    assert!(world.surveyor(READ).waits_for_disk());
    assert!(!world.surveyor(FETCH).waits_for_disk());
}

/// None of them exists or is allowed, so opening the first one would cause another error.
#[test]
fn paths_are_counted_before_they_are_opened() {
    let world = World::new();
    let naming = |count: usize| {
        let more: Vec<String> = (1..count).map(|number| format!("/outside/{number}")).collect();
        json!({ "file": "src/main.rs", "more": more })
    };
    for (most, refused) in
        [(100, world.for_command(READ, &naming(101))), (1_000, world.survey(READ, &naming(1_001)))]
    {
        let refusal = refused.unwrap_err();
        assert_eq!(refusal.reason, Reason::ArgumentRefused);
        assert_eq!(refusal.message, format!("the arguments name more than {most} paths"));
    }
    let refusal = world.for_command(READ, &naming(100)).unwrap_err();
    assert_eq!(refusal.reason, Reason::PathOutsideRoots, "{}", refusal.message);
    // A repeated path counts once.
    let same = json!({ "file": "src/main.rs", "more": vec!["src/main.rs"; 500] });
    assert_eq!(world.for_command(READ, &same).unwrap().touches.len(), 1);
}

#[test]
fn many_names_are_compared_in_linear_time() {
    let world = World::new();
    let more: Vec<String> = (0..100_000).map(|number| format!("src/{number}")).collect();
    let begun = std::time::Instant::now();
    world.refuses(READ, &json!({ "file": "src/main.rs", "more": more }), Reason::ArgumentRefused);
    // Guards against a quadratic comparison, which takes minutes; it is not a benchmark.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// A person may think for minutes, and many calls may wait for approval.
#[test]
fn no_file_stays_open_for_javascript() {
    let world = World::new();
    let found = world.survey(READ, &json!({ "file": "leads_in" })).unwrap();
    let granted = &found.granted;
    assert!(granted.paths[0].held.is_none());
    assert_eq!(granted.judged_paths()[0].real, world.at("src/main.rs"));
}
