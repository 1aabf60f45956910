//! Jails: what the kernel is told before untrusted code runs, and the socket that remains. Knows no tool and no caller.
