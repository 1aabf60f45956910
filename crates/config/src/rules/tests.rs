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
fn anybody_is_let_in_on_this_machine_only() {
    for listen in ["127.0.0.1:1", "127.8.8.8:1", "'[::1]:1'", "localhost:1", "'[::ffff:127.0.0.1]:1'"] {
        check(&format!("server: {{listen: {listen}}}\nauth: {{anonymous: {{}}}}"), &[]);
    }
    for listen in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
        check(
            &format!("server: {{listen: '{listen}'}}\nauth: {{anonymous: {{}}}}"),
            &[&format!(
                "auth.anonymous: anybody would be let in on `{listen}`, which is not a loopback address"
            )],
        );
    }
    check("server: {listen: '0.0.0.0:1'}\nauth: {anonymous: null}", &[]);
    check(
        "server: {public_url: 'https://a.example'}\nauth: {anonymous: {permissions: []}}",
        &["auth.anonymous: anybody would be let in at `a.example`, which public_url says others can call"],
    );
}

#[test]
fn an_override_cannot_open_the_door_to_anybody() {
    use crate::{Config, Overrides};
    let overrides = Overrides { listen: Some("0.0.0.0:1".into()), ..Overrides::default() };
    let text = "version: 1\nauth: {anonymous: {}}";
    let errors = Config::parse(text, std::path::Path::new("/"), &|_| None, &overrides).unwrap_err();
    assert!(
        show(&errors)
            .starts_with("line 2, column 19: auth.anonymous: anybody would be let in on `0.0.0.0:1`")
    );
}

#[test]
fn keys_and_algorithms_are_of_one_family() {
    const MIXED: &str = "auth.jwt.0.algorithms: algorithms with a shared secret (HS…) stand together with such that have a public key";
    const CONFUSED: &str =
        "auth.jwt.0.algorithms: HS algorithms with a public key would let anybody who knows that key sign";
    check(&issuer("algorithms: [HS256, HS512], key: {secret_env: S}"), &[]);
    check(&issuer("algorithms: [RS256, ES256, EdDSA], key: {jwks_url: 'https://a.example'}"), &[]);
    check(&issuer("algorithms: [RS256, HS256], key: {pem_file: k}"), &[MIXED]);
    check(&issuer("algorithms: [HS256, RS256], key: {secret_env: S}"), &[MIXED]);
    check(&issuer("algorithms: [HS256], key: {pem_file: k}"), &[CONFUSED]);
    check(&issuer("algorithms: [HS384], key: {jwks_file: k}"), &[CONFUSED]);
    check(&issuer("algorithms: [HS512], key: {jwks_url: 'https://a.example'}"), &[CONFUSED]);
    check(
        &issuer("key: {secret_env: S}"),
        &["auth.jwt.0.algorithms: a shared secret cannot check these algorithms"],
    );
}

#[test]
fn unsigned_tokens_are_refused_by_name() {
    for none in ["none", "None", "NONE"] {
        check(
            &issuer(&format!("algorithms: [{none}], key: {{pem_file: k}}")),
            &["auth.jwt.0.algorithms.0: `none` would accept tokens that nobody signed"],
        );
    }
}

#[test]
fn an_issuer_has_one_entry() {
    let one = "{issuer: i, audience: a, key: {jwks_file: k}}";
    let other = "{issuer: i, audience: b, algorithms: [HS256], key: {secret_env: S}}";
    check(
        &format!("auth: {{jwt: [{one}, {other}]}}"),
        &["auth.jwt.1.issuer: issuer `i` stands here a second time"],
    );
    check(&format!("auth: {{jwt: [{one}, {}]}}", one.replace("issuer: i", "issuer: i/")), &[]);
}

#[test]
fn a_value_that_is_at_fault_accuses_no_other() {
    check(
        "server: {listen: here}\nauth: {anonymous: {}}",
        &["server.listen: `here` is not an IP address and a port"],
    );
    check(
        &issuer("algorithms: [HS255], key: {secret_env: S}"),
        &["auth.jwt.0.algorithms.0: `HS255` is not one of the choices"],
    );
    check(
        "auth: {jwt: [1, {issuer: i, audience: a, algorithms: [HS256], key: {pem_file: k}}]}",
        &[
            "auth.jwt.0: a number stands where a section is expected",
            "auth.jwt.1.algorithms: HS algorithms with a public key would let anybody who knows that key sign",
        ],
    );
}

#[test]
fn urls_are_https_or_on_this_machine() {
    check("server: {public_url: 'http://localhost:8282'}", &[]);
    check(
        "server: {public_url: 'http://a.example'}",
        &["server.public_url: `http://a.example` is not https, and not on this machine"],
    );
    check(
        &issuer("key: {jwks_url: 'http://10.0.0.1/keys'}"),
        &["auth.jwt.0.key.jwks_url: `http://10.0.0.1/keys` is not https, and not on this machine"],
    );
    check("metrics: {otlp: {endpoint: 'http://collector:4318'}}", &[]);
    check("metrics: {otlp: {endpoint: 'http://127.0.0.1:4318', headers_env: H}}", &[]);
    check(
        "metrics: {otlp: {endpoint: 'http://collector:4318', headers_env: H}}",
        &["metrics.otlp.endpoint: the headers would be sent in clear"],
    );
}

#[test]
fn waiting_for_a_person_ends_before_the_request_does() {
    check("server: {request_timeout: 120s}", &[]);
    check(
        "server: {request_timeout: 119s}",
        &[
            "approvals.timeout: longer than `server.request_timeout`, which is 119s: the call would be cut off while a person is asked",
        ],
    );
    check(
        "approvals: {expires: 60s}",
        &["approvals.timeout: longer than `approvals.expires`, which is 60s: the answer would come too late"],
    );
}

#[test]
fn a_default_that_does_not_fit_is_told_as_one() {
    let errors = parse("version: 1\nserver: {request_timeout: 10s}").unwrap_err();
    let expect = "default of approvals.timeout: longer than `server.request_timeout`, which is 10s: \
                  the call would be cut off while a person is asked; write at most 10s, or raise `server.request_timeout`";
    assert_eq!(show(&errors), expect);
}

#[test]
fn two_doors_have_two_addresses() {
    check("admin: {listen: '127.0.0.1:8282'}", &["admin.listen: the server listens there already"]);
    check("admin: {listen: 'localhost:8282'}", &["admin.listen: the server listens there already"]);
    check("server: {listen: '127.0.0.1:0'}\nadmin: {listen: '127.0.0.1:0'}", &[]);
}

#[test]
fn the_workspace_is_not_in_the_state_folder() {
    for (workspace, state) in [(".", "."), ("a/b", "a"), ("a", "/srv/gate"), ("./a", "a/.")] {
        check(
            &format!("workspace: {workspace}\nstate: {state}"),
            &["state: the workspace lies in the state folder, beside journal and keys"],
        );
    }
    check("workspace: a\nstate: ab", &[]);
}
