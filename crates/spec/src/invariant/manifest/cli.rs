//! A command: a fixed program, arguments that stay arguments, values that are there when they are needed.

use serde_json::{Map, Value};

use super::{
    command::{self, Arguments},
    environment,
    interpreter::Interpreter,
    possible::Possible,
    program_options::ProgramOptions,
    remote_shell::RemoteShell,
    report::Report,
    scope::{Scope, Shape},
    templates::{self, Absent, ITEM, Place, Used, Whole},
};
use crate::{
    Pointer,
    arg_template::ArgPart,
    model::{Argument, ArgumentGroup, CliHandler, GATEWAY_FILES},
    path_pattern::PathPattern,
};

pub(super) fn check(cli: &CliHandler, at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    if !cli.command.is_empty()
        && !is_meant_shell(cli, report)
        && let Some((message, remedy)) = command::refuse(&cli.command, Arguments::Filled)
    {
        report.say(&at.key("command"), message, remedy);
    }
    let used = &mut Used::default();
    let mut watchers = Watchers::of_family(&command::family(&cli.command));
    for (index, group) in cli.args.iter().enumerate() {
        let group_at = at.key("args").index(index);
        self::group(group, &group_at, scope, used, report);
        watchers.group(group, &group_at, report);
    }
    if let Some(stdin) = &cli.stdin {
        let place = Place { absent: Absent::LeftOut, whole: Whole::Text, item_of: None };
        templates::check(stdin, &at.key("stdin"), place, scope, used, report);
        if templates::chosen_by_caller(stdin, scope).next().is_some() {
            watchers.stdin(&at.key("stdin"), report);
        }
    }
    let env_at = at.key("env");
    for variable in &cli.env {
        let place = Place { absent: Absent::LeftOut, whole: Whole::Text, item_of: None };
        templates::check(&variable.value, &env_at.key(&variable.name), place, scope, used, report);
    }
    environment::check(&cli.env, &env_at, scope, report);
    if let Some(cwd) = &cli.cwd {
        folder(cwd, &at.key("cwd"), report);
    }
    used.report_unused(scope, report);
}

/// A shell runs what the agent writes. Whoever wants that says so with the shipped settings for it, where a person is
/// asked and a container is the wall, and loosens neither of the two in the document.
fn is_meant_shell(cli: &CliHandler, report: &Report<'_>) -> bool {
    let value = |at: &str| report.at(&Pointer::new(at)).filter(|value| !value.is_null());
    let text = |at: &str| value(at).and_then(Value::as_str);
    // The older word and the switch of its own take the question away as surely as the level does.
    let asks = ["/capability/approval/level", "/policy/approval"]
        .into_iter()
        .all(|at| matches!(text(at), None | Some("ask" | "always")))
        && text("/humanInTheLoop/mode") != Some("DISABLED")
        && value("/capability/approval/trustAfterApproval") != Some(&Value::Bool(true));
    let is_walled = matches!(text("/capability/execution/sandbox"), None | Some("container"));
    let has_settings = text("/capability/extends") == Some("bash") && asks && is_walled;
    let [ArgumentGroup::One(flag), ArgumentGroup::One(script)] = cli.args.as_slice() else { return false };
    has_settings
        && matches!(cli.command.as_str(), "bash" | "/bin/bash" | "/usr/bin/bash")
        && flag.template.text() == "-c"
        && script.template.whole().is_some()
        && cli.stdin.is_none()
}

/// Why the file that a command leads to must not be run, where it goes by another name than the command does: a link
/// `lister` to a shell is a shell.
pub fn refuse_file(cli: &CliHandler, file_name: &str) -> Option<String> {
    let (given, found) = (command::family(&cli.command), command::family(file_name));
    // One file with many programs in it is the one that it is called by.
    let is_chosen_by_name = MANY_IN_ONE.iter().any(|many| found == *many && !given.starts_with(*many));
    if given == found || is_chosen_by_name {
        return None;
    }
    if command::starts_others(file_name) {
        return Some("which starts other programs: it would run what the agent writes".to_owned());
    }
    let mut watchers = Watchers::of_family(&found);
    let (document, mut findings) = (Map::new(), Vec::new());
    let report = &mut Report::new(&document, &mut findings);
    let at = Pointer::root();
    for group in &cli.args {
        watchers.group(group, &at, report);
    }
    if cli.stdin.as_ref().is_some_and(|stdin| stdin.names().next().is_some()) {
        watchers.stdin(&at, report);
    }
    let first = findings.into_iter().next()?;
    let what = if watchers.interpreter.is_some() { "an interpreter that" } else { "which by an option" };
    Some(format!("{what} would run what the caller writes; {}", first.remedy))
}

/// Whoever knows how the program would run what a caller writes.
struct Watchers {
    interpreter: Option<Possible<Interpreter>>,
    options: Option<Possible<ProgramOptions>>,
    remote: Option<Possible<RemoteShell>>,
}

impl Watchers {
    fn of_family(family: &str) -> Self {
        Self {
            interpreter: Interpreter::of_family(family).map(Possible::new),
            options: ProgramOptions::of_family(family).map(Possible::new),
            remote: RemoteShell::of_family(family).map(Possible::new),
        }
    }

    fn group(&mut self, group: &ArgumentGroup, at: &Pointer, report: &mut Report<'_>) {
        if let Some(interpreter) = &mut self.interpreter {
            interpreter.group(group, at, report);
        }
        if let Some(options) = &mut self.options {
            options.group(group, at, report);
        }
        if let Some(remote) = &mut self.remote {
            remote.group(group, at, report);
        }
    }

    /// A caller writes something of what is sent to it.
    fn stdin(&self, at: &Pointer, report: &mut Report<'_>) {
        if let Some(interpreter) = &self.interpreter {
            interpreter.stdin(at, report);
        }
        if let Some(options) = &self.options {
            options.stdin(at, report);
        }
        if let Some(remote) = &self.remote {
            remote.stdin(at, report);
        }
    }
}

fn group(group: &ArgumentGroup, at: &Pointer, scope: &Scope, used: &mut Used, report: &mut Report<'_>) {
    match group {
        ArgumentGroup::One(one) => {
            argument(one, at, Absent::Refused { guarded: None }, None, scope, used, report);
        }
        ArgumentGroup::When { param, args } => {
            used.add(param);
            if scope.variable(param).is_none() {
                no_such_parameter(param, &at.key("when"), scope, report);
            }
            let guarded = Absent::Refused { guarded: Some(param) };
            for (index, one) in args.iter().enumerate() {
                argument(one, &at.key("args").index(index), guarded, None, scope, used, report);
            }
        }
        ArgumentGroup::Each { param, args } => {
            if param != GATEWAY_FILES {
                used.add(param);
                each(param, &at.key("each"), scope, report);
            }
            let absent = Absent::Refused { guarded: None };
            for (index, one) in args.iter().enumerate() {
                argument(one, &at.key("args").index(index), absent, Some(param), scope, used, report);
            }
            if !args.iter().any(|one| one.template.names().any(|name| name == ITEM)) {
                report.say(
                    &at.key("args"),
                    "nothing in here uses `{item}`",
                    "put `{item}` where an element belongs",
                );
            }
        }
    }
}

fn each(param: &str, at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    match scope.variable(param) {
        None => no_such_parameter(param, at, scope, report),
        Some(variable) if variable.shape != Shape::Array => {
            report.say(at, format!("`{param}` is not an ARRAY"), "use `when`, or make it an ARRAY");
        }
        Some(variable) if !variable.has_plain_items => report.say(
            at,
            format!("the elements of `{param}` are of no certain type, or no plain values"),
            "give its `items` one plain `type` in `input`",
        ),
        Some(_) if scope.variable(ITEM).is_some() => report.say(
            at,
            "a parameter is called `item`, which inside `each` is the element",
            "rename the parameter",
        ),
        Some(_) => {}
    }
}

fn argument(
    argument: &Argument,
    at: &Pointer,
    absent: Absent<'_>,
    item_of: Option<&str>,
    scope: &Scope,
    used: &mut Used,
    report: &mut Report<'_>,
) {
    let template = &argument.template;
    let text_at = report.text_of(at);
    templates::check(template, &text_at, Place { absent, whole: Whole::Text, item_of }, scope, used, report);
    if templates::has_secret(template, scope) {
        report.say(
            &text_at,
            "a secret in an argument can be read by every process on the machine",
            "pass it in `env` or `stdin`",
        );
    }
    if let [ArgPart::Literal(start), ArgPart::Variable(name), ..] = template.parts()
        && chooses_option(start)
    {
        report.say(
            &text_at,
            format!("`{name}` would choose the option, not its value"),
            "write the option out: `--name={value}`, or as two arguments",
        );
    }
    if argument.may_be_option && !may_carry_option(template.parts()) {
        report.say(
            &at.key("allowOption"),
            "`allowOption` has no meaning here",
            "it belongs to a `value` that is `{param}`, `name={param}` or `-n{param}`",
        );
    }
}

/// `-{x}` and `--{x}` are options of the caller's choice, and so is `--upload{x}` with `-pack=…`.
fn chooses_option(start: &str) -> bool {
    start == "-" || (start.starts_with("--") && !start.contains('='))
}

fn may_carry_option(parts: &[ArgPart]) -> bool {
    match parts {
        [ArgPart::Variable(_)] => true,
        // Glued to a letter of which only the author knows that it takes a value.
        [ArgPart::Literal(start), ArgPart::Variable(_)] => {
            start.ends_with('=') || (start.starts_with('-') && !start.starts_with("--"))
        }
        _ => false,
    }
}

fn no_such_parameter(name: &str, at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    let remedy = crate::similar::remedy(name, scope.variable_names(), "name one of the parameters");
    report.say(at, format!("`{}` names no parameter", name.escape_debug()), remedy);
}

fn folder(cwd: &str, at: &Pointer, report: &mut Report<'_>) {
    let problem = match PathPattern::parse(cwd) {
        Err(why) => Some(why),
        Ok(_) if cwd.contains('*') => Some("a working folder is one folder, without `*`".into()),
        Ok(_) => None,
    };
    if let Some(why) = problem {
        report.say(
            at,
            why,
            "write an absolute path, or one below `$WORKSPACE` or `$HOME`; nothing is filled in",
        );
    }
}

/// Files that hold many programs.
const MANY_IN_ONE: [&str; 2] = ["busybox", "toybox"];
