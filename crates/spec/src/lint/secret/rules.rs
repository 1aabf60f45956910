//! The credentials that we know by their looks: one row each, with examples that the tests run.

/// One kind of credential. A rule's expression is tried where one of its needles stands, and nowhere else.
#[derive(Debug)]
pub(super) struct Rule {
    /// Ends the sentence "this looks like …".
    pub name: &'static str,
    /// Letter case does not matter here; in the pattern it does.
    pub needles: &'static [&'static str],
    /// Begins where the needle begins.
    pub pattern: &'static str,
    pub before: Before,
    pub test: Test,
    /// A `~` is taken out before the rule is tried.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples belong to their rule; only tests run them"))]
    pub hits: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "examples belong to their rule; only tests run them"))]
    pub misses: &'static [&'static str],
}

/// What may stand in front of the needle.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Before {
    Anything,
    /// No letter or digit: the credential begins here.
    Edge,
    /// The digits of an account number.
    Digits,
    /// Exactly 32 hexadecimal digits.
    Hex,
    /// The scheme of a URL.
    Scheme,
}

impl Before {
    pub(super) fn holds(self, before: &str) -> bool {
        let last = before.bytes().next_back();
        match self {
            Self::Anything => true,
            Self::Edge => last.is_none_or(|byte| !byte.is_ascii_alphanumeric()),
            Self::Digits => before.bytes().rev().take_while(u8::is_ascii_digit).count() >= 8,
            Self::Hex => before.bytes().rev().take_while(u8::is_ascii_hexdigit).count() == 32,
            Self::Scheme => last.is_some_and(|byte| byte.is_ascii_alphabetic()),
        }
    }
}

/// What else must hold of the captured `value`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Test {
    /// The shape is enough.
    Shape,
    /// Letters and digits, as random text has.
    Mixed,
    /// A quoted value assigned to `word`.
    Assigned,
    /// The same without quotes; in code that would be an expression.
    Unquoted,
    /// Random enough that no word or name looks like it.
    Random,
    /// A password that is not a placeholder.
    Password,
    /// The first part of a JSON Web Token.
    JsonWebToken,
}

const fn shape(
    name: &'static str,
    needles: &'static [&'static str],
    pattern: &'static str,
    hits: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    Rule { name, needles, pattern, before: Before::Edge, test: Test::Shape, hits, misses }
}

const WORDS: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "api_key",
    "apikey",
    "api-key",
    "secret",
    "token",
    "access_key",
    "accesskey",
    "private_key",
    "privatekey",
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "a private key",
        needles: &["-----begin"],
        pattern: r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----",
        before: Before::Anything,
        test: Test::Shape,
        hits: &[
            "-----BEGIN ~RSA PRIVATE KEY-----\nMIIE",
            "-----BEGIN ~OPENSSH PRIVATE KEY-----",
            "-----BEGIN ~PGP PRIVATE KEY BLOCK-----",
            "x-----BEGIN ~PRIVATE KEY-----",
        ],
        misses: &["-----BEGIN PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----"],
    },
    shape(
        "an AWS access key",
        &["akia", "asia"],
        r"(?:AKIA|ASIA)[A-Z2-7]{2}[A-Z0-9]{14}\b",
        &["AKIA~QYLPMN5HXAMPLE7Z", "id=ASIA~QYLPMN5HXAMPLE7Z"],
        &["ASIA", "asia-northeast3-standard", "EURASIAN CONTINENTS OF OLD"],
    ),
    shape(
        "a GitHub token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9_]{40,255})",
        &[
            "gh~p_1234567890abcdefghijABCDEFGHIJ123456",
            "github~_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789",
        ],
        &["ghp_", "the ghp_ prefix marks personal tokens"],
    ),
    shape(
        "a GitLab token",
        &["glpat-", "gldt-", "glrt-"],
        r"gl(?:pat|dt|rt)-[A-Za-z0-9_-]{20,}",
        &["glp~at-aB3dE6gH9jK2mN5pQ8sT"],
        &["glpat-…"],
    ),
    shape(
        "a Slack token",
        &["xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xapp-"],
        r"(?:xox[abprse]|xapp)-[A-Za-z0-9-]{16,}",
        &["xo~xb-123456789012-abcdefGHIJKL"],
        &["xoxb-your-token"],
    ),
    shape(
        "a Slack webhook",
        &["hooks.slack.com/services/"],
        r"hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,}",
        &["https://hooks.slack~.com/services/T01ABCDEF/B02GHIJKL/aBcDeFgHiJkLmNoPqRsTuVwX"],
        &["https://hooks.slack.com/services/{path}"],
    ),
    shape(
        "a Stripe key",
        &["sk_live_", "rk_live_", "whsec_"],
        r"(?:[sr]k_live_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,})",
        &["sk_li~ve_4eC39HqLyjWDarjtT1zdp7dc"],
        &["sk_live_"],
    ),
    shape(
        "an Anthropic key",
        &["sk-ant-"],
        r"sk-ant-[A-Za-z0-9_-]{24,}",
        &["sk-a~nt-api03-aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"],
        &["sk-ant-…"],
    ),
    Rule {
        name: "an OpenAI key",
        needles: &["sk-"],
        pattern: r"sk-(?:proj-|svcacct-|admin-)?(?P<value>[A-Za-z0-9_]{32,}|[A-Za-z0-9_-]{40,})",
        before: Before::Edge,
        test: Test::Mixed,
        hits: &[
            "sk-~proj-aB3dE6gH9jK2mN5pQ8sTuVwXyZ0123456789",
            "sk-~aB3dE6gH9jK2mN5pQ8sTuVwXyZ0123456789abcdefghijkl",
        ],
        misses: &["sk-learn", "ask-me-anything-about-the-weather-in-your-own-city"],
    },
    shape(
        "a Google API key",
        &["aiza"],
        r"AIza[A-Za-z0-9_-]{35}",
        &["AI~zaSyA1bC2dE3fG4hI5jK6lM7nO8pQ9rS0tU1v"],
        &["Aizawa"],
    ),
    shape(
        "an npm token",
        &["npm_"],
        r"npm_[A-Za-z0-9]{36}\b",
        &["np~m_aB3dE6gH9jK2mN5pQ8sTuVwXyZ0123456789"],
        &["npm_package_json_version"],
    ),
    shape(
        "a PyPI token",
        &["pypi-"],
        r"pypi-[A-Za-z0-9_-]{50,}",
        &["py~pi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3LTg5YWItY2RlZi0wMTIzLTQ1Njc4OQ"],
        &["pypi-publish"],
    ),
    shape(
        "a SendGrid key",
        &["sg."],
        r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}",
        &["S~G.aB3dE6gH9jK2mN5pQ8sTuV.aB3dE6gH9jK2mN5pQ8sTuVwXyZ0123456789aBcDeFg"],
        &["see singapore.sg. for more", "SG.gov"],
    ),
    shape(
        "a Heroku key",
        &["hrku-"],
        r"HRKU-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|AA[A-Za-z0-9_-]{58})",
        &["HR~KU-bc945e07-392f-46ce-672d-1d34c7870e29"],
        &["HRKU-your-key"],
    ),
    Rule {
        name: "a Mailchimp key",
        needles: &["-us"],
        pattern: r"-us[0-9]{1,2}\b",
        before: Before::Hex,
        test: Test::Shape,
        hits: &["faeee297950af1805dab101a423c1873~-us31"],
        misses: &["en-us", "the zone a1b2-us1", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934c-us1"],
    },
    Rule {
        name: "a Twilio credential",
        needles: &["twilio"],
        pattern: r"(?s)(?i:twilio).{0,80}?\b(?:SK|AC)[0-9a-f]{32}\b",
        before: Before::Anything,
        test: Test::Shape,
        hits: &["Twilio account A~C0123456789abcdef0123456789abcdef"],
        misses: &["Twilio sends messages", "AC0123456789abcdef0123456789abcdef"],
    },
    Rule {
        name: "a Telegram bot token",
        needles: &[":aa"],
        pattern: r":AA[A-Za-z0-9_-]{33}\b",
        before: Before::Digits,
        test: Test::Shape,
        hits: &["1234567890:A~AHdqTcvCH1vGWJxfSeofSAs0K5PALDsawx"],
        misses: &["12:AAA", "mac 00:aa:bb"],
    },
    Rule {
        name: "a Discord token",
        needles: &["discord", "bot "],
        pattern: r"(?s)(?i:discord|bot ).{0,60}?\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}",
        before: Before::Edge,
        test: Test::Shape,
        hits: &["Bot MTAxMjM0NTY3ODkwMTIzNDU2~.GabcDe.aBcDeFgHiJkLmNoPqRsTuVwXyZ01234"],
        misses: &["a Discord bot that posts"],
    },
    shape(
        "a Discord webhook",
        &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        r"(?i:discord(?:app)?\.com/api/webhooks/)[0-9]{15,22}/[A-Za-z0-9_-]{40,}",
        &["https://discord~.com/api/webhooks/123456789012345678/aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789aBcDeFg"],
        &["https://discord.com/api/webhooks/{id}/{token}"],
    ),
    Rule {
        name: "a JSON Web Token",
        needles: &["eyj"],
        pattern: r"(?P<value>eyJ[A-Za-z0-9_-]{8,2000})\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{16,}",
        before: Before::Edge,
        test: Test::JsonWebToken,
        hits: &[
            "eyJ~hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        ],
        misses: &["eyJub25lIjoiaGVyZSJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"],
    },
    Rule {
        name: "a URL with a password",
        needles: &["://"],
        pattern: r#"://[^\s:/@'"`<>?#]{0,64}:(?P<value>[^\s@/'"`<>?#]{1,128})@[A-Za-z0-9\[{$]"#,
        before: Before::Scheme,
        test: Test::Password,
        hits: &["postgres://app:s3cr3t@db:5432/x", "redis://:hunter2@cache", "https://user:pass@host/"],
        misses: &[
            "postgres://app:${DB_PASSWORD}@db/x",
            "https://host:8080/a@b",
            "mongodb://{user}:{password}@host",
        ],
    },
    Rule {
        name: "an authorization header",
        needles: &["bearer ", "basic "],
        pattern: r"(?i:bearer|basic) {1,4}(?P<value>[A-Za-z0-9._~+/=-]{20,})",
        before: Before::Edge,
        test: Test::Mixed,
        hits: &["Authorization: Bearer aB3dE6gH9jK2mN5pQ8sT0", "basic QWxhZGRpbjpvcGVuIHNlc2FtZTEyMw=="],
        misses: &["Bearer ${TOKEN}", "basic characteristics-of-a-thing", "Basic authentication"],
    },
    Rule {
        name: "a secret in an assignment",
        needles: WORDS,
        pattern: r#"(?P<word>(?i)(?:password|passwd|pwd|passphrase|api[_-]?key|secret(?:_?access)?_?(?:key)?|token|access_?key|private_?key))\\?["'`]?\s{0,4}(?:=>|:=|=|:)\s{0,4}\\?["'`](?P<value>[^"'`\s]{8,400}?)\\?["'`]"#,
        before: Before::Anything,
        test: Test::Assigned,
        hits: &[
            r#"password = "hunter2hunter2""#,
            "const apiKey = 'k3jh4k5j6h7'",
            r#"{"client_secret": "a1b2c3d4e5f6"}"#,
            "aws_secret_access_key: 'wJalrXUtnFEMI1K7MDENG'",
            "password: 'correct-horse-battery'",
        ],
        misses: &[
            r#"password = "${PASSWORD}""#,
            r#"token: "optional""#,
            r#"secret: "not_configured""#,
            r#"password: "<your password here>""#,
            r#"{"token": "{token}"}"#,
        ],
    },
    Rule {
        name: "a secret in an assignment",
        needles: WORDS,
        pattern: r#"(?P<word>(?i)(?:password|passwd|pwd|passphrase|api[_-]?key|secret(?:_?access)?_?(?:key)?|token|access_?key|private_?key))=(?P<value>[^"'`\s&<>,;]{8,400})"#,
        before: Before::Anything,
        test: Test::Unquoted,
        hits: &["https://a.example/v1?api_key=k3jh4k5j6h7&x=1", "PASSWORD=Tr0ub4dor3"],
        misses: &["?token={token}", "?api_key=${KEY}", "password=required"],
    },
    Rule {
        name: "a random value next to a word for secrets",
        needles: &[
            "api key",
            "api_key",
            "apikey",
            "secret",
            "token",
            "password",
            "credential",
            "private key",
        ],
        pattern: r#"(?s).{3,50}?["'`\s=](?P<value>[A-Za-z0-9+/_=-]{32,200})(?:[^A-Za-z0-9+/_=-]|\z)"#,
        before: Before::Anything,
        test: Test::Random,
        hits: &["the API key of the account is aB3dE6gH9jK2mN5pQ8sTuVwXyZ0123456789"],
        misses: &[
            "a token for commit 9b9a6e92f1c3d4e5a6b7c8d9e0f1a2b3c4d5e6f7",
            "the secret of 550e8400-e29b-41d4-a716-446655440000",
            "token counts of https://example.com/a-rather-long-path/with-many-parts",
        ],
    },
];
