//! The latency of one call. All variants run in turn, in a different order each round.
//!
//! A turn is a few calls. The first one runs with the caches of the previous variant; the column `first` shows its median.
//! The other columns and the ratios use all calls.

use std::time::Duration;

use crate::{
    BenchBody, Effort, EngineVariant,
    measure::{RatioGoal, Times, heading, micros, ratio},
    variant::VariantKind,
};

pub fn run(works: &[BenchBody], variants: &mut [Box<dyn EngineVariant>], effort: Effort) {
    println!("Peers inside Node tell the time they measured themselves; all other times are the caller's.");
    for work in works {
        let rounds = effort.rounds(work.rounds).div_ceil(TURN);
        let times = take_turns(work, variants, rounds);
        let rows: Vec<(VariantKind, VariantTimes)> =
            variants.iter().map(|variant| variant.kind()).zip(times).collect();
        heading(&format!(
            "{}, {}: latency in µs, {rounds} rounds of {TURN} calls each",
            work.name, work.title,
        ));
        print(&rows);
        compare(work, &rows);
    }
}

/// The times of one variant.
#[derive(Clone, Default)]
struct VariantTimes {
    all: Times,
    first: Times,
}

fn take_turns(work: &BenchBody, variants: &mut [Box<dyn EngineVariant>], rounds: usize) -> Vec<VariantTimes> {
    let mut times = vec![VariantTimes::default(); variants.len()];
    let mut order: Vec<usize> = (0..variants.len()).collect();
    let mut shuffle = Shuffle(1);
    for round in 0..rounds + WARM_UP {
        shuffle.apply(&mut order);
        for &which in &order {
            for call in 0..TURN {
                settle();
                let (time, value) = variants[which].call(work);
                work.check(&value);
                if round >= WARM_UP {
                    times[which].all.add(time);
                }
                if round >= WARM_UP && call == 0 {
                    times[which].first.add(time);
                }
            }
        }
    }
    times
}

/// Waits: background work of a variant (exiting processes, GC threads) must not slow the next one.
fn settle() {
    std::thread::sleep(QUIET);
}

/// Random orders with a fixed seed, so no variant always follows the same one.
struct Shuffle(u64);

impl Shuffle {
    fn apply(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(last, (self.0 >> 33) as usize % (last + 1));
        }
    }
}

fn print(rows: &[(VariantKind, VariantTimes)]) {
    let bare = of(rows, VariantKind::NativeBare).map(Times::p50).unwrap_or_default();
    println!("  {:<50} {:>8} {:>8} {:>8} {:>8} {:>8}", "", "p50", "p99", "min", "first", "× bare");
    for (kind, VariantTimes { all, first }) in rows {
        let [p50, p99, min, first] = [all.p50(), all.p99(), all.min(), first.p50()].map(micros);
        let bare = ratio(all.p50(), bare);
        println!("  {:<50} {p50:>8.0} {p99:>8.0} {min:>8.0} {first:>8.0} {bare:>8.2}", kind.title());
    }
}

fn compare(work: &BenchBody, rows: &[(VariantKind, VariantTimes)]) {
    let Some(ours) = of(rows, VariantKind::Ours).map(Times::p50) else { return };
    let slower = |kind: VariantKind, goal: f64| {
        if let Some(times) = of(rows, kind) {
            RatioGoal::AtMost(goal).report(
                &format!("ours / {}", kind.title()),
                ratio(ours, times.p50()),
                "×",
            );
        }
    };
    let faster = |kind: VariantKind, goal: f64| {
        if let Some(times) = of(rows, kind) {
            RatioGoal::AtLeast(goal).report(
                &format!("{} / ours", kind.title()),
                ratio(times.p50(), ours),
                "×",
            );
        }
    };
    match work.name {
        "w1" => {
            slower(VariantKind::NativeBare, 1.0);
            faster(VariantKind::NativePrelude, 3.0);
            faster(VariantKind::IsolatedVm, 10.0);
            faster(VariantKind::ExecPerCall, 8.0);
        }
        "w3" => slower(VariantKind::NativeBare, 3.0),
        "w4" => slower(VariantKind::NativeBare, 1.0),
        _ => {}
    }
}

fn of(rows: &[(VariantKind, VariantTimes)], wanted: VariantKind) -> Option<&Times> {
    rows.iter().find(|(kind, _)| *kind == wanted).map(|(_, row)| &row.all)
}

const WARM_UP: usize = 2;
const TURN: usize = 5;
const QUIET: Duration = Duration::from_millis(2);
