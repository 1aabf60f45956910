//! Which files does a command see?

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
use toolgate_handlers::{Access, CliTool, Order, Refused};

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

fn binds(world: &World, order: &Order) -> BTreeMap<String, Access> {
    let root = world.root();
    let shown = |path: &Path| path.strip_prefix(&root).unwrap_or(path).display().to_string();
    order.binds.iter().map(|bind| (shown(&bind.path), bind.access)).collect()
}

#[track_caller]
fn check(manifest: &str, arguments: &Value, expect: &[(&str, Access)]) -> (World, Order) {
    let world = World::new();
    let order = world.order(manifest, arguments);
    let expect: BTreeMap<String, Access> =
        expect.iter().map(|(path, access)| ((*path).to_owned(), *access)).collect();
    assert_eq!(binds(&world, &order), expect);
    // What is bound is what was judged, not what has its name by now.
    for bind in &order.binds {
        let (held, there) = (bind.held.metadata().unwrap(), fs::metadata(&bind.path).unwrap());
        assert_eq!((held.dev(), held.ino()), (there.dev(), there.ino()));
    }
    (world, order)
}

#[test]
fn with_path_arguments_only_those_are_seen() {
    let tool = manifest(PATH, PATH_ARG, "", "", "read");
    let (_, order) =
        check(&tool, &json!({ "path": "src/main.rs" }), &[("workspace/src/main.rs", Access::Read)]);
    assert_eq!(order.cwd, Path::new("/tmp"));
    check(&tool, &json!({ "path": "src" }), &[("workspace/src", Access::Read)]);
    check(&tool, &json!({ "path": "absent" }), &[]);
    check(&tool, &json!({}), &[]);
}

#[test]
fn a_working_folder_is_seen_too() {
    let tool = manifest(PATH, PATH_ARG, ", cwd: $WORKSPACE/src", "", "read");
    let (world, order) = check(
        &tool,
        &json!({ "path": "docs/readme.md" }),
        &[("workspace/docs/readme.md", Access::Read), ("workspace/src", Access::Read)],
    );
    assert_eq!(order.cwd, Path::new(&world.at("src")));
}

#[test]
fn with_neither_everything_allowed_is_seen() {
    check(&manifest("", "", "", "", "read"), &json!({}), &[("workspace", Access::Read)]);
}

#[test]
fn writing_is_for_those_who_say_so_and_for_the_workspace() {
    let tool = manifest(PATH, PATH_ARG, "", "", "write");
    check(&tool, &json!({ "path": "src/main.rs" }), &[("workspace/src/main.rs", Access::Write)]);
    // What is yet to be made needs the folder that it is made in.
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
fn what_is_blocked_is_hidden_by_name_and_by_pattern() {
    let tool =
        manifest("", "", "", ", blockedPaths: ['$WORKSPACE/**/.env*', $WORKSPACE/docs/private]", "read");
    let world = World::new();
    world.write("workspace/a/b/.env.local", "x");
    world.write("workspace/a/.environment/deep/file", "x");
    world.write("workspace/a/env", "x");
    let order = world.order(&tool, &json!({}));
    let hidden: Vec<String> = order.hidden.iter().map(|path| path.display().to_string()).collect();
    for path in ["src/.env", "a/b/.env.local", "a/.environment", "docs/private", ".toolgate"] {
        assert!(hidden.contains(&world.at(path)), "{path}: {hidden:?}");
    }
    assert!(!hidden.iter().any(|path| path.ends_with("/env") || path.ends_with("deep")), "{hidden:?}");
}

#[test]
fn a_block_counts_where_its_links_lead() {
    let world = World::new();
    std::os::unix::fs::symlink(world.at("src"), world.root().join("alias")).unwrap();
    let alias = world.root().join("alias").display().to_string();
    let tool = manifest("", "", "", &format!(", blockedPaths: ['{alias}/.e*', '{alias}/main.rs']"), "read");
    let order = world.order(&tool, &json!({}));
    for path in ["src/.env", "src/main.rs"] {
        assert!(order.hidden.contains(&world.at(path).into()), "{:?}", order.hidden);
    }
}

#[test]
fn a_blocked_file_elsewhere_with_another_name_is_hidden_in_every_view() {
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
        assert!(order.hidden.contains(&key), "{:?}", order.hidden);
        assert!(!order.hidden.contains(&single), "{:?}", order.hidden);
    }
    let refusal =
        world.line(&manifest(PATH, PATH_ARG, "", &blocked, "read"), &json!({ "path": "src/innocent" }));
    assert_eq!(refusal.unwrap_err().reason, Reason::PathBlocked);
}

/// The folders of the system are blocked for tools that write, and are in every view all the same: one file with two names
/// in the workspace must not take the programs away.
#[test]
fn folders_of_the_system_stay_in_view() {
    let world = World::new();
    fs::hard_link(world.at("src/main.rs"), world.at("src/also.rs")).unwrap();
    let blocked = ", blockedPaths: [/usr, /bin, /sbin, /lib, /etc]";
    let order = world.order(&manifest("", "", "", blocked, "read"), &json!({}));
    let is_systems =
        |path: &PathBuf| ["/usr", "/bin", "/sbin", "/lib", "/etc"].iter().any(|one| path == Path::new(one));
    assert!(!order.hidden.iter().any(is_systems), "{:?}", order.hidden);
}

/// They are in every view, and so would be a key in them that nobody granted.
#[test]
fn what_is_blocked_in_a_folder_of_the_system_is_hidden_and_the_folder_stays() {
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
        let hidden = world.order(&tool, &json!({})).hidden;
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

/// A workspace in a folder of the system is in sight as a whole, whatever part of it a call is shown.
#[test]
fn a_pattern_that_begins_in_a_folder_of_the_system_counts_outside_what_is_shown() {
    let world = World::new();
    let tool = manifest(PATH, PATH_ARG, "", ", blockedPaths: ['/usr/bin/**/ca*']", "read");
    let hidden = world.order(&tool, &json!({ "path": "docs" })).hidden;
    assert!(hidden.contains(&"/usr/bin/cat".into()), "{hidden:?}");
}

/// They may hold more names than can be looked at before every call.
#[test]
fn a_blocked_folder_of_the_system_may_be_large() {
    let world = World::new();
    let tool = manifest("", "", "", ", blockedPaths: [/usr/share, $WORKSPACE/docs]", "read");
    let order = world.order(&tool, &json!({}));
    for (path, is_large) in [(PathBuf::from("/usr/share"), true), (world.at("docs").into(), false)] {
        assert!(order.hidden.contains(&path), "{:?}", order.hidden);
        assert_eq!(order.hidden_large.contains(&path), is_large, "{:?}", order.hidden_large);
    }
}

/// An author who has listed the path needs another word, and the remedy says which.
#[test]
fn what_is_allowed_outside_the_base_folder_is_read_only() {
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
    let refused = Refused::Path { path: Path::new(&outside).join("x"), access: Access::Write };
    assert!(refused.remedy().unwrap().contains("`sandboxOverrides.fsBasePath`"), "{:?}", refused.remedy());
}

/// Such as one file of a folder that holds much else.
#[test]
fn a_file_may_be_allowed_and_nothing_beside_it_is_seen() {
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

/// A container has the folders of its image.
#[test]
fn the_hosts_system_is_not_searched_for_a_container() {
    let world = World::new();
    let tool = manifest("", "", "", ", blockedPaths: ['/usr/bin/ca*', $WORKSPACE/docs]", "read")
        .replace("sandbox: process", "sandbox: container");
    let hidden = world.order(&tool, &json!({})).hidden;
    assert!(hidden.contains(&world.at("docs").into()), "{hidden:?}");
    assert!(!hidden.iter().any(|path| path.starts_with("/usr")), "{hidden:?}");
}

/// A tool that is granted no file sees the system's all the same, without what is blocked.
#[test]
fn what_is_blocked_stays_blocked_where_no_file_is_granted() {
    let world = World::new();
    let text = manifest("", "", "", ", blockedPaths: [/usr/local/etc/db.key]", "read");
    let (spec, mut policy) = resolve(&text);
    policy.files.read.value = false;
    let mut host = world.host();
    let tool = CliTool::new(Arc::clone(&spec), &policy, &host).unwrap();
    let (_, recorder) = world.recorded(&text, said(""));
    call(&world.handlers(recorder.clone()).runnable(tool), &json!({})).unwrap();
    let order = recorder.last();
    assert!(order.binds.is_empty(), "{:?}", order.binds);
    assert!(order.hidden.contains(&"/usr/local/etc/db.key".into()), "{:?}", order.hidden);
    // Where it cannot even be told, nothing is loaded.
    host.places.guarded.push(PathBuf::from(OsStr::from_bytes(b"/srv/\xff")));
    let why = CliTool::new(spec, &policy, &host).unwrap_err();
    assert!(why.contains("cannot be blocked for tools"), "{why}");
}

/// A link that a command made and the gateway set aside hides nothing: a command could else take any folder from the next.
#[test]
fn a_link_that_was_set_aside_hides_nothing() {
    let world = World::new();
    std::os::unix::fs::symlink("src", world.at(".env.refused-0123abcd")).unwrap();
    let order =
        world.order(&manifest("", "", "", ", blockedPaths: ['$WORKSPACE/**/.env*']", "read"), &json!({}));
    assert!(!order.hidden.contains(&world.at("src").into()), "{:?}", order.hidden);
    std::os::unix::fs::symlink("src", world.at(".env.link")).unwrap();
    let order =
        world.order(&manifest("", "", "", ", blockedPaths: ['$WORKSPACE/**/.env*']", "read"), &json!({}));
    assert!(order.hidden.contains(&world.at("src").into()), "{:?}", order.hidden);
}

/// `ln ~/.ssh/id_rsa docs/innocent.md`, and then a search of `docs`.
#[test]
fn what_is_blocked_elsewhere_by_pattern_or_folder_is_hidden_under_its_other_names() {
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
        let hidden = world.order(&tool, &arguments).hidden;
        for path in &expect {
            assert!(hidden.contains(path), "{}: {hidden:?}", path.display());
        }
        for path in [outside.join("keys/id_single"), home.join(".aws"), world.at("src/.env").into()] {
            assert!(!hidden.contains(&path), "{}: {hidden:?}", path.display());
        }
    }
    // Where nothing in sight has several names, nobody looks elsewhere.
    let hidden = world.order(&by_argument, &json!({ "path": "plain" })).hidden;
    assert!(!hidden.contains(&outside.join("vault")), "{hidden:?}");
}

/// Then nobody can tell whether its other name is blocked; whoever asked is told what helps.
#[test]
fn a_hard_link_out_of_a_workspace_that_cannot_be_searched_is_not_shown() {
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
fn a_large_place_of_credentials_takes_no_files_away() {
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
    // One entry more than are looked at here. Whoever makes the jail looks further, and refuses nobody for its size.
    assert!(order.hidden.contains(&place) && order.hidden_large.contains(&place), "{:?}", order.hidden);
    assert_eq!(order.hidden.iter().filter(|path| path.starts_with(&place)).count(), 1);
}

#[test]
fn what_a_link_of_a_blocked_name_leads_to_is_hidden_with_it() {
    let world = World::new();
    world.write("workspace/config/prod.txt", "x");
    std::os::unix::fs::symlink("config/prod.txt", world.at(".env")).unwrap();
    std::os::unix::fs::symlink(world.root().join("outside/passwd"), world.at(".env.outside")).unwrap();
    std::os::unix::fs::symlink("..", world.at("src/.env.above")).unwrap();
    let tool = manifest("", "", "", ", blockedPaths: ['$WORKSPACE/**/.env*']", "read");
    let hidden = world.order(&tool, &json!({})).hidden;
    assert!(hidden.contains(&world.at("config/prod.txt").into()), "{hidden:?}");
    for path in [world.root().join("outside/passwd"), world.root().join("workspace")] {
        assert!(!hidden.contains(&path), "{hidden:?}");
    }
}

#[test]
fn the_gateways_own_files_are_hidden_from_everybody() {
    let (world, order) = check(&manifest(PATH, PATH_ARG, "", "", "read"), &json!({}), &[]);
    assert!(order.hidden.contains(&world.at(".toolgate").into()));
    let refusal =
        world.line(&manifest(PATH, PATH_ARG, "", "", "read"), &json!({ "path": ".toolgate/state" }));
    assert_eq!(refusal.unwrap_err().reason, Reason::PathBlocked);
}

#[test]
fn a_pattern_is_no_view() {
    let tool = manifest("", "", "", "", "read").replace("[$WORKSPACE]", "['$WORKSPACE/*.md']");
    let world = World::new();
    let (tool, recorder) = world.recorded(&tool, said(""));
    let failure = call(&tool, &json!({})).unwrap().outcome.unwrap_err();
    assert!(failure.message.contains("format: path"), "{}", failure.message);
    assert!(recorder.is_unused());
}

#[test]
fn more_than_can_be_hidden_is_not_shown() {
    let tool = manifest("", "", "", ", blockedPaths: ['$WORKSPACE/many/*.key']", "read");
    let world = World::new();
    for number in 0..=1_000 {
        world.write(&format!("workspace/many/{number}.key"), "x");
    }
    let (tool, recorder) = world.recorded(&tool, said(""));
    let failure = call(&tool, &json!({})).unwrap().outcome.unwrap_err();
    assert!(failure.message.contains("block a folder"), "{}", failure.message);
    assert!(recorder.is_unused());
}

#[test]
fn a_workspace_behind_a_link_is_seen_and_blocked_by_its_real_name() {
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
        assert!(order.hidden.contains(&world.at(path).into()), "{:?}", order.hidden);
    }
}

#[test]
fn without_files_nothing_is_seen() {
    let tool = "
name: tried
description: Is tried. Returns text.
classification: read
handler: {cli: {command: 'true'}}
";
    check(tool, &json!({}), &[]);
}

#[test]
fn the_network_is_none_or_the_tools_own_rules() {
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
fn a_host_that_a_person_was_asked_for_is_the_whole_network() {
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
        let way_out = world.order(&upgradeable(sandbox), &url).network.unwrap();
        assert_eq!(way_out.rules.mode, toolgate_egress::EgressMode::Allowlist);
        assert_eq!(way_out.rules.hosts, [toolgate_egress::HostRule::exact("api.example.com".into())]);
    }
    // Where containers have no way out, nobody is asked and nothing is opened.
    world.way_out_of_containers = Err("there is none");
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
    let way_out = world.order(&manifest, &arguments).network;
    assert_eq!(way_out.map(|way_out| way_out.refused_methods).unwrap_or_default(), refused);
}

/// What a command sends by TLS nobody sees, so that a person is asked before, whatever the arguments say.
#[test]
fn a_command_that_may_tunnel_is_asked_for_with_every_call() {
    let network = "{access: limited, allowedHosts: [api.example.com]}";
    check_methods(network, "GET", &["method"], &[]);
    check_methods(network, "POST", &["method"], &[]);
    check_methods("{access: full}", "GET", &["method"], &[]);
}

#[test]
fn a_command_that_cannot_tunnel_is_asked_for_the_method_that_it_announces() {
    let network = "{access: limited, allowedHosts: [api.example.com], blockedPorts: [443]}";
    check_methods(network, "GET", &[], &["POST", "DELETE"]);
    check_methods(network, "POST", &["method"], &["DELETE"]);
    check_methods("{access: none}", "GET", &[], &[]);
}

/// Whatever it is granted, a tool that is not said to read secrets does not reach where they are kept.
#[test]
fn what_holds_credentials_is_for_tools_that_read_secrets() {
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
    let hidden = |manifest: &str| world.order(manifest, &json!({})).hidden;
    assert!(hidden(&without("", "")).contains(&at(".ssh").into()));
    assert!(!hidden(&with("", "")).contains(&at(".ssh").into()));
    // Hidden whatever their size; what an operator blocks is searched to the last file.
    let blocked = without("", "").replace("execution: {", "execution: {blockedPaths: [$WORKSPACE/docs], ");
    let order = world.order(&blocked, &json!({}));
    assert!(order.hidden.contains(&world.at("docs").into()));
    assert!(order.hidden_large.contains(&at(".ssh").into()), "{:?}", order.hidden_large);
    assert!(!order.hidden_large.contains(&world.at("docs").into()), "{:?}", order.hidden_large);
}
