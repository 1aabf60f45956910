-- What a question is about, as people may see it. Questions from before have none.
ALTER TABLE approvals ADD COLUMN arguments TEXT;
