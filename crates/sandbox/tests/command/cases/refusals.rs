//! Tests that denials are reported, and that weak or invalid jails are rejected.

use std::{fs, os::unix::fs::symlink, path::Path};

use toolgate_sandbox::{Access, Attempt, CommandJail, Ending, Layer, LayerSet, Refused, SpawnError};

use super::{ended, shell, text};
use crate::driver::{
    CAPS, INSIDE, PATIENCE, Tier, bind, finish, folder, inside, jail, on_runtime, program, refusal, spawn,
};

pub fn refused_calls(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/unshare", &["-n", "true"]));
    let unshare = Refused::Syscall { name: "unshare".into(), detail: String::new() };
    assert!(report.refused.contains(&unshare), "{:?}", report.refused);
    assert!(matches!(report.ending, Ending::Exited(1..)));
    let report = finish(inside(tier, "internet-socket"));
    let socket = Refused::Syscall { name: "socket".into(), detail: "AF_INET".into() };
    assert!(report.refused.contains(&socket), "{:?}", report.refused);
}

pub fn refused_paths(tier: Tier) {
    let folder = folder();
    fs::write(folder.join("there"), "x").unwrap();
    let script = format!(
        "cat {0}/there {0}/absent; echo x > /usr/lib/x; cd /usr/lib; cat ../../etc/shadow",
        folder.display()
    );
    let report = finish(shell(tier, &script));
    let path = |path: &Path, access| Refused::Path { path: path.to_owned(), access };
    for expected in [
        path(&folder.join("there"), Attempt::Read),
        path(Path::new("/usr/lib/x"), Attempt::Write),
        path(Path::new("/etc/shadow"), Attempt::Read),
    ] {
        assert!(report.refused.contains(&expected), "{expected:?} is not in {:?}", report.refused);
    }
    assert!(!report.refused.contains(&path(&folder.join("absent"), Attempt::Read)), "{:?}", report.refused);
    let mut quiet = shell(tier, &script);
    quiet.trace = toolgate_sandbox::Trace::Off;
    assert_eq!(finish(quiet).refused, []);
}

/// Symlink targets, changes without opening, and a socket that may be a daemon's.
pub fn refused_by_other_ways(tier: Tier) {
    let (outside, open) = (folder(), folder());
    fs::create_dir(outside.join("deep")).unwrap();
    for name in ["there", "deep/there"] {
        fs::write(outside.join(name), "x").unwrap();
    }
    symlink(outside.join("there"), open.join("link")).unwrap();
    symlink(outside.join("deep"), open.join("folder")).unwrap();
    fs::write(open.join("mine"), "x").unwrap();
    let script = format!(
        "cd {}; cat link folder/there; chmod 600 mine; mkfifo pipe; touch -d yesterday mine; cat mine",
        open.display()
    );
    let mut order = shell(tier, &script);
    order.view.binds.push(bind(&open, Access::Read));
    let report = finish(order);
    assert_eq!(report.stdout, b"x", "what is granted is read: {}", String::from_utf8_lossy(&report.stderr));
    let path = |path: &Path, access| Refused::Path { path: path.to_owned(), access };
    for expected in [
        path(&outside.join("there"), Attempt::Read),
        path(&outside.join("deep/there"), Attempt::Read),
        path(&open.join("pipe"), Attempt::Write),
        path(&open.join("mine"), Attempt::Write),
    ] {
        let is_told = report.refused.contains(&expected);
        // Without a view modes and times cannot be changed at all, and the system call itself is reported.
        let is_call = tier == Tier::Landlock && expected == path(&open.join("mine"), Attempt::Write);
        assert!(is_told || is_call, "{expected:?} is not in {:?}", report.refused);
    }
    let report = finish(inside(tier, "daemons-socket"));
    assert!(report.refused.contains(&Refused::LookUp), "{:?}", report.refused);
}

/// A caller that leaves before the end still has the denials so far.
pub fn refusals_of_a_dropped_command(tier: Tier) {
    let folder = folder();
    fs::write(folder.join("there"), "x").unwrap();
    let script = format!("cat {}/there; sleep 600", folder.display());
    let expected = Refused::Path { path: folder.join("there"), access: Attempt::Read };
    on_runtime(async {
        let running = spawn(shell(tier, &script)).await.unwrap_or_else(|error| panic!("{error}"));
        let witness = running.witness();
        let told = async {
            while !witness().contains(&expected) {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            report = running.finish(Vec::new(), CAPS, PATIENCE) => panic!("it ended: {report:?}"),
            () = told => {}
        }
        assert!(witness().contains(&expected));
    });
}

/// Queries about a path without opening it. Without a view they are answered, and nothing is denied.
pub fn refused_questions(tier: Tier) {
    let (folder, open) = (folder(), folder());
    fs::create_dir_all(open.join("hidden")).unwrap();
    for name in ["access", "chdir"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    symlink("somewhere", folder.join("readlink")).unwrap();
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    let mut order = jail(tier, program(), &[INSIDE, "ask-about-paths", &name(&folder), &name(&open)]);
    order.view.binds.push(bind(&open, Access::Read));
    order.view.hidden = vec![open.join("hidden")];
    let report = finish(order);
    let told: Vec<&Path> = report
        .refused
        .iter()
        .filter_map(|refused| match refused {
            Refused::Path { path, access: Attempt::Read } => Some(path.as_path()),
            _ => None,
        })
        .collect();
    for path in [folder.join("access"), folder.join("chdir"), folder.join("readlink"), open.join("hidden")] {
        assert_eq!(
            told.contains(&path.as_path()),
            tier == Tier::Namespaces,
            "{} {:?}",
            path.display(),
            report.refused
        );
    }
    assert!(!told.contains(&folder.join("absent").as_path()), "{:?}", report.refused);
}

/// Creating an existing file reports that it exists, and a readable one can be read.
pub fn made_where_something_is(tier: Tier) {
    let open = folder();
    let name = open.to_str().unwrap().to_owned();
    let mut order = jail(tier, program(), &[INSIDE, "make-what-is-there", &name]);
    order.view.binds.push(bind(&open, Access::Write));
    let report = finish(order);
    ended(&report, 0);
    assert_eq!(text(&report), "neither made nor refused\n");
    let new = Refused::Path { path: "/usr/bin/made".into(), access: Attempt::Write };
    assert_eq!(report.refused, [new], "what is not there is, and nothing else");
}

pub fn flood(tier: Tier) {
    let folder = folder();
    fs::write(folder.join("there"), "x").unwrap();
    let name = folder.join("there").to_str().unwrap().to_owned();
    let report = finish(jail(tier, program(), &[INSIDE, "flood-and-read", &name]));
    let path = Refused::Path { path: folder.join("there"), access: Attempt::Read };
    let calls = report.refused.iter().filter(|told| matches!(told, Refused::Syscall { .. })).count();
    assert!(report.refused.contains(&path), "{:?}", report.refused);
    assert_eq!((calls, report.refused_beyond, report.paths_beyond), (10, 140, 0), "{:?}", report.refused);
}

pub fn too_weak() {
    let mut order = jail(Tier::Landlock, "/usr/bin/true", &[]);
    order.required = LayerSet::of(&[Layer::PrivateView, Layer::PidNamespace]);
    match refusal(order) {
        SpawnError::TooWeak { missing } => assert_eq!(missing, ["private-view", "pid-namespace"]),
        other => panic!("{other}"),
    }
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    order.required = order.required.with_landlock(200);
    match refusal(order) {
        SpawnError::TooWeak { missing } => assert_eq!(missing, ["landlock-200"]),
        other => panic!("{other}"),
    }
    // Only containers have this layer.
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    order.required = LayerSet::of(&[Layer::SameFiles]);
    match refusal(order) {
        SpawnError::TooWeak { missing } => assert_eq!(missing, ["same-files"]),
        other => panic!("{other}"),
    }
}

pub fn nonsense() {
    let make = |change: fn(&mut CommandJail)| {
        let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
        change(&mut order);
        refusal(order)
    };
    let changes: [fn(&mut CommandJail); 8] = [
        |order| order.program = "true".into(),
        |order| order.argv.clear(),
        |order| order.argv.push("a\0b".into()),
        |order| order.env.push(("A=B".into(), "x".into())),
        |order| order.cwd = "/usr/../etc".into(),
        |order| order.view.binds.push(bind(Path::new("/"), Access::Read)),
        |order| order.view.hidden.push("relative".into()),
        |order| order.view.binds.push(bind(Path::new("/dev/shm"), Access::Write)),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(matches!(make(change), SpawnError::Invalid(_)), "change {number}");
    }
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    order.view.binds.push(bind(Path::new("/no/such/source"), Access::Read));
    assert!(matches!(refusal(order), SpawnError::Failed(why) if why.contains("/no/such/source")));
}
