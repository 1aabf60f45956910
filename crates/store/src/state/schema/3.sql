-- What a tool was called when it was tested, so that it can be taken back without its document. Passes from before have none.
ALTER TABLE passes ADD COLUMN name TEXT;
