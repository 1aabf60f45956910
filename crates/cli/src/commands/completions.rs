//! How does a shell learn our words?

use std::io::Write;

use clap::CommandFactory;

use crate::{
    Ending, Failure,
    args::{Args, CompletionsArgs},
    terminal::Terminal,
};

pub fn run(args: &CompletionsArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    // Into memory first: the generator panics when its writer fails, as a closed pipe would make it.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "toolgate", &mut script);
    terminal.write_all(&script)?;
    Ok(Ending::Clean)
}
