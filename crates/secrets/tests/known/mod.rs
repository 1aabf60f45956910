//! One made-up secret of every form that the reference specifications name, with its required tier.
//!
//! Assembled at run time, so other scanners do not report this file as a leak.

use toolgate_secrets::Tier;

pub struct KnownForm {
    pub name: &'static str,
    pub text: String,
    pub tier: Tier,
    pub provider: &'static str,
}

/// Every form, one per row.
pub fn known() -> Vec<KnownForm> {
    [language_models(), clouds(), code(), chats_and_mails(), keys(), written_by_people()]
        .into_iter()
        .flatten()
        .collect()
}

fn language_models() -> Vec<KnownForm> {
    let body = |length: usize| "aB3dE6gH9jK2mN5pQ8sT1uV4wX7yZ0".repeat(8).get(..length).unwrap().to_owned();
    let dashed = |length: usize| format!("{}-{}_{}", body(20), body(30), body(length - 52));
    vec![
        one("OpenAI, 48 characters", &["s", "k-", &body(48)], Tier::Definite, "openai"),
        one("OpenAI, a small alphabet", &["s", "k-", &body(48).to_lowercase()], Tier::Definite, "openai"),
        one(
            "OpenAI, with its mark",
            &["s", "k-", &body(20), "T3Blb", "kFJ", &body(20)],
            Tier::Definite,
            "openai",
        ),
        one("OpenAI, of a project", &["s", "k-pr", "oj-", &dashed(156)], Tier::Definite, "openai"),
        one("OpenAI, of a project, short", &["s", "k-pr", "oj-", &body(48)], Tier::Definite, "openai"),
        one("OpenAI, of a service", &["s", "k-svc", "acct-", &dashed(156)], Tier::Definite, "openai"),
        one("OpenAI, of an administrator", &["s", "k-ad", "min-", &dashed(156)], Tier::Definite, "openai"),
        one("Anthropic", &["s", "k-an", "t-api03-", &dashed(95)], Tier::Definite, "anthropic"),
        one("Anthropic, without a version", &["s", "k-an", "t-", &body(95)], Tier::Definite, "anthropic"),
        one(
            "Anthropic, with hyphens and no version",
            &["s", "k-an", "t-", &dashed(95).replace('_', "-")],
            Tier::Definite,
            "anthropic",
        ),
    ]
}

fn clouds() -> Vec<KnownForm> {
    let secret = ["cIrjXn8OvnYozQ5YDXWs", "JD5JNfIsuCMs0lHGpZV0"].concat();
    vec![
        one("AWS access key", &["AK", "IAQYLPMN5H", "HHFPZA22"], Tier::Definite, "aws"),
        one("AWS access key, of no account", &["AK", "IA12345678", "90ABCDEF"], Tier::Probable, "aws"),
        one("AWS secret key", &["aws_secret_access_key = ", &secret, "\n"], Tier::Definite, "aws"),
        one("Google", &["AI", "zaSyFxtZZqr0KPH2V0ras", "FucoOR3NmR0bPFjw"], Tier::Definite, "google"),
        one(
            "Google, of any kind",
            &["AI", "zaFxtZZqr0KPH2V0rasaa", "FucoOR3NmR0bPFjw"],
            Tier::Definite,
            "google",
        ),
        one(
            "Google service account",
            &[
                "{\"type\": \"service_account\", \"private_key\": \"-----BEGIN PRI",
                "VATE KEY-----\\n",
                &"MIIEvQIBADANBgkq".repeat(4),
                "\\n-----END PRIVATE KEY-----\\n\"}",
            ],
            Tier::Definite,
            "generic",
        ),
        one("Heroku", &["HR", "KU-bc945e07-392f-46ce-", "672d-1d34c7870e29"], Tier::Definite, "heroku"),
    ]
}

fn code() -> Vec<KnownForm> {
    // Its last six characters are a checksum.
    let summed = ["zQWBuTSOoRi4A9spHcVY5n", "cnsDkxkJ0mLq17"].concat();
    let unsummed = ["zQWBuTSOoRi4A9spHcVY5n", "cnsDkxkJ0mLq99"].concat();
    vec![
        one("GitHub, personal", &["gh", "p_", &summed], Tier::Definite, "github"),
        one("GitHub, OAuth", &["gh", "o_", &summed], Tier::Definite, "github"),
        one("GitHub, with a wrong sum", &["gh", "p_", &unsummed], Tier::Probable, "github"),
        one(
            "GitHub, fine-grained",
            &["github", "_pat_yzozq3qTQfHuRdu3rWdfpu_", &summed, "ZcDG1IGjFXOtfoHj886WD1u"],
            Tier::Definite,
            "github",
        ),
        one("GitLab", &["gl", "pat-aB3dE6gH9", "jK2mN5pQ8sT"], Tier::Definite, "gitlab"),
        one("GitLab, with hyphens", &["gl", "pat-aB3dE6-H9", "jK2m-5pQ8sT"], Tier::Definite, "gitlab"),
        one("npm", &["np", "m_", &summed], Tier::Definite, "npm"),
        one(
            "PyPI",
            &[
                "py",
                "pi-AgEIcHlwaS5vcmcC09ufv_0WJOjZN2jH30_ZnMLlFT06wa-FwheonM_TAu4fcMR9eTlKe1w",
                "-Y3t-Bm0-tRKhY42EDXp52FhJKQFD-Wrlp3joM9cLyvFWJsif09WeA5q4b6NG1eBC",
            ],
            Tier::Definite,
            "pypi",
        ),
    ]
}

fn chats_and_mails() -> Vec<KnownForm> {
    let hex = ["faeee297950af180", "5dab101a423c1873"].concat();
    let long = ["A6al0A5RcERak5kewmN51SUrVrMWyGrQQ20tCki", "hwgUV9KwfFb9rI5sorbrTaaaaaa88"].concat();
    vec![
        one("Stripe", &["sk_li", "ve_lHLuJsIewcFhszek", "7BUGMWPm"], Tier::Definite, "stripe"),
        one(
            "Slack, of a bot",
            &["xo", "xb-689042341380-4808572520590-", "YplM9JU41bc8G6qBPmJJPzv3"],
            Tier::Definite,
            "slack",
        ),
        one(
            "Slack webhook",
            &["https://hooks.sla", "ck.com/services/TPLFCHE1O8/BMUOMDRGQR/", "BS6XpvgBD9saHis2Atj9sYaz"],
            Tier::Definite,
            "slack",
        ),
        one(
            "Discord",
            &["NDU3NTM4MjQ0NTc2", "NzgyODg3.tH-psp.", "zPq1Xj_D1oAzAN1KqLaeYoOo7aB8qPJRzOk"],
            Tier::Definite,
            "discord",
        ),
        one(
            "Discord webhook",
            &["https://disc", "ord.com/api/webhooks/598172352755288761/", &long],
            Tier::Definite,
            "discord",
        ),
        one(
            "Telegram",
            &["5480505135", ":AAbN1M59yf5K1DXlLu", "ES6petS0ITylXame4"],
            Tier::Definite,
            "telegram",
        ),
        one("Twilio, by its name", &["twilio: S", "K", &hex], Tier::Definite, "twilio"),
        one("Twilio, alone", &["S", "K", &hex], Tier::Probable, "twilio"),
        one(
            "SendGrid",
            &["S", "G.0LEI21WOA_VBDX1bMuEkA8.", "71j4mF4lq4-lrGfVtBnL0zLx_d28jn4YXGXzVoFmN26"],
            Tier::Definite,
            "sendgrid",
        ),
        one("Mailchimp", &[&hex, "-u", "s31"], Tier::Definite, "mailchimp"),
    ]
}

fn keys() -> Vec<KnownForm> {
    let body = "MIIEvQIBADANBgkq".repeat(4);
    let block = |kind: &'static str, end: &str| {
        let lines = [&body[..], &body, &body].join("\n");
        one(
            kind,
            &["-----BEGIN ", kind, "-----\n", &lines, "\n-----END ", kind, "-----\n", end],
            Tier::Definite,
            "generic",
        )
    };
    vec![
        block("PRIVATE KEY", ""),
        block("RSA PRIVATE KEY", ""),
        block("EC PRIVATE KEY", "more"),
        block("OPENSSH PRIVATE KEY", ""),
        block("PGP PRIVATE KEY BLOCK", ""),
        one(
            "JSON Web Token",
            &[
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
                ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
                "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
            ],
            Tier::Probable,
            "generic",
        ),
    ]
}

fn written_by_people() -> Vec<KnownForm> {
    let hex = ["d8dFAcabbEcc60b20592", "02398C50c67c65fAED6A"].concat();
    let base64 = ["j8nrn6lJM4z5rRYRA1qI3gCcY3zPaa", "14VqdlSlPVMrctaW6mBzjzdsuX1RR5ScBq"].concat();
    let row = |name, parts: &[&str], provider| one(name, parts, Tier::Probable, provider);
    vec![
        row("a bearer", &["Authorization: Bea", "rer qwqEKQ3-1cO-H3DG1zqy"], "generic"),
        row("basic authorization", &["Authorization: Ba", "sic cm9ib3Q6ZER5bThHdDE0VVhMc1Y="], "generic"),
        row("PostgreSQL", &["postgres://app:", "s3cr3t", "@db:5432/x"], "postgresql"),
        row("MongoDB", &["mongodb://app:", "s3cr3t", "@db/x"], "mongodb"),
        row("MongoDB, by its name", &["mongodb+srv://app:", "s3cr3t", "@db/x"], "mongodb"),
        row("Redis", &["redis://:", "s3cr3t", "@cache:6379"], "redis"),
        row("a password", &["pass", "word = \"hunter22\""], "generic"),
        row("a password without quotes", &["pass", "word: hunter22"], "generic"),
        row("a key", &["api", "_key=k3jh4k5j6h7"], "generic"),
        row("a key with a hyphen", &["api", "-key: 'k3jh4k5j6h7'"], "generic"),
        row("a key in one word", &["API", "KEY=k3jh4k5j6h7"], "generic"),
        row("a secret", &["sec", "ret: \"a1b2c3d4e5f6\""], "generic"),
        row("a token", &["tok", "en = 'aB3dE6gH9jK2mN5pQ8sT1u'"], "generic"),
        one("base64 behind a word", &["the secret is ", &base64], Tier::Possible, "generic"),
        one("hex behind a word", &["the secret is ", &hex], Tier::Possible, "generic"),
    ]
}

fn one(name: &'static str, parts: &[&str], tier: Tier, provider: &'static str) -> KnownForm {
    KnownForm { name, text: parts.concat(), tier, provider }
}
