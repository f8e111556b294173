-- The runs that hold an evaluation, by time and by the word of their status: a page of either order is one seek into an index. created_at,
-- status and number repeat the run's own.
ALTER TABLE run_evaluations_m ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_evaluations_m ADD COLUMN status TEXT NOT NULL DEFAULT '';
ALTER TABLE run_evaluations_m ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
UPDATE run_evaluations_m SET (created_at, status, number) = (
    SELECT r.created_at,
        CASE r.status WHEN 0 THEN 'pending' WHEN 1 THEN 'running' WHEN 2 THEN 'waiting' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' ELSE 'cancelled' END,
        ifnull(r.number, 0)
    FROM runs_m r WHERE r.run_no = run_evaluations_m.run_no);
CREATE INDEX run_evaluations_by_time ON run_evaluations_m (eval_no, created_at, number);
CREATE INDEX run_evaluations_by_status ON run_evaluations_m (eval_no, status, created_at, number);

-- What words that leave the program and come back are bound with. Made here, in the one transaction that makes the table current: no two
-- processes make two, and no project has another's.
INSERT INTO meta (name, value) VALUES ('cursor_key', randomblob(32));
