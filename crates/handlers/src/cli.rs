//! How is a command tool run? A fixed program, typed arguments that stay arguments, in a jail, never through a shell.

mod command;
mod line;
mod program;
mod report;
mod run;
mod tool;
mod view;

pub use command::CliCommand;
pub use line::arg::Arg;
pub use program::AllowedCommands;
pub use report::output::OutputParser;
pub use run::{
    CliHandlers,
    container::ContainerLauncher,
    jailed::JailedLauncher,
    launch::{
        Access, Bind, Ended, Ending, Launch, NotReached, Order, OrderLimits, Reached, Refusals, Refused,
        ServiceProcess, ServiceStart, SoFar, Trace, Usage, WayOut,
    },
    service::ServicePlan,
};
pub use tool::{CliTool, CommandHost, Settled};
pub use view::environment::GatewayEnvironment;
