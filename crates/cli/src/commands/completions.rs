//! Prints completion scripts for shells.

use std::io::Write;

use clap::CommandFactory;

use crate::{
    CommandExit, Failure,
    args::{Args, CompletionsArgs},
    terminal::Terminal,
};

pub fn run(args: &CompletionsArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    // Write to memory first: the generator panics if its writer fails, for example on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "toolgate", &mut script);
    terminal.write_all(&script)?;
    Ok(CommandExit::Clean)
}
