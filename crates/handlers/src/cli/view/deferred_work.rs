//! Runs the cleanup of cancelled calls later, on one thread. Equal tasks are merged.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// A task that can be merged with equal ones.
pub trait DeferredTask: Send + 'static {
    fn is_same_work(&self, other: &Self) -> bool;
    fn join(&mut self, other: Self);
    fn run(self);
}

/// Waiting tasks.
#[derive(Debug)]
pub struct DeferredQueue<C> {
    queue: Mutex<PendingTasks<C>>,
    delay: Duration,
    most: usize,
}

#[derive(Debug)]
struct PendingTasks<C> {
    waiting: Vec<(Instant, C)>,
    has_worker: bool,
}

impl<C: DeferredTask> DeferredQueue<C> {
    pub const fn new(delay: Duration, most: usize) -> Self {
        Self { queue: Mutex::new(PendingTasks { waiting: Vec::new(), has_worker: false }), delay, most }
    }

    /// Whether new work has to be rejected.
    pub fn is_full(&'static self) -> bool {
        let mut queue = self.lock();
        self.ensure_worker(&mut queue);
        queue.waiting.len() >= self.most
    }

    pub fn put(&'static self, chore: C) {
        let mut queue = self.lock();
        queue.add(chore, Instant::now() + self.delay);
        self.ensure_worker(&mut queue);
    }

    /// If no thread can be started, the next call tries again.
    fn ensure_worker(&'static self, queue: &mut PendingTasks<C>) {
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
                // A panic must not prevent the next task.
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

    fn lock(&self) -> MutexGuard<'_, PendingTasks<C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: DeferredTask> PendingTasks<C> {
    /// The first of several equal tasks keeps its time, otherwise it could be postponed forever. Later ones are
    /// merged into one.
    fn add(&mut self, chore: C, due: Instant) {
        let mut like = self.waiting.iter_mut().filter(|(_, other)| other.is_same_work(&chore)).skip(1);
        if let Some((last_due, last)) = like.next() {
            *last_due = due;
            last.join(chore);
        } else {
            self.waiting.push((due, chore));
        }
    }

    /// Removes the task that is due first.
    fn take(&mut self) -> Option<C> {
        let (place, _) = self.waiting.iter().enumerate().min_by_key(|(_, (due, _))| *due)?;
        Some(self.waiting.remove(place).1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// A name, the number of requests, and a channel for the result.
    struct Counted(&'static str, u32, Sender<(&'static str, u32)>);

    impl DeferredTask for Counted {
        fn is_same_work(&self, other: &Self) -> bool {
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
    fn equal_tasks_are_merged_and_none_is_lost() {
        let later: &'static DeferredQueue<Counted> =
            Box::leak(Box::new(DeferredQueue::new(Duration::from_millis(300), 3)));
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
    fn first_task_keeps_its_time_and_later_ones_are_postponed() {
        let (done, _told) = channel();
        let mut queue = PendingTasks { waiting: Vec::new(), has_worker: false };
        let now = Instant::now();
        for second in 0..5 {
            queue.add(Counted("a", 1, done.clone()), now + Duration::from_secs(second));
        }
        let due: Vec<_> = queue.waiting.iter().map(|(due, chore)| (*due - now, chore.1)).collect();
        assert_eq!(due, [(Duration::ZERO, 1), (Duration::from_secs(4), 4)]);
        assert_eq!(queue.take().map(|chore| chore.1), Some(1));
        let later: &'static DeferredQueue<Counted> =
            Box::leak(Box::new(DeferredQueue::new(Duration::from_hours(1), 1)));
        assert!(!later.is_full());
        later.put(Counted("a", 1, done));
        assert!(later.is_full());
    }
}
