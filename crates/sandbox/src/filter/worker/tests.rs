use super::{
    super::{
        calls::Machine,
        constants,
        list::{AllowCondition, AllowRow},
    },
    *,
};

const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

fn compile_for(
    profile: &SeccompProfile,
    machine: Machine,
    sealed_memory: &[i32],
) -> Result<Vec<Instruction>, ProfileError> {
    profile.compile_for(&Calls::of(machine)?, sealed_memory)
}

/// Instructions as plain numbers, which can be compared.
fn plain(program: Vec<Instruction>) -> Vec<(u16, u8, u8, u32)> {
    program.into_iter().map(|step| (step.code, step.jt, step.jf, step.k)).collect()
}

/// Compiles a list of rows for both architectures.
fn check(rows: &str) -> Result<(), String> {
    let text = format!("{{ \"it\": {{ \"otherwise\": \"kill\", \"allow\": [{rows}] }} }}");
    let profile = SeccompProfile::named("it", &text).map_err(|error| error.to_string())?;
    for machine in MACHINES {
        compile_for(&profile, machine, &[5]).map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[track_caller]
fn rejected(rows: &str, because: &str) {
    let error = check(rows).unwrap_err();
    assert!(error.contains(because), "{error}");
}

#[test]
fn shipped_list_compiles_for_both_architectures() {
    let profile = SeccompProfile::worker_js().unwrap();
    for machine in MACHINES {
        let filter = compile_for(&profile, machine, &[]).unwrap();
        assert!(filter.len() > profile.0.allow.len());
    }
}

#[test]
fn shipped_list_never_makes_memory_executable() {
    let profile = SeccompProfile::worker_js().unwrap();
    let maps = |row: &&AllowRow| row.calls.iter().any(|call| ["mmap", "mprotect"].contains(&call.as_str()));
    for row in profile.0.allow.iter().filter(maps) {
        let Some(AllowCondition::Flags(flags)) = row.when.get("arg2") else {
            panic!("{:?} has no condition on its protection", row.calls);
        };
        let allowed = constants::union(&flags.must).unwrap() | constants::union(&flags.may).unwrap();
        assert_eq!(allowed & libc::PROT_EXEC.cast_unsigned(), 0, "{row:?}");
    }
}

#[test]
fn constants_match_the_kernel() {
    let known = [
        ("MADV_DONTNEED", libc::MADV_DONTNEED),
        ("MAP_ANONYMOUS", libc::MAP_ANONYMOUS),
        ("MAP_FIXED", libc::MAP_FIXED),
        ("MAP_NORESERVE", libc::MAP_NORESERVE),
        ("MAP_PRIVATE", libc::MAP_PRIVATE),
        ("MAP_STACK", libc::MAP_STACK),
        ("MREMAP_MAYMOVE", libc::MREMAP_MAYMOVE),
        ("PROT_READ", libc::PROT_READ),
        ("PROT_WRITE", libc::PROT_WRITE),
        ("FUTEX_WAIT", libc::FUTEX_WAIT),
        ("FUTEX_WAKE", libc::FUTEX_WAKE),
        ("FUTEX_WAIT_BITSET", libc::FUTEX_WAIT_BITSET),
        ("FUTEX_PRIVATE_FLAG", libc::FUTEX_PRIVATE_FLAG),
        ("FUTEX_CLOCK_REALTIME", libc::FUTEX_CLOCK_REALTIME),
    ];
    for (word, number) in known {
        assert_eq!(constants::union(&[word.to_owned()]), Ok(number.cast_unsigned()), "{word}");
    }
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn system_call_numbers_match_the_kernel() {
    let known = [
        ("brk", libc::SYS_brk),
        ("clock_gettime", libc::SYS_clock_gettime),
        ("clock_nanosleep", libc::SYS_clock_nanosleep),
        ("exit", libc::SYS_exit),
        ("exit_group", libc::SYS_exit_group),
        ("futex", libc::SYS_futex),
        ("getrandom", libc::SYS_getrandom),
        ("madvise", libc::SYS_madvise),
        ("mmap", libc::SYS_mmap),
        ("mprotect", libc::SYS_mprotect),
        ("mremap", libc::SYS_mremap),
        ("munmap", libc::SYS_munmap),
        ("process_madvise", libc::SYS_process_madvise),
        ("read", libc::SYS_read),
        ("restart_syscall", libc::SYS_restart_syscall),
        ("rt_sigreturn", libc::SYS_rt_sigreturn),
        ("sched_yield", libc::SYS_sched_yield),
        ("write", libc::SYS_write),
    ];
    let calls = Calls::of_this_machine().unwrap();
    for (call, number) in known {
        assert_eq!(calls.number(call).map(i64::from), Some(number), "{call}");
    }
    for call in SeccompProfile::worker_js().unwrap().0.allow.iter().flat_map(|row| &row.calls) {
        assert!(known.iter().any(|(name, _)| name == call), "`{call}` is not compared");
    }
}

#[test]
fn unknown_call_or_constant_is_rejected() {
    rejected(r#"{ "calls": ["opne"], "for": "x" }"#, "unknown system call `opne`");
    rejected(
        r#"{ "calls": ["mmap"], "for": "x", "when": { "arg2": "PROT_EXEC" } }"#,
        "unknown constant `PROT_EXEC`",
    );
    rejected(
        r#"{ "calls": ["mmap"], "for": "x", "when": { "arg2": { "may": ["0x4"] } } }"#,
        "unknown constant `0x4`",
    );
}

#[test]
fn row_without_a_reason_or_with_a_typo_is_rejected() {
    rejected(r#"{ "calls": ["brk"] }"#, "`for`");
    rejected(r#"{ "calls": ["brk"], "for": " " }"#, "what needs it");
    rejected(r#"{ "calls": ["brk"], "for": "x", "if": {} }"#, "`if`");
    rejected(r#"{ "calls": ["brk"], "for": "x", "when": { "arg6": 1 } }"#, "arg6");
    rejected(r#"{ "calls": ["brk"], "for": "x", "when": { "arg0": { "mst": [] } } }"#, "cannot parse");
    rejected(r#"{ "calls": ["brk"], "for": "x", "when": { "arg0": -1 } }"#, "cannot parse");
}

#[test]
fn wide_row_does_not_override_a_narrow_one() {
    let narrow = r#"{ "calls": ["read"], "for": "x", "when": { "arg0": 0 } }"#;
    let wide = r#"{ "calls": ["read"], "for": "x" }"#;
    for rows in [format!("{narrow},{wide}"), format!("{wide},{narrow}"), format!("{wide},{wide}")] {
        rejected(&rows, "with and without");
    }
    assert_eq!(check(&format!("{narrow},{narrow}")), Ok(()));
}

#[test]
fn row_for_sealed_memory_allows_nothing_without_it() {
    let row = r#"{ "calls": ["mmap"], "for": "x", "when": { "arg4": "SEALED_MEMORY" } }"#;
    let text = format!("{{ \"it\": {{ \"otherwise\": \"kill\", \"allow\": [{row}] }} }}");
    let profile = SeccompProfile::named("it", &text).unwrap();
    let compile = |profile: &SeccompProfile, sealed_memory: &[i32]| {
        plain(compile_for(profile, Machine::X86_64, sealed_memory).unwrap())
    };
    let none = compile(&profile, &[]);
    let nothing = SeccompProfile::named("it", r#"{ "it": { "otherwise": "kill", "allow": [] } }"#).unwrap();
    assert_eq!(none, compile(&nothing, &[]));
    assert_ne!(none, compile(&profile, &[7]));
}

#[test]
fn kill_is_the_only_default_action() {
    for otherwise in ["log", "report"] {
        let text = format!(r#"{{ "it": {{ "otherwise": "{otherwise}", "allow": [] }} }}"#);
        assert!(SeccompProfile::named("it", &text).is_err(), "{otherwise}");
    }
}

#[test]
fn features_for_commands_are_rejected() {
    rejected(r#"{ "calls": ["brk"], "for": "x", "only": "children" }"#, "`only`");
    rejected(r#"{ "calls": ["brk"], "for": "x", "counted": "locks", "when": { "arg0": 0 } }"#, "`counted`");
    let text =
        r#"{ "it": { "otherwise": "kill", "absent": [{ "calls": ["brk"], "for": "x" }], "allow": [] } }"#;
    let profile = SeccompProfile::named("it", text).unwrap();
    let error = compile_for(&profile, Machine::X86_64, &[]).unwrap_err();
    assert!(error.to_string().contains("`absent`"), "{error}");
}
