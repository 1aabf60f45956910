//! A line on the terminal that says what is waited for.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Shown on standard error while it lives, if that is a terminal; gone afterwards.
#[derive(Debug)]
pub struct Waiting(ProgressBar);

impl Waiting {
    pub fn to(what: String) -> Self {
        let bar = ProgressBar::new_spinner().with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Self(bar)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

const TICK: Duration = Duration::from_millis(120);
