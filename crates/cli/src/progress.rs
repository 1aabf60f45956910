//! A spinner on the terminal while a command waits.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Shown on standard error if that is a terminal. Dropping it clears the line.
#[derive(Debug)]
pub struct Spinner(ProgressBar);

impl Spinner {
    pub fn to(what: String) -> Self {
        let bar = ProgressBar::new_spinner().with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Self(bar)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

const TICK: Duration = Duration::from_millis(120);
