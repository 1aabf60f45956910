-- Codes of findings that an operator accepted for the published document, separated by spaces.
ALTER TABLE passes ADD COLUMN accepted TEXT NOT NULL DEFAULT '';
