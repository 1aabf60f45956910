//! What did the command ask for and not get? Answers the filter's questions and keeps a list.
//!
//! Reporting only: what is refused is refused by the filter, the view and Landlock. A command can lie about a path by
//! changing it after it was looked at, and gains a wrong line in a list.

use std::os::fd::BorrowedFd;

use super::{Network, Refused, Trace, encode::Order, seal::Filters};
use crate::sys::filter::{self, Answer, Notice};

/// The list of one command.
#[derive(Debug)]
pub(crate) struct Notices {
    trace: Trace,
    network: Network,
    list: Vec<Refused>,
    beyond: u64,
}

impl Notices {
    pub(crate) fn new(order: &Order) -> Self {
        Self { trace: order.trace, network: order.network, list: Vec::new(), beyond: 0 }
    }

    pub(crate) fn into_list(self) -> (Vec<Refused>, u64) {
        (self.list, self.beyond)
    }

    /// Whether there may be more questions.
    pub(crate) fn answer_next(&mut self, listener: BorrowedFd<'_>, filters: &Filters) -> bool {
        let notice = match filter::next_notice(listener) {
            Ok(notice) => notice,
            // The caller died between asking and being heard, or we were interrupted.
            Err(error) => return matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)),
        };
        let answer = self.judge(&notice, filters);
        filter::answer(listener, notice.id, answer).is_ok()
    }

    fn judge(&mut self, notice: &Notice, filters: &Filters) -> Answer {
        let number = notice.data.nr.cast_unsigned();
        let name = filters.calls().name(number).unwrap_or("unknown");
        if self.trace == Trace::Refusals && filters.is_watched(name) {
            return Answer::Continue;
        }
        self.add(Refused::Syscall { name: name.to_owned(), detail: String::new() });
        Answer::Refuse { errno: libc::EPERM }
    }

    fn add(&mut self, refused: Refused) {
        if self.list.contains(&refused) {
            return;
        }
        if self.list.len() < MOST {
            self.list.push(refused);
        } else {
            self.beyond = self.beyond.saturating_add(1);
        }
    }
}

/// Calls whose paths are looked at when refusals are traced.
pub(crate) fn watched() -> Vec<&'static str> {
    vec!["open", "openat", "execve"]
}

const MOST: usize = 100;
