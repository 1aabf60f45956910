//! Runs every command in the documents and compares its output.
//!
//! In a ```console block, `$ toolgate …` is a command and the following lines are its output. A line `…` matches any
//! lines; `(exit N)` at the end is an exit code other than 0. Each document gets a scratch directory with the repository's
//! `examples`, where its commands run in order.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[test]
fn console_examples_match_the_real_output() {
    let mut shown = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        let examples = examples(&text);
        if examples.is_empty() {
            continue;
        }
        let scratch = scratch();
        for example in &examples {
            example.run(&path, scratch.path());
        }
        shown += examples.len();
    }
    assert!(shown >= 10, "the documents show only {shown} commands");
}

#[test]
fn tools_in_documents_pass() {
    let mut shown = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for block in text.split("```yaml\n").skip(1).filter(|block| block.starts_with("name:")) {
            let document = block.split("```").next().unwrap();
            let file = toolgate_spec::check_text(document, toolgate_spec::Format::Yaml);
            let tool = &file.tools[0];
            assert!(tool.spec.is_some(), "{}: {:?}\n{document}", path.display(), tool.findings);
            shown += 1;
        }
    }
    assert!(shown >= 5, "the documents show only {shown} tools");
}

#[test]
fn links_are_valid() {
    let mut followed = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for target in links(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let to = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(to.exists(), "{}: `{target}` leads nowhere", path.display());
            if !heading.is_empty() {
                let headings = headings(&fs::read_to_string(&to).unwrap());
                assert!(
                    headings.iter().any(|one| one == heading),
                    "{}: no heading `{target}`",
                    path.display()
                );
            }
            followed += 1;
        }
    }
    assert!(followed >= 20, "the documents have only {followed} links");
}

#[test]
fn index_lists_every_page() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("](docs/README.md)") && readme.lines().count() <= 200);
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for page in fs::read_dir(root().join("docs")).unwrap() {
        let page = page.unwrap();
        if page.file_type().unwrap().is_dir() {
            continue;
        }
        let name = page.file_name().into_string().unwrap();
        assert!(
            name == "README.md" || index.contains(&format!("]({name})")),
            "docs/README.md does not list {name}"
        );
    }
}

/// A page over the budget should be split.
#[test]
fn pages_stay_within_their_budget() {
    let mut words = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        words += text.split_whitespace().count();
        let lines = text.lines().count();
        assert!(lines <= 250, "{}: {lines} lines, at most 250", path.display());
    }
    assert!(words <= 38_000, "the documents have {words} words, at most 38,000");
}

#[test]
fn every_code_and_setting_is_documented() {
    let page = |name: &str| fs::read_to_string(root().join("docs").join(name)).unwrap();
    let (codes, settings) = (page("spec.md") + &page("lints.md"), page("settings.md"));
    for code in toolgate_spec::Code::ALL {
        assert!(codes.contains(&format!("|`{}`|", code.name())), "{} is not documented", code.name());
    }
    let example = root().join("examples/tools/read_note/tool.json");
    let resolved = toolgate(&["resolve", "--format", "json", &example.to_string_lossy()]);
    let resolved: serde_json::Value = serde_json::from_str(&resolved).unwrap();
    for setting in resolved["settings"].as_array().unwrap() {
        let name = setting["name"].as_str().unwrap();
        assert!(settings.contains(&format!("|`{name}`|")), "{name} is not documented");
    }
}

/// Flags are under the command's heading, or in a section about shared flags.
#[test]
fn every_flag_of_every_command_is_documented() {
    let page = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let common = section(&page, |heading| heading == "Everywhere")
        + &section(&page, |heading| heading == "Commands around a gateway");
    let mut left: Vec<Vec<String>> = subcommands(&[]);
    let (mut commands, mut flags) = (0, 0);
    while let Some(command) = left.pop() {
        let names_it = |heading: &str| heading.split(' ').any(|word| word == command[0]);
        let told = section(&page, names_it);
        assert!(!told.is_empty(), "{command:?} has no heading");
        let help = help(&command);
        let options = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        // `-o, --output <FILE>  Description`: the description may name other flags.
        let named = options.filter_map(|line| line.split("  ").next());
        let words = named.flat_map(|named| named.split([' ', ',', '=']));
        for flag in words.filter(|word| word.starts_with("--") && *word != "--help") {
            let is_told =
                |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == flag);
            assert!(is_told(&told) || is_told(&common), "{command:?} {flag} is not documented");
            flags += 1;
        }
        left.extend(subcommands(&command));
        commands += 1;
    }
    assert!(commands >= 35 && flags >= 100, "{commands} commands and {flags} flags");
}

fn help(command: &[String]) -> String {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("--help");
    toolgate(&arguments)
}

/// The subcommands in this command's help.
fn subcommands(command: &[String]) -> Vec<Vec<String>> {
    let help = help(command);
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(|name| command.iter().map(String::as_str).chain([name]).map(str::to_owned).collect())
        .collect()
}

/// The text below matching headings, up to the next heading.
fn section(page: &str, is_meant: impl Fn(&str) -> bool) -> String {
    let mut is_inside = false;
    let mut text = String::new();
    for line in page.lines() {
        if line.starts_with("##") {
            is_inside = is_meant(line.trim_start_matches('#').trim());
        } else if is_inside {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn toolgate(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_toolgate")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Files that the documents name in backticks by full path must exist.
#[test]
fn named_files_exist() {
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            let is_path = ["crates/", "docs/", "profiles/", "schemas/", "scripts/", "fuzz/"]
                .iter()
                .any(|folder| name.starts_with(folder));
            let is_plain =
                !name.contains(|c: char| c.is_whitespace() || c.is_ascii_uppercase() || "*<{".contains(c));
            assert!(
                !is_path || !is_plain || root().join(name).exists(),
                "{}: `{name}` does not exist",
                path.display()
            );
        }
    }
}

/// Targets of `[text](target)` inside the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://"))
}

/// Heading anchors as GitHub builds them: lower case, hyphens for spaces, no other punctuation.
fn headings(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    let plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    lines
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|line| line.chars().filter(|c| plain(*c)).collect::<String>().replace(' ', "-"))
        .collect()
}

struct Example {
    line: usize,
    command: String,
    output: Vec<String>,
    exit: i32,
}

impl Example {
    fn run(&self, document: &Path, folder: &Path) {
        let binary = Path::new(env!("CARGO_BIN_EXE_toolgate"));
        let path =
            format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
        let output = Command::new("sh")
            .args(["-c", &self.command])
            .current_dir(folder)
            .env("PATH", path)
            .env("NO_COLOR", "1")
            .env_remove("RATES_API_KEY")
            .output()
            .expect("a shell runs");
        let printed =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let place = format!("{}:{}: `{}`", document.display(), self.line, self.command);
        assert_eq!(output.status.code(), Some(self.exit), "{place} ended otherwise:\n{printed}");
        let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
        assert!(
            self.output.is_empty() || fits(&self.output, &printed),
            "{place} prints otherwise:\n{}",
            printed.join("\n")
        );
    }
}

/// Whether the lines match; `…` matches any number of lines.
fn fits(expected: &[String], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((any, rest)) if any.trim() == "…" => {
            (0..=printed.len()).any(|skip| fits(rest, &printed[skip..]))
        }
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, after)| first == line && fits(rest, after))
        }
    }
}

fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        match line.trim_start() {
            "```console" => inside = true,
            "```" => inside = false,
            command if inside && command.starts_with("$ ") => {
                let command = command.trim_start_matches("$ ").to_owned();
                examples.push(Example { line: index + 1, command, output: Vec::new(), exit: 0 });
            }
            output if inside => {
                let Some(example) = examples.last_mut() else { continue };
                match output.strip_prefix("(exit ").and_then(|rest| rest.strip_suffix(')')) {
                    Some(code) => example.exit = code.parse().unwrap(),
                    None => example.output.push(line.trim_end().to_owned()),
                }
            }
            _ => {}
        }
    }
    examples.retain(|example| example.command.starts_with("toolgate"));
    examples
}

fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [root(), root().join("docs"), root().join("docs/attacks")] {
        let pages = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        found.extend(pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    found.sort();
    found
}

fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for part in ["examples", "profiles", "schemas"] {
        copy(&root().join(part), &folder.path().join(part));
    }
    folder
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
