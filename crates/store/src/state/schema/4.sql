-- Whether somebody took the tool back, so that a failed test run can be told from that. Of what was not published before,
-- nobody knows; it does not come back by itself.
ALTER TABLE passes ADD COLUMN withdrawn INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn IN (0, 1));
UPDATE passes SET withdrawn = 1 WHERE published = 0;
