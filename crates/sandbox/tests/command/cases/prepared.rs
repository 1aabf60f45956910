//! Tests that prepared jails are as strong as new ones, used once, and dropped when the host changes.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use rustix::process::Pid;
use toolgate_sandbox::{Access, CommandJail, CommandReport, Jailer, Running};

use super::{
    ended,
    ends::{children_of, jailers, until},
    shell, text,
};
use crate::driver::{
    CAPS, CHANGER, GATEWAY, PATIENCE, PLACED, Tier, bind, folder, is_root, on_runtime, program,
};

/// Namespace numbers are reused, so all of these are alive at the same time.
pub fn new_namespaces() {
    let jailer = OwnJailer::start(4);
    let script = format!("for n in {KINDS}; do readlink /proc/self/ns/$n; done; sleep 1");
    let order = || shell(Tier::Namespaces, &script);
    jailer.prepare(&order());
    jailer.prepare(&order());
    let reports: Vec<CommandReport> = on_runtime(async {
        // Two in prepared jails, one in a new one.
        let (one, two) = (jailer.start_one(order()).await, jailer.start_one(order()).await);
        assert_eq!(jailer.jailer.prepared(), 0);
        let all = [one, two, jailer.start_one(order()).await];
        let [one, two, three] = all.map(|running| running.finish(Vec::new(), CAPS, PATIENCE));
        let (one, two, three) = tokio::join!(one, two, three);
        vec![one, two, three]
    });
    let own = KINDS.split(' ').map(|kind| fs::read_link(format!("/proc/self/ns/{kind}")).unwrap());
    let mut seen: BTreeSet<String> = own.map(|id| id.display().to_string()).collect();
    for report in &reports {
        ended(report, 0);
        let ids: Vec<&str> = text(report).lines().collect();
        assert_eq!(ids.len(), KINDS.split(' ').count(), "{ids:?}");
        for id in ids {
            // Root gets no user namespace.
            let is_new = seen.insert(id.to_owned());
            assert_eq!(is_new, !(id.starts_with("user:") && is_root()), "{id} of {seen:?}");
        }
    }
    let layers: Vec<_> = reports.iter().map(|report| report.strength.names()).collect();
    assert!(layers.iter().all(|names| *names == layers[2]), "{layers:?}");
}

/// The supervisor of a prepared jail ends with its command, and everything the command left behind is gone.
pub fn used_once() {
    let jailer = OwnJailer::start(4);
    let order = || shell(Tier::Namespaces, "cat /tmp/left; echo x > /tmp/left; sleep 600 & exit 3");
    jailer.prepare(&order());
    let prepared = jailer.supervisors();
    assert_eq!(prepared.len(), 1);
    for _ in 0..3 {
        let report = jailer.run(order());
        ended(&report, 3);
        assert_eq!(text(&report), "");
    }
    until("the first has ended", || !jailer.supervisors().contains(&prepared[0]));
}

/// After a command some jails wait for similar commands: at most as many as configured, and none if preparation is
/// off.
pub fn refilled_within_bounds() {
    let jailer = OwnJailer::start(1);
    assert_eq!(jailer.jailer.prepared(), 0, "none before the first command");
    ended(&jailer.run(shell(Tier::Namespaces, "exit 0")), 0);
    until("one waits", || jailer.jailer.prepared() == 1);
    let mut other = shell(Tier::Namespaces, "exit 0");
    other.limits.open_files += 1;
    ended(&jailer.run(other), 0);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(jailer.jailer.prepared(), 1);
    drop(jailer);

    let off = OwnJailer::start(0);
    ended(&off.run(shell(Tier::Namespaces, "exit 0")), 0);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(off.jailer.prepared(), 0);
    until("nobody is left", || off.supervisors().is_empty());
}

pub fn ends_with_the_jailer() {
    let jailer = OwnJailer::start(4);
    jailer.prepare(&shell(Tier::Namespaces, "exit 0"));
    jailer.prepare(&shell(Tier::Namespaces, "exit 0"));
    let all = all_below(jailer.process);
    assert_eq!(all.len(), 6);
    drop(jailer);
    until("all are gone", || all.iter().all(|process| !lives(*process)));
}

pub fn ends_with_the_gateway() {
    let mut gateway = Command::new(program());
    gateway.env(PLACED, "1").args([GATEWAY, "Prepared -"]).stdout(Stdio::null()).stdin(Stdio::null());
    let mut gateway = gateway.spawn().unwrap();
    let below = || all_below(Pid::from_child(&gateway));
    // The jailer, and for each jail a supervisor, the first process and the one that becomes the command.
    until("they wait", || below().len() == 7);
    let all = below();
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    until("all are gone", || all.iter().all(|process| !lives(*process)));
}

/// The other side of `ends_with_the_gateway`.
pub fn be_a_waiting_gateway() -> ExitCode {
    let jailer = OwnJailer::start(4);
    jailer.prepare(&shell(Tier::Namespaces, "exit 0"));
    jailer.prepare(&shell(Tier::Namespaces, "exit 0"));
    thread::sleep(PATIENCE);
    ExitCode::FAILURE
}

/// In its own mount namespace, where mounts may change.
pub fn stale_jails_are_not_used() {
    let folder = folder();
    for file in ["etc/localtime", "other/file", "work/file"] {
        fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        fs::write(folder.join(file), "before\n").unwrap();
    }
    fs::write(folder.join("other/file"), "after\n").unwrap();
    let mut changer = Command::new("unshare");
    changer.args(["--mount", "--propagation", "private"]).env(PLACED, "1");
    if !is_root() {
        changer.arg("--map-root-user");
    }
    let output = changer.arg(program()).arg(CHANGER).arg(&folder).output().unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "mounted: dropped, after\nunmounted: dropped, before\nreplaced: after\n", "{wrong}");
}

/// The other side of `stale_jails_are_not_used`.
pub fn be_a_changer(folder: &Path) -> ExitCode {
    let (work, etc) = (folder.join("work"), folder.join("etc"));
    rustix::mount::mount_bind(&etc, "/etc").unwrap();
    let jailer = OwnJailer::start(4);
    let order = || {
        let mut order = shell(Tier::Namespaces, &format!("cat {}/file", work.display()));
        order.view.binds.push(bind(&work, Access::Read));
        order
    };
    jailer.prepare(&order());
    rustix::mount::mount_bind(folder.join("other"), &work).unwrap();
    until("it is dropped", || jailer.supervisors().is_empty());
    print!("mounted: dropped, {}", text(&jailer.run(order())));

    jailer.prepare(&order());
    rustix::mount::unmount(&work, rustix::mount::UnmountFlags::empty()).unwrap();
    until("it is dropped", || jailer.supervisors().is_empty());
    print!("unmounted: dropped, {}", text(&jailer.run(order())));

    let order = || shell(Tier::Namespaces, "cat /etc/localtime");
    jailer.prepare(&order());
    fs::copy(folder.join("other/file"), etc.join("new")).unwrap();
    fs::rename(etc.join("new"), etc.join("localtime")).unwrap();
    print!("replaced: {}", text(&jailer.run(order())));
    ExitCode::SUCCESS
}

/// A separate jailer, so prepared jails do not affect other cases.
struct OwnJailer {
    jailer: Jailer,
    process: Pid,
}

impl OwnJailer {
    fn start(prepared: usize) -> Self {
        let before = jailers();
        let jailer = Jailer::start_with(program(), prepared).unwrap();
        let process = jailers().into_iter().find(|process| !before.contains(process)).unwrap();
        Self { jailer, process }
    }

    fn supervisors(&self) -> Vec<Pid> {
        children_of(self.process)
    }

    /// Jails that are complete except for what depends on the command.
    fn waiting(&self) -> usize {
        self.supervisors().into_iter().filter(|one| all_below(*one).len() == 2).count()
    }

    /// Returns when the jail waits.
    fn prepare(&self, order: &CommandJail) {
        let before = self.waiting();
        self.jailer.prepare(order).unwrap();
        until("it is prepared", || self.waiting() > before);
        // The last process exists, but may not wait yet.
        thread::sleep(Duration::from_millis(50));
    }

    fn run(&self, order: CommandJail) -> CommandReport {
        on_runtime(async { self.start_one(order).await.finish(Vec::new(), CAPS, PATIENCE).await })
    }

    async fn start_one(&self, order: CommandJail) -> Running {
        self.jailer.spawn(order).await.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// All descendants of a process.
fn all_below(process: Pid) -> Vec<Pid> {
    let mut all = children_of(process);
    let mut next = 0;
    while let Some(one) = all.get(next).copied() {
        all.extend(children_of(one));
        next += 1;
    }
    all
}

/// A zombie does not count as alive.
fn lives(process: Pid) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

const KINDS: &str = "mnt pid net ipc uts cgroup user";
