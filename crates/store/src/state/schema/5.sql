-- Until when this file was compared with the journal. A restored older file carries an older time.
CREATE TABLE compared (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    at INTEGER NOT NULL
) STRICT;
