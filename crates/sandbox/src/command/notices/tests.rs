use super::*;
use crate::filter::Calls;

#[test]
fn every_watched_call_exists() {
    let calls = Calls::of_this_machine().unwrap();
    let known: Vec<&str> = calls.numbers().filter_map(|number| calls.name(number)).collect();
    for watched in WATCHED {
        let is_old = cfg!(not(target_arch = "x86_64"));
        assert!(known.contains(&watched.name) || is_old, "{}", watched.name);
    }
}

#[test]
fn open_flags_map_to_the_attempted_access() {
    for (flags, what) in [
        (libc::O_RDONLY, Wish::For(Attempt::Read)),
        (libc::O_WRONLY, Wish::For(Attempt::Write)),
        (libc::O_RDWR, Wish::For(Attempt::Write)),
        (libc::O_RDONLY | libc::O_CREAT, Wish::ReadOrMake),
        (libc::O_WRONLY | libc::O_CREAT, Wish::For(Attempt::Write)),
        (libc::O_RDONLY | libc::O_CREAT | libc::O_TRUNC, Wish::For(Attempt::Write)),
        (libc::O_RDONLY | libc::O_TRUNC, Wish::For(Attempt::Write)),
        (libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, Wish::Make),
        (libc::O_RDONLY | libc::O_EXCL, Wish::For(Attempt::Read)),
        (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC, Wish::For(Attempt::Read)),
    ] {
        assert_eq!(wish(u64::from(flags.cast_unsigned())), what, "{flags:#o}");
    }
}

#[test]
fn access_modes_map_to_questions() {
    for (mode, expected) in [
        (libc::F_OK, (Attempt::Read, Question::IsThere)),
        (libc::R_OK, (Attempt::Read, Question::IsUsable)),
        (libc::X_OK, (Attempt::Read, Question::IsUsable)),
        (libc::R_OK | libc::W_OK, (Attempt::Write, Question::IsUsable)),
    ] {
        // The upper half of the argument is undefined.
        assert_eq!(asked(u64::MAX << 32 | u64::from(mode.cast_unsigned())), expected, "{mode}");
    }
}

#[test]
fn name_lookups_are_distinguished_from_other_sockets() {
    let (unix, usual) =
        (libc::AF_UNIX as u64, (libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64);
    assert!(is_lookup_of_names(unix, usual));
    assert!(!is_lookup_of_names(unix, libc::SOCK_STREAM as u64));
    assert!(!is_lookup_of_names(libc::AF_INET as u64, usual));
    assert_eq!(family(libc::AF_NETLINK as u64), "AF_NETLINK");
    assert_eq!(family(u64::MAX), format!("family {}", u64::MAX));
}
