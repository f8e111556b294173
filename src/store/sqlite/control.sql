-- The control file: organizations, their projects and keys. One for each server; the runs stand in a file for each project.
-- Promises: a project's file is named by an id that nobody can guess or make again, so that a file is never another project's, also where this
-- file is lost, made anew or restored from a backup. Of a key only the SHA-256 of its text is here.
-- A step that was released is never edited: add one.

CREATE TABLE organizations_m (
    organization_no INTEGER PRIMARY KEY AUTOINCREMENT,
    slug            TEXT NOT NULL UNIQUE,
    created_at      INTEGER NOT NULL,
    suspended_at    INTEGER
) STRICT;

CREATE TABLE projects_m (
    project_no      INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_no INTEGER NOT NULL REFERENCES organizations_m,
    slug            TEXT NOT NULL,
    id              TEXT NOT NULL UNIQUE,
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
