//! How long does one call take? Every variant in turn, round after round, each round in another order.

use std::time::{Duration, Instant};

use crate::{
    Effort, Variant, Work,
    measure::{Goal, Times, heading, micros, ratio},
    variant::Kind,
};

pub fn run(works: &[Work], variants: &mut [Box<dyn Variant>], effort: Effort) {
    println!("Peers inside Node tell the time they measured themselves; all other times are the caller's.");
    for work in works {
        let times = take_turns(work, variants, effort.rounds(work.rounds));
        let rows: Vec<(Kind, Times)> = variants.iter().map(|variant| variant.kind()).zip(times).collect();
        heading(&format!(
            "{}, {}: latency in µs, {} rounds",
            work.name,
            work.title,
            effort.rounds(work.rounds)
        ));
        print(&rows);
        compare(work, &rows);
    }
}

fn take_turns(work: &Work, variants: &mut [Box<dyn Variant>], rounds: usize) -> Vec<Times> {
    let mut times = vec![Times::default(); variants.len()];
    let mut order: Vec<usize> = (0..variants.len()).collect();
    let mut shuffle = Shuffle(1);
    for round in 0..rounds + WARM_UP {
        shuffle.apply(&mut order);
        for &which in &order {
            settle();
            let (time, value) = variants[which].call(work);
            work.check(&value);
            if round >= WARM_UP {
                times[which].add(time);
            }
        }
    }
    times
}

/// What a variant leaves to be done behind it (a process that ends, a collector's threads) is not the next one's to pay.
fn settle() {
    let begin = Instant::now();
    while begin.elapsed() < QUIET {
        std::hint::spin_loop();
    }
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

fn print(rows: &[(Kind, Times)]) {
    let bare = of(rows, Kind::NativeBare).map(Times::p50).unwrap_or_default();
    println!("  {:<50} {:>10} {:>10} {:>10} {:>9}", "", "p50", "p99", "min", "× bare");
    for (kind, times) in rows {
        let (p50, p99, min) = (micros(times.p50()), micros(times.p99()), micros(times.min()));
        let bare = ratio(times.p50(), bare);
        println!("  {:<50} {p50:>10.0} {p99:>10.0} {min:>10.0} {bare:>9.2}", kind.title());
    }
}

fn compare(work: &Work, rows: &[(Kind, Times)]) {
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

fn of(rows: &[(Kind, Times)], wanted: Kind) -> Option<&Times> {
    rows.iter().find(|(kind, _)| *kind == wanted).map(|(_, times)| times)
}

const WARM_UP: usize = 2;
const QUIET: Duration = Duration::from_millis(2);
