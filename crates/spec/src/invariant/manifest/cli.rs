//! Checks command handlers: a fixed program, separate arguments, and values that are present when needed.

use serde_json::{Map, Value};

use super::{
    command, environment,
    interpreter::Interpreter,
    line_states::LineStates,
    program_options::ProgramOptions,
    remote_shell::RemoteShell,
    report::ManifestReport,
    scope::{TemplateScope, ValueShape},
    templates::{self, Absent, ITEM, TemplateRules, Used, WholeValue},
};
use crate::{
    Pointer,
    arg_template::ArgPart,
    model::{Argument, ArgumentGroup, CliHandler, GATEWAY_FILES},
    path_pattern::PathPattern,
};

pub(super) fn check(cli: &CliHandler, at: &Pointer, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    if !cli.command.is_empty()
        && !is_explicit_shell(cli, report)
        && let Some((message, remedy)) = command::refuse(&cli.command)
    {
        report.add(&at.key("command"), message, remedy);
    }
    let used = &mut Used::default();
    let mut watchers = Watchers::of_family(&command::family(&cli.command));
    for (index, group) in cli.args.iter().enumerate() {
        let group_at = at.key("args").index(index);
        self::group(group, &group_at, scope, used, report);
        watchers.group(group, &group_at, report);
    }
    if let Some(stdin) = &cli.stdin {
        let place = TemplateRules { absent: Absent::LeftOut, whole: WholeValue::Text, item_of: None };
        templates::check(stdin, &at.key("stdin"), place, scope, used, report);
        if templates::chosen_by_caller(stdin, scope).next().is_some() {
            watchers.stdin(&at.key("stdin"), report);
        }
    }
    let env_at = at.key("env");
    for variable in &cli.env {
        let place = TemplateRules { absent: Absent::LeftOut, whole: WholeValue::Text, item_of: None };
        templates::check(&variable.value, &env_at.key(&variable.name), place, scope, used, report);
    }
    environment::check(&cli.env, &env_at, scope, report);
    if let Some(cwd) = &cli.cwd {
        folder(cwd, &at.key("cwd"), report);
    }
    used.report_unused(scope, report);
}

/// Whether the author explicitly allows a shell, which runs whatever the agent writes. That requires the shipped
/// `bash` settings, with approval and a container, and no override that weakens either.
fn is_explicit_shell(cli: &CliHandler, report: &ManifestReport<'_>) -> bool {
    let value = |at: &str| report.at(&Pointer::new(at)).filter(|value| !value.is_null());
    let text = |at: &str| value(at).and_then(Value::as_str);
    // The older `policy.approval` and the separate switch can disable approval as well.
    let asks = ["/capability/approval/level", "/policy/approval"]
        .into_iter()
        .all(|at| matches!(text(at), None | Some("ask" | "always")))
        && text("/humanInTheLoop/mode") != Some("DISABLED")
        && value("/capability/approval/trustAfterApproval") != Some(&Value::Bool(true));
    let is_isolated = matches!(text("/capability/execution/sandbox"), None | Some("container"));
    let has_settings = text("/capability/extends") == Some("bash") && asks && is_isolated;
    let [ArgumentGroup::One(flag), ArgumentGroup::One(script)] = cli.args.as_slice() else { return false };
    has_settings
        && matches!(cli.command.as_str(), "bash" | "/bin/bash" | "/usr/bin/bash")
        && flag.template.text() == "-c"
        && script.template.whole().is_some()
        && cli.stdin.is_none()
}

/// Rejects a command whose file has another name than the command: a symlink `lister` to a shell is a shell. Returns
/// the reason.
pub fn refuse_file(cli: &CliHandler, file_name: &str) -> Option<String> {
    let (given, found) = (command::family(&cli.command), command::family(file_name));
    // A multi-call binary acts as the program it is called by.
    let is_chosen_by_name = MANY_IN_ONE.iter().any(|many| found == *many && !given.starts_with(*many));
    if given == found || is_chosen_by_name {
        return None;
    }
    if command::starts_others(file_name) {
        return Some("which starts other programs: it would run what the agent writes".to_owned());
    }
    let mut watchers = Watchers::of_family(&found);
    let (document, mut findings) = (Map::new(), Vec::new());
    let report = &mut ManifestReport::new(&document, &mut findings);
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

/// Checks that know how a program would execute caller text.
struct Watchers {
    interpreter: Option<LineStates<Interpreter>>,
    options: Option<LineStates<ProgramOptions>>,
    remote: Option<LineStates<RemoteShell>>,
}

impl Watchers {
    fn of_family(family: &str) -> Self {
        Self {
            interpreter: Interpreter::of_family(family).map(LineStates::new),
            options: ProgramOptions::of_family(family).map(LineStates::new),
            remote: RemoteShell::of_family(family).map(LineStates::new),
        }
    }

    fn group(&mut self, group: &ArgumentGroup, at: &Pointer, report: &mut ManifestReport<'_>) {
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

    /// The caller fills in a part of standard input.
    fn stdin(&self, at: &Pointer, report: &mut ManifestReport<'_>) {
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

fn group(
    group: &ArgumentGroup,
    at: &Pointer,
    scope: &TemplateScope,
    used: &mut Used,
    report: &mut ManifestReport<'_>,
) {
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
                report.add(
                    &at.key("args"),
                    "no argument of this `each` uses `{item}`",
                    "put `{item}` where an element belongs",
                );
            }
        }
    }
}

fn each(param: &str, at: &Pointer, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    match scope.variable(param) {
        None => no_such_parameter(param, at, scope, report),
        Some(variable) if variable.shape != ValueShape::Array => {
            report.add(at, format!("`{param}` is not an ARRAY"), "use `when`, or make it an ARRAY");
        }
        Some(variable) if !variable.has_plain_items => report.add(
            at,
            format!("the elements of `{param}` have no declared type, or are not plain values"),
            "give its `items` one plain `type` in `input`",
        ),
        Some(_) if scope.variable(ITEM).is_some() => report.add(
            at,
            "a parameter is named `item`, which is reserved for the element inside `each`",
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
    scope: &TemplateScope,
    used: &mut Used,
    report: &mut ManifestReport<'_>,
) {
    let template = &argument.template;
    let text_at = report.text_of(at);
    templates::check(
        template,
        &text_at,
        TemplateRules { absent, whole: WholeValue::Text, item_of },
        scope,
        used,
        report,
    );
    if templates::has_secret(template, scope) {
        report.add(
            &text_at,
            "a secret in an argument can be read by every process on the machine",
            "pass it in `env` or `stdin`",
        );
    }
    if let [ArgPart::Literal(start), ArgPart::Variable(name), ..] = template.parts()
        && chooses_option(start)
    {
        report.add(
            &text_at,
            format!("`{name}` would let the caller choose the option, not its value"),
            "write the option out: `--name={value}`, or as two arguments",
        );
    }
    if argument.may_be_option && !may_carry_option(template.parts()) {
        report.add(
            &at.key("allowOption"),
            "`allowOption` has no effect here",
            "use it with a `value` that is `{param}`, `name={param}` or `-n{param}`",
        );
    }
}

/// `-{x}` and `--{x}` let the caller choose the option; so does `--upload{x}` with `-pack=…`.
fn chooses_option(start: &str) -> bool {
    start == "-" || (start.starts_with("--") && !start.contains('='))
}

fn may_carry_option(parts: &[ArgPart]) -> bool {
    match parts {
        [ArgPart::Variable(_)] => true,
        // After a letter, only the author knows whether that option takes a value.
        [ArgPart::Literal(start), ArgPart::Variable(_)] => {
            start.ends_with('=') || (start.starts_with('-') && !start.starts_with("--"))
        }
        _ => false,
    }
}

fn no_such_parameter(name: &str, at: &Pointer, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    let remedy = crate::similar::remedy(name, scope.variable_names(), "name one of the parameters");
    report.add(at, format!("`{}` is not a parameter", name.escape_debug()), remedy);
}

fn folder(cwd: &str, at: &Pointer, report: &mut ManifestReport<'_>) {
    let problem = match PathPattern::parse(cwd) {
        Err(why) => Some(why),
        Ok(_) if cwd.contains('*') => Some("the working directory must be one directory, without `*`".into()),
        Ok(_) => None,
    };
    if let Some(why) = problem {
        report.add(
            at,
            why,
            "write an absolute path, or one below `$WORKSPACE` or `$HOME`; templates are not expanded here",
        );
    }
}

/// Multi-call binaries.
const MANY_IN_ONE: [&str; 2] = ["busybox", "toybox"];
