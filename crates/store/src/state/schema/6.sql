-- The settings in force when a tool was last published, as JSON. A later publication is compared with them.
CREATE TABLE publications (
    tool_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    settings TEXT NOT NULL
) STRICT;
CREATE INDEX publications_of_name ON publications (name);
-- Whose quota of open questions a question counts against. Anonymous callers share a name, and are told apart by address.
ALTER TABLE approvals ADD COLUMN quota TEXT NOT NULL DEFAULT '';
UPDATE approvals SET quota = caller;
