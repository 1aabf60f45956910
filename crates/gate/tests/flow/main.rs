//! The call from end to end, with a tool, a queue and a journal that tests can look into.

mod approvals;
mod cancel;
mod fakes;
mod outcomes;
mod publishing;
