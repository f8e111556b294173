-- What few histories hold: answers, skills, context use, pairs, analyses (run records). Rows belong to an attempt or to a log, and go with it.

CREATE TABLE answers_m (
    attempt_no INTEGER NOT NULL, seq INTEGER NOT NULL, question TEXT NOT NULL, answer TEXT, passed INTEGER, judge TEXT,
    PRIMARY KEY (attempt_no, seq)
) WITHOUT ROWID;
CREATE TABLE skill_reads_m (
    attempt_no INTEGER NOT NULL, seq INTEGER NOT NULL, skill TEXT NOT NULL, file TEXT NOT NULL, reads INTEGER NOT NULL, first_turn INTEGER,
    PRIMARY KEY (attempt_no, seq)
) WITHOUT ROWID;
CREATE TABLE contexts_m (attempt_no INTEGER PRIMARY KEY, tokens_peak INTEGER NOT NULL, window_tokens INTEGER);
CREATE TABLE skill_files_m (
    log_no INTEGER NOT NULL, seq INTEGER NOT NULL, skill TEXT NOT NULL, file TEXT NOT NULL, bytes INTEGER NOT NULL, sha256 TEXT NOT NULL,
    PRIMARY KEY (log_no, seq)
) WITHOUT ROWID;
-- a_attempt_no, b_attempt_no: the attempts of this log that the pair names. picked: 0 a, 1 b, 2 tie.
CREATE TABLE pairs_m (
    log_no INTEGER NOT NULL, seq INTEGER NOT NULL, eval_no INTEGER NOT NULL, question TEXT NOT NULL,
    a_attempt_no INTEGER NOT NULL, b_attempt_no INTEGER NOT NULL, picked INTEGER NOT NULL, picked_swapped INTEGER, judge TEXT,
    PRIMARY KEY (log_no, seq)
) WITHOUT ROWID;
-- path: the file of a record that gave way to the run's own logs, whose analyses still are the run's; null for the log's own.
CREATE TABLE analyses_m (
    log_no INTEGER NOT NULL, source INTEGER NOT NULL, file TEXT NOT NULL, created_at INTEGER NOT NULL, doc TEXT NOT NULL, path TEXT,
    PRIMARY KEY (log_no, source, file)
) WITHOUT ROWID;

CREATE INDEX analyses_by_path ON analyses_m (path) WHERE path IS NOT NULL;

-- remarks: what could not be read of the file, a JSON list; null for nothing.
ALTER TABLE files ADD COLUMN remarks TEXT;
-- kind: recorded wins over scratch between copies. record: 1 for a record of a whole run, which gives way to the run's own logs.
ALTER TABLE files ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
ALTER TABLE logs_m ADD COLUMN record INTEGER NOT NULL DEFAULT 0;
CREATE INDEX logs_records ON logs_m (run_no) WHERE record = 1;
