-- Times are milliseconds since 1970. Texts compare byte by byte.
CREATE TABLE approvals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- in order of arrival
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'used', 'expired')),
    caller TEXT NOT NULL,
    tool TEXT NOT NULL,
    tool_digest TEXT NOT NULL,
    arguments_digest TEXT NOT NULL,
    policy_digest TEXT NOT NULL,
    prompt TEXT NOT NULL,
    because TEXT NOT NULL, -- a JSON array of texts
    risk TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    decided_by TEXT,
    decided_at INTEGER,
    note TEXT,
    finished INTEGER, -- when it became denied, used or expired
    CHECK (state NOT IN ('approved', 'denied', 'used') OR decided_by IS NOT NULL AND decided_at IS NOT NULL),
    CHECK ((state IN ('denied', 'used', 'expired')) = (finished IS NOT NULL))
) STRICT;
-- One pending question for one call, whoever asks how often.
CREATE UNIQUE INDEX approvals_pending ON approvals (caller, arguments_digest, tool, tool_digest, policy_digest)
    WHERE state = 'pending';
CREATE INDEX approvals_approved ON approvals (caller, arguments_digest) WHERE state = 'approved';
CREATE INDEX approvals_state ON approvals (state, seq);
CREATE INDEX approvals_expiry ON approvals (expires) WHERE finished IS NULL;
CREATE INDEX approvals_finished ON approvals (finished) WHERE finished IS NOT NULL;

CREATE TABLE trusts (
    caller TEXT NOT NULL,
    flow TEXT NOT NULL,
    tool_digest TEXT NOT NULL,
    policy_digest TEXT NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (caller, flow, tool_digest, policy_digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX trusts_expiry ON trusts (expires);

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    secret_hash BLOB NOT NULL CHECK (length(secret_hash) = 32),
    subject TEXT NOT NULL,
    permissions TEXT NOT NULL, -- a JSON array of texts
    role TEXT NOT NULL CHECK (role IN ('caller', 'admin')),
    created INTEGER NOT NULL,
    expires INTEGER,
    last_used INTEGER,
    revoked INTEGER
) STRICT, WITHOUT ROWID;
-- A name can be given again once its token is revoked.
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked IS NULL;

CREATE TABLE passes (
    tool_id TEXT PRIMARY KEY,
    document_digest TEXT NOT NULL,
    policy_digest TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('passed', 'failed')),
    error TEXT,
    at INTEGER NOT NULL,
    observed TEXT NOT NULL, -- JSON
    published INTEGER NOT NULL CHECK (published IN (0, 1)),
    CHECK ((outcome = 'failed') = (error IS NOT NULL))
) STRICT, WITHOUT ROWID;
