//! The cost of a sandboxed JavaScript call compared with other ways to run the same code. All variants run in turn in one
//! loop, so noise affects them equally; only the ratios count.
//!
//! `--quick` runs fewer rounds, `--few` compares with the bare engine only. Both skip the 100,000 calls to one worker unless
//! `--soak` is given. npm peers are measured if `scripts/bench-peers` has installed them.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run shall say so"
)]

mod deadline;
mod duel;
mod images;
mod measure;
mod memory;
mod native;
mod ours;
mod peers;
mod spawned;
mod start;
mod throughput;
mod variant;
mod work;

use crate::{ours::WorkerPool, variant::EngineVariant, work::BenchBody};

fn main() {
    let flags: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    if has(spawned::ONE_CALL) {
        return spawned::answer_one_call();
    }
    let effort = if has("--quick") { Effort::Quick } else { Effort::Full };
    let works = work::all();
    let mut variants = variants();
    if has("--few") {
        variants.truncate(2);
    }
    duel::run(&works, &mut variants, effort);
    throughput::run(&works, &mut variants, effort);
    drop(variants);
    images::run(effort);
    deadline::run();
    start::run(effort);
    let is_short = (has("--quick") || has("--few")) && !has("--soak");
    memory::run(if is_short { memory::Length::Short } else { memory::Length::Long });
}

/// The number of rounds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effort {
    Quick,
    Full,
}

impl Effort {
    pub fn rounds(self, full: usize) -> usize {
        match self {
            Self::Quick => (full / 10).max(3),
            Self::Full => full,
        }
    }
}

/// The first is Toolgate; the second is the reference for ratios.
fn variants() -> Vec<Box<dyn EngineVariant>> {
    let mut variants: Vec<Box<dyn EngineVariant>> = vec![
        Box::new(WorkerPool::new()),
        Box::new(native::Native::bare()),
        Box::new(native::Native::with_prelude()),
        Box::new(spawned::Spawned::same_engine()),
    ];
    match peers::find() {
        Ok(found) => variants.extend(found),
        Err(why) => println!("without the peers from npm: {why}"),
    }
    variants
}
