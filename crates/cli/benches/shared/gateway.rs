//! Runs the program under measurement: commands in a workspace, and a gateway with its log.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
};

/// The lines of a gateway's log. Read all of them: a full pipe stops the gateway.
pub type LogLines = std::io::Lines<BufReader<ChildStderr>>;

/// Runs `toolgate` to its end, and returns its output.
pub fn toolgate(folder: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_toolgate")).args(arguments).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Starts a gateway on a free port, and returns it with its address when it serves.
pub fn serve(folder: &Path) -> (Child, String, LogLines) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let served = lines.by_ref().map_while(Result::ok).find(|line| line.contains("serving MCP at"));
    let served = served.expect("it serves");
    let address = served.split("http://").nth(1).unwrap().trim_end_matches("/mcp").to_owned();
    (child, address, lines)
}

pub fn resident_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
}
