//! Processes a list on several threads.

use std::{num::NonZero, panic::resume_unwind, thread};

/// Applies `work` to every item, and returns the results in order. The threads end before this returns.
pub fn in_parallel<'i, T: Sync, R: Send>(items: &'i [T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    if threads == 1 || items.len() < WORTH_THREADS {
        return items.iter().map(work).collect();
    }
    let size = items.len().div_ceil(threads);
    thread::scope(|scope| {
        let work = &work;
        let part = |items: &'i [T]| scope.spawn(move || items.iter().map(work).collect::<Vec<R>>());
        let parts: Vec<_> = items.chunks(size).map(part).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// A bound for large machines. Reading documents does not need all processors.
const MOST_THREADS: usize = 8;
/// With fewer items, threads cost more than they save.
const WORTH_THREADS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        for count in [0, 1, 63, 64, 1_001] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(
                in_parallel(&items, |item| item * 2),
                items.iter().map(|item| item * 2).collect::<Vec<_>>()
            );
        }
    }
}
