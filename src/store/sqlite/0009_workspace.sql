-- The workspace: what people and agents make in a project, the queue of runs, and the trail of who did what. None of it is open to `query`:
-- a run of the queue is seen there as the log that it also is, and of baselines only what an acceptance says.

-- An evaluation that was made here. One that only came with logs has a row once something was done to it. locked_by: null where it is open.
CREATE TABLE authored_m (
    eval_no INTEGER PRIMARY KEY, name TEXT, description TEXT, family TEXT, threshold REAL, status INTEGER NOT NULL,
    created_at INTEGER NOT NULL, created_by TEXT NOT NULL, locked_by TEXT, locked_at INTEGER, lock_reason TEXT
);
-- Cases are added and never changed, so "the cases that a run began with" is a number: the last one that there was.
CREATE TABLE authored_cases_m (
    authored_no INTEGER PRIMARY KEY, eval_no INTEGER NOT NULL, id TEXT NOT NULL, input TEXT NOT NULL, expected TEXT, metadata TEXT NOT NULL,
    created_at INTEGER NOT NULL, created_by TEXT NOT NULL, UNIQUE (eval_no, id)
);
CREATE INDEX authored_cases_by_eval ON authored_cases_m (eval_no, authored_no);

-- threshold, family: the evaluation's when the run was queued. last_case_no: the last of its cases then.
CREATE TABLE queue_m (
    queue_no INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, eval_no INTEGER NOT NULL, arm TEXT NOT NULL, environment TEXT NOT NULL,
    max_cost_usd REAL, cost_usd REAL, status INTEGER NOT NULL, created_by TEXT NOT NULL, created_at INTEGER NOT NULL,
    started_at INTEGER, ended_at INTEGER, worker TEXT, lease_until INTEGER, tries INTEGER NOT NULL, cancelling INTEGER NOT NULL,
    done INTEGER NOT NULL, total INTEGER NOT NULL, error TEXT, threshold REAL, family TEXT, last_case_no INTEGER NOT NULL
);
-- What has not ended: pending (0) and running (1).
CREATE INDEX queue_open ON queue_m (queue_no) WHERE status <= 1;
CREATE INDEX queue_by_time ON queue_m (created_at) WHERE max_cost_usd IS NOT NULL;

-- Only added to. The first trigger is for what would replace a row.
CREATE TABLE audit_m (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, role TEXT NOT NULL, tool TEXT NOT NULL, digest TEXT NOT NULL,
    outcome TEXT NOT NULL, detail TEXT NOT NULL, address TEXT, request_id TEXT NOT NULL
);
CREATE TRIGGER audit_replaced_m BEFORE INSERT ON audit_m WHEN EXISTS (SELECT 1 FROM audit_m WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'the trail is only added to'); END;
CREATE TRIGGER audit_changed_m BEFORE UPDATE ON audit_m BEGIN SELECT RAISE(ABORT, 'the trail is only added to'); END;
CREATE TRIGGER audit_deleted_m BEFORE DELETE ON audit_m BEGIN SELECT RAISE(ABORT, 'the trail is only added to'); END;

-- What calls with an idempotency key did, and the approvals that were used. Both go once they are too old to matter.
CREATE TABLE remembered_m (
    identity TEXT NOT NULL, tool TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, acted TEXT NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (identity, tool, key)
) WITHOUT ROWID;
CREATE INDEX remembered_by_time ON remembered_m (at);
CREATE TABLE approvals_m (handle TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX approvals_by_time ON approvals_m (expires_at);

-- Transcripts outside a run, until their day. bytes: of the lines, line feeds included. Chunks: as those of transcripts_m.
CREATE TABLE traces_m (
    trace_no INTEGER PRIMARY KEY, trace_id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, status TEXT, duration_ms INTEGER, metadata TEXT NOT NULL,
    created_at INTEGER NOT NULL, created_by TEXT NOT NULL, expires_at INTEGER NOT NULL, lines INTEGER NOT NULL, bytes INTEGER NOT NULL
);
CREATE INDEX traces_by_time ON traces_m (expires_at);
CREATE TABLE trace_chunks_m (
    trace_no INTEGER NOT NULL, first_line INTEGER NOT NULL, lines INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (trace_no, first_line)
);

-- health: what the last look came to, as JSON; null before the first.
CREATE TABLE connections_m (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL UNIQUE, config TEXT NOT NULL, enabled INTEGER NOT NULL,
    created_at INTEGER NOT NULL, created_by TEXT NOT NULL, asked_at INTEGER, health TEXT
);

-- Runs by their ids: the number of a run is another once it was grouped anew. Nothing wrote the table that this one takes the place of.
DROP VIEW baselines;
DROP TABLE baselines_m;
CREATE TABLE baselines_m (
    baseline_no INTEGER PRIMARY KEY, run_id TEXT NOT NULL, eval_no INTEGER, accepted_at INTEGER NOT NULL, accepted_by TEXT NOT NULL, note TEXT,
    replaces TEXT, superseded_at INTEGER
);
-- One reference for each evaluation, and one for the project.
CREATE UNIQUE INDEX baselines_now ON baselines_m (ifnull(eval_no, 0)) WHERE superseded_at IS NULL;
-- superseded_at: null for the reference of today.
CREATE VIEW baselines AS SELECT
    b.run_id, e.id AS evaluation,
    strftime(iif(b.accepted_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), b.accepted_at / 1000.0, 'unixepoch') AS accepted_at,
    b.accepted_by, b.note, b.replaces,
    strftime(iif(b.superseded_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), b.superseded_at / 1000.0, 'unixepoch') AS superseded_at
FROM baselines_m b JOIN runs_m r ON r.run_id = b.run_id LEFT JOIN evaluations_m e ON e.eval_no = b.eval_no;
