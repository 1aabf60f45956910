//! The command line: parses arguments, runs commands, prints findings and tables.
//!
//! `toolgate_policy` decides what a tool may do, not this crate. Text from a document is untrusted: it passes through
//! [`terminal::visible`] before a person sees it.
#![forbid(unsafe_code)]

mod announce;
mod args;
pub mod check_file;
mod commands;
mod documents;
mod draft;
mod duplicates;
mod failure;
mod gateway;
mod load;
mod local;
mod passphrase;
mod policy;
mod progress;
mod report;
mod runner;
mod serve;
mod similar;
mod table;
mod terminal;
mod time;
mod tokens;
mod trial;
mod vetting;
mod write;

use std::{ffi::OsString, io::Write, process::ExitCode};

use clap::Parser;

pub use crate::load::{DocumentSource, FileSelection};

use crate::{
    args::{Args, Command},
    failure::Failure,
    terminal::Terminal,
};

/// Runs a command line and returns the exit code. Never panics, never exits the process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let mut terminal = Terminal::new(args.color);
    let wants_json = args.command.wants_json();
    if wants_json || args.command.prints_documents() {
        terminal.for_programs();
    }
    let outcome = dispatch(args.command, &mut terminal).and_then(|ending| {
        if wants_json {
            terminal.print_data(ending == CommandExit::Clean, None)?;
        }
        terminal.flush()?;
        Ok(ending)
    });
    match outcome {
        Ok(ending) => ExitCode::from(ending as u8),
        // The reader closed the pipe, as in `toolgate check | head`.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // Flush first, so earlier output stays before the error. An error here cannot be reported.
            let _ = terminal.flush();
            if wants_json {
                let _ =
                    terminal.print_data(false, Some(&failure.to_string())).and_then(|()| terminal.flush());
            }
            if !matches!(failure, Failure::Interrupted(_)) {
                terminal.complain(&failure.to_string());
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// How a command ended, and its exit code.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[must_use]
pub enum CommandExit {
    Clean = 0,
    Findings = 1,
    CouldNotRead = 2,
}

fn dispatch(command: Command, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    match command {
        Command::Init(args) => commands::init::run(&args, terminal),
        Command::Serve(args) => commands::serve::run(&args, terminal),
        Command::List(args) => commands::list::run(&args, terminal),
        Command::Publish(args) => commands::publish::run(&args, terminal),
        Command::Unpublish(args) => commands::publish::unpublish(&args, terminal),
        Command::Call(args) => commands::call::run(&args, terminal),
        Command::Approvals(args) => commands::approvals::run(&args, terminal),
        Command::Token(args) => commands::token::run(&args, terminal),
        Command::Secret(args) => commands::secret::run(&args, terminal),
        Command::Upstream(args) => commands::upstream::run(&args, terminal),
        Command::Audit(args) => commands::audit::run(&args, terminal),
        Command::Connect(args) => commands::connect::run(&args, terminal),
        Command::Disconnect(args) => commands::connect::disconnect(&args, terminal),
        Command::Config(args) => commands::config::run(&args, terminal),
        Command::Doctor(args) => commands::doctor::run(&args, terminal),
        Command::Check(args) => commands::check::run(&args, terminal),
        Command::Resolve(args) => commands::resolve::run(&args, terminal),
        Command::Run(args) => commands::run::run(&args, terminal),
        Command::Test(args) => commands::test::run(&args, terminal),
        Command::Diff(args) => commands::diff::run(&args, terminal),
        Command::Import(args) => commands::import::run(&args, terminal),
        Command::Export(args) => commands::export::run(&args, terminal),
        Command::New(args) => commands::new::run(&args, terminal),
        Command::Schema(args) => commands::schema::run(&args, terminal),
        Command::Explain(args) => commands::explain::run(&args, terminal),
        Command::Completions(args) => commands::completions::run(&args, terminal),
        Command::Man(args) => commands::man::run(&args, terminal),
    }
}

fn usage(error: &clap::Error) -> ExitCode {
    // `--help` succeeds, a wrong argument does not. A closed pipe changes neither.
    if error.use_stderr() {
        let _ = error.print();
    } else {
        let mut terminal = Terminal::new(clap::ColorChoice::Auto);
        let help = error.render();
        let help = if terminal.palette.is_plain() { help.to_string() } else { help.ansi().to_string() };
        let _ = write!(terminal, "{help}").and_then(|()| terminal.flush());
    }
    if error.use_stderr() { ExitCode::from(CommandExit::CouldNotRead as u8) } else { ExitCode::SUCCESS }
}
