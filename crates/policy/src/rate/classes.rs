//! Rates changes of the class lists against the shipped baseline: removed denials and added permissions.
//!
//! Toolgate has no Java host classes, so these entries have no effect here. They are rated anyway, because the document may
//! run elsewhere and its author asked for them.

use std::{collections::HashSet, sync::Arc};

use super::{RiskLevel, RiskReason};
use crate::{
    effective::ClassPolicy,
    setting::{Setting, SettingList},
};

pub(super) fn judge(classes: &ClassPolicy, shipped: &ClassPolicy, because: &mut Vec<RiskReason>) {
    if !is_same(&classes.deny, &shipped.deny) {
        removed_denials(classes, shipped, because);
    }
    if !is_same(&classes.allow, &shipped.allow) {
        added_permissions(classes, shipped, because);
    }
}

fn is_same(list: &SettingList<Arc<str>>, shipped: &SettingList<Arc<str>>) -> bool {
    Arc::ptr_eq(&list.entries, &shipped.entries)
}

fn removed_denials(classes: &ClassPolicy, shipped: &ClassPolicy, because: &mut Vec<RiskReason>) {
    let denied: HashSet<&str> = classes.deny.values().map(AsRef::as_ref).collect();
    let removed: Vec<&str> =
        shipped.deny.values().map(AsRef::as_ref).filter(|entry| !denied.contains(entry)).collect();
    if removed.is_empty() {
        return;
    }
    let (code, level) = if removed.iter().any(|entry| kind_of(entry) == ClassRisk::Critical) {
        ("deny-critical-removed", RiskLevel::L5)
    } else if removed.len() >= 3 {
        ("deny-many-removed", RiskLevel::L4)
    } else {
        ("deny-removed", RiskLevel::L3)
    };
    let text = format!("no longer denied: {}", shown(&removed));
    because.push(RiskReason::new(code, level, text, "classes.deny", &classes.deny.origin));
}

fn added_permissions(classes: &ClassPolicy, shipped: &ClassPolicy, because: &mut Vec<RiskReason>) {
    let known: HashSet<&str> = shipped.allow.values().map(AsRef::as_ref).collect();
    let added: Vec<&Setting<Arc<str>>> =
        classes.allow.entries.iter().filter(|entry| !known.contains(entry.value.as_ref())).collect();
    for kind in ClassRisk::ALL {
        let of_kind: Vec<_> = added.iter().filter(|entry| kind_of(&entry.value) == kind).collect();
        if let Some(first) = of_kind.first() {
            let names: Vec<&str> = of_kind.iter().map(|entry| entry.value.as_ref()).collect();
            let text = format!("{}: {}", kind.says(), shown(&names));
            because.push(RiskReason::new(kind.code(), kind.level(), text, "classes.allow", &first.origin));
        }
    }
}

fn shown(entries: &[&str]) -> String {
    const MOST: usize = 5;
    let first: Vec<&str> = entries.iter().copied().take(MOST).collect();
    let more = entries.len().saturating_sub(MOST);
    let listed = format!("`{}`", first.join("`, `"));
    if more == 0 { listed } else { format!("{listed} and {more} more") }
}

/// The risk of the access that an entry grants, most severe first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ClassRisk {
    Critical,
    FileWrite,
    Reflection,
    Network,
    FileRead,
    Other,
}

impl ClassRisk {
    const ALL: [Self; 6] =
        [Self::Critical, Self::FileWrite, Self::Reflection, Self::Network, Self::FileRead, Self::Other];

    const fn level(self) -> RiskLevel {
        match self {
            Self::Critical | Self::FileWrite => RiskLevel::L5,
            Self::Reflection | Self::Network | Self::FileRead => RiskLevel::L4,
            Self::Other => RiskLevel::L3,
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Critical => "allow-critical",
            Self::FileWrite => "allow-file-write",
            Self::Reflection => "allow-reflection",
            Self::Network => "allow-network",
            Self::FileRead => "allow-file-read",
            Self::Other => "allow-other",
        }
    }

    const fn says(self) -> &'static str {
        match self {
            Self::Critical => "allows classes that control the process",
            Self::FileWrite => "allows classes that write files",
            Self::Reflection => "allows reflection",
            Self::Network => "allows classes that reach the network",
            Self::FileRead => "allows classes that read files",
            Self::Other => "allows further classes",
        }
    }

    /// `java.io.File` and `java.lang.Class` match exactly; all others also match subpackages.
    const fn classes(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Critical => (&["java.lang.system", "java.lang.runtime", "java.lang.process"], &[]),
            Self::FileWrite => (
                &[
                    "java.io.filewriter",
                    "java.io.fileoutputstream",
                    "java.io.randomaccessfile",
                    "java.nio.channels.filechannel",
                ],
                &[],
            ),
            Self::Reflection => (&["java.lang.reflect", "java.lang.invoke"], &["java.lang.class"]),
            Self::Network => (
                &[
                    "java.net.http",
                    "java.net.socket",
                    "java.net.url",
                    "java.net.httpurlconnection",
                    "java.nio.channels.socket",
                    "javax.net.ssl",
                    "org.jsoup",
                ],
                &[],
            ),
            Self::FileRead => (
                &[
                    "java.io.filereader",
                    "java.io.fileinputstream",
                    "java.nio.file.files",
                    "java.nio.file.path",
                ],
                &["java.io.file"],
            ),
            Self::Other => (&[], &[]),
        }
    }

    fn is_opened_by(self, entry: &str) -> bool {
        let (prefixes, exact) = self.classes();
        // A pattern wider than a class includes it: `java.*`, `*` and `java.io.File*`.
        let stem = entry.find('*').and_then(|star| entry.get(..star));
        prefixes
            .iter()
            .any(|prefix| entry.starts_with(prefix) || stem.is_some_and(|stem| prefix.starts_with(stem)))
            || exact.iter().any(|name| entry == *name || stem.is_some_and(|stem| name.starts_with(stem)))
    }
}

fn kind_of(entry: &str) -> ClassRisk {
    // Rate misspellings that no loader accepts like the class they resemble.
    let plain = entry.trim().to_ascii_lowercase().replace('/', ".");
    ClassRisk::ALL.into_iter().find(|kind| kind.is_opened_by(&plain)).unwrap_or(ClassRisk::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entry: &str, expect: ClassRisk) {
        assert_eq!(kind_of(entry), expect, "{entry}");
    }

    #[test]
    fn entries_are_rated_by_what_they_open() {
        check("java.lang.System", ClassRisk::Critical);
        check("java.lang.ProcessBuilder", ClassRisk::Critical);
        check("java.io.FileOutputStream", ClassRisk::FileWrite);
        check("java.nio.channels.FileChannel", ClassRisk::FileWrite);
        check("java.lang.reflect.Method", ClassRisk::Reflection);
        check("java.lang.Class", ClassRisk::Reflection);
        check("java.lang.ClassLoader", ClassRisk::Other);
        check("java.net.URLConnection", ClassRisk::Network);
        check("org.jsoup.Jsoup", ClassRisk::Network);
        check("java.io.File", ClassRisk::FileRead);
        check("java.io.FileFilter", ClassRisk::Other);
        check("java.nio.file.Paths", ClassRisk::FileRead);
        check("com.example.Thing", ClassRisk::Other);
    }

    #[test]
    fn disguised_entries_are_rated_like_plain_ones() {
        for wide in [
            "*",
            "java.*",
            "java.lang*",
            "java.lang.Runtime*",
            "java.lang.Run*",
            " java.lang.Runtime ",
            "JAVA.LANG.RUNTIME",
            "java/lang/Runtime",
        ] {
            check(wide, ClassRisk::Critical);
        }
        check("java.io.*", ClassRisk::FileWrite);
        check("java.io.File*", ClassRisk::FileWrite);
        check("java.nio.*", ClassRisk::FileWrite);
        check("java.net.*", ClassRisk::Network);
        check("java.nio.file.*", ClassRisk::FileRead);
    }
}
