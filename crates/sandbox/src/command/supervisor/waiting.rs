//! Waits for the order of a prepared jail, and for the other event sources of the supervisor.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    os::unix::net::UnixStream,
    time::Instant,
};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::{
    super::{
        encode::Word,
        passing::{self, Parcel},
    },
    Course, Stage, say,
};
use crate::mount_table::MountWatch;

/// The sources that are ready.
#[expect(clippy::struct_excessive_bools, reason = "one for each source that is polled")]
pub(super) struct Ready {
    pub(super) control: bool,
    pub(super) inner: bool,
    pub(super) ended: bool,
    /// The host's mounts have changed.
    mounts: bool,
}

impl Course {
    /// Waits without a deadline until the order has arrived and the jail is ready for it. `None`: nothing is left
    /// to do.
    ///
    /// A prepared jail has a copy of the host's mounts. If those change, the jail is dropped at once. Otherwise it
    /// would show removed mounts and keep an unmounted file system busy.
    pub(super) fn wait_for_order(
        &mut self,
        control: &UnixStream,
        mounts: &MountWatch,
    ) -> io::Result<Option<Parcel>> {
        let mut order = None;
        loop {
            if self.has_no_namespaces() {
                return order.map_or_else(|| passing::receive(control), |parcel| Ok(Some(parcel)));
            }
            match (&self.stage, order.take()) {
                (Stage::Making, Some(parcel)) => return Ok(Some(parcel)),
                (Stage::Failed(word), _) => {
                    say(control, word, &[]);
                    return Ok(None);
                }
                (_, waiting) => order = waiting,
            }
            // The mounts are polled last. A change before the order is then seen no later than the order.
            let ready = self.poll(Some(control), Some(mounts), None)?;
            if ready.mounts {
                say(control, &Word::Stale, &[]);
                return Ok(None);
            }
            if ready.control {
                let Some(parcel) = passing::receive(control)? else { return Ok(None) };
                self.started = Instant::now();
                order = Some(parcel);
            }
            if ready.inner {
                self.hear(control);
            } else if ready.ended {
                self.give_account(control);
                return Ok(None);
            }
        }
    }

    /// Sends the order to the process that will become the command. If that has ended, its final message says why.
    pub(super) fn hand_over(&self, parcel: &Parcel) {
        if let Some(inner) = &self.inner {
            let _ = passing::forward(inner, parcel);
        }
    }

    pub(super) fn poll(
        &self,
        control: Option<&UnixStream>,
        mounts: Option<&MountWatch>,
        patience: Option<&Timespec>,
    ) -> io::Result<Ready> {
        let inner = self.inner.as_ref().map(AsFd::as_fd);
        // The end of the first process is handled after its last message.
        let sources: [(Option<BorrowedFd<'_>>, PollFlags); 4] = [
            (control.map(AsFd::as_fd), PollFlags::IN),
            (inner, PollFlags::IN),
            (Some(self.handle.as_fd()), PollFlags::IN),
            (mounts.map(MountWatch::as_fd), MountWatch::EVENTS),
        ];
        let mut polled: Vec<PollFd<'_>> = sources
            .iter()
            .filter_map(|(source, events)| Some(PollFd::from_borrowed_fd((*source)?, *events)))
            .collect();
        loop {
            match rustix::event::poll(&mut polled, patience) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => break,
            }
        }
        let mut states = polled.iter().map(PollFd::revents);
        let mut next = |index: usize| {
            let is_polled = sources.get(index).is_some_and(|(source, _)| source.is_some());
            is_polled && states.next().is_some_and(|state| !state.is_empty())
        };
        Ok(Ready { control: next(0), inner: next(1), ended: next(2), mounts: next(3) })
    }
}
