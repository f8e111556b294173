-- The control file: organizations, their projects and keys. One for each server; the runs stand in a file for each project.
-- Promises: numbers are never given twice, so a project's file is never another's. Of a key only the SHA-256 of its text is here.
-- A step that was released is never edited: add one.

CREATE TABLE organizations_m (
    organization_no INTEGER PRIMARY KEY AUTOINCREMENT,
    slug            TEXT NOT NULL UNIQUE,
    created_at      INTEGER NOT NULL
) STRICT;

CREATE TABLE projects_m (
    project_no      INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_no INTEGER NOT NULL REFERENCES organizations_m,
    slug            TEXT NOT NULL,
    public          INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    UNIQUE (organization_no, slug)
) STRICT;

CREATE TABLE keys_m (
    key_no          INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    organization_no INTEGER NOT NULL REFERENCES organizations_m,
    name            TEXT NOT NULL,
    digest          BLOB NOT NULL UNIQUE,
    role            TEXT NOT NULL,
    scopes          TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER,
    revoked_at      INTEGER,
    used_at         INTEGER
) STRICT;
