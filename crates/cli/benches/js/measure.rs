//! Statistics: median, 99th percentile, minimum, and ratios with their goals.

use std::time::Duration;

/// The times of one variant.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn p50(&self) -> Duration {
        self.percentile(50)
    }

    pub fn p99(&self) -> Duration {
        self.percentile(99)
    }

    pub fn min(&self) -> Duration {
        self.percentile(0)
    }

    pub fn max(&self) -> Duration {
        self.percentile(100)
    }

    fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(place).copied().unwrap_or_default()
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        Self(times.into_iter().collect())
    }
}

#[derive(Clone, Copy, Debug)]
pub enum RatioGoal {
    AtMost(f64),
    AtLeast(f64),
}

impl RatioGoal {
    /// Prints one line: name, value, goal and whether it is met.
    pub fn report(self, what: &str, value: f64, unit: &str) {
        let (sign, bound, is_met) = match self {
            Self::AtMost(bound) => ('≤', bound, value <= bound),
            Self::AtLeast(bound) => ('≥', bound, value >= bound),
        };
        let verdict = if is_met { "met" } else { "MISSED" };
        println!("  {what:<64} {value:>8.2}{unit:<4} (goal {sign} {bound}{unit}: {verdict})");
    }
}

pub fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub fn heading(text: &str) {
    println!("\n{text}");
}
