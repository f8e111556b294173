-- How an evaluation was measured in a run (dataset, scorer, judge, sampling), so that what was measured in another way than the newest run's is
-- not added up with it. apart: 1 where it was.
CREATE TABLE measures_m (measure_no INTEGER PRIMARY KEY, measure TEXT NOT NULL UNIQUE);
ALTER TABLE parts_m ADD COLUMN measure_no INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parts_m ADD COLUMN apart INTEGER NOT NULL DEFAULT 0;
CREATE INDEX parts_apart ON parts_m (eval_no) WHERE apart = 1;
-- measure_no: the newest run's, which decides what the sums are of; 0 before it was known.
ALTER TABLE sums_m ADD COLUMN measure_no INTEGER NOT NULL DEFAULT 0;
INSERT OR IGNORE INTO stale_m (eval_no, run_no) SELECT eval_no, run_no FROM run_evaluations_m;

-- runs_apart: runs that the views across runs leave out, since they were measured in another way than the newest one that counts.
DROP VIEW evaluations;
CREATE VIEW evaluations AS SELECT
    e.id AS evaluation, e.eval_no AS number,
    json_extract(m.info, '$.family') AS family, json_extract(m.info, '$.threshold') AS threshold, json_extract(m.info, '$.version') AS version,
    json_extract(m.info, '$.dataset') AS dataset, json_extract(m.info, '$.dataset_cases') AS dataset_cases,
    json_extract(m.info, '$.dataset_digest') AS dataset_digest, json_extract(m.info, '$.scorer_digest') AS scorer_digest,
    (SELECT count(*) FROM run_evaluations_m o WHERE o.eval_no = e.eval_no) AS runs,
    (SELECT count(*) FROM parts_m p WHERE p.eval_no = e.eval_no AND p.apart = 1) AS runs_apart
FROM evaluations_m e JOIN run_evaluations_m m ON m.eval_no = e.eval_no AND m.run_no = (
    SELECT o.run_no FROM run_evaluations_m o JOIN runs_m r ON r.run_no = o.run_no WHERE o.eval_no = e.eval_no
    ORDER BY r.created_at DESC, r.run_id DESC LIMIT 1);
