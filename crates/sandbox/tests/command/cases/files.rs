//! Tests which files a command sees and what it may do with them.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::OwnedFd,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use toolgate_sandbox::{Access, Attempt, Bind, Ending, Refused, Source, SpawnError};

use super::{ended, shell, text};
use crate::driver::{Tier, bind, finish, folder, jail, program, refusal};

pub fn bound_file(tier: Tier) {
    let folder = folder();
    fs::write(folder.join("open"), "granted").unwrap();
    fs::write(folder.join("other"), "not granted").unwrap();
    symlink("other", folder.join("link")).unwrap();
    let read = |name: &str| {
        let mut order = jail(tier, "/bin/cat", &[folder.join(name).to_str().unwrap()]);
        order.view.binds.push(bind(&folder.join("open"), Access::Read));
        finish(order)
    };
    assert_eq!(text(&read("open")), "granted");
    for name in ["other", "link"] {
        let report = read(name);
        assert_eq!((text(&report), &report.ending), ("", &Ending::Exited(1)), "{name}");
    }
}

pub fn writing(tier: Tier) {
    let folder = folder();
    let (read, write) = (folder.join("read"), folder.join("write"));
    for path in [&read, &write] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("old"), "old").unwrap();
    }
    let script = format!(
        "cd {0}; echo new > old; echo x > made; mkdir d; mv old d/moved; rm -f made
         cd {1}; echo new > old; echo x > made; mkdir d; mv old renamed; rm -f old; chmod 777 old; true",
        write.display(),
        read.display()
    );
    let mut order = shell(tier, &script);
    order.view.binds.push(bind(&read, Access::Read));
    order.view.binds.push(bind(&write, Access::Write));
    let report = finish(order);
    ended(&report, 0);
    assert_eq!(fs::read_to_string(write.join("d/moved")).unwrap(), "new\n");
    let made = fs::metadata(write.join("d")).unwrap();
    assert_eq!(made.uid(), rustix::process::geteuid().as_raw(), "files belong to the gateway's user");
    assert_eq!(fs::read_dir(&read).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(read.join("old")).unwrap(), "old");
    let old = Refused::Path { path: read.join("old"), access: Attempt::Write };
    assert!(report.refused.contains(&old), "{:?}", report.refused);
}

pub fn hidden(tier: Tier) {
    let folder = folder();
    fs::create_dir_all(folder.join("deep/secrets")).unwrap();
    for name in ["plain", "deep/plain", "deep/secrets/key", ".env"] {
        fs::write(folder.join(name), "content").unwrap();
    }
    symlink("deep/secrets/key", folder.join("link")).unwrap();
    let paths = ["plain", "deep/plain", "deep/secrets/key", ".env", "link", "deep/secrets/../secrets/key"];
    for (name, shown) in paths.into_iter().zip([true, true, false, false, false, false]) {
        for access in [Access::Read, Access::Write] {
            let mut order = jail(tier, "/bin/cat", &[folder.join(name).to_str().unwrap()]);
            order.view.binds.push(bind(&folder, access));
            order.view.hidden =
                vec![folder.join("deep/secrets"), folder.join(".env"), "/no/such/path".into()];
            let report = finish(order);
            assert_eq!(text(&report) == "content", shown, "{name} {access:?} {report:?}");
        }
    }
    let script = format!(
        "cd {0} && ls deep/secrets; mv deep/secrets x; rm -rf deep/secrets .env; ls x",
        folder.display()
    );
    let mut order = shell(tier, &script);
    order.view.binds.push(bind(&folder, Access::Write));
    order.view.hidden = vec![folder.join("deep/secrets"), folder.join(".env")];
    let report = finish(order);
    // `mv` across mounts first creates a directory with the mask's mode, which an ordinary user could not remove.
    let _ = fs::set_permissions(folder.join("x"), fs::Permissions::from_mode(0o755));
    assert_eq!(text(&report), "", "{report:?}");
    assert_eq!(fs::read_to_string(folder.join("deep/secrets/key")).unwrap(), "content");
    assert_eq!(fs::read_to_string(folder.join(".env")).unwrap(), "content");
}

/// Also in system directories; programs next to it still run.
pub fn hidden_in_system(tier: Tier) {
    let script = "cat /dev/null || echo hidden; head -c 2 /usr/bin/head > /dev/null && echo runs";
    for (hidden, said) in [(&[][..], "runs\n"), (&["/usr/bin/cat"][..], "hidden\nruns\n")] {
        let mut order = shell(tier, script);
        order.view.hidden = hidden.iter().map(Into::into).collect();
        let report = finish(order);
        assert_eq!(text(&report), said, "{report:?}");
    }
}

/// A missing path need not be hidden, and must not split grants.
pub fn absent_in_system(tier: Tier) {
    let mut order = shell(tier, "ls /usr > /dev/null && ls /usr/bin > /dev/null && echo listed");
    order.view.hidden = vec!["/usr/bin/no-such-program".into(), "/usr/no/such/folder".into()];
    let report = finish(order);
    assert_eq!(text(&report), "listed\n", "{report:?}");
}

/// A system file with two hard links, one of them hidden: the other must not open it.
pub fn hard_links_in_system(tier: Tier) {
    let Some((hidden, other)) = two_names_in_system() else {
        println!("no program here has two names: not tried");
        return;
    };
    let first_byte = |path: &Path, hidden: &[&Path]| {
        let mut order = jail(tier, "/usr/bin/head", &["-c", "1", path.to_str().unwrap()]);
        order.view.hidden = hidden.iter().map(|&path| path.into()).collect();
        finish(order).stdout.len()
    };
    assert_eq!(first_byte(&hidden, &[]), 1, "{}", hidden.display());
    assert_eq!(first_byte(&hidden, &[&hidden]), 0, "{}", hidden.display());
    // In a view paths are masked, and the other hard link is root's to remove.
    if tier == Tier::Landlock {
        assert_eq!(first_byte(&other, &[&hidden]), 0, "{}", other.display());
    }
}

/// Found, not created: tests do not write to `/usr`. Never a program that the case itself runs.
fn two_names_in_system() -> Option<(PathBuf, PathBuf)> {
    let runs = [fs::metadata("/usr/bin/head").unwrap().ino(), fs::metadata("/bin/sh").unwrap().ino()];
    let mut known = BTreeMap::new();
    for entry in fs::read_dir("/usr/bin").unwrap() {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        let is_plain = about.is_file() && about.nlink() > 1 && about.mode() & 0o004 != 0 && about.size() > 0;
        if !is_plain || runs.contains(&about.ino()) {
            continue;
        }
        if let Some(other) = known.insert(about.ino(), path.clone()) {
            return Some((path, other));
        }
    }
    None
}

pub fn hard_links(tier: Tier) {
    let folder = folder();
    fs::create_dir_all(folder.join("secrets")).unwrap();
    fs::create_dir_all(folder.join("open/deep")).unwrap();
    fs::write(folder.join("secrets/key"), "content").unwrap();
    fs::hard_link(folder.join("secrets/key"), folder.join("open/deep/innocent")).unwrap();
    let mut order = jail(tier, "/bin/cat", &[folder.join("open/deep/innocent").to_str().unwrap()]);
    order.view.binds.push(bind(&folder, Access::Write));
    order.view.hidden = vec![folder.join("secrets")];
    match tier {
        Tier::Namespaces => assert_eq!(text(&finish(order)), ""),
        Tier::Landlock => {
            assert!(matches!(refusal(order), SpawnError::Failed(why) if why.contains("innocent")));
        }
    }
}

pub fn no_execution(tier: Tier) {
    let folder = folder();
    let tool = folder.join("tool");
    fs::copy("/usr/bin/true", &tool).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    for (access, runs) in [(Access::Read, false), (Access::Write, false), (Access::Execute, true)] {
        let mut order = jail(tier, &tool, &[]);
        order.view.binds.push(bind(&folder, access));
        let report = finish(order);
        assert_eq!(report.ending == Ending::Exited(0), runs, "{access:?} {report:?}");
    }
}

pub fn own_tmp() {
    let outside = folder();
    let report = finish(shell(
        Tier::Namespaces,
        &format!(
            "ls /tmp; echo x > /tmp/x; head -c 100000000 /dev/zero > /tmp/big; wc -c < /tmp/big; cp /bin/true /tmp/t; /tmp/t; echo $?; ls {}",
            outside.display()
        ),
    ));
    let said = text(&report);
    let own = program().parent().unwrap().file_name().unwrap().to_str().unwrap();
    assert!(said.starts_with(&format!("{own}\n")), "{said}");
    let size: u64 = said.lines().nth(1).unwrap().parse().unwrap();
    assert!(size <= 16 << 20, "{size}");
    assert_eq!(said.lines().nth(2), Some("126"), "nothing in there can be run");
    assert!(!Path::new("/tmp/x").exists() && !Path::new("/tmp/big").exists());
}

pub fn view() {
    let report = finish(shell(
        Tier::Namespaces,
        "ls -A /; echo --; ls -A /etc /dev; echo --; echo x > /x; mkdir /usr/x; ls -A /proc",
    ));
    let said = text(&report);
    let root: Vec<&str> = said.lines().take_while(|line| *line != "--").collect();
    let known = ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr"];
    assert!(root.iter().all(|name| known.contains(name)), "{root:?}");
    assert!(!said.contains("shadow") && !said.contains("hostname"), "{said}");
    let processes = said.rsplit("--\n").next().unwrap();
    assert!(!processes.lines().any(|line| line == "1" || line == "sys"), "{processes}");
    let groups = finish(jail(Tier::Namespaces, "/bin/cat", &["/proc/self/cgroup"]));
    assert!(text(&groups).lines().all(|line| line.ends_with(":/")), "{groups:?}");
}

pub fn opened_source() {
    let folder = folder();
    let real = folder.join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("file"), "content").unwrap();
    let open = |path: &Path| -> OwnedFd {
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap()
    };
    let cat = |opened| {
        let mut order = jail(Tier::Namespaces, "/bin/cat", &["/granted/file"]);
        let source = Source::Opened(opened);
        order.view.binds.push(Bind { source, at: "/granted".into(), access: Access::Read });
        order
    };
    assert_eq!(text(&finish(cat(open(&real)))), "content");
    // Checked, then replaced by a symlink to another directory.
    let opened = open(&real);
    fs::rename(&real, folder.join("moved")).unwrap();
    symlink("/etc", &real).unwrap();
    let moved = finish(cat(opened));
    assert_eq!(text(&moved), "content", "a folder that was moved is still itself");
    let opened = open(&folder.join("moved"));
    fs::remove_dir_all(folder.join("moved")).unwrap();
    fs::create_dir(folder.join("moved")).unwrap();
    assert!(matches!(refusal(cat(opened)), SpawnError::Failed(_)));
}

pub fn link_in_target() {
    let folder = folder();
    fs::create_dir(folder.join("write")).unwrap();
    symlink("/etc", folder.join("write/link")).unwrap();
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    order.view.binds.push(bind(&folder.join("write"), Access::Write));
    let at = folder.join("write/link/inner");
    order.view.binds.push(Bind { source: Source::Path(folder.clone()), at, access: Access::Read });
    assert!(matches!(refusal(order), SpawnError::Failed(why) if why.contains("is a symlink")));
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    order.view.binds.push(bind(Path::new("/proc"), Access::Read));
    assert!(matches!(refusal(order), SpawnError::Invalid(_)));
    symlink("/proc", folder.join("write/proc")).unwrap();
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    let source = Source::Path(folder.join("write/proc"));
    order.view.binds.push(Bind { source, at: "/harmless".into(), access: Access::Read });
    assert!(matches!(refusal(order), SpawnError::Failed(why) if why.contains("/proc")));
}

pub fn hidden_twice() {
    let folder = folder();
    fs::create_dir_all(folder.join("work/secret")).unwrap();
    fs::write(folder.join("work/secret/key"), "content").unwrap();
    symlink(folder.join("work/secret"), folder.join("work/link")).unwrap();
    // Named through the symlink, and by both paths.
    for hidden in [&["link"][..], &["link", "secret"]] {
        let mut order =
            shell(Tier::Namespaces, "cat /one/secret/key /two/key /three /one/link/key; ls -A /one");
        for (source, at) in [("work", "/one"), ("work/secret", "/two"), ("work/secret/key", "/three")] {
            let source = Source::Path(folder.join(source));
            order.view.binds.push(Bind { source, at: at.into(), access: Access::Write });
        }
        order.view.hidden = hidden.iter().map(|name| folder.join("work").join(name)).collect();
        let report = finish(order);
        assert_eq!(text(&report), "link\nsecret\n", "{hidden:?}");
    }
}
