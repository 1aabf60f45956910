-- The last change of each pass, in order. A gateway with many tools reads the changed passes only.
CREATE TABLE pass_changes (
    tool_id TEXT PRIMARY KEY,
    name TEXT,
    number INTEGER NOT NULL
) STRICT;
CREATE INDEX pass_changes_number ON pass_changes (number);
-- Another id under the same name is looked up for every tool.
CREATE INDEX passes_name ON passes (name);
