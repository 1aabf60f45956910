//! Writes manual pages from the texts of `--help`.

use std::{fs, io::Write, path::Path};

use clap::{Command, CommandFactory};

use crate::{
    CommandExit, Failure,
    args::{Args, ManArgs},
    terminal::Terminal,
    write::{self, Existing},
};

pub fn run(args: &ManArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let mut command = Args::command();
    // Also sets the full names and shared flags of the subcommands.
    command.build();
    match &args.out {
        None => terminal.write_all(&page(&command, "toolgate")?)?,
        Some(folder) => write_all(&command, folder, terminal)?,
    }
    Ok(CommandExit::Clean)
}

fn write_all(command: &Command, folder: &Path, terminal: &mut Terminal) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::at(folder, error))?;
    write_page(command, "toolgate", folder, terminal)?;
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        write_page(subcommand, &format!("toolgate-{}", subcommand.get_name()), folder, terminal)?;
    }
    Ok(())
}

fn write_page(command: &Command, title: &str, folder: &Path, terminal: &mut Terminal) -> Result<(), Failure> {
    let path = folder.join(format!("{title}.1"));
    write::write(&path, &page(command, title)?, Existing::Replace)?;
    writeln!(terminal, "wrote {}", path.display())?;
    Ok(())
}

fn page(command: &Command, title: &str) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(title).render(&mut page)?;
    // The generator calls the text below the flags EXTRA; manual pages call it NOTES.
    Ok(String::from_utf8_lossy(&page).replace("\n.SH EXTRA\n", "\n.SH NOTES\n").into_bytes())
}
