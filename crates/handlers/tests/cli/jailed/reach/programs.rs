//! Typical tools, and checks that arguments do not change what they reach.

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use super::{canary::Canary, corpus, options};
use crate::cases;

/// A tool with one parameter, `x`.
#[derive(Clone, Copy, Debug)]
pub struct Tempting {
    pub command: &'static str,
    pub args: &'static str,
    /// The parameter's schema, besides its type.
    pub schema: &'static str,
    pub cwd: Option<&'static str>,
    pub allowed: &'static str,
    pub network: &'static str,
    pub harmless: &'static str,
    /// The output of a harmless call.
    pub answer: &'static str,
    /// For path parameters: a directory that it may name paths in.
    pub below: Option<&'static str>,
}

const TEXT: Tempting = Tempting {
    command: "",
    args: "",
    schema: "",
    cwd: Some("$WORKSPACE/inside"),
    allowed: "$WORKSPACE/inside",
    network: "",
    harmless: "",
    answer: "",
    below: None,
};

/// It sees only the named path.
const PATH: Tempting = Tempting {
    schema: ", format: path",
    cwd: None,
    allowed: "$WORKSPACE/inside/docs",
    harmless: "inside/docs",
    below: Some("inside/docs"),
    ..TEXT
};

pub const GIT_REVISION: Tempting = Tempting {
    command: "git",
    args: "log, '--format=%s', '{x}', '--', docs",
    harmless: "main",
    answer: "first",
    ..TEXT
};

const GIT_PATH: Tempting =
    Tempting { args: "log, '--format=%s', main, '--', '{x}'", harmless: "docs/a.txt", ..GIT_REVISION };

pub const GIT_REMOTE: Tempting = Tempting {
    args: "ls-remote, '{x}'",
    schema: ", format: url",
    network: ONE_HOST,
    harmless: "http://{ALLOWED}/x",
    answer: "fatal",
    ..GIT_REVISION
};

pub const GREP_PATTERN: Tempting = Tempting {
    command: "grep",
    args: "'--recursive', '{x}', docs",
    harmless: "hello",
    answer: "hello docs",
    ..TEXT
};

const GREP_PATH: Tempting =
    Tempting { command: "grep", args: "'--recursive', hello, '{x}'", answer: "hello docs", ..PATH };

pub const FIND_NAME: Tempting =
    Tempting { command: "find", args: "docs, '-name', '{x}'", harmless: "a.*", answer: "docs/a.txt", ..TEXT };

const FIND_START: Tempting =
    Tempting { command: "find", args: "'{x}', '-maxdepth', '2'", answer: "docs/a.txt", ..PATH };

const TAR_LIST: Tempting = Tempting {
    command: "tar",
    args: "'--list', '--file={x}'",
    allowed: "$WORKSPACE/inside/archives",
    harmless: "inside/archives/a.tar",
    answer: "docs/a.txt",
    below: Some("inside/archives"),
    ..PATH
};

const TAR_EXTRACT: Tempting = Tempting {
    args: "'--extract', '--verbose', '--same-permissions', '--no-same-owner', '--file={x}'",
    cwd: Some("$WORKSPACE/inside/out"),
    allowed: "$WORKSPACE/inside/archives, $WORKSPACE/inside/out",
    ..TAR_LIST
};

pub const TAR_MEMBER: Tempting = Tempting {
    command: "tar",
    args: "'--extract', '--to-stdout', '--file=archives/a.tar', '{x}'",
    harmless: "docs/a.txt",
    answer: "hello docs",
    ..TEXT
};

pub const CURL_LISTED: Tempting = Tempting {
    command: "curl",
    args: "'--silent', '--show-error', '{x}'",
    schema: ", format: url",
    network: ONE_HOST,
    harmless: "http://{ALLOWED}/",
    answer: "served",
    ..TEXT
};

/// Every public host, of which a test has none.
pub const CURL_OPEN: Tempting = Tempting {
    network: ", network: {access: full}",
    harmless: "http://nowhere.test/",
    answer: "nowhere.test",
    ..CURL_LISTED
};

pub const CURL_WITHOUT_NETWORK: Tempting = Tempting { network: "", answer: "onnect", ..CURL_LISTED };

/// The server returns what it receives, so a sent file is visible.
pub const CURL_FORM: Tempting = Tempting {
    args: "'--silent', '--show-error', '--form', '{x}', 'http://{ALLOWED}/'",
    schema: "",
    harmless: "a=b",
    ..CURL_LISTED
};

pub const CURL_ENCODED: Tempting = Tempting {
    args: "'--silent', '--show-error', '--data-urlencode', '{x}', 'http://{ALLOWED}/'",
    ..CURL_FORM
};

pub const CURL_COOKIE: Tempting =
    Tempting { args: "'--silent', '--show-error', '--cookie', '{x}', 'http://{ALLOWED}/'", ..CURL_FORM };

pub const SSH_HOST: Tempting = Tempting {
    command: "ssh",
    args: "'-o', BatchMode=yes, '-p', '{PORT}', '{x}', uptime",
    network: ONE_HOST,
    harmless: "127.0.0.1",
    answer: "connect to host",
    ..TEXT
};

const ONE_HOST: &str = ", network: {access: limited, allowedHosts: ['127.0.0.1'], blockPrivateIPs: false}";

impl Tempting {
    pub fn manifest(&self, canary: &Canary) -> String {
        let Self { command, args, schema, allowed, network, harmless, .. } = self;
        let cwd = self.cwd.map(|folder| format!(", cwd: {folder}")).unwrap_or_default();
        canary.fill(&format!(
            "
name: tried
description: Is tried. Returns text.
classification: write
input: {{type: object, required: [x], properties: {{x: {{type: string{schema}}}}}}}
testInput: {{x: '{harmless}'}}
handler: {{cli: {{command: {command}, args: [{args}]{cwd}, timeout: 10000}}}}
capability:
  {{execution: {{sandbox: process, allowedPaths: [{allowed}], blockedPaths: ['$WORKSPACE/**/.env*'], timeout: 10000}}{network}}}
"
        ))
    }

    /// The corpus; for paths, also below an allowed directory.
    fn words(&self, canary: &Canary, options: &[&str]) -> Vec<String> {
        let common = corpus::common().map(|word| canary.fill(&word)).collect::<Vec<_>>();
        let below = self.below.map(|folder| common.iter().map(move |word| format!("{folder}/{word}")));
        let below: Vec<String> = below.into_iter().flatten().collect();
        let options = options.iter().map(|word| canary.fill(word));
        options.chain(common).chain(below).collect()
    }
}

/// Calls a tool with the corpus and with random combinations of it.
#[track_caller]
fn holds(tempting: &Tempting, options: &[&str]) {
    let canary = Canary::new(cases::launcher());
    let tool = canary.runnable(canary.world.load(&tempting.manifest(&canary)).unwrap());
    let harmless = canary.call(&tool, &canary.fill(tempting.harmless));
    assert!(
        harmless.wrong.is_empty() && harmless.said.contains(tempting.answer),
        "{tempting:?} {harmless:?}"
    );
    let words = tempting.words(&canary, options);
    let mut ran = 0;
    for word in &words {
        let seen = canary.call(&tool, word);
        assert!(seen.wrong.is_empty(), "{tempting:?} with {word:?}: {seen:?}");
        ran += usize::from(seen.has_run);
    }
    // Some calls must be rejected, and some must not.
    assert!(ran > 0 && ran < words.len(), "{tempting:?}: {ran} of {} ran", words.len());
    let seed = seed();
    let config = Config {
        cases: 32,
        failure_persistence: None,
        // Reset, otherwise every smaller case would find the effects of a failed one.
        max_shrink_iters: 0,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let made = TestRunner::new(config).run(&corpus::made_of(words), |word| {
        let done = canary.call(&tool, &word);
        if done.wrong.is_empty() { Ok(()) } else { Err(TestCaseError::fail(format!("{done:?}"))) }
    });
    assert!(made.is_ok(), "{tempting:?}: {made:?}; again with {SEED}={seed}");
}

/// A new seed in every run, unless a failure is reproduced.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let wanted = std::env::var(SEED).ok().map(|seed| seed.parse().unwrap());
    wanted.unwrap_or_else(|| RandomState::new().hash_one(0))
}

const SEED: &str = "TOOLGATE_TEST_SEED";

pub fn git() {
    holds(&GIT_REVISION, options::GIT);
    holds(&GIT_PATH, options::GIT);
    holds(&GIT_REMOTE, &[options::REMOTES, options::URLS].concat());
}

pub fn grep() {
    holds(&GREP_PATTERN, options::GREP);
    holds(&GREP_PATH, options::GREP);
}

pub fn find() {
    holds(&FIND_NAME, options::FIND);
    holds(&FIND_START, options::FIND);
}

pub fn tar() {
    holds(&TAR_LIST, options::TAR);
    holds(&TAR_EXTRACT, options::TAR);
    holds(&TAR_MEMBER, options::TAR);
}

pub fn curl() {
    for tempting in [CURL_LISTED, CURL_OPEN, CURL_WITHOUT_NETWORK] {
        holds(&tempting, &[options::URLS, options::OTHER_SCHEMES].concat());
    }
}

pub fn curl_values() {
    holds(&CURL_FORM, options::FORMS);
    holds(&CURL_ENCODED, options::ENCODED);
    holds(&CURL_COOKIE, options::COOKIES);
}

/// Regardless of the network: URLs that are not on the web are rejected before a process starts.
pub fn curl_schemes_start_nothing() {
    let canary = Canary::new(cases::launcher());
    for tempting in [CURL_LISTED, CURL_OPEN, CURL_WITHOUT_NETWORK] {
        let tool = canary.runnable(canary.world.load(&tempting.manifest(&canary)).unwrap());
        for word in options::OTHER_SCHEMES {
            let seen = canary.call(&tool, &canary.fill(word));
            assert!(!seen.has_run && seen.wrong.is_empty(), "{} with {word:?}: {seen:?}", tempting.network);
        }
    }
}

pub fn ssh() {
    holds(&SSH_HOST, options::SSH);
}
