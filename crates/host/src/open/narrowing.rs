//! Combines two configurations into one that allows no more than either of them.

use toolgate_config::{
    Config,
    model::{AnonymousAccess, Approvals, Auth, LocalCaller},
};

/// The new configuration, with callers, approvals and limits at most as wide as the current ones.
pub fn narrowed(in_force: &Config, new: Config) -> Config {
    let mut config = new;
    config.auth = callers(&in_force.auth, &config.auth);
    config.approvals = approvals(&in_force.approvals, &config.approvals);
    config.limits.arguments = config.limits.arguments.min(in_force.limits.arguments);
    config.limits.depth = config.limits.depth.min(in_force.limits.depth);
    config
}

fn callers(in_force: &Auth, new: &Auth) -> Auth {
    let both = |one: &[String], other: &[String]| -> Vec<String> {
        one.iter().filter(|permission| other.contains(permission)).cloned().collect()
    };
    let anonymous = in_force.anonymous.as_ref().zip(new.anonymous.as_ref());
    Auth {
        tokens: in_force.tokens && new.tokens,
        anonymous: anonymous
            .map(|(one, other)| AnonymousAccess { permissions: both(&one.permissions, &other.permissions) }),
        jwt: new.jwt.iter().filter(|issuer| in_force.jwt.contains(issuer)).cloned().collect(),
        local: LocalCaller {
            subject: in_force.local.subject.clone(),
            permissions: both(&in_force.local.permissions, &new.local.permissions),
        },
    }
}

fn approvals(in_force: &Approvals, new: &Approvals) -> Approvals {
    Approvals {
        ask_from: new.ask_from.min(in_force.ask_from),
        expires: new.expires.min(in_force.expires),
        trust: new.trust.min(in_force.trust),
        ..new.clone()
    }
}

#[cfg(test)]
mod tests {
    use toolgate_config::Overrides;

    use super::*;

    fn config(keys: &str) -> Config {
        let text = format!("version: 1\n{keys}");
        Config::parse(&text, &std::env::temp_dir(), &|_| None, &Overrides::default()).unwrap()
    }

    #[track_caller]
    fn check(in_force: &str, new: &str, expect: &str) {
        let (narrow, expect) = (narrowed(&config(in_force), config(new)), config(expect));
        assert_eq!(narrow.auth, expect.auth);
        assert_eq!(narrow.approvals, expect.approvals);
        assert_eq!(narrow.limits, expect.limits);
    }

    #[test]
    fn stricter_settings_apply_and_wider_ones_do_not() {
        check("", "approvals: {ask_from: always}\n", "approvals: {ask_from: always}\n");
        check(
            "approvals: {ask_from: always}\n",
            "approvals: {ask_from: never}\n",
            "approvals: {ask_from: always}\n",
        );
        check("approvals: {ask_from: never}\n", "", "");
        check("limits: {depth: 9}\n", "limits: {depth: 30}\n", "limits: {depth: 9}\n");
        check("limits: {depth: 30}\n", "limits: {depth: 9}\n", "limits: {depth: 9}\n");
        let open = "auth: {anonymous: {permissions: [a, b]}}\n";
        check(open, "", "");
        check("", open, "");
        check(open, "auth: {anonymous: {permissions: [b, c]}}\n", "auth: {anonymous: {permissions: [b]}}\n");
        check("", "auth: {tokens: false}\n", "auth: {tokens: false}\n");
        check("auth: {tokens: false}\n", "", "auth: {tokens: false}\n");
        let issuer = "auth: {jwt: [{issuer: 'https://a.example/', audience: x, key: {jwks_url: 'https://a.example/keys'}}]}\n";
        check(issuer, "", "");
        check("", issuer, "");
        check(issuer, issuer, issuer);
    }
}
