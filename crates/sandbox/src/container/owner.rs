//! Ownership labels of containers, and removal of orphans.
//!
//! A gateway that crashed leaves containers behind. Their labels name the process that created them and their
//! deadline.

use std::{
    fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Deserialize;

use super::{Runtime, client};

impl Runtime {
    /// Removes containers of gateways that have ended, and those past their deadline. Returns how many. Blocks;
    /// call it when a gateway starts.
    pub fn sweep(&self) -> Result<usize, String> {
        let filter = format!("label={OWNER_LABEL}");
        let list = ["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter].map(str::to_owned);
        let ids = String::from_utf8_lossy(&self.run(&list, COMMAND_TIMEOUT)?).into_owned();
        let ids: Vec<String> =
            ids.lines().map(|line| line.trim().to_owned()).filter(|line| is_id(line)).collect();
        let us = GatewayProcess::of_this_process()
            .map_err(|error| format!("cannot identify this process: {error}"))?;
        let mut removed = 0;
        for id in ids {
            // A container that ended in between needs no removal.
            let question = ["inspect".to_owned(), "--type=container".to_owned(), id.clone()];
            let Ok(text) = self.run(&question, COMMAND_TIMEOUT) else { continue };
            if is_orphan(&text, &us, now()) {
                self.run(&self.removal(&id), COMMAND_TIMEOUT)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Runs one runtime command that must succeed, and returns its output.
    pub(super) fn run(&self, arguments: &[String], timeout: Duration) -> Result<Vec<u8>, String> {
        client::ask(&self.program, arguments, b"", timeout)
            .map_err(|error| error.to_string())?
            .success_output()
    }
}

/// Identifies a process uniquely, even after its process id is reused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct GatewayProcess {
    pid: u32,
    /// In clock ticks since boot.
    started: u64,
    boot: String,
    /// The PID namespace in which `pid` is valid.
    namespace: String,
}

impl GatewayProcess {
    pub(super) fn of_this_process() -> std::io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let namespace = fs::read_link("/proc/self/ns/pid")?.to_string_lossy().replace(['[', ']', ':'], "");
        let pid = std::process::id();
        Ok(Self { pid, started: start_of(pid).unwrap_or_default(), boot, namespace })
    }

    pub(super) fn label(&self) -> String {
        format!("{}.{}.{}.{}", self.pid, self.started, self.boot, self.namespace)
    }

    fn read(label: &str) -> Option<Self> {
        let mut words = label.split('.');
        let (pid, started) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (boot, namespace) = (words.next()?.to_owned(), words.next()?.to_owned());
        words.next().is_none().then_some(Self { pid, started, boot, namespace })
    }

    /// `None` if the process is not visible from here.
    fn is_alive(&self, us: &Self) -> Option<bool> {
        if self.boot != us.boot {
            return Some(false);
        }
        (self.namespace == us.namespace).then(|| start_of(self.pid) == Some(self.started))
    }
}

/// When a container created now expires.
pub(super) fn expiry(deadline: Duration) -> u64 {
    now().saturating_add(deadline.as_secs()).saturating_add(SLACK.as_secs())
}

fn is_orphan(inspected: &[u8], us: &GatewayProcess, now: u64) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct LabelledContainer {
        config: LabelledConfig,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct LabelledConfig {
        labels: serde_json::Map<String, serde_json::Value>,
    }
    let Ok([inspected]) = serde_json::from_slice::<[LabelledContainer; 1]>(inspected) else { return false };
    let label = |name: &str| inspected.config.labels.get(name).and_then(serde_json::Value::as_str);
    let is_over =
        label(EXPIRY_LABEL).and_then(|text| text.parse().ok()).is_some_and(|until: u64| until < now);
    let is_alone =
        label(OWNER_LABEL).and_then(GatewayProcess::read).and_then(|owner| owner.is_alive(us)) == Some(false);
    is_over || is_alone
}

/// Field 22 of `stat`, counted after the program name, which may contain any character.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(super) const OWNER_LABEL: &str = "toolgate.owner";
pub(super) const EXPIRY_LABEL: &str = "toolgate.expires";

/// Timeout of one runtime command.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

/// How long after its deadline a slow gateway may take to remove a container itself.
const SLACK: Duration = Duration::from_mins(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn inspected(owner: &str, until: u64) -> Vec<u8> {
        format!(r#"[{{"Config":{{"Labels":{{"toolgate.owner":"{owner}","toolgate.expires":"{until}"}}}}}}]"#)
            .into_bytes()
    }

    #[track_caller]
    fn check(owner: &GatewayProcess, until: u64, expect: bool) {
        let us = GatewayProcess::of_this_process().unwrap();
        assert_eq!(is_orphan(&inspected(&owner.label(), until), &us, 1_000), expect, "{owner:?}");
    }

    #[test]
    fn owner_label_round_trips() {
        let us = GatewayProcess::of_this_process().unwrap();
        assert_eq!(GatewayProcess::read(&us.label()), Some(us.clone()));
        assert!(us.started > 0);
        for label in ["", "1.2.3", "x.1.b.n", "1.2.b.n.more"] {
            assert_eq!(GatewayProcess::read(label), None, "{label}");
        }
    }

    #[test]
    fn only_containers_of_ended_gateways_are_orphans() {
        let us = GatewayProcess::of_this_process().unwrap();
        check(&us, 2_000, false);
        check(&us, 999, true);
        check(&GatewayProcess { started: us.started + 1, ..us.clone() }, 2_000, true);
        check(&GatewayProcess { boot: "another".to_owned(), ..us.clone() }, 2_000, true);
        // A gateway in its own container is not visible; the deadline decides.
        check(&GatewayProcess { namespace: "pid1".to_owned(), pid: 1, ..us.clone() }, 2_000, false);
        check(&GatewayProcess { namespace: "pid1".to_owned(), pid: 1, ..us }, 999, true);
    }

    #[test]
    fn unparsable_containers_are_not_removed() {
        let us = GatewayProcess::of_this_process().unwrap();
        for text in
            [b"".as_slice(), b"[]", br#"[{"Config":{"Labels":{}}}]"#, br#"[{"Config":{"Labels":null}}]"#]
        {
            assert!(!is_orphan(text, &us, u64::MAX));
        }
    }
}
