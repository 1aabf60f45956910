-- Codes of findings that an operator accepted for the published document, separated by spaces.
ALTER TABLE passes ADD COLUMN accepted TEXT NOT NULL DEFAULT '';
-- How many bytes of the arguments a question does not show, all of them as JSON while it is open, and who has seen them.
ALTER TABLE approvals ADD COLUMN hidden_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN whole TEXT;
ALTER TABLE approvals ADD COLUMN revealed_to TEXT NOT NULL DEFAULT '[]'; -- a JSON array of texts
-- A yes that is remembered: in which conversation, and until when.
ALTER TABLE approvals ADD COLUMN remembers_flow TEXT;
ALTER TABLE approvals ADD COLUMN remembers_until INTEGER;
-- The conversation in which a client's no counts. Earlier ones counted everywhere; they have none, and no longer do.
ALTER TABLE approvals ADD COLUMN declined_in TEXT;
-- One caller's answered questions are counted and pruned apart from all others.
CREATE INDEX approvals_answered ON approvals (caller, state, expires);
-- Until when this file was compared with the journal. A restored older file carries an older time.
CREATE TABLE compared (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    at INTEGER NOT NULL
) STRICT;
