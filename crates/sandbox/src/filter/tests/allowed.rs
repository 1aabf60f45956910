//! Every shipped list, compiled, against a committed description of what it allows.

use std::fmt::Write as _;

use super::*;
use crate::filter::list::ListActions;

/// One list, compiled for one machine and one kind of process.
struct CompiledList {
    title: String,
    machine: Machine,
    otherwise: Otherwise,
    calls: Calls,
    found: ListActions,
}

impl CompiledList {
    fn new(list: &SeccompList, machine: Machine, title: &str, target: FilterTarget<'_>) -> Self {
        let calls = Calls::of(machine).unwrap();
        let found = list.actions(&calls, target).unwrap();
        let title = format!("{title}, {machine:?}");
        Self { title, machine, otherwise: list.otherwise, calls, found }
    }

    fn each() -> Vec<Self> {
        let worker = SeccompProfile::worker_js().unwrap().0;
        let command = CommandProfile::shipped().unwrap().0;
        let mut each = Vec::new();
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let target = FilterTarget::Worker { sealed_memory: &[5, 7] };
            each.push(Self::new(&worker, machine, "worker with memory files 5 and 7", target));
            for sockets in [Sockets::None, Sockets::Internet] {
                for processes in [Processes::Namespace, Processes::Group] {
                    for children in [Children::Allowed, Children::Denied] {
                        let variant = FilterVariant { sockets, processes, children, ..PLAIN };
                        let title = format!(
                            "command, sockets {sockets:?}, processes {processes:?}, children {children:?}"
                        );
                        each.push(Self::new(&command, machine, &title, FilterTarget::Command(variant)));
                    }
                }
            }
        }
        each
    }

    /// One line for each call that is not denied in every case.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, action) in &self.found.actions {
            let name = self.calls.name(*number).unwrap();
            match action {
                Action::Allow => lines.push(format!("{name}: allow")),
                Action::Absent => lines.push(format!("{name}: absent")),
                Action::AllowIf(rules) => {
                    lines.extend(rules.iter().map(|rule| format!("{name}: allow if {}", describe(rule))));
                }
                Action::Deny => {}
            }
        }
        for Countable { number, rule, what } in &self.found.counted {
            lines.push(format!(
                "{}: count {what:?} if {}",
                self.calls.name(*number).unwrap(),
                describe(rule)
            ));
        }
        lines.sort();
        lines
    }
}

fn describe(rule: &FilterRule) -> String {
    let checks = rule.checks.iter().map(|check| match check {
        ArgumentCheck::Any { argument, values } => {
            let values: Vec<String> = values.iter().map(|value| format!("{value:#x}")).collect();
            format!("arg{argument} is {}", values.join("|"))
        }
        ArgumentCheck::Masked { argument, mask, value } => format!("arg{argument} & {mask:#x} is {value:#x}"),
    });
    checks.collect::<Vec<_>>().join(" and ")
}

/// Workers and the first variant of commands in full, the other variants as differences from the first.
fn description() -> String {
    let mut text =
        "# Written by the test `shipped_lists_allow_the_committed_set`. All other calls are denied.\n"
            .to_owned();
    let mut base: Vec<String> = Vec::new();
    for compiled in CompiledList::each() {
        let lines = compiled.lines();
        let is_first = compiled.title.contains("worker")
            || compiled.title.contains("None, processes Namespace, children Allowed");
        write!(text, "\n[{}]\n", compiled.title).unwrap();
        if is_first {
            let (plain, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.ends_with(": allow"));
            let plain: Vec<&str> = plain.iter().map(|line| line.trim_end_matches(": allow")).collect();
            for names in plain.chunks(10) {
                writeln!(text, "allow {}", names.join(" ")).unwrap();
            }
            for line in others {
                writeln!(text, "{line}").unwrap();
            }
            base = lines;
        } else {
            for line in base.iter().filter(|line| !lines.contains(line)) {
                writeln!(text, "- {line}").unwrap();
            }
            for line in lines.iter().filter(|line| !base.contains(line)) {
                writeln!(text, "+ {line}").unwrap();
            }
        }
    }
    text
}

/// Compares with the committed file; `TOOLGATE_BLESS=1` writes it.
#[test]
fn shipped_lists_allow_the_committed_set() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/filter/tests/allowed.txt");
    let now = description();
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let changed: Vec<&str> = now.lines().filter(|line| !committed.lines().any(|old| old == *line)).collect();
    assert!(now == committed, "run with TOOLGATE_BLESS=1 and review the change: {changed:#?}");
}

/// The compiled programs do what the lists say, for arguments around every value and bit that a list names.
#[test]
fn compiled_programs_agree_with_their_lists() {
    for compiled in CompiledList::each() {
        let CompiledList { title, machine, otherwise, calls, found } = &compiled;
        let program = program::generate(&found.actions, *machine, *otherwise);
        let architecture = match machine {
            Machine::X86_64 => X86_64,
            Machine::Aarch64 => 0xc000_00b7,
        };
        let (denied, unknown) = match otherwise {
            Otherwise::Kill => (Fate::Killed, Fate::Killed),
            Otherwise::Report => (Fate::Asked, Fate::Absent),
        };
        let last = calls.numbers().max().unwrap();
        for number in (0..last + 10).chain([0x4000_0000, 0x4000_003b, u32::MAX]) {
            let action = found.actions.get(&number);
            for arguments in probes(action) {
                let expected = match action {
                    None => unknown,
                    Some(Action::Absent) => Fate::Absent,
                    Some(Action::Allow) => Fate::Allowed,
                    Some(Action::AllowIf(rules)) if rules.iter().any(|rule| rule.holds(arguments)) => {
                        Fate::Allowed
                    }
                    Some(Action::Deny | Action::AllowIf(_)) => denied,
                };
                let fate = run(&program, architecture, number, arguments);
                assert_eq!(fate, expected, "{title}: call {number}, {arguments:x?}");
                assert_eq!(run(&program, 0x4000_0003, number, arguments), Fate::Killed, "{title}");
            }
        }
    }
}

/// Combinations of arguments at the boundaries of the action's rules.
fn probes(action: Option<&Action>) -> Vec<[u64; 6]> {
    let Some(Action::AllowIf(rules)) = action else { return vec![[0; 6], [u64::MAX; 6]] };
    let mut all = vec![[0; 6]];
    let checks = || rules.iter().flat_map(|rule| &rule.checks);
    for argument in 0..6 {
        let mut values = vec![0, u64::MAX];
        for check in checks() {
            match check {
                ArgumentCheck::Any { argument: index, values: listed } if *index == argument => {
                    values.extend(listed.iter().flat_map(|value| {
                        [u64::from(*value), u64::from(*value) + 1, u64::from(*value) | 1 << 32]
                    }));
                }
                ArgumentCheck::Masked { argument: index, mask, value } if *index == argument => {
                    values.extend([u64::from(*value), u64::from(!*mask | *value)]);
                    values.extend((0..32).map(|bit| u64::from(*value ^ 1 << bit)));
                }
                _ => {}
            }
        }
        if values.len() > 2 {
            values.sort_unstable();
            values.dedup();
            let extended = all.iter().flat_map(|arguments| {
                values.iter().map(move |value| {
                    let mut arguments = *arguments;
                    arguments[argument as usize] = *value;
                    arguments
                })
            });
            all = extended.collect();
        }
    }
    all
}
