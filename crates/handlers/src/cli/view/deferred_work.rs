//! Who does what a cancelled call left to be done? One thread for all of them, a while later; the same work twice is done once.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Something to be done once, for all that asked for it.
pub trait Chore: Send + 'static {
    fn is_like(&self, other: &Self) -> bool;
    fn join(&mut self, other: Self);
    fn run(self);
}

/// Chores that wait.
#[derive(Debug)]
pub struct Later<C> {
    queue: Mutex<Queue<C>>,
    delay: Duration,
    most: usize,
}

#[derive(Debug)]
struct Queue<C> {
    waiting: Vec<(Instant, C)>,
    has_worker: bool,
}

impl<C: Chore> Later<C> {
    pub const fn new(delay: Duration, most: usize) -> Self {
        Self { queue: Mutex::new(Queue { waiting: Vec::new(), has_worker: false }), delay, most }
    }

    /// Then whoever makes more work is to wait.
    pub fn is_full(&'static self) -> bool {
        let mut queue = self.lock();
        self.see_that_somebody_works(&mut queue);
        queue.waiting.len() >= self.most
    }

    pub fn put(&'static self, chore: C) {
        let mut queue = self.lock();
        queue.add(chore, Instant::now() + self.delay);
        self.see_that_somebody_works(&mut queue);
    }

    /// Where no thread is to be had now, the next call tries again.
    fn see_that_somebody_works(&'static self, queue: &mut Queue<C>) {
        if !queue.has_worker && !queue.waiting.is_empty() {
            let thread = thread::Builder::new().name("cancelled-calls".to_owned());
            queue.has_worker = thread.spawn(move || self.work()).is_ok();
        }
    }

    fn work(&self) {
        while let Some(due) = self.next_due() {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let chore = self.lock().take();
            if let Some(chore) = chore {
                // The next one is done whatever becomes of this one.
                let _ = panic::catch_unwind(AssertUnwindSafe(|| chore.run()));
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let mut queue = self.lock();
        let due = queue.waiting.iter().map(|(due, _)| *due).min();
        queue.has_worker = due.is_some();
        due
    }

    fn lock(&self) -> MutexGuard<'_, Queue<C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Chore> Queue<C> {
    /// The first of its like keeps its time, or it could be put off for ever; all that follow are one.
    fn add(&mut self, chore: C, due: Instant) {
        let mut like = self.waiting.iter_mut().filter(|(_, other)| other.is_like(&chore)).skip(1);
        if let Some((last_due, last)) = like.next() {
            *last_due = due;
            last.join(chore);
        } else {
            self.waiting.push((due, chore));
        }
    }

    /// The one that is due first.
    fn take(&mut self) -> Option<C> {
        let (place, _) = self.waiting.iter().enumerate().min_by_key(|(_, (due, _))| *due)?;
        Some(self.waiting.remove(place).1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// A name, how many asked for it, and who is told that it was done.
    struct Counted(&'static str, u32, Sender<(&'static str, u32)>);

    impl Chore for Counted {
        fn is_like(&self, other: &Self) -> bool {
            self.0 == other.0
        }

        fn join(&mut self, other: Self) {
            self.1 += other.1;
        }

        fn run(self) {
            self.2.send((self.0, self.1)).unwrap();
        }
    }

    #[test]
    fn a_thousand_of_a_kind_are_two_and_none_is_forgotten() {
        let later: &'static Later<Counted> = Box::leak(Box::new(Later::new(Duration::from_millis(300), 3)));
        let (done, told) = channel();
        for _ in 0..1_000 {
            later.put(Counted("a", 1, done.clone()));
        }
        assert!(!later.is_full());
        later.put(Counted("b", 1, done));
        let all: Vec<_> = told.iter().collect();
        let sum = |name| all.iter().filter(|(one, _)| *one == name).map(|(_, count)| count).sum::<u32>();
        assert_eq!((sum("a"), sum("b")), (1_000, 1), "{all:?}");
    }

    #[test]
    fn the_first_of_a_kind_is_not_put_off_and_the_rest_wait_for_the_last() {
        let (done, _told) = channel();
        let mut queue = Queue { waiting: Vec::new(), has_worker: false };
        let now = Instant::now();
        for second in 0..5 {
            queue.add(Counted("a", 1, done.clone()), now + Duration::from_secs(second));
        }
        let due: Vec<_> = queue.waiting.iter().map(|(due, chore)| (*due - now, chore.1)).collect();
        assert_eq!(due, [(Duration::ZERO, 1), (Duration::from_secs(4), 4)]);
        assert_eq!(queue.take().map(|chore| chore.1), Some(1));
        let later: &'static Later<Counted> = Box::leak(Box::new(Later::new(Duration::from_hours(1), 1)));
        assert!(!later.is_full());
        later.put(Counted("a", 1, done));
        assert!(later.is_full());
    }
}
