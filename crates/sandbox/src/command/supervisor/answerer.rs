//! The thread that answers the filter's notifications. It is separate, because checking a path on a hanging file
//! system blocks, and must not block the enforcement of limits.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
};

use rustix::event::{PollFd, PollFlags};

use super::{
    super::{
        Refused,
        encode::{Account, Order, Word},
        notices::{List, Listed, Notices},
        seal::{Filters, Ground},
    },
    say,
};
use crate::sys::filter;

#[derive(Debug)]
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
            refusals: Arc::new(Refusals { control: control.try_clone()?, told: Mutex::default() }),
        })
    }

    pub(super) fn refusals(&self) -> Arc<Refusals> {
        Arc::clone(&self.refusals)
    }

    /// Answers until the last process with this filter has ended.
    fn answer(self, listener: &OwnedFd) {
        let Self { mut notices, filters, refusals } = self;
        while is_asked(listener)
            && notices.answer_next(listener.as_fd(), &filters, |refused| refusals.add(refused))
        {
            refusals.tell_news();
        }
    }
}

/// The thread that answers. A prepared jail starts it ahead, so no command waits for it to start.
#[derive(Debug)]
pub(super) struct AnswererThread(mpsc::Sender<(Answerer, OwnedFd)>);

impl AnswererThread {
    /// From here on this process has two threads, and must not be split any more.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, work) = mpsc::channel::<(Answerer, OwnedFd)>();
        let answer = move || {
            if let Ok((answerer, listener)) = work.recv() {
                answerer.answer(&listener);
            }
        };
        thread::Builder::new().name("answerer".to_owned()).spawn(answer)?;
        Ok(Self(sender))
    }

    pub(super) fn answer(self, answerer: Answerer, listener: OwnedFd) -> io::Result<()> {
        filter::answer_in_turn(listener.as_fd());
        self.0.send((answerer, listener)).map_err(|_| io::Error::other("the thread has ended"))
    }
}

/// Returns false when all possible senders are gone.
fn is_asked(listener: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    loop {
        match rustix::event::poll(&mut polled, None) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => break outcome.is_ok() && polled.iter().all(|it| it.revents().contains(PollFlags::IN)),
        }
    }
}

/// The denials. The answering thread adds to them and the supervisor takes them; both report to the gateway.
/// Neither checks paths while it holds the lock.
#[derive(Debug)]
pub(super) struct Refusals {
    control: UnixStream,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    list: List,
    is_closed: bool,
}

impl Refusals {
    fn add(&self, refused: Refused) {
        self.lock().list.add(refused);
    }

    /// Reports the denials added since the last call.
    fn tell_news(&self) {
        let mut told = self.lock();
        if told.is_closed {
            return;
        }
        for refused in told.list.news() {
            say(&self.control, &Word::Refused(refused), &[]);
        }
    }

    /// Sends the final report to the gateway.
    pub(super) fn close(&self, account: impl FnOnce(Listed) -> Account) {
        let mut told = self.lock();
        told.is_closed = true;
        let account = account(told.list.take());
        say(&self.control, &Word::Report(account), &[]);
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
