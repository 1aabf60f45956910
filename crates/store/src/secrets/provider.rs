//! Other places that values come from: a directory or dotenv file, and a program such as `vault`, `op` or `pass`.

use std::{
    collections::HashMap,
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use toolgate_spec::is_variable_name;
use zeroize::Zeroizing;

use super::{FileMark, program::HelperProgram};

/// A directory with one file for each secret, or a dotenv file.
#[derive(Clone, Debug)]
pub struct FileSecrets {
    pub path: PathBuf,
}

impl FileSecrets {
    /// `None`: not there, or not readable.
    pub fn get(&self, name: &str) -> Option<Zeroizing<String>> {
        if !is_variable_name(name) {
            return None;
        }
        if self.path.is_dir() {
            return read_text(&self.path.join(name)).ok().map(without_newline);
        }
        let text = read_text(&self.path).ok()?;
        text.lines()
            .rev()
            .find_map(|line| dotenv_value(line, name))
            .map(|value| Zeroizing::new(value.to_owned()))
    }

    /// Changes when a file in the directory is added or removed, or the dotenv file is written.
    pub fn mark(&self) -> impl Eq + fmt::Debug + Send + Sync + use<> {
        fs::metadata(&self.path).ok().map(|metadata| FileMark::of(&metadata))
    }
}

/// `NAME=value`, with an optional `export` and optional quotes. Nothing in the value is expanded.
fn dotenv_value<'t>(line: &'t str, name: &str) -> Option<&'t str> {
    let line = line.trim();
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (key, value) = line.split_once('=')?;
    if key.trim_end() != name {
        return None;
    }
    let value = value.trim();
    let unquoted = ['"', '\''].into_iter().find_map(|quote| {
        (value.len() >= 2).then(|| value.strip_prefix(quote)?.strip_suffix(quote)).flatten()
    });
    Some(unquoted.unwrap_or(value))
}

/// A program that prints one secret. Values are kept in memory for a bounded time.
pub struct CommandSecrets {
    /// `{name}` in an argument stands for the name of the secret. No shell is involved.
    pub argv: Vec<String>,
    pub pass_env: Vec<String>,
    pub keep: Duration,
    /// Directories in which the program is not looked for.
    pub apart_from: Vec<PathBuf>,
    cache: Mutex<HashMap<String, CachedAnswer>>,
}

struct CachedAnswer {
    until: Instant,
    value: Option<Zeroizing<String>>,
}

impl CommandSecrets {
    pub fn new(argv: Vec<String>, pass_env: Vec<String>, keep: Duration, apart_from: Vec<PathBuf>) -> Self {
        Self { argv, pass_env, keep, apart_from, cache: Mutex::default() }
    }

    /// The value in memory. `None`: the program has to be run.
    pub fn cached(&self, name: &str) -> Option<Option<Zeroizing<String>>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        cache.retain(|_, answer| now < answer.until);
        cache.get(name).map(|answer| answer.value.clone())
    }

    /// Runs the program. Blocks for up to 10 seconds. A failure counts as absent.
    pub fn get(&self, name: &str) -> Option<Zeroizing<String>> {
        if !is_variable_name(name) {
            return None;
        }
        if let Some(value) = self.cached(name) {
            return value;
        }
        let argv: Vec<String> = self.argv.iter().map(|argument| argument.replace(NAME, name)).collect();
        let output =
            HelperProgram { argv: &argv, input: &[], pass_env: &self.pass_env, apart_from: &self.apart_from }
                .output()
                .ok();
        let text =
            output.and_then(|output| Some(Zeroizing::new(std::str::from_utf8(&output).ok()?.to_owned())));
        let value = text.map(without_newline).filter(|value| !value.is_empty());
        // A program that fails now may work soon, for instance after a login.
        let keep = if value.is_some() { self.keep } else { self.keep.min(KEEP_FAILURE) };
        let answer = CachedAnswer { until: Instant::now() + keep, value: value.clone() };
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), answer);
        value
    }

    pub fn forget(&self) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl fmt::Debug for CommandSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandSecrets").field("argv", &self.argv).finish_non_exhaustive()
    }
}

fn read_text(path: &Path) -> io::Result<Zeroizing<String>> {
    // Check before opening: opening a pipe blocks.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = Zeroizing::new(String::with_capacity(MAX_BYTES));
    fs::File::open(path)?.take(u64::try_from(MAX_BYTES).unwrap_or(u64::MAX)).read_to_string(&mut text)?;
    Ok(text)
}

fn without_newline(mut text: Zeroizing<String>) -> Zeroizing<String> {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

const NAME: &str = "{name}";
const KEEP_FAILURE: Duration = Duration::from_secs(30);
const MAX_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests;
