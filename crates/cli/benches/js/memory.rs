//! What memory does a worker have for itself alone? Read from the kernel, for the process that this one has started.

use std::{collections::BTreeSet, fs};

use crate::{
    measure::{Goal, heading},
    ours::{Gateway, Tool},
    work,
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Length {
    Short,
    Soak,
}

pub fn run(length: Length) {
    heading("Private dirty memory of one worker, in MiB");
    let before = children();
    let gateway = Gateway::of_one_worker();
    let started: Vec<u32> = children().difference(&before).copied().collect();
    let [worker] = started[..] else {
        println!("  not measured: {} new processes instead of one worker", started.len());
        return;
    };
    let Some(idle) = private_dirty(worker) else {
        println!("  not measured: the kernel does not show /proc/PID/smaps_rollup of a worker to this user");
        return;
    };
    Goal::AtMost(8.0).report("idle, after its start", idle, " MiB");
    // Each kind of body but the long loop, which touches nothing.
    let works: Vec<work::Work> = work::all().into_iter().filter(|work| work.name != "w3").collect();
    let tools: Vec<Tool> = works.iter().map(Tool::new).collect();
    let mut done = 0;
    for goal in [1_000, 100_000].into_iter().take(if length == Length::Soak { 2 } else { 1 }) {
        for number in done..goal {
            gateway.value(&tools[number % tools.len()]);
        }
        done = goal;
        let memory = private_dirty(worker).expect("the worker is still the same");
        println!("  {:<64} {memory:>8.2} MiB", format!("after {done} calls"));
    }
}

fn children() -> BTreeSet<u32> {
    let processes = fs::read_dir("/proc").expect("there is /proc").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent(*id) == Some(std::process::id())).collect()
}

/// The second field behind the name, which is in parentheses and may hold anything.
fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn private_dirty(process: u32) -> Option<f64> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Private_Dirty:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
