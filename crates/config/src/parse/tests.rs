use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;

use super::*;
use crate::{
    config_path,
    key::{ConfigKey, ConfigValueKind},
    model::{AskFrom, JwtKey, LogLevel, WorkerIsolation},
    shape::TextShape,
    testing::{parse, show},
};

#[track_caller]
fn check(text: &str, expect: &str) {
    let shown = match parse(text) {
        Ok(_) => "ok".to_owned(),
        Err(errors) => show(&errors),
    };
    assert_eq!(shown, expect);
}

fn no_env(_: &str) -> Option<String> {
    None
}

#[test]
fn empty_file_has_the_defaults() {
    let config = parse("version: 1").unwrap();
    assert_eq!(config.workspace, Path::new("/srv/gate"));
    assert_eq!(config.state, Path::new("/srv/gate/.toolgate"));
    assert_eq!(config.tools, [Path::new("/srv/gate/tools")]);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8282");
    assert_eq!((config.server.max_request, config.limits.arguments), (1 << 20, 256 << 10));
    assert_eq!(config.approvals.timeout, Duration::from_mins(2));
    assert_eq!(config.approvals.ask_from, AskFrom::L4);
    assert_eq!(config.worker.isolation, WorkerIsolation::PerCaller);
    assert!(config.auth.tokens && config.auth.anonymous.is_none() && config.auth.jwt.is_empty());
    assert!(!config.audit.debug);
}

#[test]
fn one_address_gets_a_quarter_of_the_connections_by_default() {
    for (server, expect) in [
        ("{}", 128),
        ("{max_connections: 4000}", 1000),
        ("{max_connections: 10}", 64),
        ("{max_connections: 4000, max_connections_per_address: 7}", 7),
    ] {
        let config = parse(&format!("version: 1\nserver: {server}")).unwrap();
        assert_eq!(config.server.connections_per_address(), expect, "{server}");
    }
}

#[test]
fn values_of_every_kind_are_parsed() {
    let config = parse(
        "version: 1\nserver: {public_url: 'https://a.example/gate/', max_request: 64KiB}\nauth:\n  jwt:\n    - issuer: https://login.example.com/\n      audience: toolgate\n      algorithms: [ES256]\n      key: {pem_file: keys/login.pem}\n      clock_skew: 250ms\nmetrics: {otlp: {endpoint: 'http://127.0.0.1:4318'}}\n",
    )
    .unwrap();
    assert_eq!(config.server.public_url.as_deref(), Some("https://a.example/gate"));
    let [issuer] = config.auth.jwt.as_slice() else { panic!("{:?}", config.auth) };
    assert_eq!(issuer.key, JwtKey::PemFile("/srv/gate/keys/login.pem".into()));
    assert_eq!((issuer.clock_skew, issuer.subject_claim.as_str()), (Duration::from_millis(250), "sub"));
    assert!(issuer.admin_permission.is_none() && issuer.required_scopes.is_empty());
    assert_eq!(config.metrics.otlp.unwrap().interval, Duration::from_secs(15));
}

#[test]
fn unknown_keys_are_rejected_with_position_and_suggestion() {
    check(
        "version: 1\nserver:\n  lisen: 127.0.0.1:1\n",
        "line 3, column 3: server.lisen: unknown key `lisen`; did you mean `listen`?",
    );
    check(
        "version: 1\nlisten: x\n",
        "line 2, column 1: listen: unknown key `listen`; `listen` belongs below `server`",
    );
    check(
        "version: 1\nserver: {maxRequest: 1MiB}\n",
        "line 2, column 10: server.maxRequest: unknown key `maxRequest`; did you mean `max_request`?",
    );
    check(
        "version: 1\nlog: {colour: red}\n",
        "line 2, column 7: log.colour: unknown key `colour`; remove it; this section has: `level`, `format`",
    );
}

#[test]
fn all_faults_are_reported_together() {
    check(
        "server:\n  listen: here\n  page_size: 0\n  request_timeout: 30\ntools: tools\napprovals: {ask_from: allways}\nworker: 4\n",
        "line 1, column 1: `version` is missing; start the file with `version: 1`\n\
         line 2, column 11: server.listen: `here` is not an IP address and a port; write `127.0.0.1:8282` for this machine only, `0.0.0.0:8282` for every interface\n\
         line 3, column 14: server.page_size: `0` is out of range; write a value from 1 to 1000\n\
         line 4, column 20: server.request_timeout: expected a duration, got `30`; write a number and its unit: `250ms`, `120s`, `5m`, `8h`\n\
         line 5, column 8: tools: expected a list of texts, got `tools`; write a list: `[one, two]`; put numbers in quotes\n\
         line 6, column 23: approvals.ask_from: unknown value `allways`; did you mean `always`?\n\
         line 7, column 9: worker: expected a section, got `4`; write its keys below it, indented: `count`, `isolation`, `recycle_after`, `queue`, `required`",
    );
}

#[test]
fn text_that_is_not_a_configuration_is_one_error() {
    check("", "the file is empty; run `toolgate init` to create one");
    check("# nothing\n", "line 2, column 1: `version` is missing; start the file with `version: 1`");
    check("- version: 1\n", "the file is not a mapping of keys; start it with `version: 1`");
    check(
        "version: 1\nversion: 1\n",
        "line 2, column 1: duplicate key `version` in one mapping; remove one of the two; readers disagree on which one counts",
    );
    check(
        "version: 1\n---\nversion: 1\n",
        "line 2, column 1: more than one document in one file; write one YAML document of keys and values",
    );
    check(
        "version: 1\nlog: !x {}\n",
        "line 2, column 9: tag `!x` is not supported; remove the tag; types are those of JSON, and quotes make a string",
    );
    let huge = format!("version: 1\n#{}", "x".repeat(1 << 20));
    check(&huge, "the file has 1048588 bytes, the limit is 1048576; shorten it");
}

#[test]
fn empty_and_wrong_values_do_not_become_defaults() {
    check(
        "version: 1\nserver:\n  listen:\n",
        "line 3, column 3: server.listen: the key has no value; write a value, or remove the key to use its default",
    );
    check(
        "version: 1\ntools:\n",
        "line 2, column 1: tools: the key has no value; write `[]` for none, or remove the key to use its default",
    );
    check(
        "version: 2\n",
        "line 1, column 10: version: unknown version 2; write `version: 1`, or use the Toolgate release that wrote this file",
    );
    check(
        "version: 1\nauth: {tokens: no}\n",
        "line 2, column 16: auth.tokens: expected `true` or `false`, got `no`; write `true` or `false`, without quotes",
    );
    check(
        "version: 1\ntools: [a, 1]\n",
        "line 2, column 12: tools.1: expected a text, got `1`; put it in quotes",
    );
    check(
        "version: 1\naudit: {on_failure: 1e400}\n",
        "line 2, column 21: `1e400` is not a JSON number; NaN, infinity and numbers beyond a double are not supported; quote it if a string is meant",
    );
}

#[test]
fn secrets_in_wrong_places_are_not_repeated() {
    let secret = "hunter2";
    for wrong in [
        format!("key: {secret}"),
        format!("key: {{secret_env: {secret}}}"),
        format!("key: {{secret: {secret}}}"),
        format!("key: {{jwks_url: 'https://u:{secret}@a.example'}}"),
        format!("key: {{jwks_url: 'http://a.example/?k={secret}'}}"),
        format!("key: {{secret_env: [{secret}]}}"),
    ] {
        let errors =
            parse(&format!("version: 1\nauth: {{jwt: [{{issuer: i, audience: a, {wrong}}}]}}")).unwrap_err();
        assert!(!format!("{errors:?}").contains("hunter2"), "{errors:?}");
    }
}

#[test]
fn number_of_reported_errors_is_limited() {
    let text: String =
        (0..5_000).flat_map(|n| ["key".to_owned(), n.to_string(), ": 1\n".to_owned()]).collect();
    let errors = parse(&format!("version: 1\n{text}")).unwrap_err();
    assert_eq!(errors.len(), 101);
    assert_eq!(errors.last().unwrap().problem, "4900 more errors are not shown");
    let many = format!("version: 1\ntools: [{}]", "a,".repeat(5_000));
    assert!(show(&parse(&many).unwrap_err()).contains("the list has 5000 entries"));
}

#[test]
fn command_line_wins_over_environment_and_environment_over_file() {
    let env: BTreeMap<_, _> = [("TOOLGATE_LISTEN", "127.0.0.1:2"), ("TOOLGATE_LOG", "debug")].into();
    let env = |name: &str| env.get(name).map(|value| (*value).to_owned());
    let overrides = Overrides { listen: Some("127.0.0.1:3".into()), ..Overrides::default() };
    let text = "version: 1\nserver:\n  listen: 127.0.0.1:1\n  page_size: 7\n";
    let config = Config::parse(text, Path::new("/srv"), &env, &overrides).unwrap();
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.log.level, LogLevel::Debug);
    let origin = |key: &str| {
        let entry = config.entries().iter().find(|entry| entry.key == key).unwrap();
        format!("{} {} {:?}", entry.value, entry.origin, entry.position.map(|position| position.line))
    };
    assert_eq!(origin("server.listen"), "\"127.0.0.1:3\" option --listen None");
    assert_eq!(origin("log.level"), "\"debug\" environment TOOLGATE_LOG None");
    assert_eq!(origin("server.page_size"), "7 file Some(4)");
    assert_eq!(origin("server.idle_timeout"), "\"60s\" default None");
}

#[test]
fn error_names_the_override_that_caused_it() {
    let env = |name: &str| (name == "TOOLGATE_LOG").then(|| "loud".to_owned());
    let overrides = Overrides { listen: Some("everywhere".into()), ..Overrides::default() };
    let errors = Config::parse("version: 1\nlog: {}\n", Path::new("/"), &env, &overrides).unwrap_err();
    assert_eq!(
        show(&errors),
        "option --listen: server.listen: `everywhere` is not an IP address and a port; write `127.0.0.1:8282` for this machine only, `0.0.0.0:8282` for every interface\n\
         environment TOOLGATE_LOG: log.level: unknown value `loud`; write one of `error`, `warn`, `info`, `debug`",
    );
    let empty = |_: &str| Some(String::new());
    assert!(Config::parse("version: 1", Path::new("/"), &empty, &Overrides::default()).is_ok());
}

#[test]
fn override_does_not_hide_a_value_that_is_not_a_section() {
    let overrides = Overrides { log: Some("debug".into()), ..Overrides::default() };
    let errors = Config::parse("version: 1\nlog: loud\n", Path::new("/"), &no_env, &overrides).unwrap_err();
    assert!(show(&errors).starts_with("line 2, column 6: log: expected a section, got a text"), "{errors:?}");
}

#[test]
fn entries_name_every_key_once() {
    let config = parse(
        "version: 1\nauth:\n  anonymous: {}\n  jwt:\n  - {issuer: i, audience: a, key: {jwks_url: 'https://a.example/?k=v'}}\n",
    )
    .unwrap();
    let keys: Vec<_> = config.entries().iter().map(|entry| entry.key.as_str()).collect();
    let mut unique = keys.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), keys.len(), "{keys:?}");
    for key in
        ["version", "catalog.include.tags", "auth.anonymous.permissions", "auth.jwt.0.issuer", "metrics.otlp"]
    {
        assert!(keys.contains(&key), "{key}");
    }
    let secrets: Vec<_> =
        config.entries().iter().filter(|entry| entry.is_secret).map(|entry| &entry.key).collect();
    assert_eq!(secrets, ["auth.jwt.0.key.jwks_url"]);
}

fn paths_among(keys: &[ConfigKey]) -> usize {
    let count = |key: &ConfigKey| match &key.kind {
        ConfigValueKind::Text(TextShape::Path) | ConfigValueKind::Texts(TextShape::Path) => 1,
        ConfigValueKind::Section(keys) | ConfigValueKind::OneOf(keys) | ConfigValueKind::Sections(keys) => {
            paths_among(keys)
        }
        _ => 0,
    };
    keys.iter().map(count).sum()
}

/// Sets every path key of the table to a path that starts with `rel`.
#[test]
fn every_path_is_resolved_and_guarded() {
    let config = parse(
        "version: 1\nworkspace: rel/w\nstate: rel/s\ntools: [rel/t]\npolicy: {baseline: rel/b, profiles: rel/p, overrides: rel/o, cedar: [rel/c]}\nsecrets: {rules: [rel/r], key_file: rel/sk, providers: [{name: p, kind: file, path: rel/sp}]}\nupstreams: [{name: u, source: x, read: [rel/ur], write: [rel/uw]}]\nauth:\n  jwt:\n  - {issuer: i, audience: a, key: {pem_file: rel/k}}\n  - {issuer: j, audience: a, key: {jwks_file: rel/../../j}}\n",
    )
    .unwrap();
    let written = config.entries().iter().filter(|entry| entry.value.to_string().contains("rel/")).count();
    assert_eq!(written, paths_among(ROOT));
    let typed = format!("{:?}", Config { entries: Vec::new(), ..config.clone() });
    assert!(!typed.contains("\"rel/"), "{typed}");
    let guarded = config.guarded_paths();
    for path in ["s", "t", "b", "p", "o", "c", "k", "r", "sk", "sp"] {
        assert!(guarded.contains(&Path::new("/srv/gate/rel").join(path)), "{path}");
    }
    assert!(guarded.contains(&Path::new("/srv/gate/rel/../../j").to_owned()));
    assert!(!guarded.contains(&config.workspace));
}

/// Client files hold tokens. A tool that read them could call other tools as the client.
#[test]
fn client_files_are_guarded() {
    let config = parse("version: 1\nworkspace: w\n").unwrap();
    let draft = crate::guarded_in(Path::new("/srv/gate/w"), &no_env);
    for file in [
        ".mcp.json",
        ".cursor/mcp.json",
        ".vscode/mcp.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".zed/settings.json",
    ] {
        let file = Path::new("/srv/gate/w").join(file);
        assert!(config.guarded_paths().contains(&file), "{}", file.display());
        assert!(draft.contains(&file), "{}", file.display());
    }
}

#[test]
fn client_files_are_guarded_behind_a_symlink() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap().join("real");
    let link = folder.path().join("link");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert!(crate::guarded_in(&link, &no_env).contains(&real.join(".mcp.json")));
}

#[test]
fn relative_paths_start_at_the_directory_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolgate.yaml");
    std::fs::write(&file, "version: 1\ntools: [a, /b]\n").unwrap();
    let config = Config::load(&file, &no_env, &Overrides::default()).unwrap();
    assert_eq!(config.tools, [folder.path().join("a"), "/b".into()]);
    assert!(config.guarded_paths().contains(&file));
}

#[test]
fn load_error_gives_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let load = |path: &Path| show(&Config::load(path, &no_env, &Overrides::default()).unwrap_err());
    assert!(
        load(&folder.path().join("none.yaml"))
            .ends_with("run `toolgate init` to create one, or name another with `--config`")
    );
    assert!(load(folder.path()).contains("not a regular file"));
    let binary = folder.path().join("binary.yaml");
    std::fs::write(&binary, b"version: \xff").unwrap();
    assert!(load(&binary).ends_with("make it a readable file of UTF-8 text"));
    let huge = folder.path().join("huge.yaml");
    std::fs::write(&huge, vec![b'#'; 3 << 20]).unwrap();
    assert!(load(&huge).contains("the limit is 1048576"));
}

#[test]
fn option_or_environment_names_the_file() {
    let env = |name: &str| (name == "TOOLGATE_CONFIG").then(|| "/etc/gate.yaml".to_owned());
    assert_eq!(config_path(Some(Path::new("mine.yaml")), &env), Path::new("mine.yaml"));
    assert_eq!(config_path(None, &env), Path::new("/etc/gate.yaml"));
    assert_eq!(config_path(None, &no_env), Path::new("toolgate.yaml"));
}

proptest! {
    #[test]
    fn parser_does_not_panic_on_arbitrary_text(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn parser_does_not_panic_on_yaml_fragments(text in "((version|server|auth|jwt|listen|tools|key|<<|&a|\\*a|1|null|x)[:,]?[ \n]{0,3}[-\\[\\]{}'\"#!]?){0,30}") {
        for error in parse(&text).err().unwrap_or_default() {
            prop_assert!(!error.problem.is_empty() && !error.remedy.is_empty());
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn parser_does_not_panic_on_edited_default_file(cut in 0_usize..20_000, put in "\\PC{0,12}") {
        let text = Config::default_text().replace("\n#", "\n").replace("  #", "  ");
        let cut = text.char_indices().map(|(at, _)| at).nth(cut % text.len()).unwrap_or_default();
        let (before, after) = text.split_at(cut);
        let _ = parse(&format!("{before}{put}{after}"));
    }
}
