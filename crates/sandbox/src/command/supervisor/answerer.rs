//! Who answers the filter's questions? A thread of its own: a path on a file system that hangs stops whoever looks at it,
//! and must not stop whoever keeps the limits.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use rustix::event::{PollFd, PollFlags};

use super::{
    super::{
        Refused,
        encode::{Account, Order, Word},
        notices::Notices,
        seal::{Filters, Ground},
    },
    say,
};
use crate::sys::filter;

pub(super) struct Answerer {
    notices: Notices,
    filters: Arc<Filters>,
    refusals: Arc<Refusals>,
}

impl Answerer {
    pub(super) fn new(
        order: &Order,
        ground: Ground,
        filters: &Arc<Filters>,
        control: &UnixStream,
    ) -> io::Result<Self> {
        Ok(Self {
            notices: Notices::new(order, ground, filters.for_order(order, ground)?),
            filters: Arc::clone(filters),
            refusals: Arc::new(Refusals { control: control.try_clone()?, list: Mutex::default() }),
        })
    }

    pub(super) fn refusals(&self) -> Arc<Refusals> {
        Arc::clone(&self.refusals)
    }

    /// Answers until nobody is left who could ask. From here on this process has two threads, and must not be split any more.
    pub(super) fn start(self, listener: OwnedFd) -> io::Result<()> {
        let Self { mut notices, filters, refusals } = self;
        filter::answer_in_turn(listener.as_fd());
        let answer = move || {
            while is_asked(&listener)
                && notices.answer_next(listener.as_fd(), &filters, |refused| refusals.add(refused))
            {
                refusals.tell_news();
            }
        };
        thread::Builder::new().name("answerer".to_owned()).spawn(answer).map(drop)
    }
}

/// Whoever could ask is gone when there is an end and no question.
fn is_asked(listener: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    loop {
        match rustix::event::poll(&mut polled, None) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => break outcome.is_ok() && polled.iter().all(|it| it.revents().contains(PollFlags::IN)),
        }
    }
}

/// What was refused. Whoever answers adds to it, and whoever gives account takes it; both tell the gateway. Nobody looks at
/// a path while holding the list.
#[derive(Debug)]
pub(super) struct Refusals {
    control: UnixStream,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    refused: Vec<Refused>,
    /// How many of them were told as they came.
    told: usize,
    beyond: u64,
    is_closed: bool,
}

impl Refusals {
    fn add(&self, refused: Refused) {
        let mut list = self.lock();
        if list.refused.contains(&refused) {
            return;
        }
        if list.refused.len() < MOST {
            list.refused.push(refused);
        } else {
            list.beyond = list.beyond.saturating_add(1);
        }
    }

    /// Those that came since this was called last.
    fn tell_news(&self) {
        let mut list = self.lock();
        if list.is_closed {
            return;
        }
        for refused in list.refused.get(list.told..).unwrap_or_default() {
            say(&self.control, &Word::Refused(refused.clone()), &[]);
        }
        list.told = list.refused.len();
    }

    /// The last word to the gateway.
    pub(super) fn close(&self, account: impl FnOnce(Vec<Refused>, u64) -> Account) {
        let mut list = self.lock();
        list.is_closed = true;
        let account = account(std::mem::take(&mut list.refused), list.beyond);
        say(&self.control, &Word::Report(account), &[]);
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const MOST: usize = 100;
