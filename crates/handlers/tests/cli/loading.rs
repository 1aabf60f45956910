//! Tests which programs are found, and which may run.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use serde_json::json;
use toolgate_gate::{Reason, StopFlag};
use toolgate_handlers::{AllowedCommands, CliTool};
use toolgate_policy::{PolicySet, UserOverrides};
use toolgate_spec::{
    Format,
    model::{ApprovalLevel, SandboxKind, ToolSpec},
};

use crate::{
    argv::manifest,
    world::{World, call, resolve, said, with_command},
};

fn program(world: &World, name: &str, mode: u32) -> PathBuf {
    world.program(name, "#!/bin/true\n", mode)
}

#[track_caller]
fn refuses(world: &World, program: &Path, part: &str) {
    let (spec, policy) = resolve(&manifest("echo", "'{text}'"));
    let why = CliTool::new(with_command(&spec, program), &policy, &world.host()).unwrap_err();
    assert!(why.contains(part), "{why}");
}

#[test]
fn bare_name_is_searched_in_system_directories() {
    let why = World::new().load(&manifest("no-such-program-here", "'{text}'")).unwrap_err();
    assert_eq!(
        why,
        "the command `no-such-program-here` is not installed; looked in /usr/local/sbin, /usr/local/bin, /usr/sbin, /usr/bin, /sbin, /bin"
    );
    let order = World::new().order(&manifest("ls", "'{text}'"), &json!({ "text": "x" }));
    assert!(order.program.is_absolute());
    assert_eq!(order.program, fs::canonicalize(&order.program).unwrap());
    assert_eq!(order.argv[0], "ls");
}

#[test]
fn program_that_others_can_change_is_rejected() {
    let world = World::new();
    refuses(&world, &program(&world, "writable", 0o777), "can be changed by other users");
    refuses(&world, &program(&world, "by_group", 0o775), "can be changed by other users");
    refuses(&world, &program(&world, "plain", 0o644), "is not a program");
    refuses(&world, &world.root().join("bin"), "not installed");
    refuses(&world, Path::new("/no/such"), "not installed");
    world.write("workspace/tool", "#!/bin/true\n");
    let inside = world.root().join("workspace/tool");
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).unwrap();
    refuses(&world, &inside, "where tools can write");
    // Nor by a symlink from or to there.
    let link = world.root().join("bin/link");
    symlink(&inside, &link).unwrap();
    refuses(&world, &link, "where tools can write");
    let trusted = program(&world, "trusted", 0o755);
    symlink(&trusted, world.root().join("workspace/away")).unwrap();
    refuses(&world, &world.root().join("workspace/away"), "where tools can write");
    fs::set_permissions(world.root().join("bin"), fs::Permissions::from_mode(0o777)).unwrap();
    refuses(&world, &trusted, "which everyone can write to");
}

#[test]
fn gateway_can_restrict_the_commands() {
    let mut world = World::new();
    let tool = manifest("ls", "'{text}'");
    for allowed in [vec!["git", "ls"], vec!["/bin/ls"], vec!["/usr/bin/ls"]] {
        world.allowed = AllowedCommands::Only(allowed.into_iter().map(str::to_owned).collect());
        world.load(&tool).unwrap();
    }
    for allowed in [vec![], vec!["git"], vec!["cat", "lsof"], vec!["/opt/ls"]] {
        world.allowed = AllowedCommands::Only(allowed.into_iter().map(str::to_owned).collect());
        let why = world.load(&tool).unwrap_err();
        assert!(why.contains("`ls`") && why.contains("commands.allowed"), "{why}");
    }
    // A name in the list means the one program found by it.
    world.allowed = AllowedCommands::Only(vec!["ls".to_owned()]);
    refuses(&world, &program(&world, "ls", 0o755), "commands.allowed");
}

#[test]
fn replaced_program_is_not_run() {
    let world = World::new();
    let path = program(&world, "tool", 0o755);
    let (spec, policy) = resolve(&manifest("echo", "'{text}'"));
    let tool = CliTool::new(with_command(&spec, &path), &policy, &world.host()).unwrap();
    let (_, recorder) = world.recorded(&manifest("echo", "'{text}'"), said("done"));
    let tool = world.handlers(recorder.clone()).runnable(tool);
    assert!(call(&tool, &json!({ "text": "x" })).unwrap().outcome.is_ok());
    assert_eq!(recorder.last().view.binds[0].at, path);
    for replace in [
        |path: &Path| fs::write(path, "#!/bin/false, longer").unwrap(),
        |path: &Path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            fs::write(path, "#!/bin/true\n").unwrap();
        },
        |path: &Path| fs::remove_file(path).unwrap(),
    ] {
        replace(&path);
        let failure = call(&tool, &json!({ "text": "x" })).unwrap().outcome.unwrap_err();
        assert_eq!(failure.reason, Reason::JailUnavailable);
        assert!(failure.message.contains("reload"), "{}", failure.message);
        assert!(recorder.is_unused());
    }
}

#[test]
fn line_that_gives_options_to_the_caller_is_rejected() {
    let why = World::new().load(&manifest("tar", "'{text}'\n'-x'")).unwrap_err();
    assert!(why.contains("first argument as options"), "{why}");
    let why = World::new().load(&manifest("ls", "'-l{text}'")).unwrap_err();
    assert!(why.contains("more options"), "{why}");
    World::new().load(&manifest("grep", "'-m{count}'")).unwrap();
}

#[test]
fn value_does_not_continue_an_option_group() {
    let world = World::new();
    // The program is unknown: `K/path` after `-s` would be the option `-K`.
    for args in [
        "'-s{text}'",
        "'-s{text}.txt'",
        "'-s{count}{text}'",
        "'-s{count},{text}'",
        "'-s{path}{text}'",
        "{each: list, args: ['-s{item}']}",
    ] {
        let why = world.load(&manifest("echo", args)).unwrap_err();
        assert!(why.contains("more options") && why.contains("allowOption"), "{args}: {why}");
    }
    for args in [
        "'-n{count}'",
        "'-n{count},{count}'",
        "'-s{path}'",
        "{value: '-s{text}', allowOption: true}",
        "'-s'\n'{text}'",
        "'-s={text}'",
    ] {
        world.load(&manifest("echo", args)).unwrap();
    }
    let bounded = |by: &str| {
        let plain = manifest("echo", "'-s{text}'").replace("{text: x,", "{text: '5',");
        plain.replace("text: {type: string}", &format!("text: {{type: string, {by}}}"))
    };
    let tried = "examples: ['5'], x-misses: [y]";
    for by in [&format!("pattern: '^[0-9]+$', {tried}"), "enum: ['5', y]"] {
        world.load(&bounded(by)).unwrap();
    }
    assert!(world.load(&bounded(&format!("pattern: '^[0-9]', {tried}"))).is_err());
}

#[test]
fn working_directory_must_be_visible() {
    let blind = "
name: blind
description: Is tried. Returns text.
classification: read
handler: {cli: {command: ls, cwd: $WORKSPACE}}
";
    let why = World::new().load(blind).unwrap_err();
    assert!(why.contains("allowedPaths") && why.contains("$WORKSPACE"), "{why}");
}

/// The shipped shell with these operator overrides, and a document changed by `document` after its checks.
fn shell(operator: &str, document: impl FnOnce(&mut ToolSpec)) -> Result<CliTool, String> {
    shell_in(&World::new(), operator, document)
}

fn shell_in(world: &World, operator: &str, document: impl FnOnce(&mut ToolSpec)) -> Result<CliTool, String> {
    let (spec, _) = resolve(&crate::catalog::manifest("bash"));
    let mut spec = ToolSpec::clone(&spec);
    document(&mut spec);
    let text = format!("tools: {{bash: {{capability: {operator}}}}}");
    let user = UserOverrides::parse(&text, Format::Yaml).unwrap();
    let set = PolicySet::shipped().unwrap();
    let policy = toolgate_policy::resolve(&spec, &set, Some(&user)).unwrap();
    let program = program(world, "bash", 0o755);
    CliTool::new(with_command(&spec, &program), &policy, &world.host())
}

#[test]
fn only_the_operator_can_drop_approval_or_container_of_a_shell() {
    shell("{}", |_| ()).unwrap();
    let why = shell("{}", |spec| spec.governance.capability.approval.level = Some(ApprovalLevel::Auto));
    assert!(why.unwrap_err().contains("without approval"));
    for kind in [SandboxKind::Process, SandboxKind::None] {
        let why = shell("{}", |spec| spec.governance.capability.execution.sandbox = Some(kind));
        assert!(why.unwrap_err().contains("outside a container"));
    }
    let why = shell("{}", |spec| spec.governance.capability.extends = None);
    assert!(why.unwrap_err().contains("outside a container"));
    shell("{execution: {sandbox: process}, approval: {level: auto}}", |_| ()).unwrap();
}

#[test]
fn network_in_a_container_without_egress_is_rejected_with_its_remedy() {
    let network = "network: {access: limited, allowedHosts: [api.example.com]}";
    let networked = format!("{{{network}, execution: {{sandbox: container}}}}");
    let mut world = World::new();
    load_as(&world, "echo", &networked).unwrap();
    shell(&format!("{{{network}}}"), |_| ()).unwrap();
    world.container_egress = Err("there is none; do something about it");
    let why = load_as(&world, "echo", &networked).unwrap_err();
    for part in ["container", "do something about it", "`network.access` to `none`"] {
        assert!(why.contains(part), "{why}");
    }
    load_as(&world, "echo", "{execution: {sandbox: container}}").unwrap();
    load_as(&world, "echo", &format!("{{{network}}}")).unwrap();
}

/// The shipped defaults with `accessUpgradeable: proxy`.
#[test]
fn shell_may_be_approved_for_the_host_it_names() {
    let survey = |world: &World, operator: &str, arguments: &serde_json::Value| {
        shell_in(world, operator, |_| ())
            .unwrap()
            .survey(arguments.as_object().unwrap(), &StopFlag::default())
    };
    let mut world = World::new();
    let named = json!({ "command": "true", "host": "api.example.com" });
    let private = json!({ "command": "true", "host": "169.254.169.254" });
    for operator in ["{}", "{execution: {sandbox: process}}"] {
        let asked = survey(&world, operator, &named).unwrap();
        let sources: Vec<&str> = asked.questions.iter().map(|question| question.source.name()).collect();
        assert_eq!(sources, ["network"], "{operator}");
        assert!(survey(&world, operator, &json!({ "command": "true" })).unwrap().questions.is_empty());
        assert_eq!(survey(&world, operator, &private).err().unwrap().reason, Reason::HostNotAllowed);
    }
    // No approval is requested for a host that cannot be reached anyway.
    world.container_egress = Err("there is none");
    assert_eq!(survey(&world, "{}", &named).err().unwrap().reason, Reason::HostNotAllowed);
    assert_eq!(survey(&world, "{execution: {sandbox: process}}", &named).unwrap().questions.len(), 1);
}

/// A tool with this command, without checks of its text, with these operator overrides.
fn load_as(world: &World, command: &str, operator: &str) -> Result<CliTool, String> {
    let (spec, _) = resolve(&manifest("echo", "'{text}'"));
    let text = format!("tools: {{{}: {{capability: {operator}}}}}", spec.name);
    let user = UserOverrides::parse(&text, Format::Yaml).unwrap();
    let set = PolicySet::shipped().unwrap();
    let policy = toolgate_policy::resolve(&spec, &set, Some(&user)).unwrap();
    CliTool::new(with_command(&spec, Path::new(command)), &policy, &world.host())
}

fn load_in_image(world: &World, command: &str) -> Result<CliTool, String> {
    load_as(world, command, "{execution: {sandbox: container}}")
}

#[test]
fn program_of_a_container_comes_from_its_image() {
    let world = World::new();
    for command in ["onlyinimage", "/opt/onlyinimage"] {
        assert!(load_as(&world, command, "{}").unwrap_err().contains("not installed"));
        let (_, recorder) = world.recorded(&manifest("echo", "'{text}'"), said("done"));
        let tool = world.handlers(recorder.clone()).runnable(load_in_image(&world, command).unwrap());
        assert!(call(&tool, &json!({ "text": "x" })).unwrap().outcome.is_ok());
        let order = recorder.last();
        assert_eq!(order.argv, [command, "x"]);
        assert_eq!(order.sandbox, SandboxKind::Container);
    }
    // The host's program of that name is neither checked nor added to the container.
    let path = program(&world, "tool", 0o777);
    let (_, recorder) = world.recorded(&manifest("echo", "'{text}'"), said("done"));
    let tool = load_in_image(&world, &path.display().to_string()).unwrap();
    let tool = world.handlers(recorder.clone()).runnable(tool);
    fs::write(&path, "#!/bin/false, longer").unwrap();
    assert!(call(&tool, &json!({ "text": "x" })).unwrap().outcome.is_ok());
    assert!(recorder.last().view.binds.iter().all(|bind| bind.at != path));
}

#[test]
fn name_of_a_program_in_an_image_is_checked() {
    let mut world = World::new();
    for command in ["bin/tool", "./tool", "../tool", "..", "", "/", "/opt/../tool", "//tool", "/opt/", "-x"] {
        let why = load_in_image(&world, command).unwrap_err();
        assert!(why.contains("cannot name a program of an image"), "{command}: {why}");
    }
    // The workspace is visible in the container, and Docker runs programs in it.
    let inside = world.at("tool");
    assert!(load_in_image(&world, &inside).unwrap_err().contains("where tools can write"));
    // A shell is recognised by its name in every directory.
    for command in ["sh", "/opt/bash", "/usr/bin/env"] {
        let why = load_in_image(&world, command).unwrap_err();
        assert!(why.contains("without approval"), "{command}: {why}");
    }
    world.allowed = AllowedCommands::Only(vec!["tool".to_owned(), "/opt/other".to_owned()]);
    load_in_image(&world, "tool").unwrap();
    load_in_image(&world, "/opt/other").unwrap();
    for command in ["ls", "/opt/tool", "other"] {
        let why = load_in_image(&world, command).unwrap_err();
        assert!(why.contains("commands.allowed"), "{command}: {why}");
    }
}

#[test]
fn program_is_checked_under_its_symlink_target() {
    let world = World::new();
    for (name, part) in
        [("bash", "starts other programs"), ("python3.12", "interpreter"), ("ld-linux-x86-64.so.2", "starts")]
    {
        let link = world.root().join("bin/lister");
        symlink(program(&world, name, 0o755), &link).unwrap();
        refuses(&world, &link, part);
        fs::remove_file(&link).unwrap();
    }
    // A multi-call binary is identified by the name that it is called by.
    let (spec, policy) = resolve(&manifest("echo", "'{text}'"));
    let many = program(&world, "busybox", 0o755);
    let load = |name: &str| {
        let link = world.root().join("bin").join(name);
        symlink(&many, &link).unwrap();
        CliTool::new(with_command(&spec, &link), &policy, &world.host())
    };
    load("cat").unwrap();
    assert!(load("busybox-extras").is_err());
}

#[test]
fn conventions_apply_to_symlinks_of_a_program() {
    let world = World::new();
    let (spec, policy) = resolve(&manifest("echo", "'{text}'"));
    let load = |link: &str, file: &str| {
        let path = world.root().join("bin").join(link);
        symlink(program(&world, file, 0o755), &path).unwrap();
        CliTool::new(with_command(&spec, &path), &policy, &world.host())
    };
    let (_, recorder) = world.recorded(&manifest("echo", "'{text}'"), said(""));
    let tool = world.handlers(recorder.clone()).runnable(load("slogin", "ssh").unwrap());
    let refusal = call(&tool, &json!({ "text": "x;id" })).unwrap_err();
    assert!(refusal.message.contains("the remote shell"), "{refusal:?}");
    assert!(call(&tool, &json!({ "text": "host" })).is_ok());
    let why = load("lister", "tar").unwrap_err();
    assert!(why.contains("first argument as options"), "{why}");
    let why = load("cat", "find").unwrap_err();
    assert!(why.contains("reads its arguments differently"), "{why}");
}
