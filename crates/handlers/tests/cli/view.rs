//! Tests which files a command sees.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use toolgate_gate::{Reason, StopFlag};
use toolgate_handlers::{CliTool, CommandOrder, Denial};
use toolgate_sandbox::{Access, Attempt, Source};

use crate::world::{World, call, nest_too_deep, resolve, said};

fn manifest(input: &str, args: &str, cli: &str, execution: &str, classification: &str) -> String {
    format!(
        "
name: tried
description: Is tried. Returns text.
classification: {classification}
input: {{type: object, properties: {{{input}}}}}
testInput: {{}}
handler: {{cli: {{command: cat, args: [{args}]{cli}}}}}
capability: {{execution: {{sandbox: process, allowedPaths: [$WORKSPACE]{execution}}}}}
"
    )
}

const PATH: &str = "path: {type: string, format: path}";
const PATH_ARG: &str = "{when: path, args: ['{path}']}";

fn binds(world: &World, order: &CommandOrder) -> BTreeMap<String, Access> {
    let root = world.root();
    let shown = |path: &Path| path.strip_prefix(&root).unwrap_or(path).display().to_string();
    order.view.binds.iter().map(|bind| (shown(&bind.at), bind.access)).collect()
}

fn held_metadata(source: &Source) -> fs::Metadata {
    let Source::Opened(held) = source else { panic!("not held: {source:?}") };
    fs::File::from(held.try_clone().unwrap()).metadata().unwrap()
}

#[track_caller]
fn check(manifest: &str, arguments: &Value, expect: &[(&str, Access)]) -> (World, CommandOrder) {
    let world = World::new();
    let order = world.order(manifest, arguments);
    let expect: BTreeMap<String, Access> =
        expect.iter().map(|(path, access)| ((*path).to_owned(), *access)).collect();
    assert_eq!(binds(&world, &order), expect);
    // The bind is the file that was checked, not what has its name now.
    for bind in &order.view.binds {
        let (held, there) = (held_metadata(&bind.source), fs::metadata(&bind.at).unwrap());
        assert_eq!((held.dev(), held.ino()), (there.dev(), there.ino()));
    }
    (world, order)
}

#[test]
fn path_arguments_are_the_only_visible_paths() {
    let tool = manifest(PATH, PATH_ARG, "", "", "read");
    let (_, order) =
        check(&tool, &json!({ "path": "src/main.rs" }), &[("workspace/src/main.rs", Access::Read)]);
    assert_eq!(order.cwd, Path::new("/tmp"));
    check(&tool, &json!({ "path": "src" }), &[("workspace/src", Access::Read)]);
    check(&tool, &json!({ "path": "absent" }), &[]);
    check(&tool, &json!({}), &[]);
}

#[test]
fn working_directory_is_visible() {
    let tool = manifest(PATH, PATH_ARG, ", cwd: $WORKSPACE/src", "", "read");
    let (world, order) = check(
        &tool,
        &json!({ "path": "docs/readme.md" }),
        &[("workspace/docs/readme.md", Access::Read), ("workspace/src", Access::Read)],
    );
    assert_eq!(order.cwd, Path::new(&world.at("src")));
}

#[test]
fn without_path_arguments_and_cwd_everything_allowed_is_visible() {
    check(&manifest("", "", "", "", "read"), &json!({}), &[("workspace", Access::Read)]);
}

#[test]
fn only_the_workspace_is_writable_and_only_if_declared() {
    let tool = manifest(PATH, PATH_ARG, "", "", "write");
    check(&tool, &json!({ "path": "src/main.rs" }), &[("workspace/src/main.rs", Access::Write)]);
    // A file to be created needs its directory.
    check(&tool, &json!({ "path": "src/new.rs" }), &[("workspace/src", Access::Write)]);
    check(&manifest("", "", "", "", "write"), &json!({}), &[("workspace", Access::Write)]);
    let world = World::new();
    let outside = world.root().join("outside").display().to_string();
    let tool = manifest("", "", "", "", "write").replace("[$WORKSPACE]", &format!("[$WORKSPACE, {outside}]"));
    let order = world.order(&tool, &json!({}));
    let expect = [("outside".to_owned(), Access::Read), ("workspace".to_owned(), Access::Write)];
    assert_eq!(binds(&world, &order), expect.into_iter().collect());
}

#[test]
fn blocked_paths_are_hidden_by_name_and_by_pattern() {
    let tool =
        manifest("", "", "", ", blockedPaths: ['$WORKSPACE/**/.env*', $WORKSPACE/docs/private]", "read");
    let world = World::new();
    world.write("workspace/a/b/.env.local", "x");
    world.write("workspace/a/.environment/deep/file", "x");
    world.write("workspace/a/env", "x");
    let order = world.order(&tool, &json!({}));
    let hidden: Vec<String> = order.view.hidden.iter().map(|path| path.display().to_string()).collect();
    for path in ["src/.env", "a/b/.env.local", "a/.environment", "docs/private", ".toolgate"] {
        assert!(hidden.contains(&world.at(path)), "{path}: {hidden:?}");
    }
    assert!(!hidden.iter().any(|path| path.ends_with("/env") || path.ends_with("deep")), "{hidden:?}");
}

#[test]
fn block_follows_symlinks() {
    let world = World::new();
    std::os::unix::fs::symlink(world.at("src"), world.root().join("alias")).unwrap();
    let alias = world.root().join("alias").display().to_string();
    let tool = manifest("", "", "", &format!(", blockedPaths: ['{alias}/.e*', '{alias}/main.rs']"), "read");
    let order = world.order(&tool, &json!({}));
    for path in ["src/.env", "src/main.rs"] {
        assert!(order.view.hidden.contains(&world.at(path).into()), "{:?}", order.view.hidden);
    }
}

#[test]
fn hard_link_to_a_blocked_file_elsewhere_is_hidden() {
    let world = World::new();
    world.write("outside/key", "x");
    world.write("outside/single", "x");
    let key = world.root().join("outside/key");
    fs::hard_link(&key, world.at("src/innocent")).unwrap();
    let single = world.root().join("outside/single");
    let blocked = format!(", blockedPaths: ['{}', '{}']", key.display(), single.display());
    for (tool, arguments) in [
        (manifest("", "", "", &blocked, "read"), json!({})),
        (manifest(PATH, PATH_ARG, "", &blocked, "read"), json!({ "path": "src/main.rs" })),
    ] {
        let order = world.order(&tool, &arguments);
        assert!(order.view.hidden.contains(&key), "{:?}", order.view.hidden);
        assert!(!order.view.hidden.contains(&single), "{:?}", order.view.hidden);
    }
    let refusal =
        world.line(&manifest(PATH, PATH_ARG, "", &blocked, "read"), &json!({ "path": "src/innocent" }));
    assert_eq!(refusal.unwrap_err().reason, Reason::PathBlocked);
}

/// System directories are blocked for tools that write, but are part of every view. A hard-linked file in the
/// workspace must not hide all programs.
#[test]
fn system_directories_stay_visible() {
    let world = World::new();
    fs::hard_link(world.at("src/main.rs"), world.at("src/also.rs")).unwrap();
    let blocked = ", blockedPaths: [/usr, /bin, /sbin, /lib, /etc]";
    let order = world.order(&manifest("", "", "", blocked, "read"), &json!({}));
    let is_systems =
        |path: &PathBuf| ["/usr", "/bin", "/sbin", "/lib", "/etc"].iter().any(|one| path == Path::new(one));
    assert!(!order.view.hidden.iter().any(is_systems), "{:?}", order.view.hidden);
}

/// They are in every view, and so would be a key in them.
#[test]
fn blocked_path_in_a_system_directory_is_hidden() {
    let world = World::new();
    let programs = fs::canonicalize("/bin").unwrap();
    let blocked = format!(
        "blockedPaths: [/usr/local/etc/db.key, '/usr/bin/ca*', '/usr/no/such/**/*.key', /etc/ssl/certs/own.pem, /etc/ssl/openssl.cnf, /etc/localtime, {}, /etc/ssl, '/**/*.pem']",
        programs.display()
    );
    let without_files = format!(
        "
name: tried
description: Is tried. Returns text.
classification: read
handler: {{cli: {{command: 'true'}}}}
capability: {{execution: {{sandbox: process, {blocked}}}}}
"
    );
    for tool in [manifest("", "", "", &format!(", {blocked}"), "read"), without_files] {
        let hidden = world.order(&tool, &json!({})).view.hidden;
        for path in [
            "/usr/local/etc/db.key",
            "/usr/bin/cat",
            "/etc/ssl/certs/own.pem",
            "/etc/ssl/openssl.cnf",
            "/etc/localtime",
        ] {
            assert!(hidden.contains(&path.into()), "{path}: {hidden:?}");
        }
        for path in
            [Path::new("/usr"), programs.as_path(), Path::new("/etc/ssl"), Path::new("/etc/ssl/certs")]
        {
            assert!(!hidden.iter().any(|hidden| hidden == path), "{}: {hidden:?}", path.display());
        }
    }
}

/// A workspace inside a system directory is completely visible, whatever part of it a call shows.
#[test]
fn pattern_in_a_system_directory_applies_outside_the_view() {
    let world = World::new();
    let tool = manifest(PATH, PATH_ARG, "", ", blockedPaths: ['/usr/bin/**/ca*']", "read");
    let hidden = world.order(&tool, &json!({ "path": "docs" })).view.hidden;
    assert!(hidden.contains(&"/usr/bin/cat".into()), "{hidden:?}");
}

/// It may contain more files than can be checked before every call.
#[test]
fn blocked_system_directory_may_be_large() {
    let world = World::new();
    let tool = manifest("", "", "", ", blockedPaths: [/usr/share, $WORKSPACE/docs]", "read");
    let order = world.order(&tool, &json!({}));
    for (path, is_large) in [(PathBuf::from("/usr/share"), true), (world.at("docs").into(), false)] {
        assert!(order.view.hidden.contains(&path), "{:?}", order.view.hidden);
        assert_eq!(order.view.hidden_large.contains(&path), is_large, "{:?}", order.view.hidden_large);
    }
}

/// The path is already listed, so the remedy names another setting.
#[test]
fn allowed_path_outside_the_base_directory_is_read_only() {
    let world = World::new();
    let outside = world.root().join("outside").display().to_string();
    let tool = manifest("", "", "", "", "write").replace("[$WORKSPACE]", &format!("[$WORKSPACE, {outside}]"));
    let seen = |tool: &str| binds(&world, &world.order(tool, &json!({})));
    let both = |workspace, outside| {
        BTreeMap::from([("workspace".to_owned(), workspace), ("outside".to_owned(), outside)])
    };
    assert_eq!(seen(&tool), both(Access::Write, Access::Read));
    let elsewhere = format!("{tool}sandboxOverrides: {{fsBasePath: {outside}}}\n");
    assert_eq!(seen(&elsewhere), both(Access::Read, Access::Write));
    let refused = Denial::Path { path: Path::new(&outside).join("x"), access: Attempt::Write };
    assert!(refused.remedy().unwrap().contains("`sandboxOverrides.fsBasePath`"), "{:?}", refused.remedy());
}

/// For example one file of a directory with other files.
#[test]
fn allowed_file_shows_nothing_beside_it() {
    let world = World::new();
    world.write("outside/shadow", "root:secret");
    let outside = world.root().join("outside");
    for sandbox in ["process", "container"] {
        let allowed = format!("[$WORKSPACE/docs, {}]", outside.join("passwd").display());
        let tool = |input, args| {
            let tool = manifest(input, args, "", "", "read").replace("[$WORKSPACE]", &allowed);
            tool.replace("sandbox: process", &format!("sandbox: {sandbox}"))
        };
        let both = BTreeMap::from([
            ("workspace/docs".to_owned(), Access::Read),
            ("outside/passwd".to_owned(), Access::Read),
        ]);
        assert_eq!(binds(&world, &world.order(&tool("", ""), &json!({}))), both, "{sandbox}");
        let by_argument = tool(PATH, PATH_ARG);
        let named = |path: &Path| json!({ "path": path });
        let order = world.order(&by_argument, &named(&outside.join("passwd")));
        assert_eq!(binds(&world, &order), BTreeMap::from([("outside/passwd".to_owned(), Access::Read)]));
        for beside in ["shadow", "", "passwd/../shadow"] {
            let (tool, _) = world.recorded(&by_argument, said(""));
            let refusal = call(&tool, &named(&outside.join(beside))).unwrap_err();
            assert_eq!(refusal.reason, Reason::PathOutsideRoots, "{beside}");
        }
    }
}

/// A container has the directories of its image.
#[test]
fn host_system_is_not_searched_for_a_container() {
    let world = World::new();
    let tool = manifest("", "", "", ", blockedPaths: ['/usr/bin/ca*', $WORKSPACE/docs]", "read")
        .replace("sandbox: process", "sandbox: container");
    let hidden = world.order(&tool, &json!({})).view.hidden;
    assert!(hidden.contains(&world.at("docs").into()), "{hidden:?}");
    assert!(!hidden.iter().any(|path| path.starts_with("/usr")), "{hidden:?}");
}

/// A tool without file grants still sees the system directories, without blocked paths.
#[test]
fn blocked_paths_stay_blocked_without_file_grants() {
    let world = World::new();
    let text = manifest("", "", "", ", blockedPaths: [/usr/local/etc/db.key]", "read");
    let (spec, mut policy) = resolve(&text);
    policy.files.read.value = false;
    let mut host = world.host();
    let tool = CliTool::new(Arc::clone(&spec), &policy, &host).unwrap();
    let (_, recorder) = world.recorded(&text, said(""));
    call(&world.handlers(recorder.clone()).runnable(tool), &json!({})).unwrap();
    let order = recorder.last();
    assert!(order.view.binds.is_empty(), "{:?}", order.view.binds);
    assert!(order.view.hidden.contains(&"/usr/local/etc/db.key".into()), "{:?}", order.view.hidden);
    // If it cannot be checked, the tool is not loaded.
    host.places.guarded.push(PathBuf::from(OsStr::from_bytes(b"/srv/\xff")));
    let why = CliTool::new(spec, &policy, &host).unwrap_err();
    assert!(why.contains("cannot be blocked for tools"), "{why}");
}

/// A quarantined symlink hides nothing, otherwise a command could hide any directory from the next one.
#[test]
fn quarantined_symlink_hides_nothing() {
    let world = World::new();
    std::os::unix::fs::symlink("src", world.at(".env.refused-0123abcd")).unwrap();
    let order =
        world.order(&manifest("", "", "", ", blockedPaths: ['$WORKSPACE/**/.env*']", "read"), &json!({}));
    assert!(!order.view.hidden.contains(&world.at("src").into()), "{:?}", order.view.hidden);
    std::os::unix::fs::symlink("src", world.at(".env.link")).unwrap();
    let order =
        world.order(&manifest("", "", "", ", blockedPaths: ['$WORKSPACE/**/.env*']", "read"), &json!({}));
    assert!(order.view.hidden.contains(&world.at("src").into()), "{:?}", order.view.hidden);
}

/// `ln ~/.ssh/id_rsa docs/innocent.md`, followed by a search of `docs`.
#[test]
fn file_blocked_elsewhere_is_hidden_under_its_other_names() {
    let world = World::new();
    let outside = world.root().join("outside");
    let home = world.root().join("home");
    let linked = [
        (outside.join("keys/id_rsa"), "docs/a.md"),
        (outside.join("vault/deep/key"), "docs/b.md"),
        (home.join(".ssh/id_ed25519"), "docs/c.md"),
        (world.at("config/.env").into(), "docs/d.md"),
    ];
    for path in ["outside/keys/id_rsa", "outside/keys/id_single", "outside/vault/deep/key"] {
        world.write(path, "x");
    }
    for path in ["home/.ssh/id_ed25519", "home/.aws/config", "workspace/config/.env", "workspace/plain/x"] {
        world.write(path, "x");
    }
    for (blocked, innocent) in &linked {
        fs::hard_link(blocked, world.at(innocent)).unwrap();
    }
    let blocked = format!(
        ", blockedPaths: ['{0}/keys/id_*', '{0}/vault', '{0}/absent/*', '$WORKSPACE/**/.env']",
        outside.display()
    );
    let expect = [
        outside.join("keys/id_rsa"),
        outside.join("vault"),
        home.join(".ssh"),
        world.at("config/.env").into(),
    ];
    let by_argument = manifest(PATH, PATH_ARG, "", &blocked, "read");
    for (tool, arguments) in [
        (manifest("", "", ", cwd: $WORKSPACE/docs", &blocked, "read"), json!({})),
        (by_argument.clone(), json!({ "path": "docs" })),
    ] {
        let hidden = world.order(&tool, &arguments).view.hidden;
        for path in &expect {
            assert!(hidden.contains(path), "{}: {hidden:?}", path.display());
        }
        for path in [outside.join("keys/id_single"), home.join(".aws"), world.at("src/.env").into()] {
            assert!(!hidden.contains(&path), "{}: {hidden:?}", path.display());
        }
    }
    // Without hard links in the view, nothing else is searched.
    let hidden = world.order(&by_argument, &json!({ "path": "plain" })).view.hidden;
    assert!(!hidden.contains(&outside.join("vault")), "{hidden:?}");
}

/// It is unknown whether its other name is blocked; the message names a remedy.
#[test]
fn hard_link_is_not_shown_if_the_workspace_cannot_be_searched() {
    let world = World::new();
    nest_too_deep(Path::new(&world.at("docs")));
    let tool = manifest(PATH, PATH_ARG, "", ", blockedPaths: ['$WORKSPACE/**/.env']", "read");
    let (tool, recorder) = world.recorded(&tool, said(""));
    call(&tool, &json!({ "path": "src" })).unwrap().outcome.unwrap();
    recorder.last();
    fs::hard_link(world.at("src/main.rs"), world.at("src/also.rs")).unwrap();
    let failure = call(&tool, &json!({ "path": "src" })).unwrap().outcome.unwrap_err();
    assert!(failure.message.contains("use copies instead of hard links"), "{}", failure.message);
    assert!(recorder.is_unused());
}

#[test]
fn large_credential_directory_does_not_make_tools_unusable() {
    let world = World::new();
    for number in 0..=2_000 {
        world.write(&format!("home/.kube/cache/{number}"), "x");
    }
    let place = world.root().join("home/.kube");
    for number in 0..10 {
        let cached = place.join(format!("cache/{number}"));
        fs::hard_link(&cached, world.at(&format!("docs/{number}.md"))).unwrap();
    }
    let order = world.order(&manifest(PATH, PATH_ARG, "", "", "read"), &json!({ "path": "docs" }));
    // One entry more than are checked here. The jail searches further, and never fails because of the size.
    assert!(
        order.view.hidden.contains(&place) && order.view.hidden_large.contains(&place),
        "{:?}",
        order.view.hidden
    );
    assert_eq!(order.view.hidden.iter().filter(|path| path.starts_with(&place)).count(), 1);
}

#[test]
fn target_of_a_blocked_symlink_is_hidden() {
    let world = World::new();
    world.write("workspace/config/prod.txt", "x");
    std::os::unix::fs::symlink("config/prod.txt", world.at(".env")).unwrap();
    std::os::unix::fs::symlink(world.root().join("outside/passwd"), world.at(".env.outside")).unwrap();
    std::os::unix::fs::symlink("..", world.at("src/.env.above")).unwrap();
    let tool = manifest("", "", "", ", blockedPaths: ['$WORKSPACE/**/.env*']", "read");
    let hidden = world.order(&tool, &json!({})).view.hidden;
    assert!(hidden.contains(&world.at("config/prod.txt").into()), "{hidden:?}");
    for path in [world.root().join("outside/passwd"), world.root().join("workspace")] {
        assert!(!hidden.contains(&path), "{hidden:?}");
    }
}

#[test]
fn own_files_of_the_gateway_are_always_hidden() {
    let (world, order) = check(&manifest(PATH, PATH_ARG, "", "", "read"), &json!({}), &[]);
    assert!(order.view.hidden.contains(&world.at(".toolgate").into()));
    let refusal =
        world.line(&manifest(PATH, PATH_ARG, "", "", "read"), &json!({ "path": ".toolgate/state" }));
    assert_eq!(refusal.unwrap_err().reason, Reason::PathBlocked);
}

#[test]
fn pattern_cannot_be_a_view() {
    let tool = manifest("", "", "", "", "read").replace("[$WORKSPACE]", "['$WORKSPACE/*.md']");
    let world = World::new();
    let (tool, recorder) = world.recorded(&tool, said(""));
    let failure = call(&tool, &json!({})).unwrap().outcome.unwrap_err();
    assert!(failure.message.contains("format: path"), "{}", failure.message);
    assert!(recorder.is_unused());
}

#[test]
fn too_many_hidden_paths_are_an_error() {
    let tool = manifest("", "", "", ", blockedPaths: ['$WORKSPACE/many/*.key']", "read");
    let world = World::new();
    for number in 0..=1_000 {
        world.write(&format!("workspace/many/{number}.key"), "x");
    }
    let (tool, recorder) = world.recorded(&tool, said(""));
    let failure = call(&tool, &json!({})).unwrap().outcome.unwrap_err();
    assert!(failure.message.contains("block a directory"), "{}", failure.message);
    assert!(recorder.is_unused());
}

#[test]
fn workspace_behind_a_symlink_uses_its_real_path() {
    let world = World::new();
    let link = world.root().join("link");
    std::os::unix::fs::symlink(world.at(""), &link).unwrap();
    let mut host = world.host();
    host.places.workspace = link;
    let text = manifest(
        "",
        "",
        ", cwd: $WORKSPACE/src",
        ", blockedPaths: ['$WORKSPACE/**/.env', $WORKSPACE/src/main.rs]",
        "read",
    );
    let (spec, policy) = resolve(&text);
    let tool = CliTool::new(spec, &policy, &host).unwrap();
    let (_, recorder) = world.recorded(&text, said(""));
    call(&world.handlers(recorder.clone()).runnable(tool), &json!({})).unwrap();
    let order = recorder.last();
    assert_eq!(order.cwd, Path::new(&world.at("src")));
    assert_eq!(binds(&world, &order), [("workspace/src".to_owned(), Access::Read)].into_iter().collect());
    for path in ["src/.env", "src/main.rs"] {
        assert!(order.view.hidden.contains(&world.at(path).into()), "{:?}", order.view.hidden);
    }
}

#[test]
fn without_file_grants_nothing_is_visible() {
    let tool = "
name: tried
description: Is tried. Returns text.
classification: read
handler: {cli: {command: 'true'}}
";
    check(tool, &json!({}), &[]);
}

#[test]
fn network_follows_the_rules_of_the_tool() {
    let tool = manifest("", "", "", "", "read");
    assert!(World::new().order(&tool, &json!({})).network.is_none());
    let reaching = format!(
        "{}  network: {{access: limited, allowedHosts: [api.example.com]}}\n",
        tool.replace(
            "capability: {execution: {sandbox: process, allowedPaths: [$WORKSPACE]}}",
            "capability:\n  execution: {sandbox: process}"
        )
    );
    let rules = World::new().order(&reaching, &json!({})).network.unwrap().rules;
    assert_eq!(rules.hosts, [toolgate_egress::HostRule::exact("api.example.com".into())]);
}

#[test]
fn approved_host_is_the_only_one_reachable() {
    let upgradeable = |sandbox: &str| {
        format!(
            "
name: tried
description: Is tried. Returns text.
classification: read
input: {{type: object, properties: {{url: {{type: string, format: uri}}}}, required: [url]}}
testInput: {{url: 'https://api.example.com/'}}
handler: {{cli: {{command: cat, stdin: '{{url}}'}}}}
capability: {{network: {{access: none, accessUpgradeable: proxy}}, execution: {{sandbox: {sandbox}}}}}
"
        )
    };
    let url = json!({ "url": "https://api.example.com/x" });
    let mut world = World::new();
    for sandbox in ["process", "container"] {
        let grant = world.order(&upgradeable(sandbox), &url).network.unwrap();
        assert_eq!(grant.rules.mode, toolgate_egress::EgressMode::Allowlist);
        assert_eq!(grant.rules.hosts, [toolgate_egress::HostRule::exact("api.example.com".into())]);
    }
    // If containers have no egress, no approval is requested and nothing is opened.
    world.container_egress = Err("there is none");
    assert!(world.order(&upgradeable("container"), &url).network.is_none());
}

fn asking(network: &str) -> String {
    format!(
        "
name: tried
description: Is tried. Returns text.
classification: read
input: {{type: object, required: [method], properties: {{method: {{type: string, enum: [GET, POST]}}}}}}
testInput: {{method: GET}}
handler: {{cli: {{command: cat, stdin: '{{method}}'}}}}
capability:
  approval: {{askForMethods: [POST, DELETE]}}
  network: {network}
  execution: {{sandbox: process}}
"
    )
}

#[track_caller]
fn check_methods(network: &str, method: &str, asked: &[&str], refused: &[&str]) {
    let (world, manifest, arguments) = (World::new(), asking(network), json!({ "method": method }));
    let found =
        world.load(&manifest).unwrap().survey(arguments.as_object().unwrap(), &StopFlag::default()).unwrap();
    let sources: Vec<&str> = found.questions.iter().map(|question| question.source.name()).collect();
    assert_eq!(sources, asked);
    let grant = world.order(&manifest, &arguments).network;
    assert_eq!(grant.map(|grant| grant.refused_methods).unwrap_or_default(), refused);
}

/// TLS traffic of a command cannot be seen, so a person is asked before, whatever the arguments say.
#[test]
fn command_that_may_tunnel_needs_approval_for_every_call() {
    let network = "{access: limited, allowedHosts: [api.example.com]}";
    check_methods(network, "GET", &["method"], &[]);
    check_methods(network, "POST", &["method"], &[]);
    check_methods("{access: full}", "GET", &["method"], &[]);
}

#[test]
fn command_that_cannot_tunnel_needs_approval_for_its_method() {
    let network = "{access: limited, allowedHosts: [api.example.com], blockedPorts: [443]}";
    check_methods(network, "GET", &[], &["POST", "DELETE"]);
    check_methods(network, "POST", &["method"], &["DELETE"]);
    check_methods("{access: none}", "GET", &[], &[]);
}

/// Without the right to read secrets, a tool never reaches credential directories.
#[test]
fn credentials_are_only_for_tools_that_read_secrets() {
    let world = World::new();
    world.write("home/.ssh/id_ed25519", "x");
    world.write("home/.npmrc", "x");
    world.write("home/notes.txt", "x");
    let at = |path: &str| world.root().join("home").join(path).display().to_string();
    std::os::unix::fs::symlink(".ssh/id_ed25519", at("harmless.txt")).unwrap();
    fs::hard_link(at(".npmrc"), at("also.txt")).unwrap();
    let without = |input: &str, args: &str| {
        manifest(input, args, "", "", "read").replace("[$WORKSPACE]", "[$WORKSPACE, $HOME]")
    };
    let with = |input: &str, args: &str| {
        without(input, args).replace("capability: {", "capability: {data: {canReadSecrets: true}, ")
    };
    let secret = [".ssh/id_ed25519", ".ssh", ".npmrc", "harmless.txt", "also.txt"];
    for path in secret {
        let arguments = json!({ "path": at(path) });
        let survey = |manifest: &str| {
            world.load(manifest).unwrap().survey(arguments.as_object().unwrap(), &StopFlag::default())
        };
        let refusal = survey(&without(PATH, PATH_ARG)).unwrap_err();
        assert_eq!(refusal.reason, Reason::PathBlocked, "{path}: {}", refusal.message);
        assert!(survey(&with(PATH, PATH_ARG)).is_ok(), "{path}");
    }
    let notes = json!({ "path": at("notes.txt") });
    assert!(call(&world.recorded(&without(PATH, PATH_ARG), said("")).0, &notes).is_ok());
    let hidden = |manifest: &str| world.order(manifest, &json!({})).view.hidden;
    assert!(hidden(&without("", "")).contains(&at(".ssh").into()));
    assert!(!hidden(&with("", "")).contains(&at(".ssh").into()));
    // Hidden whatever their size; paths that an operator blocks are searched completely.
    let blocked = without("", "").replace("execution: {", "execution: {blockedPaths: [$WORKSPACE/docs], ");
    let order = world.order(&blocked, &json!({}));
    assert!(order.view.hidden.contains(&world.at("docs").into()));
    assert!(order.view.hidden_large.contains(&at(".ssh").into()), "{:?}", order.view.hidden_large);
    assert!(!order.view.hidden_large.contains(&world.at("docs").into()), "{:?}", order.view.hidden_large);
}
