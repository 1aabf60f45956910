//! Compiles actions into a seccomp program: a binary search over the system call numbers, then a few comparisons.

use std::{collections::BTreeMap, iter};

use serde::Deserialize;

use super::calls::Machine;
use crate::sys::filter::Instruction;

/// Action for a system call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    Allow,
    /// Allowed if one of the rules holds, otherwise denied.
    AllowIf(Vec<FilterRule>),
    Deny,
    /// `ENOSYS`.
    Absent,
}

/// Denial of calls that a list does not allow.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Otherwise {
    /// Kills the process, also for numbers of no known call.
    Kill,
    /// Notifies the supervisor. Numbers of no known call return `ENOSYS`.
    Report,
}

impl Otherwise {
    const fn denial(self) -> u32 {
        match self {
            Self::Kill => libc::SECCOMP_RET_KILL_PROCESS,
            Self::Report => libc::SECCOMP_RET_USER_NOTIF,
        }
    }

    const fn unknown_call(self) -> &'static Action {
        match self {
            Self::Kill => &Action::Deny,
            Self::Report => &Action::Absent,
        }
    }
}

/// All checks must hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FilterRule {
    pub(crate) checks: Vec<ArgumentCheck>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ArgumentCheck {
    /// The argument is one of these.
    Any { argument: u32, values: Vec<u32> },
    /// The argument has this value in these bits.
    Masked { argument: u32, mask: u32, value: u32 },
}

impl FilterRule {
    /// Evaluates the rule like the compiled program does.
    pub(super) fn holds(&self, arguments: [u64; 6]) -> bool {
        self.checks.iter().all(|check| match check {
            ArgumentCheck::Any { argument, values } => values.contains(&low_word(arguments, *argument)),
            ArgumentCheck::Masked { argument, mask, value } => {
                low_word(arguments, *argument) & mask == *value
            }
        })
    }
}

fn low_word(arguments: [u64; 6], number: u32) -> u32 {
    let argument = usize::try_from(number).ok().and_then(|number| arguments.get(number));
    argument.and_then(|argument| u32::try_from(argument & 0xffff_ffff).ok()).unwrap_or(0)
}

/// Generates the program. System calls with another calling convention of the same machine kill the process.
pub(crate) fn generate(
    actions: &BTreeMap<u32, Action>,
    machine: Machine,
    otherwise: Otherwise,
) -> Vec<Instruction> {
    let architecture = match machine {
        Machine::X86_64 => AUDIT_ARCH_X86_64,
        Machine::Aarch64 => AUDIT_ARCH_AARCH64,
    };
    let mut program = vec![
        load(ARCHITECTURE),
        jump_if_equal(architecture, 1, 0),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
    ];
    program.extend(search(&segments(actions, otherwise.unknown_call()), otherwise));
    program
}

/// Numbers from `first` up to the next segment's, with the same action.
#[derive(Debug)]
struct Segment<'a> {
    first: u32,
    action: &'a Action,
}

fn segments<'a>(actions: &'a BTreeMap<u32, Action>, unknown: &'a Action) -> Vec<Segment<'a>> {
    let mut segments: Vec<Segment<'_>> = Vec::new();
    let mut add = |first, action| match segments.last() {
        // Joining equal neighbours is correct for rules, too.
        Some(last) if last.action == action => {}
        _ => segments.push(Segment { first, action }),
    };
    let mut next = 0;
    for (number, action) in actions {
        if *number > next {
            add(next, unknown);
        }
        add(*number, action);
        next = number.saturating_add(1);
    }
    add(next, unknown);
    segments
}

/// Expects the system call number in the accumulator.
fn search(segments: &[Segment<'_>], otherwise: Otherwise) -> Vec<Instruction> {
    match segments {
        [] => vec![answer(otherwise.denial())],
        [one] => leaf(one.action, otherwise),
        several => {
            let (lower, upper) = several.split_at(several.len() / 2);
            let boundary = upper.first().map_or(0, |segment| segment.first);
            let lower = search(lower, otherwise);
            // A conditional jump reaches 255 instructions, an unconditional one any number.
            let mut code = match u8::try_from(lower.len()) {
                Ok(over) => vec![Instruction { code: JUMP_IF_AT_LEAST, jt: over, jf: 0, k: boundary }],
                Err(_) => {
                    vec![Instruction { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: boundary }, jump(lower.len())]
                }
            };
            code.extend(lower);
            code.extend(search(upper, otherwise));
            code
        }
    }
}

fn leaf(action: &Action, otherwise: Otherwise) -> Vec<Instruction> {
    match action {
        Action::Allow => vec![answer(libc::SECCOMP_RET_ALLOW)],
        Action::Deny => vec![answer(otherwise.denial())],
        Action::Absent => vec![answer(ABSENT)],
        Action::AllowIf(rules) => {
            let rules = rules.iter().flat_map(rule);
            rules.chain([answer(otherwise.denial())]).collect()
        }
    }
}

/// Allows the call if every check holds; otherwise continues after its own code.
fn rule(rule: &FilterRule) -> Vec<Instruction> {
    let mut code = vec![answer(libc::SECCOMP_RET_ALLOW)];
    // From the last check to the first, because each jump needs the length of the code after it.
    for one in rule.checks.iter().rev() {
        let mut checked = check(one);
        checked.push(jump(code.len()));
        checked.extend(code);
        code = checked;
    }
    code
}

/// Skips the next instruction if the check holds.
fn check(check: &ArgumentCheck) -> Vec<Instruction> {
    match check {
        ArgumentCheck::Masked { argument, mask, value } => {
            vec![
                load(low_half(*argument)),
                Instruction { code: AND, jt: 0, jf: 0, k: *mask },
                jump_if_equal(*value, 1, 0),
            ]
        }
        ArgumentCheck::Any { argument, values } => {
            let count = values.len();
            // Skips the remaining comparisons and the one instruction after them.
            let skip = |done: usize| u8::try_from(count - done).unwrap_or(u8::MAX);
            let compare = values.iter().enumerate().map(|(done, value)| jump_if_equal(*value, skip(done), 0));
            iter::once(load(low_half(*argument))).chain(compare).collect()
        }
    }
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD_WORD, jt: 0, jf: 0, k: offset }
}

fn jump_if_equal(value: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code: JUMP_IF_EQUAL, jt, jf, k: value }
}

fn jump(over: usize) -> Instruction {
    // The kernel rejects a program of that length.
    Instruction { code: JUMP, jt: 0, jf: 0, k: u32::try_from(over).unwrap_or(u32::MAX) }
}

fn answer(action: u32) -> Instruction {
    Instruction { code: RETURN, jt: 0, jf: 0, k: action }
}

/// Both architectures are little endian.
fn low_half(argument: u32) -> u32 {
    ARGUMENTS + argument * 8
}

const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();

const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const AUDIT_ARCH_AARCH64: u32 = 0xc000_00b7;
