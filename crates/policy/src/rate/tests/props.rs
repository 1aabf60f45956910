//! Widening never lowers the level and narrowing never raises it, in any layer.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;
use toolgate_spec::Format;

use crate::{UserOverrides, resolve, testing};

use super::super::*;

/// The grants of a document that can be ordered.
#[derive(Clone, Debug)]
struct RequestedGrants {
    network: Net,
    switches: Vec<Switch>,
    added_allow: Vec<&'static str>,
    removed_deny: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Switch {
    FileRead,
    FileWrite,
    Destructive,
    NoSandbox,
    InheritEnv,
}

impl Switch {
    const ALL: [Self; 5] =
        [Self::FileRead, Self::FileWrite, Self::Destructive, Self::NoSandbox, Self::InheritEnv];
}

#[derive(Clone, Debug, PartialEq)]
enum Net {
    Blocked,
    Listed { hosts: Vec<&'static str>, private: bool },
    Strict,
    Open,
}

fn asked() -> impl Strategy<Value = RequestedGrants> {
    let net = prop_oneof![
        Just(Net::Blocked),
        (prop::sample::subsequence(vec!["a.org", "*.b.org", "*", "docs.*"], 0..=4), any::<bool>())
            .prop_map(|(hosts, private)| Net::Listed { hosts, private }),
        Just(Net::Strict),
        Just(Net::Open),
    ];
    let allow =
        vec!["x.Y", "java.io.File", "java.io.FileWriter", "java.net.*", "java.*", "java.lang.reflect.Field"];
    let deny = vec![
        "java.lang.System",
        "java.lang.Thread",
        "java.lang.Class",
        "java.util.spi.*",
        "java.lang.ClassLoader",
    ];
    let switches = prop::sample::subsequence(Switch::ALL.to_vec(), 0..=5);
    (net, switches, prop::sample::subsequence(allow, 0..=6), prop::sample::subsequence(deny, 0..=5)).prop_map(
        |(network, switches, added_allow, removed_deny)| RequestedGrants {
            network,
            switches,
            added_allow,
            removed_deny,
        },
    )
}

impl RequestedGrants {
    /// Requested by the document itself.
    fn level(&self, set: &PolicySet) -> RiskLevel {
        let spec = self.spec();
        rate(&resolve(&spec, set, None).unwrap(), &spec, set).level
    }

    /// Granted by a profile, as far as possible; the document only names the profile.
    fn level_by_profile(&self) -> RiskLevel {
        let (mode, hosts) = match &self.network {
            Net::Blocked => ("blocked", json!([])),
            Net::Listed { hosts, .. } => ("allowlist", json!(hosts)),
            Net::Strict => ("strict", json!([])),
            Net::Open => ("open", json!([])),
        };
        let is_on = |switch: Switch| self.switches.contains(&switch);
        let file_mode = match (is_on(Switch::FileRead), is_on(Switch::FileWrite)) {
            (_, true) => "readwrite",
            (true, false) => "read",
            (false, false) => "off",
        };
        let profile = json!({
            "network": mode, "hostsAllow": hosts, "fileMode": file_mode, "addAllowClasses": self.added_allow,
        });
        let set = PolicySet::new(PolicySet::SHIPPED_BASELINE, [("granted", profile.to_string())]).unwrap();
        let spec = testing::spec(&testing::js("x-toolgate-profile: granted"));
        rate(&resolve(&spec, &set, None).unwrap(), &spec, &set).level
    }

    /// Set by overrides, as far as possible, for a document that requests `below`.
    fn level_by_operator(&self, below: &Self) -> RiskLevel {
        let network = match &self.network {
            Net::Blocked => json!({"access": "none"}),
            Net::Listed { hosts, private } => {
                json!({"access": "limited", "allowedHosts": hosts, "blockPrivateIPs": !private})
            }
            Net::Strict => json!({"access": "full", "blockPrivateIPs": true}),
            Net::Open => json!({"access": "full", "blockPrivateIPs": false}),
        };
        let is_on = |switch: Switch| self.switches.contains(&switch);
        // An empty list removes file access; without a list the document keeps its own.
        let touches_files = is_on(Switch::FileRead) || is_on(Switch::FileWrite);
        let execution = json!({
            "allowedPaths": if touches_files { json!(null) } else { json!([]) },
            "sandbox": if is_on(Switch::NoSandbox) { "none" } else { "process" },
            "env": if is_on(Switch::InheritEnv) { "inherit" } else { "clean" },
        });
        let overrides = json!({"tools": {"t": {"capability": {"network": network, "execution": execution}}}});
        let user = UserOverrides::parse(&overrides.to_string(), Format::Json).unwrap();
        let spec = below.spec();
        rate(&resolve(&spec, &SHIPPED, Some(&user)).unwrap(), &spec, &SHIPPED).level
    }

    fn spec(&self) -> ToolSpec {
        let mut spec = testing::spec(testing::PLAIN);
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<String>>();
        let capability = &mut spec.governance.capability;
        match &self.network {
            Net::Blocked => spec.overrides.network_mode = Some(NetworkMode::Blocked),
            Net::Listed { hosts, private } => {
                spec.overrides.network_mode = Some(NetworkMode::Allowlist);
                spec.overrides.hosts_allow = owned(hosts);
                capability.network.block_private_ips = Some(!private);
            }
            Net::Strict => spec.overrides.network_mode = Some(NetworkMode::Strict),
            Net::Open => spec.overrides.network_mode = Some(NetworkMode::Open),
        }
        let is_on = |switch: Switch| self.switches.contains(&switch);
        spec.overrides.file_read = Some(is_on(Switch::FileRead));
        spec.overrides.file_write = Some(is_on(Switch::FileWrite));
        spec.overrides.destructive = is_on(Switch::Destructive);
        capability.execution.sandbox = is_on(Switch::NoSandbox).then_some(SandboxKind::None);
        capability.execution.env = is_on(Switch::InheritEnv).then_some(EnvironmentMode::Inherit);
        spec.overrides.add_allow_classes = owned(&self.added_allow);
        spec.overrides.remove_deny_classes = owned(&self.removed_deny);
        spec
    }

    /// The narrowest grants that include both.
    fn join(&self, other: &Self) -> Self {
        let network = match (&self.network, &other.network) {
            (Net::Blocked, net) | (net, Net::Blocked) => net.clone(),
            (Net::Listed { hosts: a, private: p }, Net::Listed { hosts: b, private: q }) => {
                Net::Listed { hosts: union(a, b), private: *p || *q }
            }
            // `*` is rated above `strict`, which reaches the same hosts; both exclude private addresses.
            (Net::Listed { private, hosts }, Net::Strict) | (Net::Strict, Net::Listed { private, hosts }) => {
                if *private || hosts.contains(&"*") {
                    Net::Open
                } else {
                    Net::Strict
                }
            }
            (Net::Strict, Net::Strict) => Net::Strict,
            (Net::Open, _) | (_, Net::Open) => Net::Open,
        };
        Self {
            network,
            switches: union(&self.switches, &other.switches),
            added_allow: union(&self.added_allow, &other.added_allow),
            removed_deny: union(&self.removed_deny, &other.removed_deny),
        }
    }
}

fn union<T: Copy + PartialEq>(a: &[T], b: &[T]) -> Vec<T> {
    a.iter().chain(b.iter().filter(|item| !a.contains(item))).copied().collect()
}

static SHIPPED: LazyLock<PolicySet> = LazyLock::new(|| PolicySet::shipped().unwrap());

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Read from left to right, widening never lowers; from right to left, narrowing never raises.
    #[test]
    fn level_follows_the_reach(first in asked(), second in asked()) {
        let both = first.join(&second).level(&SHIPPED);
        prop_assert!(first.level(&SHIPPED) <= both);
        prop_assert!(second.level(&SHIPPED) <= both);
    }

    /// The same through a profile, for a document without settings.
    #[test]
    fn level_follows_the_reach_of_a_profile(first in asked(), second in asked()) {
        let both = first.join(&second).level_by_profile();
        prop_assert!(first.level_by_profile() <= both);
        prop_assert!(second.level_by_profile() <= both);
    }

    /// The same through overrides, for any document.
    #[test]
    fn level_follows_the_reach_of_an_override(first in asked(), second in asked(), below in asked()) {
        let both = first.join(&second).level_by_operator(&below);
        prop_assert!(first.level_by_operator(&below) <= both);
        prop_assert!(second.level_by_operator(&below) <= both);
    }

    /// Overrides that remove everything they can never raise the level.
    #[test]
    fn overrides_can_always_narrow(asked in asked(), kept in asked()) {
        let nothing = RequestedGrants { network: Net::Blocked, switches: Vec::new(), ..kept };
        prop_assert!(nothing.level_by_operator(&asked) <= asked.level(&SHIPPED));
    }

    /// More denials only narrow.
    #[test]
    fn denials_never_raise_the_level(mut asked in asked(), denied in "[a-z]{1,8}\\.[A-Z][a-z]{0,6}", keeps_deny in any::<bool>()) {
        let before = asked.level(&SHIPPED);
        if keeps_deny { asked.removed_deny.clear(); }
        let narrowed = asked.level(&SHIPPED);
        prop_assert!(narrowed <= before);
        let mut spec = testing::spec(testing::PLAIN);
        spec.overrides.add_deny_classes = vec![denied];
        spec.overrides.remove_allow_classes = vec!["java.util.*".into()];
        prop_assert_eq!(rate(&resolve(&spec, &SHIPPED, None).unwrap(), &spec, &SHIPPED).level, RiskLevel::L0);
    }
}
