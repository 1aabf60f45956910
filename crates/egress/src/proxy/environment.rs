//! Which variables tell a command where its proxy is?

/// For a proxy that listens on `port` of the jail's loopback. No `NO_PROXY`: what it names would be dialled directly,
/// and nothing can be.
pub fn proxy_environment(port: u16) -> Vec<(&'static str, String)> {
    let url = format!("http://127.0.0.1:{port}");
    let pointing = VARIABLES.iter().map(|name| (*name, url.clone()));
    // Without it Node.js reads none of the others.
    pointing.chain([("NODE_USE_ENV_PROXY", "1".to_owned())]).collect()
}

/// Both cases: curl reads `http_proxy` in lower case alone, others only the upper.
const VARIABLES: [&str; 6] =
    ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "all_proxy", "http_proxy", "https_proxy"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_points_to_the_proxy_and_none_around_it() {
        let environment = proxy_environment(3128);
        for name in VARIABLES {
            assert!(environment.contains(&(name, "http://127.0.0.1:3128".into())), "{name}");
        }
        assert!(!environment.iter().any(|(name, _)| name.eq_ignore_ascii_case("no_proxy")));
    }
}
