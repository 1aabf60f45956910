//! The commands. Each module has a function `run`.

pub mod approvals;
pub mod audit;
pub mod call;
pub mod check;
pub mod completions;
pub mod config;
pub mod connect;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod import;
pub mod init;
pub mod list;
pub mod man;
pub mod new;
pub mod publish;
pub mod resolve;
pub mod run;
pub mod schema;
pub mod secret;
pub mod serve;
pub mod test;
pub mod token;
pub mod upstream;
