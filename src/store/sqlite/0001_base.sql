-- Helper tables: integer keys, no rule of their own. Rules stand in Rust; the one writing function keeps rows together (no foreign keys: they
-- would cost a seek per row and could not say more than the contract suite does). Words are stored as their place in the type's ALL list.

CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('generation', 0), ('last_run', 0), ('declared', '{}');

-- state: 0 a log that counts, 1 a copy of one, 2 no log, 3 a broken log. detail: log id, path of the file that counts, or the reason.
-- log_id, status, attempts, completed_at: what decides between copies, for states 0 and 1.
CREATE TABLE files (
    path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, digest TEXT NOT NULL, source TEXT,
    state INTEGER NOT NULL, detail TEXT NOT NULL,
    log_id TEXT, status INTEGER, attempts INTEGER, completed_at INTEGER
) WITHOUT ROWID;
CREATE INDEX files_by_source ON files (source, path);
CREATE INDEX files_by_log ON files (log_id) WHERE log_id IS NOT NULL;

-- number: given when the change that made the run is whole; never reused.
CREATE TABLE runs_m (
    run_no INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, number INTEGER, kind INTEGER NOT NULL, status INTEGER NOT NULL,
    created_at INTEGER NOT NULL, started_at INTEGER, completed_at INTEGER,
    git INTEGER NOT NULL, sha TEXT, sha_key TEXT, branch TEXT, dirty INTEGER, round TEXT, ancestors_no INTEGER,
    arms INTEGER NOT NULL,
    passed INTEGER NOT NULL, failed INTEGER NOT NULL, infra INTEGER NOT NULL, unscored INTEGER NOT NULL, missing INTEGER NOT NULL
);
CREATE INDEX runs_by_time ON runs_m (created_at DESC, run_id DESC);
CREATE INDEX runs_new ON runs_m (run_id) WHERE number IS NULL;
CREATE INDEX runs_by_sha ON runs_m (sha_key) WHERE sha_key IS NOT NULL;

-- Every log of one commit brings the same list, so lists are kept once.
CREATE TABLE ancestors_m (ancestors_no INTEGER PRIMARY KEY, shas TEXT NOT NULL UNIQUE);

CREATE TABLE logs_m (
    log_no INTEGER PRIMARY KEY, log_id TEXT NOT NULL, path TEXT NOT NULL, run_no INTEGER NOT NULL, run_key TEXT NOT NULL,
    pinned INTEGER NOT NULL, task_id TEXT, kind INTEGER NOT NULL, status INTEGER NOT NULL,
    created_at INTEGER NOT NULL, started_at INTEGER, completed_at INTEGER, git TEXT, round TEXT, ancestors_no INTEGER,
    header TEXT NOT NULL
);
CREATE INDEX logs_by_id ON logs_m (log_id);
CREATE INDEX logs_by_task ON logs_m (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX logs_by_run ON logs_m (run_no, created_at, log_id);

-- A number is given once and kept for ever, whatever becomes of the runs.
CREATE TABLE evaluations_m (eval_no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
-- effective_no: the arm that the declared name of this one is; itself where none is declared.
CREATE TABLE arms_m (arm_no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, effective_no INTEGER);
-- text_at, text_log: the age of the log that the texts are of; the newest log's stand.
CREATE TABLE cases_m (
    case_no INTEGER PRIMARY KEY, eval_no INTEGER NOT NULL, id TEXT NOT NULL, input TEXT, target TEXT, text_at INTEGER, text_log TEXT,
    UNIQUE (eval_no, id)
);

CREATE TABLE log_evaluations_m (log_no INTEGER NOT NULL, eval_no INTEGER NOT NULL, info TEXT NOT NULL, PRIMARY KEY (log_no, eval_no)) WITHOUT ROWID;
CREATE INDEX log_evaluations_by_eval ON log_evaluations_m (eval_no, log_no);
CREATE TABLE log_arms_m (log_no INTEGER NOT NULL, arm_no INTEGER NOT NULL, info TEXT NOT NULL, PRIMARY KEY (log_no, arm_no)) WITHOUT ROWID;
CREATE INDEX log_arms_by_arm ON log_arms_m (arm_no, log_no);

-- What a run has of an evaluation or arm: its newest log's word, with what is declared in place.
CREATE TABLE run_evaluations_m (
    run_no INTEGER NOT NULL, eval_no INTEGER NOT NULL, info TEXT NOT NULL, PRIMARY KEY (run_no, eval_no)
) WITHOUT ROWID;
CREATE INDEX run_evaluations_by_eval ON run_evaluations_m (eval_no, run_no);
CREATE TABLE run_arms_m (
    run_no INTEGER NOT NULL, arm_no INTEGER NOT NULL, role TEXT, factors TEXT NOT NULL, PRIMARY KEY (run_no, arm_no)
) WITHOUT ROWID;

CREATE TABLE signatures_m (
    signature_no INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, eval_no INTEGER NOT NULL, check_name TEXT, reason TEXT NOT NULL
);

-- raw_arm_no: as the log has it. arm_no: as declared. n and key: null where a newer log of the task has replaced the attempt.
CREATE TABLE attempts_m (
    attempt_no INTEGER PRIMARY KEY, log_no INTEGER NOT NULL, run_no INTEGER NOT NULL, eval_no INTEGER NOT NULL, case_no INTEGER NOT NULL,
    arm_no INTEGER NOT NULL, raw_arm_no INTEGER NOT NULL, n INTEGER, outcome INTEGER NOT NULL, key TEXT, epoch INTEGER NOT NULL, uuid TEXT,
    score REAL, input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER,
    reasoning_tokens INTEGER, cost_usd REAL, duration_ms INTEGER, working_ms INTEGER, started_at INTEGER,
    error TEXT, limit_hit TEXT, retries INTEGER NOT NULL, signature_no INTEGER, lines INTEGER NOT NULL, messages INTEGER NOT NULL
);
CREATE INDEX attempts_by_cell ON attempts_m (run_no, eval_no, case_no, arm_no, n, outcome);
CREATE INDEX attempts_by_log ON attempts_m (log_no);
CREATE INDEX attempts_by_key ON attempts_m (run_no, key) WHERE key IS NOT NULL;
CREATE INDEX attempts_by_signature ON attempts_m (run_no, signature_no) WHERE signature_no IS NOT NULL AND n IS NOT NULL;

CREATE TABLE outputs_m (attempt_no INTEGER PRIMARY KEY, output TEXT NOT NULL);
CREATE TABLE checks_m (
    attempt_no INTEGER NOT NULL, seq INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, passed INTEGER, value REAL,
    label TEXT, answer TEXT, reason TEXT, PRIMARY KEY (attempt_no, seq)
) WITHOUT ROWID;
CREATE TABLE transcripts_m (
    chunk_no INTEGER PRIMARY KEY, attempt_no INTEGER NOT NULL, first_line INTEGER NOT NULL, lines INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE INDEX transcripts_by_attempt ON transcripts_m (attempt_no, first_line);

-- Cells at the two grains, alike but for case_no (0 at evaluation grain). flags: 1 several cases, 2 the threshold was
-- declared; a case has no threshold.
-- recorded, created_at and run_id are the run's, so that a series is one index: verdict first, so that "the last pass before" is one seek.
CREATE TABLE cells_m (
    run_no INTEGER NOT NULL, eval_no INTEGER NOT NULL, case_no INTEGER NOT NULL, arm_no INTEGER NOT NULL,
    passed INTEGER NOT NULL, failed INTEGER NOT NULL, infra INTEGER NOT NULL, unscored INTEGER NOT NULL, missing INTEGER NOT NULL,
    threshold REAL, flags INTEGER NOT NULL, verdict INTEGER NOT NULL,
    recorded INTEGER NOT NULL, created_at INTEGER NOT NULL, run_id TEXT NOT NULL, PRIMARY KEY (run_no, eval_no, case_no, arm_no)
) WITHOUT ROWID;
CREATE INDEX cells_series ON cells_m (eval_no, case_no, arm_no, verdict, created_at, run_id) WHERE recorded = 1;
-- The runs that counted an evaluation, by time, whatever the arm and verdict (the first three).
CREATE INDEX cells_counted ON cells_m (eval_no, created_at, run_id, arm_no) WHERE recorded = 1 AND verdict <= 2;
CREATE TABLE case_cells_m (
    run_no INTEGER NOT NULL, eval_no INTEGER NOT NULL, case_no INTEGER NOT NULL, arm_no INTEGER NOT NULL,
    passed INTEGER NOT NULL, failed INTEGER NOT NULL, infra INTEGER NOT NULL, unscored INTEGER NOT NULL, missing INTEGER NOT NULL,
    threshold REAL, flags INTEGER NOT NULL, verdict INTEGER NOT NULL,
    recorded INTEGER NOT NULL, created_at INTEGER NOT NULL, run_id TEXT NOT NULL, PRIMARY KEY (run_no, eval_no, case_no, arm_no)
) WITHOUT ROWID;
CREATE INDEX case_cells_series ON case_cells_m (eval_no, case_no, arm_no, verdict, created_at, run_id) WHERE recorded = 1;
