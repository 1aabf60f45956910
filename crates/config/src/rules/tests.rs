use crate::testing::{parse, show};

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    let errors = parse(&format!("version: 1\n{text}")).map_or_else(|errors| errors, |_| Vec::new());
    let problems: Vec<_> = errors.iter().map(|error| format!("{}: {}", error.key(), error.problem)).collect();
    assert_eq!(problems, expect, "{}", show(&errors));
}

fn issuer(rest: &str) -> String {
    format!("auth: {{jwt: [{{issuer: i, audience: a, {rest}}}]}}")
}

#[test]
fn anonymous_callers_are_accepted_on_loopback_only() {
    for listen in ["127.0.0.1:1", "127.8.8.8:1", "'[::1]:1'", "localhost:1", "'[::ffff:127.0.0.1]:1'"] {
        check(&format!("server: {{listen: {listen}}}\nauth: {{anonymous: {{}}}}"), &[]);
    }
    for listen in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
        check(
            &format!("server: {{listen: '{listen}'}}\nauth: {{anonymous: {{}}}}"),
            &[&format!(
                "auth.anonymous: callers without a token would be accepted on `{listen}`, which is not a loopback address"
            )],
        );
    }
    check("server: {listen: '0.0.0.0:1'}\nauth: {anonymous: null}", &[]);
    check(
        "server: {public_url: 'https://a.example'}\nauth: {anonymous: {permissions: []}}",
        &["auth.anonymous: callers without a token would be accepted on the public host `a.example`"],
    );
}

#[test]
fn override_cannot_open_anonymous_access_to_other_hosts() {
    use crate::{Config, Overrides};
    let overrides = Overrides { listen: Some("0.0.0.0:1".into()), ..Overrides::default() };
    let text = "version: 1\nauth: {anonymous: {}}";
    let errors = Config::parse(text, std::path::Path::new("/"), &|_| None, &overrides).unwrap_err();
    assert!(show(&errors).starts_with(
        "line 2, column 19: auth.anonymous: callers without a token would be accepted on `0.0.0.0:1`"
    ));
}

#[test]
fn secret_and_public_key_algorithms_do_not_mix() {
    const MIXED: &str =
        "auth.jwt.0.algorithms: HS algorithms (shared secret) cannot be combined with public-key algorithms";
    const CONFUSED: &str = "auth.jwt.0.algorithms: HS algorithms with a public key would let everyone who knows that key sign tokens";
    check(&issuer("algorithms: [HS256, HS512], key: {secret_env: S}"), &[]);
    check(&issuer("algorithms: [RS256, ES256, EdDSA], key: {jwks_url: 'https://a.example'}"), &[]);
    check(&issuer("algorithms: [RS256, HS256], key: {pem_file: k}"), &[MIXED]);
    check(&issuer("algorithms: [HS256, RS256], key: {secret_env: S}"), &[MIXED]);
    check(&issuer("algorithms: [HS256], key: {pem_file: k}"), &[CONFUSED]);
    check(&issuer("algorithms: [HS384], key: {jwks_file: k}"), &[CONFUSED]);
    check(&issuer("algorithms: [HS512], key: {jwks_url: 'https://a.example'}"), &[CONFUSED]);
    check(
        &issuer("key: {secret_env: S}"),
        &["auth.jwt.0.algorithms: a shared secret cannot verify these algorithms"],
    );
}

#[test]
fn algorithm_none_is_rejected() {
    for none in ["none", "None", "NONE"] {
        check(
            &issuer(&format!("algorithms: [{none}], key: {{pem_file: k}}")),
            &["auth.jwt.0.algorithms.0: `none` would accept unsigned tokens"],
        );
    }
}

#[test]
fn duplicate_issuer_is_rejected() {
    let one = "{issuer: i, audience: a, key: {jwks_file: k}}";
    let other = "{issuer: i, audience: b, algorithms: [HS256], key: {secret_env: S}}";
    check(&format!("auth: {{jwt: [{one}, {other}]}}"), &["auth.jwt.1.issuer: duplicate issuer `i`"]);
    check(&format!("auth: {{jwt: [{one}, {}]}}", one.replace("issuer: i", "issuer: i/")), &[]);
}

#[test]
fn faulty_value_causes_no_further_errors() {
    check(
        "server: {listen: here}\nauth: {anonymous: {}}",
        &["server.listen: `here` is not an IP address and a port"],
    );
    check(
        &issuer("algorithms: [HS255], key: {secret_env: S}"),
        &["auth.jwt.0.algorithms.0: unknown value `HS255`"],
    );
    check(
        "auth: {jwt: [1, {issuer: i, audience: a, algorithms: [HS256], key: {pem_file: k}}]}",
        &[
            "auth.jwt.0: expected a section, got a number",
            "auth.jwt.1.algorithms: HS algorithms with a public key would let everyone who knows that key sign tokens",
        ],
    );
}

#[test]
fn urls_are_https_or_loopback() {
    check("server: {public_url: 'http://localhost:8282'}", &[]);
    check(
        "server: {public_url: 'http://a.example'}",
        &["server.public_url: `http://a.example` is neither https nor a loopback address"],
    );
    check(
        &issuer("key: {jwks_url: 'http://10.0.0.1/keys'}"),
        &["auth.jwt.0.key.jwks_url: `http://10.0.0.1/keys` is neither https nor a loopback address"],
    );
    check("metrics: {otlp: {endpoint: 'http://collector:4318'}}", &[]);
    check("metrics: {otlp: {endpoint: 'http://127.0.0.1:4318', headers_env: H}}", &[]);
    check(
        "metrics: {otlp: {endpoint: 'http://collector:4318', headers_env: H}}",
        &["metrics.otlp.endpoint: the headers would be sent unencrypted"],
    );
}

#[test]
fn approval_timeout_is_at_most_the_request_timeout() {
    check("server: {request_timeout: 120s}", &[]);
    check(
        "server: {request_timeout: 119s}",
        &[
            "approvals.timeout: longer than `server.request_timeout` (119s): the request would time out while a person is asked",
        ],
    );
    check(
        "approvals: {expires: 60s}",
        &[
            "approvals.timeout: longer than `approvals.expires` (60s): the answer would arrive after the approval expires",
        ],
    );
}

#[test]
fn error_says_that_the_value_is_a_default() {
    let errors = parse("version: 1\nserver: {request_timeout: 10s}").unwrap_err();
    let expect = "default of approvals.timeout: longer than `server.request_timeout` (10s): \
                  the request would time out while a person is asked; write at most 10s, or raise `server.request_timeout`";
    assert_eq!(show(&errors), expect);
}

#[test]
fn listeners_need_different_addresses() {
    check("admin: {listen: '127.0.0.1:8282'}", &["admin.listen: same address as `server.listen`"]);
    check("admin: {listen: 'localhost:8282'}", &["admin.listen: same address as `server.listen`"]);
    check("server: {listen: '127.0.0.1:0'}\nadmin: {listen: '127.0.0.1:0'}", &[]);
}

#[test]
fn workspace_inside_the_state_directory_is_rejected() {
    for (workspace, state) in [(".", "."), ("a/b", "a"), ("a", "/srv/gate"), ("./a", "a/.")] {
        check(
            &format!("workspace: {workspace}\nstate: {state}"),
            &["state: the workspace is inside the state directory, next to journal and keys"],
        );
    }
    check("workspace: a\nstate: ab", &[]);
}

#[test]
fn providers_need_their_own_keys() {
    check(
        "secrets: {providers: [{name: a, kind: file}, {name: a, kind: command, command: [pass, show]}]}",
        &[
            "secrets.providers.0.kind: `path` is missing",
            "secrets.providers.1.name: duplicate name",
            "secrets.providers.1.kind: `command` has no argument with `{name}`",
        ],
    );
    check("secrets: {providers: [{name: a, kind: env}, {name: b, kind: file, path: x}]}", &[]);
    check("secrets: {providers: [{name: a, kind: command, command: [pass, show, 'x/{name}']}]}", &[]);
}
