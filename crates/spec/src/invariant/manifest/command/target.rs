//! Removes the target triple from a program name: `x86_64-linux-gnu-gcc` is a `gcc`.

/// Compilers and related programs are installed once per target, and again under wrapper names such as `gcc-nm` and `llvm-nm`.
pub(super) fn without_target(name: &str) -> &str {
    let name = target_end(name).and_then(|end| name.get(end..)).unwrap_or(name);
    let name = THREADS.iter().find_map(|threads| name.strip_suffix(threads)).unwrap_or(name);
    let mut inside = WRAPPERS.iter().filter_map(|wrapper| name.strip_prefix(wrapper));
    // `gcc-12` is not a wrapper.
    inside.find(|inside| inside.starts_with(|c: char| c.is_ascii_alphabetic())).unwrap_or(name)
}

/// The end of the target triple, if the name begins with a processor.
fn target_end(name: &str) -> Option<usize> {
    let dashes: Vec<usize> = name.match_indices('-').map(|(at, _)| at).collect();
    let is_machine = name.get(..*dashes.first()?).is_some_and(is_processor);
    let begins = std::iter::once(0).chain(dashes.iter().map(|dash| dash + 1));
    let systems = begins.zip(&dashes).filter(|(begin, end)| name.get(*begin..**end).is_some_and(is_system));
    let last = systems.last().map_or(dashes.first(), |(_, end)| Some(end))?;
    is_machine.then_some(last + 1)
}

fn is_processor(word: &str) -> bool {
    let is_x86 = matches!(word, "i386" | "i486" | "i586" | "i686" | "x86_64" | "amd64");
    is_x86 || PROCESSORS.iter().any(|processor| word.starts_with(processor))
}

/// `linux`, `gnueabihf`, `mingw32`, `android21`.
fn is_system(word: &str) -> bool {
    SYSTEMS.iter().any(|system| word.starts_with(system))
}

const PROCESSORS: [&str; 26] = [
    "aarch64",
    "alpha",
    "amdgcn",
    "arc",
    "arm",
    "avr",
    "bpf",
    "hppa",
    "ia64",
    "loongarch",
    "m68k",
    "microblaze",
    "mips",
    "msp430",
    "nios2",
    "nvptx",
    "or1k",
    "powerpc",
    "ppc",
    "riscv",
    "rx",
    "s390",
    "sh4",
    "sparc",
    "wasm",
    "xtensa",
];

const SYSTEMS: [&str; 17] = [
    "amdhsa", "android", "cygwin", "darwin", "eabi", "elf", "freebsd", "gnu", "kfreebsd", "linux", "mingw",
    "musl", "netbsd", "none", "openbsd", "uclibc", "wasi",
];

const WRAPPERS: [&str; 2] = ["gcc-", "llvm-"];

/// The thread models of compilers for Windows, without trailing digits.
const THREADS: [&str; 2] = ["-posix", "-win"];

#[cfg(test)]
mod tests {
    use super::super::family;

    #[test]
    fn target_triple_is_ignored() {
        for (name, expect) in [
            ("/usr/bin/x86_64-linux-gnu-gcc", "gcc"),
            ("x86_64-linux-gnu-gcc-12", "gcc"),
            ("x86_64-pc-linux-gnu-g++-12.2.0", "g++"),
            ("arm-none-eabi-c++filt", "c++filt"),
            ("aarch64-linux-android21-clang++", "clang++"),
            ("armv7l-poky-linux-gnueabihf-ld.bfd", "ld.bfd"),
            ("x86_64-w64-mingw32-gcc-12-posix", "gcc"),
            ("i686-w64-mingw32-g++-win32", "g++"),
            ("avr-objcopy", "objcopy"),
            ("x86_64-linux-gnu-gcc-nm-12", "nm"),
            ("llvm-strings-15", "strings"),
            ("clang-15", "clang"),
            ("gcc-12", "gcc"),
            ("7zz", "7zz"),
        ] {
            assert_eq!(family(name), expect, "{name}");
        }
        for name in ["perl5.36-x86_64-linux-gnu", "pkg-config", "linux-gnu-gcc", "x86_64", "git-lfs", "-"] {
            assert!(
                family(name).starts_with(name.trim_end_matches(|c: char| !c.is_ascii_lowercase())),
                "{name}"
            );
        }
    }
}
