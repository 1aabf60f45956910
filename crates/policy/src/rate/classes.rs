//! What the class lists open beyond the shipped baseline: denials taken away, permissions added.
//!
//! No host class exists here, so these entries open nothing; they are scored as if they did, because the document
//! may be run elsewhere and because its author asked for them.

use std::{collections::HashSet, sync::Arc};

use super::{Reason, RiskLevel};
use crate::{
    effective::ClassPolicy,
    setting::{Listing, Setting},
};

pub(super) fn judge(classes: &ClassPolicy, shipped: &ClassPolicy, because: &mut Vec<Reason>) {
    if !is_same(&classes.deny, &shipped.deny) {
        removed_denials(classes, shipped, because);
    }
    if !is_same(&classes.allow, &shipped.allow) {
        added_permissions(classes, shipped, because);
    }
}

fn is_same(list: &Listing<Arc<str>>, shipped: &Listing<Arc<str>>) -> bool {
    Arc::ptr_eq(&list.entries, &shipped.entries)
}

fn removed_denials(classes: &ClassPolicy, shipped: &ClassPolicy, because: &mut Vec<Reason>) {
    let denied: HashSet<&str> = classes.deny.values().map(AsRef::as_ref).collect();
    let removed: Vec<&str> =
        shipped.deny.values().map(AsRef::as_ref).filter(|entry| !denied.contains(entry)).collect();
    if removed.is_empty() {
        return;
    }
    let (code, level) = if removed.iter().any(|entry| kind_of(entry) == Kind::Critical) {
        ("deny-critical-removed", RiskLevel::L5)
    } else if removed.len() >= 3 {
        ("deny-many-removed", RiskLevel::L4)
    } else {
        ("deny-removed", RiskLevel::L3)
    };
    let text = format!("no longer denied: {}", shown(&removed));
    because.push(Reason::new(code, level, text, "classes.deny", &classes.deny.origin));
}

fn added_permissions(classes: &ClassPolicy, shipped: &ClassPolicy, because: &mut Vec<Reason>) {
    let known: HashSet<&str> = shipped.allow.values().map(AsRef::as_ref).collect();
    let added: Vec<&Setting<Arc<str>>> =
        classes.allow.entries.iter().filter(|entry| !known.contains(entry.value.as_ref())).collect();
    for kind in Kind::ALL {
        let of_kind: Vec<_> = added.iter().filter(|entry| kind_of(&entry.value) == kind).collect();
        if let Some(first) = of_kind.first() {
            let names: Vec<&str> = of_kind.iter().map(|entry| entry.value.as_ref()).collect();
            let text = format!("{}: {}", kind.says(), shown(&names));
            because.push(Reason::new(kind.code(), kind.level(), text, "classes.allow", &first.origin));
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

/// What an entry opens, gravest first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Critical,
    FileWrite,
    Reflection,
    Network,
    FileRead,
    Other,
}

impl Kind {
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

    /// `java.io.File` and `java.lang.Class` are meant exactly; everything else with what follows.
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
        // A pattern that is wider than a class opens the class: `java.*`, `*` and `java.io.File*` are no disguise.
        let stem = entry.find('*').and_then(|star| entry.get(..star));
        prefixes
            .iter()
            .any(|prefix| entry.starts_with(prefix) || stem.is_some_and(|stem| prefix.starts_with(stem)))
            || exact.iter().any(|name| entry == *name || stem.is_some_and(|stem| name.starts_with(stem)))
    }
}

fn kind_of(entry: &str) -> Kind {
    // Spellings that no loader takes are judged as what they try to be.
    let plain = entry.trim().to_ascii_lowercase().replace('/', ".");
    Kind::ALL.into_iter().find(|kind| kind.is_opened_by(&plain)).unwrap_or(Kind::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entry: &str, expect: Kind) {
        assert_eq!(kind_of(entry), expect, "{entry}");
    }

    #[test]
    fn entries_are_what_they_open() {
        check("java.lang.System", Kind::Critical);
        check("java.lang.ProcessBuilder", Kind::Critical);
        check("java.io.FileOutputStream", Kind::FileWrite);
        check("java.nio.channels.FileChannel", Kind::FileWrite);
        check("java.lang.reflect.Method", Kind::Reflection);
        check("java.lang.Class", Kind::Reflection);
        check("java.lang.ClassLoader", Kind::Other);
        check("java.net.URLConnection", Kind::Network);
        check("org.jsoup.Jsoup", Kind::Network);
        check("java.io.File", Kind::FileRead);
        check("java.io.FileFilter", Kind::Other);
        check("java.nio.file.Paths", Kind::FileRead);
        check("com.example.Thing", Kind::Other);
    }

    #[test]
    fn disguises_do_not_help() {
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
            check(wide, Kind::Critical);
        }
        check("java.io.*", Kind::FileWrite);
        check("java.io.File*", Kind::FileWrite);
        check("java.nio.*", Kind::FileWrite);
        check("java.net.*", Kind::Network);
        check("java.nio.file.*", Kind::FileRead);
    }
}
