//! Whose is a container, and is that gateway still there?
//!
//! A gateway that crashed leaves containers behind. Their labels say which process made them and until when they may run.

use std::{
    fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Deserialize;

use super::{Runtime, client};

impl Runtime {
    /// Removes what gateways left behind that are no more, and what outlived its deadline. Returns how many. Blocks: for the
    /// start of a gateway.
    pub fn sweep(&self) -> Result<usize, String> {
        let filter = format!("label={OWNER_LABEL}");
        let list = ["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter].map(str::to_owned);
        let ids = String::from_utf8_lossy(&self.tell(&list, PATIENCE)?).into_owned();
        let ids: Vec<String> =
            ids.lines().map(|line| line.trim().to_owned()).filter(|line| is_id(line)).collect();
        let us = Owner::of_this_process().map_err(|error| format!("this process is not known: {error}"))?;
        let mut removed = 0;
        for id in ids {
            // One that went away in between is not there to be removed.
            let question = ["inspect".to_owned(), "--type=container".to_owned(), id.clone()];
            let Ok(text) = self.tell(&question, PATIENCE) else { continue };
            if is_orphan(&text, &us, now()) {
                self.tell(&self.removal(&id), PATIENCE)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// One question whose answer must be content.
    pub(super) fn tell(&self, arguments: &[String], patience: Duration) -> Result<Vec<u8>, String> {
        client::ask(&self.program, arguments, b"", patience).map_err(|error| error.to_string())?.content()
    }
}

/// A process, such that no other has ever been the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Owner {
    pid: u32,
    /// In ticks after the start of the machine.
    started: u64,
    boot: String,
    /// Numbers of processes mean something in here only.
    namespace: String,
}

impl Owner {
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

    /// `None` when that cannot be seen from where we are.
    fn is_alive(&self, us: &Self) -> Option<bool> {
        if self.boot != us.boot {
            return Some(false);
        }
        (self.namespace == us.namespace).then(|| start_of(self.pid) == Some(self.started))
    }
}

/// Until when a container made now may run.
pub(super) fn expiry(deadline: Duration) -> u64 {
    now().saturating_add(deadline.as_secs()).saturating_add(SLACK.as_secs())
}

fn is_orphan(inspected: &[u8], us: &Owner, now: u64) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Inspected {
        config: Config,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Config {
        labels: serde_json::Map<String, serde_json::Value>,
    }
    let Ok([inspected]) = serde_json::from_slice::<[Inspected; 1]>(inspected) else { return false };
    let label = |name: &str| inspected.config.labels.get(name).and_then(serde_json::Value::as_str);
    let is_over =
        label(EXPIRY_LABEL).and_then(|text| text.parse().ok()).is_some_and(|until: u64| until < now);
    let is_alone =
        label(OWNER_LABEL).and_then(Owner::read).and_then(|owner| owner.is_alive(us)) == Some(false);
    is_over || is_alone
}

/// Field 22 of `stat`, counted after the name, which may hold anything.
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

/// How long one question may take.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// How long after its deadline a container may be in the hands of a gateway that is slow to remove it.
const SLACK: Duration = Duration::from_mins(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn inspected(owner: &str, until: u64) -> Vec<u8> {
        format!(r#"[{{"Config":{{"Labels":{{"toolgate.owner":"{owner}","toolgate.expires":"{until}"}}}}}}]"#)
            .into_bytes()
    }

    #[track_caller]
    fn check(owner: &Owner, until: u64, expect: bool) {
        let us = Owner::of_this_process().unwrap();
        assert_eq!(is_orphan(&inspected(&owner.label(), until), &us, 1_000), expect, "{owner:?}");
    }

    #[test]
    fn a_label_survives_and_belongs_to_one_process() {
        let us = Owner::of_this_process().unwrap();
        assert_eq!(Owner::read(&us.label()), Some(us.clone()));
        assert!(us.started > 0);
        for label in ["", "1.2.3", "x.1.b.n", "1.2.b.n.more"] {
            assert_eq!(Owner::read(label), None, "{label}");
        }
    }

    #[test]
    fn containers_of_the_living_are_kept_and_those_of_the_dead_are_not() {
        let us = Owner::of_this_process().unwrap();
        check(&us, 2_000, false);
        check(&us, 999, true);
        check(&Owner { started: us.started + 1, ..us.clone() }, 2_000, true);
        check(&Owner { boot: "another".to_owned(), ..us.clone() }, 2_000, true);
        // Of a gateway in a container of its own nothing can be seen; the deadline decides.
        check(&Owner { namespace: "pid1".to_owned(), pid: 1, ..us.clone() }, 2_000, false);
        check(&Owner { namespace: "pid1".to_owned(), pid: 1, ..us }, 999, true);
    }

    #[test]
    fn what_is_not_understood_is_not_removed() {
        let us = Owner::of_this_process().unwrap();
        for text in
            [b"".as_slice(), b"[]", br#"[{"Config":{"Labels":{}}}]"#, br#"[{"Config":{"Labels":null}}]"#]
        {
            assert!(!is_orphan(text, &us, u64::MAX));
        }
    }
}
