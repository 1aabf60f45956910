//! Runs command tools: a fixed program with typed arguments, in a jail, never through a shell.

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
pub use report::{
    denial::{Denial, Denials, HostDenial},
    output::OutputParser,
};
pub use run::{
    CliHandlers,
    container::ContainerLauncher,
    jailed::JailedLauncher,
    order::{
        CommandOrder, CommandOutcome, EgressGrant, Launch, NetworkEffects, OrderLimits, RunProgress,
        ServiceProcess, ServiceStart,
    },
    service::ServicePlan,
};
pub use tool::{CliTool, CommandHost, PreparedCall};
pub use view::environment::GatewayEnvironment;
