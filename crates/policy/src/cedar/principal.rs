//! Checks the names of callers in policies. A policy with a name that no authentication method produces never matches.

use cedar_policy::pst::Var;

use super::{
    error::CedarError,
    schema::CALLER,
    source::{CedarRule, File},
    walk::Mentions,
};

/// Warns about `Caller::"alice"` and `principal.subject == "alice"`: real names have a prefix for their source.
///
/// These are warnings, because a program that embeds the gateway may choose other names.
pub(super) fn unknown_principals(file: &File<'_>, rule: &CedarRule, mentions: &Mentions) -> Vec<CedarError> {
    let literals = rule.policy.entity_literals();
    let callers = literals.iter().filter(|literal| literal.type_name().to_string() == CALLER);
    let named = callers.map(|literal| AsRef::<str>::as_ref(literal.id()).to_owned());
    let is_subject = |names: &[String]| matches!(names, [name] if name == "subject");
    let compared =
        mentions.compared.iter().filter(|(path, _)| path.root == Var::Principal && is_subject(&path.names));
    let mut warnings: Vec<CedarError> = Vec::new();
    for name in named.chain(compared.map(|(_, name)| name.clone())) {
        if has_a_known_form(&name) {
            continue;
        }
        let message = format!("no caller is named `{name}`, so this rule never matches one");
        let help = format!(
            "write `token:{name}` for a token of this gateway, `jwt:ISSUER:{name}` for a signed token, `local:{name}` or `anonymous:{name}`"
        );
        let warning = file.error_at(rule, &name, message).with_help(Some(help));
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

fn has_a_known_form(name: &str) -> bool {
    match name.split_once(':') {
        Some(("token" | "local" | "anonymous", name)) => !name.is_empty(),
        Some(("jwt", rest)) => {
            rest.split_once(':').is_some_and(|(issuer, subject)| !issuer.is_empty() && !subject.is_empty())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::has_a_known_form;

    #[test]
    fn only_prefixed_names_are_callers() {
        for name in ["token:ann", "local:local", "anonymous:guest", "jwt:login:ann", "jwt:login:a:b"] {
            assert!(has_a_known_form(name), "{name}");
        }
        for name in ["alice", "", "token:", "jwt:ann", "jwt::ann", "jwt:login:", "Token:ann", "user:ann"] {
            assert!(!has_a_known_form(name), "{name}");
        }
    }
}
