//! How long does one call take? Every variant in turn, round after round, beginning with another one each time.

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
    for round in 0..rounds + WARM_UP {
        for turn in 0..variants.len() {
            let which = (round + turn) % variants.len();
            let (time, value) = variants[which].call(work);
            work.check(&value);
            if round >= WARM_UP {
                times[which].add(time);
            }
        }
    }
    times
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
