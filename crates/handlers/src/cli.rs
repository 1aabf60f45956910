//! How is a command tool run? A fixed program, typed arguments that stay arguments, in a jail, never through a shell.

mod arg;
mod built;
mod command;
mod embedded;
mod environment;
mod file_values;
mod glued;
mod hidden;
mod json;
mod known;
mod later;
mod launch;
mod launch_container;
mod launch_jailed;
mod line;
mod made;
mod missed;
mod named;
mod output;
mod paths;
mod plain;
mod program;
mod report;
mod run;
mod select;
mod sought;
mod statics;
mod stop;
mod tell;
mod tool;
mod unseen;
mod view;
mod way_out;
mod worded;

pub use arg::Arg;
pub use command::CliCommand;
pub use environment::GatewayEnvironment;
pub use launch::{
    Access, Bind, Ended, Ending, Launch, NotReached, Order, OrderLimits, Reached, Refusals, Refused, Trace,
    Usage, WayOut,
};
pub use launch_container::ContainerLauncher;
pub use launch_jailed::JailedLauncher;
pub use output::OutputParser;
pub use program::AllowedCommands;
pub use run::CliHandlers;
pub use tool::{CliTool, CommandHost, Settled};
