use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;

use super::*;
use crate::{
    config_path,
    key::{Key, Kind},
    model::{AskFrom, Isolation, JwtKey, LogLevel},
    shape::Shape,
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
fn silence_takes_the_defaults() {
    let config = parse("version: 1").unwrap();
    assert_eq!(config.workspace, Path::new("/srv/gate"));
    assert_eq!(config.state, Path::new("/srv/gate/.toolgate"));
    assert_eq!(config.tools, [Path::new("/srv/gate/tools")]);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8282");
    assert_eq!((config.server.max_request, config.limits.arguments), (1 << 20, 256 << 10));
    assert_eq!(config.approvals.timeout, Duration::from_mins(2));
    assert_eq!(config.approvals.ask_from, AskFrom::L4);
    assert_eq!(config.worker.isolation, Isolation::PerCaller);
    assert!(config.auth.tokens && config.auth.anonymous.is_none() && config.auth.jwt.is_empty());
    assert!(!config.audit.debug);
}

#[test]
fn one_address_gets_a_quarter_of_the_connections_unless_somebody_says_otherwise() {
    for (said, expect) in [
        ("{}", 128),
        ("{max_connections: 4000}", 1000),
        ("{max_connections: 10}", 64),
        ("{max_connections: 4000, max_connections_per_address: 7}", 7),
    ] {
        let config = parse(&format!("version: 1\nserver: {said}")).unwrap();
        assert_eq!(config.server.connections_per_address(), expect, "{said}");
    }
}

#[test]
fn everything_can_be_said() {
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
fn unknown_keys_are_refused_with_the_place_and_a_suggestion() {
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
        "line 2, column 7: log.colour: unknown key `colour`; remove it; the keys here are `level`, `format`",
    );
}

#[test]
fn all_faults_are_gathered() {
    check(
        "server:\n  listen: here\n  page_size: 0\n  request_timeout: 30\ntools: tools\napprovals: {ask_from: allways}\nworker: 4\n",
        "line 1, column 1: `version` is missing; begin the file with `version: 1`\n\
         line 2, column 11: server.listen: `here` is not an IP address and a port; write `127.0.0.1:8282` for this machine only, `0.0.0.0:8282` for every interface\n\
         line 3, column 14: server.page_size: `0` is not within its bounds; write a value from 1 to 1000\n\
         line 4, column 20: server.request_timeout: `30` stands where a duration is expected; write a number and its unit: `250ms`, `120s`, `5m`, `8h`\n\
         line 5, column 8: tools: `tools` stands where a list of texts is expected; write a list: `[one, two]`, numbers in quotes\n\
         line 6, column 23: approvals.ask_from: `allways` is not one of the choices; did you mean `always`?\n\
         line 7, column 9: worker: `4` stands where a section is expected; write its keys below it, indented: `count`, `isolation`, `recycle_after`, `queue`, `required`",
    );
}

#[test]
fn a_text_that_is_no_configuration_is_refused_whole() {
    check("", "the file is empty; `toolgate init` writes one to start from");
    check("# nothing\n", "line 2, column 1: `version` is missing; begin the file with `version: 1`");
    check("- version: 1\n", "the file is not a list of keys; begin it with `version: 1`");
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
    check(&huge, "the file has 1048588 bytes; at most 1048576 are read; make it shorter");
}

#[test]
fn nothing_is_taken_for_a_default_by_mistake() {
    check(
        "version: 1\nserver:\n  listen:\n",
        "line 3, column 3: server.listen: no value stands here; write a value, or remove the key to take its default",
    );
    check(
        "version: 1\ntools:\n",
        "line 2, column 1: tools: no value stands here; write `[]` for none, or remove the key to take its default",
    );
    check(
        "version: 2\n",
        "line 1, column 10: version: version 2 is not known; write `version: 1`, or use the Toolgate that wrote this file",
    );
    check(
        "version: 1\nauth: {tokens: no}\n",
        "line 2, column 16: auth.tokens: `no` stands where `true` or `false` is expected; write `true` or `false`, without quotes",
    );
    check(
        "version: 1\ntools: [a, 1]\n",
        "line 2, column 12: tools.1: `1` stands where a text is expected; put it into quotes",
    );
    check(
        "version: 1\naudit: {on_failure: 1e400}\n",
        "line 2, column 21: `1e400` is not a JSON number; NaN, infinity and numbers beyond a double are not supported; quote it if a string is meant",
    );
}

#[test]
fn secrets_in_the_wrong_place_are_not_repeated() {
    let secret = "hunter2";
    for place in [
        format!("key: {secret}"),
        format!("key: {{secret_env: {secret}}}"),
        format!("key: {{secret: {secret}}}"),
        format!("key: {{jwks_url: 'https://u:{secret}@a.example'}}"),
        format!("key: {{jwks_url: 'http://a.example/?k={secret}'}}"),
        format!("key: {{secret_env: [{secret}]}}"),
    ] {
        let errors =
            parse(&format!("version: 1\nauth: {{jwt: [{{issuer: i, audience: a, {place}}}]}}")).unwrap_err();
        assert!(!format!("{errors:?}").contains("hunter2"), "{errors:?}");
    }
}

#[test]
fn a_flood_of_faults_is_summed_up() {
    let text: String =
        (0..5_000).flat_map(|n| ["key".to_owned(), n.to_string(), ": 1\n".to_owned()]).collect();
    let errors = parse(&format!("version: 1\n{text}")).unwrap_err();
    assert_eq!(errors.len(), 101);
    assert_eq!(errors.last().unwrap().problem, "4900 more faults are left out");
    let many = format!("version: 1\ntools: [{}]", "a,".repeat(5_000));
    assert!(show(&parse(&many).unwrap_err()).contains("the list has 5000 entries"));
}

#[test]
fn environment_wins_over_the_file_and_the_command_line_over_both() {
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
fn a_bad_override_is_told_by_its_own_name() {
    let env = |name: &str| (name == "TOOLGATE_LOG").then(|| "loud".to_owned());
    let overrides = Overrides { listen: Some("everywhere".into()), ..Overrides::default() };
    let errors = Config::parse("version: 1\nlog: {}\n", Path::new("/"), &env, &overrides).unwrap_err();
    assert_eq!(
        show(&errors),
        "option --listen: server.listen: `everywhere` is not an IP address and a port; write `127.0.0.1:8282` for this machine only, `0.0.0.0:8282` for every interface\n\
         environment TOOLGATE_LOG: log.level: `loud` is not one of the choices; write one of `error`, `warn`, `info`, `debug`",
    );
    let empty = |_: &str| Some(String::new());
    assert!(Config::parse("version: 1", Path::new("/"), &empty, &Overrides::default()).is_ok());
}

#[test]
fn an_override_cannot_hide_a_section_that_is_none() {
    let overrides = Overrides { log: Some("debug".into()), ..Overrides::default() };
    let errors = Config::parse("version: 1\nlog: loud\n", Path::new("/"), &no_env, &overrides).unwrap_err();
    assert!(show(&errors).starts_with("line 2, column 6: log: a text stands where a section"), "{errors:?}");
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

fn paths_among(keys: &[Key]) -> usize {
    let count = |key: &Key| match &key.kind {
        Kind::Text(Shape::Path) | Kind::Texts(Shape::Path) => 1,
        Kind::Section(keys) | Kind::OneOf(keys) | Kind::Sections(keys) => paths_among(keys),
        _ => 0,
    };
    keys.iter().map(count).sum()
}

/// Every key of the table that is a path, set to one that begins with `rel`.
#[test]
fn every_path_is_resolved_and_guarded() {
    let config = parse(
        "version: 1\nworkspace: rel/w\nstate: rel/s\ntools: [rel/t]\npolicy: {baseline: rel/b, profiles: rel/p, overrides: rel/o, cedar: [rel/c]}\nsecrets: {rules: [rel/r]}\nauth:\n  jwt:\n  - {issuer: i, audience: a, key: {pem_file: rel/k}}\n  - {issuer: j, audience: a, key: {jwks_file: rel/../../j}}\n",
    )
    .unwrap();
    let written = config.entries().iter().filter(|entry| entry.value.to_string().contains("rel/")).count();
    assert_eq!(written, paths_among(ROOT));
    let typed = format!("{:?}", Config { entries: Vec::new(), ..config.clone() });
    assert!(!typed.contains("\"rel/"), "{typed}");
    let guarded = config.guarded_paths();
    for path in ["s", "t", "b", "p", "o", "c", "k", "r"] {
        assert!(guarded.contains(&Path::new("/srv/gate/rel").join(path)), "{path}");
    }
    assert!(guarded.contains(&Path::new("/srv/gate/rel/../../j").to_owned()));
    assert!(!guarded.contains(&config.workspace));
}

/// A tool that could read them would call other tools with the client's token.
#[test]
fn what_clients_are_told_is_guarded() {
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
fn what_clients_will_be_told_is_guarded_behind_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap().join("real");
    let link = folder.path().join("link");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert!(crate::guarded_in(&link, &no_env).contains(&real.join(".mcp.json")));
}

#[test]
fn a_file_is_loaded_with_its_folder_as_the_base() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolgate.yaml");
    std::fs::write(&file, "version: 1\ntools: [a, /b]\n").unwrap();
    let config = Config::load(&file, &no_env, &Overrides::default()).unwrap();
    assert_eq!(config.tools, [folder.path().join("a"), "/b".into()]);
    assert!(config.guarded_paths().contains(&file));
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let load = |path: &Path| show(&Config::load(path, &no_env, &Overrides::default()).unwrap_err());
    assert!(
        load(&folder.path().join("none.yaml"))
            .ends_with("`toolgate init` writes one; `--config` names another")
    );
    assert!(load(folder.path()).contains("it is not a file"));
    let binary = folder.path().join("binary.yaml");
    std::fs::write(&binary, b"version: \xff").unwrap();
    assert!(load(&binary).ends_with("make it a readable file of UTF-8 text"));
    let huge = folder.path().join("huge.yaml");
    std::fs::write(&huge, vec![b'#'; 3 << 20]).unwrap();
    assert!(load(&huge).contains("at most 1048576 are read"));
}

#[test]
fn the_file_is_named_by_the_option_or_the_environment() {
    let env = |name: &str| (name == "TOOLGATE_CONFIG").then(|| "/etc/gate.yaml".to_owned());
    assert_eq!(config_path(Some(Path::new("mine.yaml")), &env), Path::new("mine.yaml"));
    assert_eq!(config_path(None, &env), Path::new("/etc/gate.yaml"));
    assert_eq!(config_path(None, &no_env), Path::new("toolgate.yaml"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn nothing_that_looks_like_yaml_makes_it_panic(text in "((version|server|auth|jwt|listen|tools|key|<<|&a|\\*a|1|null|x)[:,]?[ \n]{0,3}[-\\[\\]{}'\"#!]?){0,30}") {
        for error in parse(&text).err().unwrap_or_default() {
            prop_assert!(!error.problem.is_empty() && !error.remedy.is_empty());
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn no_line_of_the_first_file_makes_it_panic(cut in 0_usize..20_000, put in "\\PC{0,12}") {
        let text = Config::default_text().replace("\n#", "\n").replace("  #", "  ");
        let cut = text.char_indices().map(|(at, _)| at).nth(cut % text.len()).unwrap_or_default();
        let (before, after) = text.split_at(cut);
        let _ = parse(&format!("{before}{put}{after}"));
    }
}
