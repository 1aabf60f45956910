//! The table of all keys of `toolgate.yaml`.

use KeyDefault::{Flag, Null, Number, Required, Text, Texts};

use crate::{
    key::{ConfigKey, ConfigValueKind, DAY, HOUR, KIB, KeyDefault, MIB, MINUTE, Ms, SECOND},
    shape::TextShape,
};

pub(crate) const ROOT: &[ConfigKey] = &[
    ConfigKey::new(
        "version",
        ConfigValueKind::Version,
        Required,
        "The version of this file format; always 1.",
    ),
    path("workspace", Text("."), "The directory that `$WORKSPACE` refers to in tool documents."),
    path("state", Text(".toolgate"), "The directory for journal, keys and database."),
    ConfigKey::new(
        "tools",
        ConfigValueKind::Texts(TextShape::Path),
        Texts(&["tools"]),
        "Files and directories with tool documents.",
    ),
    ConfigKey::section("catalog", CATALOG, "The tools that Toolgate ships."),
    ConfigKey::section("exposure", EXPOSURE, "Which tools callers can see."),
    ConfigKey::section("policy", POLICY, "Limits on what tools may do; see docs/policy.md."),
    ConfigKey::section("server", SERVER, "The HTTP listener for MCP clients."),
    ConfigKey::section("auth", AUTH, "How callers authenticate."),
    ConfigKey::section("approvals", APPROVALS, "When a person must approve a call, and for how long."),
    ConfigKey::section("audit", AUDIT, "The journal."),
    ConfigKey::section("commands", COMMANDS, "The programs that command tools run."),
    ConfigKey::new(
        "upstreams",
        ConfigValueKind::Sections(UPSTREAM),
        Texts(&[]),
        "MCP servers whose tools this gateway serves; see docs/upstreams.md.",
    ),
    ConfigKey::section(
        "secrets",
        SECRETS,
        "Secrets of tools and their detection; see docs/secrets-at-rest.md, docs/secrets.md.",
    ),
    ConfigKey::section("worker", WORKER, "The sandboxed processes that run JavaScript tools."),
    ConfigKey::section("limits", LIMITS, "Limits for calls, in total and per caller."),
    ConfigKey::section("metrics", METRICS, "Metrics and traces, and where they are sent."),
    ConfigKey::section("admin", ADMIN, "The admin API for operators."),
    ConfigKey::section("log", LOG, "The log of the gateway itself."),
];

const CATALOG: &[ConfigKey] = &[
    choice("preset", PRESETS, "none", "A predefined selection of shipped tools."),
    ConfigKey::section("include", SELECTION, "Shipped tools to add to the preset; one match is enough."),
    ConfigKey::section("exclude", SELECTION, "Shipped tools to leave out; overrides preset and include."),
];

const SELECTION: &[ConfigKey] = &[
    texts("names", TextShape::Name, "Names of tools."),
    texts("tags", TextShape::Name, "Tags of tools."),
    texts("categories", TextShape::Name, "Categories of tools."),
];

const EXPOSURE: &[ConfigKey] = &[
    flag("auto_add", Flag(true), "Expose every published tool; otherwise only those in `exposed`."),
    texts("exposed", TextShape::Name, "Tools to expose: names, or ids that are UUIDs."),
    texts(
        "excluded",
        TextShape::Name,
        "Names or ids of tools that are never exposed; overrides the other keys.",
    ),
];

const POLICY: &[ConfigKey] = &[
    path("baseline", Null, "The file with the baseline profile; null uses the shipped one."),
    path("profiles", Null, "The directory with named profiles; null uses the shipped ones."),
    path("overrides", Null, "The file with the operator's overrides for single tools."),
    texts("cedar", TextShape::Path, "Files with Cedar policies."),
];

const SERVER: &[ConfigKey] = &[
    text(
        "listen",
        TextShape::Address,
        Text("127.0.0.1:8282"),
        "Address and port to listen on; port 0 picks a free one.",
    ),
    text(
        "public_url",
        TextShape::PublicUrl,
        Null,
        "The URL that clients use, if it differs from `listen`; for instance behind a proxy.",
    ),
    texts(
        "allowed_hosts",
        TextShape::Host,
        "Values of the `Host` header to accept, in addition to those of listen and public_url.",
    ),
    texts(
        "allowed_origins",
        TextShape::Origin,
        "Web origins that may send requests, as in the `Origin` header.",
    ),
    size("max_request", KIB, 64 * MIB, "1MiB", "The largest request body."),
    number("max_connections", 1, 100_000, 512, "Open connections in total; further ones wait."),
    number(
        "max_connections_per_address",
        0,
        100_000,
        0,
        "Open connections per client address; further ones are closed. 0: a quarter of max_connections, at least 64.",
    ),
    duration("header_timeout", SECOND, HOUR, "10s", "Time limit for receiving the header of a request."),
    duration("request_timeout", SECOND, HOUR, "300s", "Time limit for receiving the body of a request."),
    duration("idle_timeout", SECOND, HOUR, "60s", "How long an idle connection stays open."),
    duration("shutdown_grace", 0, HOUR, "10s", "How long shutdown waits for running calls to finish."),
    number("page_size", 1, 1_000, 100, "Tools in one page of `tools/list`."),
];

const AUTH: &[ConfigKey] = &[
    flag("tokens", Flag(true), "Accept API tokens created by `toolgate token`."),
    ConfigKey::new(
        "anonymous",
        ConfigValueKind::Section(ANONYMOUS),
        Null,
        "Danger: accepts callers without a token. Allowed only on a loopback address.",
    ),
    ConfigKey::new("jwt", ConfigValueKind::Sections(JWT), Texts(&[]), "Issuers whose JWTs are accepted."),
    ConfigKey::section("local", LOCAL, "The caller on stdio, for `toolgate call`, and with --autonomous."),
];

const ANONYMOUS: &[ConfigKey] =
    &[texts("permissions", TextShape::Permission, "Permissions of anonymous callers, each by name.")];

const UPSTREAM: &[ConfigKey] = &[
    text("name", TextShape::ServerName, Required, "The name of the server; unique."),
    text(
        "source",
        TextShape::Words,
        Required,
        "Where the server is: `npx:PACKAGE@VERSION`, `uvx:PACKAGE==VERSION`, or a command line.",
    ),
    texts("args", TextShape::Words, "Arguments of the server, after those of `source`."),
    texts("env", TextShape::Assignment, "Environment variables as NAME=VALUE; `${SECRET}` is replaced."),
    text(
        "prefix",
        TextShape::Words,
        Null,
        "Put before the names of its tools; null: the name of the server and `_`.",
    ),
    flag("prefixed", Flag(true), "Put `prefix` before the names of its tools."),
    texts("read", TextShape::Path, "Paths that the server can read."),
    texts("write", TextShape::Path, "Paths in the workspace that the server can read and change."),
    texts("hosts", TextShape::Host, "Hosts that the server can reach."),
    choice(
        "isolation",
        &["shared", "caller"],
        "shared",
        "One process for all callers, or one for each caller.",
    ),
    choice("max_risk", RISK_LEVELS, "L5", "Tools with a higher risk level are not served."),
    ConfigKey::new(
        "tools",
        ConfigValueKind::Sections(UPSTREAM_TOOL),
        Texts(&[]),
        "The tools to offer for review, with their settings. Empty: all.",
    ),
    duration(
        "start_timeout",
        SECOND,
        HOUR,
        "30s",
        "Time limit for starting the server and listing its tools.",
    ),
    duration("idle_timeout", SECOND, DAY, "5m", "The server is stopped after this time without a call."),
    number("concurrent_calls", 1, 1_000, 16, "Calls at the same time; further ones wait."),
];

const UPSTREAM_TOOL: &[ConfigKey] = &[
    text("tool", TextShape::Words, Required, "Its name on the server."),
    text("alias", TextShape::Name, Null, "Its name for callers, without the prefix."),
    text("description", TextShape::Words, Null, "Its description for callers, instead of the server's."),
    ConfigKey::new(
        "approval",
        ConfigValueKind::Choice(&["auto", "ask", "always"]),
        Null,
        "Whether a person is asked; null: by the risk.",
    ),
];

const RISK_LEVELS: &[&str] = &["L0", "L1", "L2", "L3", "L4", "L5"];

const JWT: &[ConfigKey] = &[
    text("issuer", TextShape::Words, Required, "The exact `iss` claim of its tokens."),
    text("audience", TextShape::Words, Required, "The value that the `aud` claim must contain."),
    ConfigKey::new(
        "algorithms",
        ConfigValueKind::Choices(ALGORITHMS),
        Texts(&["RS256"]),
        "Accepted signature algorithms.",
    ),
    ConfigKey::new(
        "key",
        ConfigValueKind::OneOf(JWT_KEY),
        Required,
        "The verification key; set exactly one of the following.",
    ),
    duration("clock_skew", 0, 10 * MINUTE, "60s", "Tolerated difference to the issuer's clock."),
    text("subject_claim", TextShape::Name, Text("sub"), "The claim that names the caller."),
    text(
        "permissions_claim",
        TextShape::Name,
        Text("permissions"),
        "The claim with the permissions: a list, or a text of words; `scope` counts too.",
    ),
    text(
        "admin_permission",
        TextShape::Permission,
        Null,
        "The permission that makes its holder an admin; null: this issuer has no admins.",
    ),
    texts("required_scopes", TextShape::Scope, "Scopes that every token must have; others are rejected."),
    duration("jwks_refresh", MINUTE, DAY, "10m", "How often the key set at `jwks_url` is fetched again."),
];

const JWT_KEY: &[ConfigKey] = &[
    text(
        "secret_env",
        TextShape::EnvName,
        Null,
        "The environment variable that holds the shared secret (HS algorithms).",
    ),
    text("pem_file", TextShape::Path, Null, "A public key as a PEM file."),
    text("jwks_file", TextShape::Path, Null, "A key set (JWKS) as a file."),
    text(
        "jwks_url",
        TextShape::KeySetUrl,
        Null,
        "The URL of the issuer's key set (JWKS); https, or loopback.",
    ),
];

const LOCAL: &[ConfigKey] = &[
    text("subject", TextShape::Words, Text("local"), "Its name in the journal and in policies."),
    texts("permissions", TextShape::Permission, "Its permissions, each by name."),
];

const APPROVALS: &[ConfigKey] = &[
    choice(
        "ask_from",
        &["always", "L1", "L2", "L3", "L4", "L5", "never"],
        "L4",
        "Tools that do not configure approval require it from this risk level on.",
    ),
    flag(
        "client_may_answer",
        Flag(true),
        "Lets a client ask its user and accepts that answer. If false, only the approval queue answers.",
    ),
    flag("self_approval", Flag(false), "Lets a caller with the role admin approve its own calls."),
    duration("timeout", SECOND, HOUR, "120s", "How long a call waits for an answer."),
    duration(
        "expires",
        SECOND,
        7 * DAY,
        "15m",
        "How long an approval stays valid, counted from the request.",
    ),
    duration("trust", MINUTE, 30 * DAY, "8h", "How long `trustAfterApproval` lasts."),
    number("max_pending", 1, 100_000, 1_000, "Open approval requests in total, and calls waiting for one."),
    number(
        "max_pending_per_caller",
        1,
        100_000,
        20,
        "Open approval requests per caller, and calls of that caller waiting for one.",
    ),
];

const AUDIT: &[ConfigKey] = &[
    choice(
        "on_failure",
        &["refuse", "continue"],
        "refuse",
        "Refuse or continue calls while the journal cannot be written.",
    ),
    choice(
        "sync",
        &["write", "disk"],
        "write",
        "When an entry counts as written: once the kernel has it, or once it is on disk.",
    ),
    number("checkpoint_every", 1, 1_000_000, 1_000, "Journal entries between two signed checkpoints."),
    flag("debug", Flag(false), "Danger: logs redacted arguments and outputs as text instead of digests."),
    ConfigKey::new(
        "webhook",
        ConfigValueKind::Section(WEBHOOK),
        Null,
        "Posts alerts to a URL, in addition to the journal.",
    ),
];

const WEBHOOK: &[ConfigKey] = &[
    text("url", TextShape::KeySetUrl, Required, "Receives a POST with JSON for each alert."),
    text("token_env", TextShape::EnvName, Null, "The environment variable that holds the token to send."),
];

const COMMANDS: &[ConfigKey] = &[
    ConfigKey::new(
        "allowed",
        ConfigValueKind::Texts(TextShape::Words),
        Null,
        "Programs that command tools may run, by name or absolute path; null: those that the tools name.",
    ),
    text(
        "image",
        TextShape::Words,
        Null,
        "The image for tools with `sandbox: container`; it must exist locally. Without it these tools do not run.",
    ),
    flag(
        "danger_unbounded_containers",
        Flag(false),
        "Danger: runs containers even if their memory, CPU or process count cannot be limited.",
    ),
    number(
        "prepared_jails",
        0,
        64,
        4,
        "Jails kept ready for repeated commands; 0 creates each jail when its call arrives.",
    ),
];

const SECRETS: &[ConfigKey] = &[
    texts("rules", TextShape::Path, "Files with additional secret detection rules."),
    texts("disabled", TextShape::Name, "Ids of detection rules to turn off."),
    choice(
        "key",
        &["auto", "keyring", "credential", "file", "passphrase"],
        "auto",
        "The place that keeps the key of the secret store.",
    ),
    path(
        "key_file",
        Null,
        "The key file, outside of workspace and state; null: `~/.config/toolgate/secrets.key`.",
    ),
    ConfigKey::new(
        "providers",
        ConfigValueKind::Sections(PROVIDERS),
        Texts(&[]),
        "Sources of secrets that the store does not have, in this order. Empty: the environment.",
    ),
];

const PROVIDERS: &[ConfigKey] = &[
    text("name", TextShape::Name, Required, "Its name in messages."),
    ConfigKey::new(
        "kind",
        ConfigValueKind::Choice(&["env", "file", "command"]),
        Required,
        "The environment, a file or directory, or a program.",
    ),
    text(
        "path",
        TextShape::Path,
        Null,
        "For `file`: a directory with one file for each secret, or a dotenv file.",
    ),
    texts("command", TextShape::Words, "For `command`: the program and its arguments, one with `{name}`."),
    texts(
        "pass_env",
        TextShape::EnvName,
        "For `command`: further variables that the program gets and tools do not.",
    ),
    duration("cache", 0, HOUR, "5m", "For `command`: how long a value stays in memory."),
];

const WORKER: &[ConfigKey] = &[
    ConfigKey::new(
        "count",
        ConfigValueKind::Number { least: 1, most: 1_024 },
        Null,
        "Calls that hold a worker at the same time; null: 4 per CPU, from 8 to 64.",
    ),
    choice(
        "isolation",
        &["shared", "per-caller", "per-tool", "per-call"],
        "per-caller",
        "Which calls may share a worker process.",
    ),
    number("recycle_after", 1, 1_000_000, 1_000, "Calls after which a worker process is replaced."),
    number("queue", 0, 100_000, 1_024, "Calls that may wait for a worker; further ones are refused."),
    choice(
        "required",
        &["minimum", "hardened"],
        "minimum",
        "The isolation that the kernel must support; without it no tool runs.",
    ),
];

const LIMITS: &[ConfigKey] = &[
    number("calls", 1, 100_000, 256, "Calls that run at the same time, in total."),
    number(
        "calls_per_caller",
        1,
        100_000,
        32,
        "Calls that run at the same time, per caller; further ones wait.",
    ),
    number(
        "waiting",
        0,
        1_000_000,
        1_024,
        "Calls that may wait for a run slot; further ones are refused. One caller gets half of the free places.",
    ),
    duration("wait_timeout", SECOND, HOUR, "60s", "How long a call waits for a run slot and for a worker."),
    size("arguments", KIB, 64 * MIB, "256KiB", "The largest size of the arguments of one call."),
    number("depth", 1, 100, 32, "The deepest nesting of arguments."),
    number("disk_checks", 1, 256, 16, "Threads that check the disk for calls at the same time, in total."),
    number("disk_checks_per_caller", 1, 256, 4, "Threads that check the disk for calls, per caller."),
    duration(
        "disk_check_timeout",
        SECOND,
        10 * MINUTE,
        "30s",
        "How long a call waits for such a thread and for the check of the paths in its arguments.",
    ),
];

const METRICS: &[ConfigKey] = &[
    flag("prometheus", Flag(true), "Serve GET /admin/metrics on the admin API."),
    ConfigKey::new(
        "otlp",
        ConfigValueKind::Section(OTLP),
        Null,
        "Send traces and metrics to an OpenTelemetry collector.",
    ),
];

const OTLP: &[ConfigKey] = &[
    text(
        "endpoint",
        TextShape::Endpoint,
        Required,
        "The URL of the collector, such as `http://127.0.0.1:4318`.",
    ),
    text(
        "headers_env",
        TextShape::EnvName,
        Null,
        "The environment variable that holds headers, as `name=value,name=value`.",
    ),
    duration("interval", SECOND, HOUR, "15s", "Time between two exports of metrics."),
    flag("traces", Flag(true), "Send traces."),
    flag("metrics", Flag(true), "Send metrics."),
];

const ADMIN: &[ConfigKey] = &[text(
    "listen",
    TextShape::Address,
    Null,
    "A separate address for the admin API; null serves /admin on `server.listen`.",
)];

const LOG: &[ConfigKey] = &[
    choice("level", &["error", "warn", "info", "debug"], "info", "The least severe level that is logged."),
    choice("format", &["text", "json"], "text", "The format of log lines."),
];

const PRESETS: &[&str] = &["none", "starter", "files", "dev", "agent", "platform", "everything"];

const ALGORITHMS: &[&str] = &[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384",
    "EdDSA",
];

const fn flag(name: &'static str, fallback: KeyDefault, doc: &'static str) -> ConfigKey {
    ConfigKey::new(name, ConfigValueKind::Flag, fallback, doc)
}

const fn text(name: &'static str, shape: TextShape, fallback: KeyDefault, doc: &'static str) -> ConfigKey {
    ConfigKey::new(name, ConfigValueKind::Text(shape), fallback, doc)
}

const fn path(name: &'static str, fallback: KeyDefault, doc: &'static str) -> ConfigKey {
    text(name, TextShape::Path, fallback, doc)
}

/// A list that is empty by default.
const fn texts(name: &'static str, shape: TextShape, doc: &'static str) -> ConfigKey {
    ConfigKey::new(name, ConfigValueKind::Texts(shape), Texts(&[]), doc)
}

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    fallback: &'static str,
    doc: &'static str,
) -> ConfigKey {
    ConfigKey::new(name, ConfigValueKind::Choice(words), Text(fallback), doc)
}

const fn number(name: &'static str, least: u64, most: u64, fallback: u64, doc: &'static str) -> ConfigKey {
    ConfigKey::new(name, ConfigValueKind::Number { least, most }, Number(fallback), doc)
}

const fn duration(
    name: &'static str,
    least: Ms,
    most: Ms,
    fallback: &'static str,
    doc: &'static str,
) -> ConfigKey {
    ConfigKey::new(name, ConfigValueKind::Duration { least, most }, Text(fallback), doc)
}

const fn size(
    name: &'static str,
    least: u64,
    most: u64,
    fallback: &'static str,
    doc: &'static str,
) -> ConfigKey {
    ConfigKey::new(name, ConfigValueKind::Size { least, most }, Text(fallback), doc)
}
