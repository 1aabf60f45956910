//! Sets up a directory: configuration, tools directory and a first tool.

use std::io::Write;

use toolgate_config::Config;

use crate::{
    CommandExit, Failure,
    args::InitArgs,
    similar,
    terminal::{Terminal, visible},
    write::{self, Existing},
};

pub fn run(args: &InitArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let known: Vec<&str> = toolgate::preset_names().chain(["everything", "none"]).collect();
    if !known.contains(&args.preset.as_str()) {
        let hint = similar::closest(&args.preset, known.iter().copied());
        let hint = hint.map_or_else(
            || format!("known presets: {}", known.join(", ")),
            |close| format!("did you mean `{close}`?"),
        );
        return Err(Failure::new(format!("unknown preset `{}`; {hint}", visible(&args.preset))));
    }
    let tools = args.dir.join("tools");
    write::create_folder(&tools)?;
    let config = Config::default_text()
        .replacen("#preset: none", &format!("preset: {}", args.preset), 1)
        .replacen("#ask_from:", "ask_from:", 1);
    let files = [
        (args.dir.join("toolgate.yaml"), config.as_str()),
        (tools.join("word_count.json"), FIRST_TOOL),
        (args.dir.join(".toolgate/.gitignore"), "*\n"),
    ];
    write::create_private_folder(&args.dir.join(".toolgate"))?;
    for (path, text) in &files {
        if path.exists() {
            writeln!(terminal, "kept     {}", visible(&path.to_string_lossy()))?;
        } else {
            write::write(path, text.as_bytes(), Existing::Keep)?;
            writeln!(terminal, "wrote    {}", visible(&path.to_string_lossy()))?;
        }
    }
    let here = args.dir.as_os_str() == ".";
    let enter = if here { String::new() } else { format!("cd {}\n  ", visible(&args.dir.to_string_lossy())) };
    writeln!(
        terminal,
        "\nNext:\n  {enter}toolgate publish word_count\n  toolgate call word_count text=\"to be or not to be\"\n  toolgate serve"
    )?;
    Ok(CommandExit::Clean)
}

const FIRST_TOOL: &str = include_str!("../../assets/word_count.json");
