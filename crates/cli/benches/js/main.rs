//! What does a jailed JavaScript call cost, beside the other ways to run the same code? Everything in one run, and
//! all variants in turn within one loop, so that a noisy machine disturbs them alike: the ratios count.
//!
//! `--quick` takes fewer rounds, `--few` compares with the bare engine alone; both leave out the 100,000 calls to one worker,
//! unless `--soak` asks for them.
//! Peers from npm are measured when `scripts/bench-peers` has installed them.
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

use crate::{ours::Gateway, variant::Variant, work::Work};

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

/// How many rounds?
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

/// The first is ours and the second is what the others are compared with.
fn variants() -> Vec<Box<dyn Variant>> {
    let mut variants: Vec<Box<dyn Variant>> = vec![
        Box::new(Gateway::new()),
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
