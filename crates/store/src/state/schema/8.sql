-- Whether the operator published a document that says `draft: true`. Earlier versions kept this as the code `draft` in `accepted`.
ALTER TABLE passes ADD COLUMN accepts_draft INTEGER NOT NULL DEFAULT 0 CHECK (accepts_draft IN (0, 1));
UPDATE passes SET accepts_draft = 1, accepted = trim(replace(' ' || accepted || ' ', ' draft ', ' '))
WHERE ' ' || accepted || ' ' LIKE '% draft %';
