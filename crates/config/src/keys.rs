//! Every key of `toolgate.yaml`.

use Fallback::{Flag, Null, Number, Required, Text, Texts};

use crate::{
    key::{DAY, Fallback, HOUR, KIB, Key, Kind, MIB, MINUTE, Ms, SECOND},
    shape::Shape,
};

pub(crate) const ROOT: &[Key] = &[
    Key::new("version", Kind::Version, Required, "The format of this file; there is only 1."),
    path("workspace", Text("."), "What `$WORKSPACE` stands for."),
    path("state", Text(".toolgate"), "Journal, keys and database."),
    Key::new("tools", Kind::Texts(Shape::Path), Texts(&["tools"]), "Files and folders with tool documents."),
    Key::section("catalog", CATALOG, "The tools that Toolgate ships."),
    Key::section("exposure", EXPOSURE, "Which tools callers can see."),
    Key::section("policy", POLICY, "What tools may do; see docs/policy.md."),
    Key::section("server", SERVER, "The door for MCP clients over HTTP."),
    Key::section("auth", AUTH, "Who is calling."),
    Key::section("approvals", APPROVALS, "When a person is asked, and for how long."),
    Key::section("audit", AUDIT, "The journal."),
    Key::section("commands", COMMANDS, "The programs that command tools run."),
    Key::section("secrets", SECRETS, "What is taken for a secret; see docs/secrets.md."),
    Key::section("worker", WORKER, "The jailed processes that run tools."),
    Key::section("limits", LIMITS, "What callers can use up."),
    Key::section("metrics", METRICS, "What is measured, and where it goes."),
    Key::section("admin", ADMIN, "The door for operators."),
    Key::section("log", LOG, "What Toolgate says about itself."),
];

const CATALOG: &[Key] = &[
    choice("preset", PRESETS, "none", "A ready selection of shipped tools."),
    Key::section("include", SELECTION, "Shipped tools beside the preset; any of these is enough."),
    Key::section("exclude", SELECTION, "Shipped tools that are left out; wins over preset and include."),
];

const SELECTION: &[Key] = &[
    texts("names", Shape::Name, "Names of tools."),
    texts("tags", Shape::Name, "Tags of tools."),
    texts("categories", Shape::Name, "Categories of tools."),
];

const EXPOSURE: &[Key] = &[
    flag("auto_add", Flag(true), "Expose every published tool; otherwise only those in `exposed`."),
    texts("exposed", Shape::Name, "Tools to expose: names, or ids that are UUIDs."),
    texts("excluded", Shape::Name, "Names or ids of tools that are never exposed; always wins."),
];

const POLICY: &[Key] = &[
    path("baseline", Null, "The baseline's file; the shipped one where null."),
    path("profiles", Null, "The folder with named profiles; the shipped ones where null."),
    path("overrides", Null, "The file with the operator's own words on single tools."),
    texts("cedar", Shape::Path, "Files with Cedar policies."),
];

const SERVER: &[Key] = &[
    text("listen", Shape::Address, Text("127.0.0.1:8282"), "Address and port; port 0 takes a free one."),
    text(
        "public_url",
        Shape::PublicUrl,
        Null,
        "What clients call, if not the address above: behind a proxy.",
    ),
    texts(
        "allowed_hosts",
        Shape::Host,
        "Names in `Host` that are answered, beside those of listen and public_url.",
    ),
    texts("allowed_origins", Shape::Origin, "Web pages that may call, as in `Origin`."),
    size("max_request", KIB, 64 * MIB, "1MiB", "The largest body of a request."),
    number("max_connections", 1, 100_000, 512, "Open at once; further ones wait."),
    number(
        "max_connections_per_address",
        0,
        100_000,
        0,
        "Open at once from one address; further ones are closed. 0: a quarter of max_connections, at least 64.",
    ),
    duration("header_timeout", SECOND, HOUR, "10s", "Time for the head of a request to arrive."),
    duration("request_timeout", SECOND, HOUR, "300s", "Time for the body of a request to arrive."),
    duration("idle_timeout", SECOND, HOUR, "60s", "Time that a connection may be silent between requests."),
    duration("shutdown_grace", 0, HOUR, "10s", "Time for running calls to end when Toolgate is stopped."),
    number("page_size", 1, 1_000, 100, "Tools in one page of `tools/list`."),
];

const AUTH: &[Key] = &[
    flag("tokens", Flag(true), "Accept API tokens made by `toolgate token`."),
    Key::new(
        "anonymous",
        Kind::Section(ANONYMOUS),
        Null,
        "Danger: lets in anybody who reaches the port, without a token. Only on a loopback address.",
    ),
    Key::new("jwt", Kind::Sections(JWT), Texts(&[]), "Issuers whose signed tokens are accepted."),
    Key::section("local", LOCAL, "The caller on stdio, of `toolgate call`, and with --autonomous."),
];

const ANONYMOUS: &[Key] =
    &[texts("permissions", Shape::Permission, "What such a caller holds; each by name.")];

const JWT: &[Key] = &[
    text("issuer", Shape::Words, Required, "Exactly the `iss` of its tokens."),
    text("audience", Shape::Words, Required, "What `aud` has to contain."),
    Key::new("algorithms", Kind::Choices(ALGORITHMS), Texts(&["RS256"]), "Signatures that are accepted."),
    Key::new("key", Kind::OneOf(JWT_KEY), Required, "Where the key is; exactly one of the following."),
    duration("clock_skew", 0, 10 * MINUTE, "60s", "How far the issuer's clock may differ."),
    text("subject_claim", Shape::Name, Text("sub"), "The claim that names the caller."),
    text(
        "permissions_claim",
        Shape::Name,
        Text("permissions"),
        "The claim with the permissions, a list or words in a text; `scope` counts too.",
    ),
    text(
        "admin_permission",
        Shape::Permission,
        Null,
        "The permission that makes its holder an admin; where null, nobody of this issuer is one.",
    ),
    texts("required_scopes", Shape::Scope, "Scopes that every token must carry, or it is refused."),
    duration("jwks_refresh", MINUTE, DAY, "10m", "How often the keys at `jwks_url` are read again."),
];

const JWT_KEY: &[Key] = &[
    text(
        "secret_env",
        Shape::EnvName,
        Null,
        "The environment variable with the shared secret (HS algorithms).",
    ),
    text("pem_file", Shape::Path, Null, "A public key."),
    text("jwks_file", Shape::Path, Null, "A key set."),
    text("jwks_url", Shape::KeySetUrl, Null, "A key set that the issuer publishes; https, or loopback."),
];

const LOCAL: &[Key] = &[
    text("subject", Shape::Words, Text("local"), "Its name in journal and policies."),
    texts("permissions", Shape::Permission, "What it holds; each by name."),
];

const APPROVALS: &[Key] = &[
    choice(
        "ask_from",
        &["always", "L1", "L2", "L3", "L4", "L5", "never"],
        "L4",
        "The risk level from which tools that say nothing ask a person.",
    ),
    flag(
        "client_may_answer",
        Flag(true),
        "May the caller's own client ask its user, and is its word taken? Otherwise only the queue answers.",
    ),
    flag("self_approval", Flag(false), "Lets a caller with the role admin approve its own calls."),
    duration("timeout", SECOND, HOUR, "120s", "How long a call waits for an answer."),
    duration("expires", SECOND, 7 * DAY, "15m", "How long an approval can be used, from the question on."),
    duration("trust", MINUTE, 30 * DAY, "8h", "How long trustAfterApproval lasts."),
    number("max_pending", 1, 100_000, 1_000, "Open questions in all; and calls that wait for an answer."),
    number(
        "max_pending_per_caller",
        1,
        100_000,
        20,
        "Open questions of one caller; and calls of it that wait for an answer.",
    ),
];

const AUDIT: &[Key] = &[
    choice(
        "on_failure",
        &["refuse", "continue"],
        "refuse",
        "What happens to calls while the journal cannot be written.",
    ),
    choice(
        "sync",
        &["write", "disk"],
        "write",
        "An entry counts once the system has it, or once the disk has it.",
    ),
    number("checkpoint_every", 1, 1_000_000, 1_000, "Entries between two signed checkpoints."),
    flag("debug", Flag(false), "Danger: arguments and outputs in clear, masked; otherwise digests."),
    Key::new("webhook", Kind::Section(WEBHOOK), Null, "Where alerts are posted, beside the journal."),
];

const WEBHOOK: &[Key] = &[
    text("url", Shape::KeySetUrl, Required, "Gets a POST with JSON for each alert."),
    text("token_env", Shape::EnvName, Null, "The environment variable with a token to send along."),
];

const COMMANDS: &[Key] = &[
    Key::new(
        "allowed",
        Kind::Texts(Shape::Words),
        Null,
        "Names or absolute paths of programs that command tools may use; those they name where null.",
    ),
    text(
        "image",
        Shape::Words,
        Null,
        "The image for tools with `sandbox: container`, which must be there already; without one they do not run.",
    ),
    flag(
        "danger_unbounded_containers",
        Flag(false),
        "Danger: containers run also where nothing bounds their memory, processor time or processes.",
    ),
    number(
        "prepared_jails",
        0,
        64,
        4,
        "Jails kept ready for commands like those that ran lately; 0 makes each jail when its call comes.",
    ),
];

const SECRETS: &[Key] = &[
    texts("rules", Shape::Path, "Files with further rules that say what a secret looks like."),
    texts("disabled", Shape::Name, "Ids of rules that do not count."),
];

const WORKER: &[Key] = &[
    Key::new(
        "count",
        Kind::Number { least: 1, most: 1_024 },
        Null,
        "Calls that hold a worker at once; where null 4 per processor, 8 to 64.",
    ),
    choice(
        "isolation",
        &["shared", "per-caller", "per-tool", "per-call"],
        "per-caller",
        "Whose calls may follow one another in one process.",
    ),
    number("recycle_after", 1, 1_000_000, 1_000, "Calls after which a worker is replaced."),
    number("queue", 0, 100_000, 1_024, "Calls that wait for a worker; further ones are refused."),
    choice(
        "required",
        &["minimum", "hardened"],
        "minimum",
        "The jail that has to be in force, or nothing runs.",
    ),
];

const LIMITS: &[Key] = &[
    number("calls", 1, 100_000, 256, "Calls running at once, in all."),
    number("calls_per_caller", 1, 100_000, 32, "Calls running at once, of one caller; further ones wait."),
    number(
        "waiting",
        0,
        1_000_000,
        1_024,
        "Calls that wait for their turn; further ones are refused. One caller gets half of the free places.",
    ),
    duration("wait_timeout", SECOND, HOUR, "60s", "How long a call waits for its turn and for a worker."),
    size("arguments", KIB, 64 * MIB, "256KiB", "The arguments of one call."),
    number("depth", 1, 100, 32, "How deep arguments may be nested."),
    number("looks", 1, 256, 16, "Threads that wait for a disk at once on behalf of calls, in all."),
    number("looks_per_caller", 1, 256, 4, "The same, of one caller."),
    duration(
        "look_timeout",
        SECOND,
        10 * MINUTE,
        "30s",
        "How long a call waits for such a thread, and for what its arguments name to be looked at.",
    ),
];

const METRICS: &[Key] = &[
    flag("prometheus", Flag(true), "Answer GET /admin/metrics at the admin door."),
    Key::new("otlp", Kind::Section(OTLP), Null, "Send traces and metrics to an OpenTelemetry collector."),
];

const OTLP: &[Key] = &[
    text("endpoint", Shape::Endpoint, Required, "The collector, such as `http://127.0.0.1:4318`."),
    text(
        "headers_env",
        Shape::EnvName,
        Null,
        "The environment variable with headers, as `name=value,name=value`.",
    ),
    duration("interval", SECOND, HOUR, "15s", "Time between two sendings of metrics."),
    flag("traces", Flag(true), "Send traces."),
    flag("metrics", Flag(true), "Send metrics."),
];

const ADMIN: &[Key] = &[text(
    "listen",
    Shape::Address,
    Null,
    "An address of its own; where null, /admin of the server's listener.",
)];

const LOG: &[Key] = &[
    choice("level", &["error", "warn", "info", "debug"], "info", "The least important lines that are shown."),
    choice("format", &["text", "json"], "text", "For people, or for programs."),
];

const PRESETS: &[&str] = &["none", "starter", "files", "dev", "agent", "platform", "everything"];

const ALGORITHMS: &[&str] = &[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384",
    "EdDSA",
];

const fn flag(name: &'static str, fallback: Fallback, doc: &'static str) -> Key {
    Key::new(name, Kind::Flag, fallback, doc)
}

const fn text(name: &'static str, shape: Shape, fallback: Fallback, doc: &'static str) -> Key {
    Key::new(name, Kind::Text(shape), fallback, doc)
}

const fn path(name: &'static str, fallback: Fallback, doc: &'static str) -> Key {
    text(name, Shape::Path, fallback, doc)
}

/// A list that is empty where nothing is said.
const fn texts(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key::new(name, Kind::Texts(shape), Texts(&[]), doc)
}

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    fallback: &'static str,
    doc: &'static str,
) -> Key {
    Key::new(name, Kind::Choice(words), Text(fallback), doc)
}

const fn number(name: &'static str, least: u64, most: u64, fallback: u64, doc: &'static str) -> Key {
    Key::new(name, Kind::Number { least, most }, Number(fallback), doc)
}

const fn duration(name: &'static str, least: Ms, most: Ms, fallback: &'static str, doc: &'static str) -> Key {
    Key::new(name, Kind::Duration { least, most }, Text(fallback), doc)
}

const fn size(name: &'static str, least: u64, most: u64, fallback: &'static str, doc: &'static str) -> Key {
    Key::new(name, Kind::Size { least, most }, Text(fallback), doc)
}
