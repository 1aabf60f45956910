//! Values of the constants that a seccomp list names.

use super::list::ProfileError;

pub(crate) fn values(names: &[String]) -> Result<Vec<u32>, ProfileError> {
    if names.is_empty() || names.len() > MAX_VALUES {
        return Err(ProfileError::new(format!("`any` takes 1 to {MAX_VALUES} constants")));
    }
    names.iter().map(|name| value(name)).collect()
}

pub(crate) fn union(names: &[String]) -> Result<u32, ProfileError> {
    names.iter().try_fold(0, |all, name| Ok(all | value(name)?))
}

fn value(name: &str) -> Result<u32, ProfileError> {
    let found = FROM_LIBC.iter().chain(OURS).find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        ProfileError::new(format!("unknown constant `{name}`; add it to the table of constants"))
    })
}

/// Below the range of a conditional jump.
pub(super) const MAX_VALUES: usize = 200;

macro_rules! names {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), (libc::$name as u64 & 0xffff_ffff) as u32)),*]
    };
}

const FROM_LIBC: &[(&str, u32)] = names![
    AF_INET,
    AF_INET6,
    AF_UNIX,
    CLONE_CHILD_CLEARTID,
    CLONE_CHILD_SETTID,
    CLONE_DETACHED,
    CLONE_FILES,
    CLONE_FS,
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    CLONE_PARENT_SETTID,
    CLONE_SETTLS,
    CLONE_SIGHAND,
    CLONE_SYSVSEM,
    CLONE_THREAD,
    CLONE_VM,
    EPOLL_CTL_ADD,
    EPOLL_CTL_DEL,
    EPOLL_CTL_MOD,
    FIOCLEX,
    FIONBIO,
    FIONCLEX,
    FIONREAD,
    FUTEX_CLOCK_REALTIME,
    FUTEX_PRIVATE_FLAG,
    FUTEX_WAIT,
    FUTEX_WAIT_BITSET,
    FUTEX_WAKE,
    F_ADD_SEALS,
    F_DUPFD,
    F_DUPFD_CLOEXEC,
    F_GETFD,
    F_GETFL,
    F_GETLK,
    F_GETOWN,
    F_GETPIPE_SZ,
    F_GET_SEALS,
    F_OFD_GETLK,
    F_OFD_SETLK,
    F_OFD_SETLKW,
    F_SETFD,
    F_SETFL,
    F_SETLK,
    F_SETLKW,
    F_SETOWN,
    F_SETPIPE_SZ,
    IPPROTO_TCP,
    IPPROTO_UDP,
    MADV_DONTNEED,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_GROWSDOWN,
    MAP_NORESERVE,
    MAP_PRIVATE,
    MAP_SHARED,
    MAP_STACK,
    MREMAP_MAYMOVE,
    PRIO_PROCESS,
    PROT_READ,
    PROT_WRITE,
    PR_CAPBSET_READ,
    PR_GET_DUMPABLE,
    PR_GET_KEEPCAPS,
    PR_GET_NAME,
    PR_GET_NO_NEW_PRIVS,
    PR_GET_PDEATHSIG,
    PR_GET_SECCOMP,
    PR_GET_SECUREBITS,
    PR_GET_TIMERSLACK,
    PR_GET_TSC,
    PR_SET_DUMPABLE,
    PR_SET_NAME,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    PR_SET_THP_DISABLE,
    PR_SET_TIMERSLACK,
    PR_SET_VMA,
    SOCK_CLOEXEC,
    SOCK_DGRAM,
    SOCK_NONBLOCK,
    SOCK_STREAM,
    S_IFIFO,
    S_ISGID,
    S_ISUID,
    TCFLSH,
    TCGETS,
    TCGETS2,
    TCSBRK,
    TCSETS,
    TCSETSF,
    TCSETSW,
    TCXONC,
    TIOCGPGRP,
    TIOCGWINSZ,
    TIOCOUTQ,
];

/// Kernel constants that libc lacks, and our names for unnamed values.
const OURS: &[(&str, u32)] = &[
    ("FICLONE", 0x4004_9409),
    ("FICLONERANGE", 0x4020_940d),
    ("FS_IOC_GETFLAGS", 0x8008_6601),
    ("IOPRIO_WHO_PROCESS", 1),
    ("IPPROTO_ANY", 0),
    ("PERMISSIONS", 0o7777),
    ("PERSONALITY_ORDINARY", 0),
    ("PERSONALITY_QUERY", 0xffff_ffff),
    ("PIDFD_SELF", 0xffff_d8f0),
    ("SELF", 0),
];
