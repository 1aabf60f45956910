//! How long does one call take? Every variant in turn, round after round, each round in another order.
//!
//! A turn is a handful of calls. The first of them finds the caches as its neighbours left them, and the column `first`
//! shows its median; the other columns, and the ratios, are of all calls.

use std::time::Duration;

use crate::{
    Effort, Variant, Work,
    measure::{Goal, Times, heading, micros, ratio},
    variant::Kind,
};

pub fn run(works: &[Work], variants: &mut [Box<dyn Variant>], effort: Effort) {
    println!("Peers inside Node tell the time they measured themselves; all other times are the caller's.");
    for work in works {
        let rounds = effort.rounds(work.rounds).div_ceil(TURN);
        let times = take_turns(work, variants, rounds);
        let rows: Vec<(Kind, Row)> = variants.iter().map(|variant| variant.kind()).zip(times).collect();
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
struct Row {
    all: Times,
    first: Times,
}

fn take_turns(work: &Work, variants: &mut [Box<dyn Variant>], rounds: usize) -> Vec<Row> {
    let mut times = vec![Row::default(); variants.len()];
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

/// What a variant leaves to be done behind it (a process that ends, a collector's threads) is not the next one's to pay.
fn settle() {
    std::thread::sleep(QUIET);
}

/// Orders from a generator with a fixed seed, so that nobody always follows the same neighbour.
struct Shuffle(u64);

impl Shuffle {
    fn apply(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(last, (self.0 >> 33) as usize % (last + 1));
        }
    }
}

fn print(rows: &[(Kind, Row)]) {
    let bare = of(rows, Kind::NativeBare).map(Times::p50).unwrap_or_default();
    println!("  {:<50} {:>8} {:>8} {:>8} {:>8} {:>8}", "", "p50", "p99", "min", "first", "× bare");
    for (kind, Row { all, first }) in rows {
        let [p50, p99, min, first] = [all.p50(), all.p99(), all.min(), first.p50()].map(micros);
        let bare = ratio(all.p50(), bare);
        println!("  {:<50} {p50:>8.0} {p99:>8.0} {min:>8.0} {first:>8.0} {bare:>8.2}", kind.title());
    }
}

fn compare(work: &Work, rows: &[(Kind, Row)]) {
    let Some(ours) = of(rows, Kind::Ours).map(Times::p50) else { return };
    let slower = |kind: Kind, goal: f64| {
        if let Some(times) = of(rows, kind) {
            Goal::AtMost(goal).report(&format!("ours / {}", kind.title()), ratio(ours, times.p50()), "×");
        }
    };
    let faster = |kind: Kind, goal: f64| {
        if let Some(times) = of(rows, kind) {
            Goal::AtLeast(goal).report(&format!("{} / ours", kind.title()), ratio(times.p50(), ours), "×");
        }
    };
    match work.name {
        "w1" => {
            slower(Kind::NativeBare, 1.0);
            faster(Kind::NativePrelude, 3.0);
            faster(Kind::IsolatedVm, 10.0);
            faster(Kind::ExecPerCall, 8.0);
        }
        "w3" => slower(Kind::NativeBare, 3.0),
        "w4" => slower(Kind::NativeBare, 1.0),
        _ => {}
    }
}

fn of(rows: &[(Kind, Row)], wanted: Kind) -> Option<&Times> {
    rows.iter().find(|(kind, _)| *kind == wanted).map(|(_, row)| &row.all)
}

const WARM_UP: usize = 2;
const TURN: usize = 5;
const QUIET: Duration = Duration::from_millis(2);
