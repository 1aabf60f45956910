//! Checks environment variables of a command: valid names, and no caller values for variables that decide what runs.

use super::{report::ManifestReport, scope::TemplateScope, templates};
use crate::{Pointer, model::NamedTemplate};

/// Checks names and, if a caller fills in a value, the effect of the variable.
pub(super) fn check(
    env: &[NamedTemplate],
    at: &Pointer,
    scope: &TemplateScope,
    report: &mut ManifestReport<'_>,
) {
    for variable in env {
        let at = at.key(&variable.name);
        if !is_upper_case_name(&variable.name) {
            report.add_at_key(
                &at,
                format!("`{}` is not an environment variable", variable.name.escape_debug()),
                "use upper-case letters, digits and `_`, not beginning with a digit",
            );
        } else if let Some(chosen) = templates::chosen_by_caller(&variable.value, scope).next()
            && decides_what_runs(&variable.name)
        {
            report.add(
                &at,
                format!("`{chosen}` would let the caller choose what runs, through `{}`", variable.name),
                "write the value out, or use a static variable",
            );
        }
    }
}

fn is_upper_case_name(name: &str) -> bool {
    is_name(name) && !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

pub(super) fn is_name(name: &str) -> bool {
    name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a caller must not set the variable: it loads code, or sets search paths, trust or options of a program.
pub fn decides_what_runs(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    loads_code(&name)
        || STEERING.contains(&name.as_str())
        || STEERING_FAMILIES.iter().any(|family| name.starts_with(family))
        || STEERING_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || names_settings_of_a_program(&name)
}

/// Matches `PHPRC`, `INPUTRC` and `NPMRC`, but not `SRC`.
fn names_settings_of_a_program(name: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or_default();
    last.ends_with("RC") && !matches!(last, "SRC" | "CRC")
}

/// Whether the variable loads code, names a program or redirects traffic. Only the author of a manifest may set it:
/// neither a caller nor the gateway's own environment.
pub fn loads_code(name: &str) -> bool {
    // Proxy variables exist in both cases.
    let name = name.to_ascii_uppercase();
    LOADING.contains(&name.as_str()) || LOADING_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Prefixes whose variables mostly load code.
const LOADING_FAMILIES: [&str; 15] = [
    "BASH_",
    "DOTNET_",
    "DYLD_",
    "GCONV_",
    "GIT_",
    "GLIBC_",
    "LD_",
    "LUA_INIT",
    "MALLOC_",
    "NODE_",
    "NPM_CONFIG_",
    "PERL",
    "PYTHON",
    "RUBY",
    "SSH_",
];

const LOADING: [&str; 34] = [
    "ALL_PROXY",
    "AWKLIBPATH",
    "BROWSER",
    "CLASSPATH",
    "EDITOR",
    "ENV",
    "EXINIT",
    "GOFLAGS",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "NO_PROXY",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PAGER",
    "PROMPT_COMMAND",
    "PS4",
    "RSYNC_RSH",
    "SHELLOPTS",
    "SVN_SSH",
    "TAR_OPTIONS",
    "VIMINIT",
    "VISUAL",
    "WGETRC",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Common endings of variables that hold options, settings or a program name. A complete list is impossible.
const STEERING_ENDINGS: [&str; 17] = [
    "_ARGS",
    "_COMMAND",
    "_CONF",
    "_CONFIG",
    "_CONFIG_FILE",
    "_CONFIG_PATH",
    "_DEFAULTS",
    "_OPTIONS",
    "_RSH",
    "_WRAPPER",
    "ASKPASS",
    "EDITOR",
    "EXTERNAL_DIFF",
    "FLAGS",
    "OPT",
    "OPTS",
    "PAGER",
];

/// Prefixes whose variables mostly configure a program.
const STEERING_FAMILIES: [&str; 5] = ["OPENSSL_", "PGSERVICE", "RUSTC", "SSL_CERT_", "TF_CLI_ARGS"];

/// Harmless with the operator's values.
const STEERING: [&str; 33] = [
    "AWS_SHARED_CREDENTIALS_FILE",
    "BZIP",
    "BZIP2",
    "CC",
    "CTAGS",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "CVS_SERVER",
    "CXX",
    "DOCKER_HOST",
    "ENSCRIPT",
    "ETAGS",
    "GEM_HOME",
    "GEM_PATH",
    "GZIP",
    "HOME",
    "KUBECONFIG",
    "LESS",
    "LESSKEY",
    "LUA_CPATH",
    "LUA_PATH",
    "MORE",
    "PATH",
    "PHP_INI_SCAN_DIR",
    "RSYNC_CONNECT_PROG",
    "SHELL",
    "TAPE",
    "TERMINFO",
    "TMPDIR",
    "UNZIP",
    "XDG_CONFIG_HOME",
    "ZIP",
    "ZIPINFO",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_cannot_set_variables_that_load_code_or_configure_programs() {
        for name in [
            "LD_PRELOAD",
            "ld_audit",
            "http_proxy",
            "GIT_SSH_COMMAND",
            "PYTHONPATH",
            "PS4",
            "GCONV_PATH",
            "TAR_OPTIONS",
            "MAKEFLAGS",
            "MAKEFILES",
            "GOFLAGS",
            "RSYNC_RSH",
            "SVN_SSH",
            "VIMINIT",
            "EXINIT",
            "WGETRC",
            "OPENSSL_CONF",
            "OPENSSL_MODULES",
            "LUA_INIT",
            "LUA_INIT_5_4",
            "AWKLIBPATH",
            "ZDOTDIR",
            "LESSCLOSE",
        ] {
            assert!(loads_code(name) && decides_what_runs(name), "{name}");
        }
        for name in ["PATH", "HOME", "KUBECONFIG", "SSL_CERT_FILE"] {
            assert!(!loads_code(name) && decides_what_runs(name), "{name}");
        }
        for name in ["LANG", "TERM", "EDITOR_NAME", "MONKEY", "LOLD_"] {
            assert!(!decides_what_runs(name), "{name}");
        }
    }

    #[test]
    fn callers_cannot_set_option_or_settings_variables() {
        for name in [
            "TAR_OPTIONS",
            "GNUMAKEFLAGS",
            "RUSTFLAGS",
            "RUSTC_WRAPPER",
            "OPENSSL_CONF",
            "OPENSSL_ENGINES",
            "CVS_RSH",
            "AWS_CONFIG_FILE",
            "RIPGREP_CONFIG_PATH",
            "XZ_OPT",
            "XZ_DEFAULTS",
            "ZIPOPT",
            "FZF_DEFAULT_OPTS",
            "FZF_DEFAULT_COMMAND",
            "ANSIBLE_CONFIG",
            "PHPRC",
            "INPUTRC",
            "TF_CLI_ARGS",
            "TF_CLI_ARGS_PLAN",
            "LESS",
            "SYSTEMD_PAGER",
            "AWS_PAGER",
            "KUBE_EDITOR",
            "KUBECTL_EXTERNAL_DIFF",
            "SUDO_ASKPASS",
            "CTAGS",
            "ENSCRIPT",
            "ETAGS",
            "ZIP",
            "ZIPINFO",
        ] {
            assert!(decides_what_runs(name), "{name}");
        }
        for name in [
            "SRC",
            "DATA_SRC",
            "CRC",
            "FLAG",
            "OPTION",
            "CONFIGURED",
            "ARGS_SEEN",
            "WHO",
            "PAGERS",
            "EDITORIAL",
        ] {
            assert!(!decides_what_runs(name), "{name}");
        }
    }
}
