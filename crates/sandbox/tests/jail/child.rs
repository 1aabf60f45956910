//! The jailed side: enters and seals the jail, reports its strength, and plays its role.

use std::{
    fs::File,
    os::fd::IntoRawFd,
    sync::{Condvar, Mutex, mpsc},
    thread,
    time::Duration,
};

use toolgate_sandbox::{Entered, JailError, LayerSet, Namespaces, SeccompProfile, WorkerJail, leave};

use crate::attacks::{self, Attack};

pub const HEADROOM: u64 = 64 << 20;

/// Never returns: a jailed process reports through its socket and its exit code.
pub fn main(role: &str, namespaces: &str) -> ! {
    let namespaces = match namespaces {
        "enter" => Namespaces::Enter,
        _ => Namespaces::DangerouslySkip,
    };
    let cpu_seconds = if role == "spin" { 1 } else { 60 };
    let jail = WorkerJail { address_space_headroom: HEADROOM, cpu_seconds, namespaces };
    match play(role, jail) {
        Ok(()) => leave(0),
        Err(error) => {
            say(&format!("refused: {error}\n"));
            leave(REFUSED)
        }
    }
}

pub const REFUSED: u8 = 3;
pub const SURVIVED: u8 = 9;

fn play(role: &str, jail: WorkerJail) -> Result<(), JailError> {
    match role {
        "with-a-thread" => {
            thread::spawn(|| loop_for_ever(Duration::from_secs(1)));
            jail.enter().map(drop)
        }
        "leaked-descriptor" => leaked_descriptor(jail),
        "between" => between(jail),
        "stray" => stray(jail),
        "image" => image(jail),
        "attack-from-thread" => attack_from_thread(jail),
        _ => {
            sealed(jail.enter()?)?;
            after(role);
            Ok(())
        }
    }
}

/// Seals and reports. The report proves that a later death is not caused by the setup.
fn sealed(entered: Entered) -> Result<LayerSet, JailError> {
    let strength = entered.seal(&SeccompProfile::worker_js().map_err(JailError::Profile)?)?;
    say(&format!("sealed {}\n", strength.to_bits()));
    Ok(strength)
}

fn after(role: &str) {
    match role {
        "echo" => echo(),
        "wait" => loop_for_ever(Duration::from_secs(1)),
        "spin" => loop {
            std::hint::black_box(role);
        },
        "sleep" => {
            thread::sleep(Duration::from_millis(700));
            say("slept\n");
        }
        "bomb" => bomb(),
        "work" => work(),
        "crash" => attacks::crash(),
        _ => perform(attacks::all().iter().find(|attack| attack.name == role)),
    }
}

fn perform(attack: Option<&Attack>) {
    let Some(attack) = attack else {
        say("no such role\n");
        leave(1)
    };
    let answer = attack.perform();
    say(&format!("survived with {answer}\n"));
    leave(SURVIVED)
}

fn echo() {
    let mut buffer = [0; 64];
    while let Ok(count @ 1..) = rustix::io::read(std::io::stdin(), &mut buffer) {
        let _ = rustix::io::write(std::io::stdin(), &buffer[..count]);
    }
}

/// Allocates memory until it fails.
fn bomb() {
    let piece = 1 << 20;
    let mut taken = 0_u64;
    while attacks::raw(libc::SYS_mmap, [0, piece, 3, 0x22, usize::MAX, 0]) > 0 {
        taken += piece as u64;
    }
    say(&format!("taken {taken}\n"));
}

/// Typical work of an allocator and a second thread.
fn work() {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for size in [16_usize, 4096, 200_000, 5_000_000] {
        let mut block = vec![1; size];
        block.resize(size * 2, 2);
        blocks.push(block);
    }
    blocks.truncate(1);
    thread::sleep(Duration::from_millis(2));
    thread::yield_now();
    let mut seed = [0_u8; 8];
    let seeded = attacks::raw(libc::SYS_getrandom, [seed.as_mut_ptr().addr(), 8, 0, 0, 0, 0]);
    say(&format!("worked {} {seeded}\n", blocks.len()));
}

fn leaked_descriptor(jail: WorkerJail) -> Result<(), JailError> {
    // Several, because the first number is soon reused.
    let open = || File::open("/dev/null").map_or(-1, IntoRawFd::into_raw_fd);
    let [_, _, leaked] = [open(), open(), open()];
    let entered = jail.enter()?;
    let answer = attacks::raw(libc::SYS_fcntl, [leaked.cast_unsigned() as usize, 1, 0, 0, 0, 0]);
    say(&format!("leaked {} {answer}\n", leaked > 2));
    sealed(entered).map(drop)
}

/// After the first phase there is no filter yet: this checks what holds without it, also in threads started later.
fn between(jail: WorkerJail) -> Result<(), JailError> {
    let entered = jail.enter()?;
    let reach = || {
        let file = File::open("/etc/passwd").is_ok();
        let own = File::open("/proc/self/status").is_ok();
        let folder = std::fs::read_dir("/").is_ok_and(|mut entries| entries.next().is_some());
        let made = File::create("/tmp/toolgate-jail-test").is_ok();
        let parent = std::os::unix::process::parent_id() as usize;
        let signal = attacks::raw(libc::SYS_kill, [parent, 0, 0, 0, 0, 0]) == 0;
        [file, own, folder, made, signal].map(u8::from)
    };
    let here = reach();
    let there = thread::spawn(reach).join().unwrap_or([9; 5]);
    say(&format!("reached {here:?} {there:?}\n"));
    sealed(entered).map(drop)
}

fn stray(jail: WorkerJail) -> Result<(), JailError> {
    let entered = jail.enter()?;
    // A memory file that could still be written is not an image.
    memory_file(Seals::None);
    sealed(entered).map(drop)
}

fn image(jail: WorkerJail) -> Result<(), JailError> {
    let entered = jail.enter()?;
    let image = memory_file(Seals::All);
    sealed(entered)?;
    let flags = (libc::MAP_PRIVATE | libc::MAP_FIXED) as usize;
    let place = attacks::raw(libc::SYS_mmap, [0, 4096, 0, 0x22, usize::MAX, 0]);
    let mapped = attacks::raw(libc::SYS_mmap, [place.cast_unsigned(), 4096, 3, flags, image, 0]);
    say(&format!("mapped {}\n", mapped == place));
    // A shared mapping would let one call write into the next one's memory.
    attacks::raw(libc::SYS_mmap, [0, 4096, 1, 1, image, 0]);
    leave(SURVIVED)
}

#[derive(Clone, Copy)]
enum Seals {
    None,
    All,
}

fn memory_file(seals: Seals) -> usize {
    let descriptor = attacks::raw(libc::SYS_memfd_create, [c"image".as_ptr().addr(), 2, 0, 0, 0, 0]);
    let descriptor = descriptor.cast_unsigned();
    attacks::raw(libc::SYS_ftruncate, [descriptor, 4096, 0, 0, 0, 0]);
    if let Seals::All = seals {
        attacks::raw(libc::SYS_fcntl, [descriptor, libc::F_ADD_SEALS as usize, 0xf, 0, 0, 0]);
    }
    descriptor
}

/// Threads that run when the jail is sealed are sealed as well, and threads can work together afterwards.
fn attack_from_thread(jail: WorkerJail) -> Result<(), JailError> {
    let entered = jail.enter()?;
    let (ready, started) = mpsc::channel();
    let gate: &'static (Mutex<bool>, Condvar) = Box::leak(Box::new((Mutex::new(false), Condvar::new())));
    thread::spawn(move || {
        let _ = ready.send(());
        let (open, changed) = gate;
        let mut is_open = open.lock().unwrap();
        while !*is_open {
            is_open = changed.wait(is_open).unwrap();
        }
        attacks::raw(libc::SYS_openat, [attacks::HERE, c"/".as_ptr().addr(), 0, 0, 0, 0]);
        leave(SURVIVED)
    });
    let _ = started.recv();
    sealed(entered)?;
    let (open, changed) = gate;
    *open.lock().unwrap() = true;
    changed.notify_all();
    loop_for_ever(Duration::from_secs(1))
}

fn loop_for_ever(pause: Duration) -> ! {
    loop {
        thread::sleep(pause);
    }
}

/// Only uses `write` on descriptor 0: the standard library's streams use other system calls.
fn say(text: &str) {
    let _ = rustix::io::write(std::io::stdin(), text.as_bytes());
}
