//! Environment variables that point a command to its proxy.

/// For a proxy on `port` of the sandbox's loopback. `NO_PROXY` stays unset: its hosts would be dialled directly, which
/// always fails.
pub fn proxy_environment(port: u16) -> Vec<(&'static str, String)> {
    let url = format!("http://127.0.0.1:{port}");
    let pointing = VARIABLES.iter().map(|name| (*name, url.clone()));
    // Node.js ignores the other variables without this one.
    pointing.chain([("NODE_USE_ENV_PROXY", "1".to_owned())]).collect()
}

/// Both cases: curl reads only the lower-case `http_proxy`, other programs only the upper case.
const VARIABLES: [&str; 6] =
    ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "all_proxy", "http_proxy", "https_proxy"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_points_to_the_proxy() {
        let environment = proxy_environment(3128);
        for name in VARIABLES {
            assert!(environment.contains(&(name, "http://127.0.0.1:3128".into())), "{name}");
        }
        assert!(!environment.iter().any(|(name, _)| name.eq_ignore_ascii_case("no_proxy")));
    }
}
