-- The settings in force when a tool was last published, as JSON. A later publication is compared with them.
CREATE TABLE publications (
    tool_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    settings TEXT NOT NULL
) STRICT;
CREATE INDEX publications_of_name ON publications (name);
