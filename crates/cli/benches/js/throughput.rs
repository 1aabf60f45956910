//! Calls per second on two cores: two concurrent callers, every variant in turn, in several short rounds.

use std::time::Duration;

use crate::{
    BenchBody, Effort, EngineVariant,
    measure::{RatioGoal, heading},
    variant::VariantKind,
};

pub fn run(works: &[BenchBody], variants: &mut [Box<dyn EngineVariant>], effort: Effort) {
    let rounds = effort.rounds(5);
    for work in works {
        let mut rates = vec![0.0; variants.len()];
        for round in 0..rounds {
            for turn in 0..variants.len() {
                let which = (round + turn) % variants.len();
                rates[which] += variants[which].rate(work, SPAN);
            }
        }
        let count = f64::from(u32::try_from(rounds).unwrap_or(u32::MAX));
        let rates: Vec<(VariantKind, f64)> =
            variants.iter().zip(&rates).map(|(variant, rate)| (variant.kind(), rate / count)).collect();
        report(work, &rates);
    }
}

fn report(work: &BenchBody, rates: &[(VariantKind, f64)]) {
    heading(&format!("{}, {}: calls a second, two callers", work.name, work.title));
    let of =
        |wanted: VariantKind| rates.iter().find(|(kind, _)| *kind == wanted).map_or(0.0, |(_, rate)| *rate);
    let bare = of(VariantKind::NativeBare);
    println!("  {:<50} {:>10} {:>9}", "", "calls/s", "× bare");
    for (kind, rate) in rates {
        println!("  {:<50} {rate:>10.1} {:>9.2}", kind.title(), rate / bare);
    }
    if work.name == "w1" {
        let title = format!("ours / {}", VariantKind::NativePrelude.title());
        RatioGoal::AtLeast(3.0).report(&title, of(VariantKind::Ours) / of(VariantKind::NativePrelude), "×");
    }
}

/// A slower body is called once by each caller and counted by its duration.
const SPAN: Duration = Duration::from_millis(300);
