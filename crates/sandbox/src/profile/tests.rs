use super::*;

/// Compiles a list of rows for both architectures.
fn check(rows: &str) -> Result<(), String> {
    let text = format!("{{ \"it\": {{ \"otherwise\": \"kill\", \"allow\": [{rows}] }} }}");
    let profile = SeccompProfile::named("it", &text).map_err(|error| error.to_string())?;
    for machine in [TargetArch::x86_64, TargetArch::aarch64] {
        profile.compile_for(machine, &[5]).map_err(|error| error.to_string())?;
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
    for machine in [TargetArch::x86_64, TargetArch::aarch64] {
        let filter = profile.compile_for(machine, &[]).unwrap();
        assert!(filter.len() > profile.allow.len());
    }
}

#[test]
fn shipped_list_never_makes_memory_executable() {
    let profile = SeccompProfile::worker_js().unwrap();
    for row in profile.allow.iter().filter(|row| ["mmap", "mprotect"].contains(&row.call.as_str())) {
        let Some(ProfileCondition::Flags(flags)) = row.when.get(&ArgumentIndex::Arg2) else {
            panic!("`{}` has no condition on its protection", row.call);
        };
        let allowed = union(&flags.must).unwrap() | union(&flags.may).unwrap();
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
        assert_eq!(value(word), Ok(number.cast_unsigned()), "{word}");
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
    assert_eq!(known.len(), CALLS.len());
    let here = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    for (call, number) in known {
        assert_eq!(call_number(call, here), Ok(number), "{call}");
    }
}

#[test]
fn unknown_call_or_constant_is_rejected() {
    rejected(r#"{ "call": "open", "for": "x" }"#, "unknown system call `open`");
    rejected(
        r#"{ "call": "mmap", "for": "x", "when": { "arg2": "PROT_EXEC" } }"#,
        "unknown constant `PROT_EXEC`",
    );
    rejected(
        r#"{ "call": "mmap", "for": "x", "when": { "arg2": { "may": ["0x4"] } } }"#,
        "unknown constant `0x4`",
    );
}

#[test]
fn row_without_a_reason_or_with_a_typo_is_rejected() {
    rejected(r#"{ "call": "brk" }"#, "`for`");
    rejected(r#"{ "call": "brk", "for": " " }"#, "who needs it");
    rejected(r#"{ "call": "brk", "for": "x", "if": {} }"#, "`if`");
    rejected(r#"{ "call": "brk", "for": "x", "when": { "arg6": 1 } }"#, "arg6");
    rejected(r#"{ "call": "brk", "for": "x", "when": { "arg0": { "mst": [] } } }"#, "cannot parse");
    rejected(r#"{ "call": "brk", "for": "x", "when": { "arg0": -1 } }"#, "cannot parse");
}

#[test]
fn wide_row_does_not_override_a_narrow_one() {
    let narrow = r#"{ "call": "read", "for": "x", "when": { "arg0": 0 } }"#;
    let wide = r#"{ "call": "read", "for": "x" }"#;
    for rows in [format!("{narrow},{wide}"), format!("{wide},{narrow}"), format!("{wide},{wide}")] {
        rejected(&rows, "with and without");
    }
    assert_eq!(check(&format!("{narrow},{narrow}")), Ok(()));
}

#[test]
fn row_for_sealed_memory_allows_nothing_without_it() {
    let row = r#"{ "call": "mmap", "for": "x", "when": { "arg4": "SEALED_MEMORY" } }"#;
    let text = format!("{{ \"it\": {{ \"otherwise\": \"kill\", \"allow\": [{row}] }} }}");
    let profile = SeccompProfile::named("it", &text).unwrap();
    let none = profile.compile_for(TargetArch::x86_64, &[]).unwrap();
    let nothing = SeccompProfile::named("it", r#"{ "it": { "otherwise": "kill", "allow": [] } }"#).unwrap();
    assert_eq!(none, nothing.compile_for(TargetArch::x86_64, &[]).unwrap());
    assert_ne!(none, profile.compile_for(TargetArch::x86_64, &[7]).unwrap());
}

#[test]
fn kill_is_the_only_default_action() {
    let text = r#"{ "it": { "otherwise": "log", "allow": [] } }"#;
    assert!(SeccompProfile::named("it", text).is_err());
}
