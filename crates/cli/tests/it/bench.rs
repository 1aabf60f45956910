//! A temporary directory, a way to run the binary in it, and snapshots.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

/// A temporary directory, removed when dropped.
pub struct Bench {
    folder: tempfile::TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let bench = Self::new();
        bench.write(name, content);
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    pub fn run(&self, args: &[&str]) -> Run {
        self.run_with_input(args, b"")
    }

    /// Bounds time and memory, so a hostile document fails the test and not the machine.
    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Run {
        let traces = tempfile::tempdir().unwrap();
        let file = |name: &str| traces.path().join(name);
        fs::write(file("in"), input).unwrap();
        let mut child = Command::new("sh")
            .args([
                "-c",
                &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\""),
                env!("CARGO_BIN_EXE_toolgate"),
            ])
            .args(args)
            .current_dir(self.folder.path())
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("TOOLGATE_TEST_TOKEN")
            .stdin(Stdio::from(File::open(file("in")).unwrap()))
            .stdout(File::create(file("out")).unwrap())
            .stderr(File::create(file("err")).unwrap())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        let code = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code().unwrap_or(-1);
            }
            if begin.elapsed() > HANG {
                child.kill().unwrap();
                panic!("{args:?} hangs");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let text = |name: &str| String::from_utf8(fs::read(file(name)).unwrap()).unwrap();
        Run { code, out: text("out"), err: text("err") }
    }
}

impl Run {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Compares with `tests/snapshots/NAME`; `TOOLGATE_BLESS=1` rewrites it.
#[track_caller]
pub fn snapshot(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        fs::write(&path, text).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{} differs; TOOLGATE_BLESS=1 rewrites it", path.display());
}

/// A valid JavaScript tool.
pub fn tool(name: &str) -> String {
    format!(
        r#"{{
  "name": "{name}",
  "description": "Adds two numbers. Needs `a` and `b`. Returns their sum.",
  "category": "MATH",
  "params": [
    {{ "name": "a", "description": "The first number.", "required": true, "type": "NUMBER", "testValue": "2" }},
    {{ "name": "b", "description": "The second number.", "required": true, "type": "NUMBER", "testValue": "3" }}
  ],
  "code": "return a + b;",
  "codeType": "Javascript",
  "draft": true
}}
"#
    )
}

/// Like `tool`, with more top-level fields, such as `"draft": false`.
pub fn tool_with(name: &str, fields: &str) -> String {
    tool(name).replace("\"draft\": true", fields)
}

/// Much longer than any run; a guard against hanging.
const HANG: Duration = Duration::from_secs(20);

/// Address space, which includes the stacks and arenas of threads.
const MEMORY_KIB: u64 = 1_500_000;
