use std::{fs, path::Path};

use super::{super::CommandLimits, *};

fn watch(proc: &Path, whom: Whom) -> Watch {
    Watch { proc: File::open(proc).unwrap().into(), top: 1, whom }
}

/// Numbers that no process has, so none of them counts as alive.
const A: i32 = i32::MAX - 3;
const B: i32 = i32::MAX - 2;
const C: i32 = i32::MAX - 1;
const OTHER: i32 = i32::MAX;

fn write(proc: &Path, process: i32, children: &str, held: u64) {
    let folder = proc.join(format!("{process}/task/{process}"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("children"), children).unwrap();
    let status = format!("Name:\tx\nRssAnon:\t {held} kB\nRssShmem:\t 1 kB\n");
    fs::write(proc.join(format!("{process}/status")), status).unwrap();
}

#[test]
fn every_process_is_counted_once() {
    let proc = tempfile::tempdir().unwrap();
    for (process, children, held) in [
        (1, format!("{A} {B}"), 10),
        (A, C.to_string(), 20),
        (B, String::new(), 30),
        (C, A.to_string(), 40),
        (OTHER, String::new(), 999),
    ] {
        write(proc.path(), process, &children, held);
    }
    let descendants = watch(proc.path(), Whom::Descendants);
    assert_eq!(descendants.family().unwrap(), BTreeSet::from([1, A, B, C]));
    let own = (20 + 30 + 40 + 3) * 1024;
    for limit in [0, u64::MAX] {
        assert_eq!(descendants.held(limit).unwrap(), own);
        assert_eq!(watch(proc.path(), Whom::All).held(limit).unwrap(), own + 1000 * 1024);
    }
}

/// Ended and hidden processes look the same; only ended ones may be left out.
#[test]
fn hidden_processes_are_distinguished_from_ended_ones() {
    let proc = tempfile::tempdir().unwrap();
    write(proc.path(), 1, &A.to_string(), 10);
    assert_eq!(watch(proc.path(), Whom::Descendants).held(0).unwrap(), 0);
    let own = std::process::id();
    write(proc.path(), 1, &own.to_string(), 10);
    let error = watch(proc.path(), Whom::Descendants).held(0).unwrap_err();
    assert_eq!(error.to_string(), format!("process {own} is hidden from the gateway"));
}

#[test]
fn counting_fails_if_processes_are_invisible() {
    let proc = tempfile::tempdir().unwrap();
    let mut memory = Memory::new(1, None);
    write(proc.path(), 1, &std::process::id().to_string(), 10);
    assert!(memory.count(Ok(watch(proc.path(), Whom::Descendants))).is_err());
    assert!(memory.count(Err(io::ErrorKind::NotFound.into())).is_err());
    let group = ControlGroup::make_in(proc.path(), "group", &LIMITS).unwrap();
    assert!(Memory::new(1, Some(group)).count(Err(io::ErrorKind::NotFound.into())).is_ok());
}

#[test]
fn page_tables_swap_and_huge_pages_count() {
    let proc = tempfile::tempdir().unwrap();
    let (thread, leader) = (proc.path().join("7/task/8"), proc.path().join("7"));
    fs::create_dir_all(&thread).unwrap();
    fs::write(leader.join("status"), "Name:\tx\nState:\tZ (zombie)\n").unwrap();
    let watch = watch(proc.path(), Whom::All);
    assert_eq!(watch.resident(7).unwrap(), None, "no thread has it");
    let status = "RssAnon:\t 1 kB\nRssShmem:\t 2 kB\nVmPTE:\t 4 kB\nVmSwap:\t 8 kB\nHugetlbPages:\t 16 kB\n";
    fs::write(thread.join("status"), status).unwrap();
    assert_eq!(watch.resident(7).unwrap(), Some(31 * 1024), "of a thread whose leader has ended");
    fs::write(thread.join("smaps_rollup"), "Pss_Anon: 32 kB\nPss_Shmem: 64 kB\nSwapPss: 128 kB\n").unwrap();
    assert_eq!(watch.proportional(7).unwrap(), Some((32 + 64 + 128 + 4 + 16) * 1024));
}

#[test]
fn memory_of_a_child_is_measured() {
    let own = rustix::process::getpid();
    let mut child = std::process::Command::new("/bin/sleep").arg("60").spawn().unwrap();
    let watch = Watch::descendants_of(own).unwrap();
    assert!(watch.held(4096).unwrap() > 4096);
    assert!((1..1 << 30).contains(&watch.held(1 << 50).unwrap()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn group_that_ran_out_of_memory_reports_its_limit() {
    let above = tempfile::tempdir().unwrap();
    let group = ControlGroup::make_in(above.path(), "one", &LIMITS).unwrap();
    let memory = Memory::new(LIMITS.memory_bytes, Some(group));
    assert_eq!((memory.was_out(), memory.most()), (false, 0));
    fs::write(above.path().join("one/memory.events"), "oom 1\noom_kill 3\n").unwrap();
    assert_eq!((memory.was_out(), memory.most()), (true, 1 << 20));
}

const LIMITS: CommandLimits =
    CommandLimits { memory_bytes: 1 << 20, cpu_seconds: 1, processes: 1, open_files: 1, file_bytes: 1 };
