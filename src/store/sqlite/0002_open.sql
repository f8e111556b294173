-- The objects open to `query` (DESIGN.md section 6), with the key columns of decision 64. Text ids only; no helper number is shown but
-- `number`. Replaced attempts and copies of logs never appear.

CREATE VIEW runs AS SELECT
    r.run_id, r.number, CASE r.kind WHEN 0 THEN 'recorded' ELSE 'scratch' END AS kind,
    CASE r.status WHEN 0 THEN 'pending' WHEN 1 THEN 'running' WHEN 2 THEN 'waiting' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' ELSE 'cancelled' END
        AS status,
    strftime(iif(r.created_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), r.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime(iif(r.started_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), r.started_at / 1000.0, 'unixepoch') AS started_at,
    strftime(iif(r.completed_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), r.completed_at / 1000.0, 'unixepoch') AS completed_at,
    r.completed_at - r.started_at AS duration_ms,
    r.sha AS git_sha, r.branch AS git_branch, r.dirty AS git_dirty, r.round,
    r.passed, r.failed, r.infra, r.unscored, r.missing, r.passed + r.failed AS n,
    CAST(r.passed AS REAL) / nullif(r.passed + r.failed, 0) AS rate
FROM runs_m r;

CREATE VIEW evaluations AS SELECT
    e.id AS evaluation, e.eval_no AS number,
    json_extract(m.info, '$.family') AS family, json_extract(m.info, '$.threshold') AS threshold, json_extract(m.info, '$.version') AS version,
    json_extract(m.info, '$.dataset') AS dataset, json_extract(m.info, '$.dataset_cases') AS dataset_cases,
    json_extract(m.info, '$.dataset_digest') AS dataset_digest, json_extract(m.info, '$.scorer_digest') AS scorer_digest,
    (SELECT count(*) FROM run_evaluations_m o WHERE o.eval_no = e.eval_no) AS runs
FROM evaluations_m e JOIN run_evaluations_m m ON m.eval_no = e.eval_no AND m.run_no = (
    SELECT o.run_no FROM run_evaluations_m o JOIN runs_m r ON r.run_no = o.run_no WHERE o.eval_no = e.eval_no
    ORDER BY r.created_at DESC, r.run_id DESC LIMIT 1);

CREATE VIEW cases AS SELECT e.id AS evaluation, c.id AS case_id, c.input, c.target
FROM cases_m c JOIN evaluations_m e ON e.eval_no = c.eval_no
WHERE EXISTS (SELECT 1 FROM run_evaluations_m r JOIN case_cells_m k ON k.run_no = r.run_no AND k.eval_no = r.eval_no AND k.case_no = c.case_no
              WHERE r.eval_no = c.eval_no);

CREATE VIEW arms AS SELECT
    a.name AS arm, m.role, (SELECT count(*) FROM run_arms_m o WHERE o.arm_no = a.arm_no) AS runs
FROM arms_m a JOIN run_arms_m m ON m.arm_no = a.arm_no AND m.run_no = (
    SELECT o.run_no FROM run_arms_m o JOIN runs_m r ON r.run_no = o.run_no WHERE o.arm_no = a.arm_no
    ORDER BY r.created_at DESC, r.run_id DESC LIMIT 1);

CREATE VIEW arm_factors AS SELECT r.run_id, a.name AS arm, f.key AS factor, f.value AS level
FROM run_arms_m m JOIN runs_m r ON r.run_no = m.run_no JOIN arms_m a ON a.arm_no = m.arm_no, json_each(m.factors) f;

CREATE VIEW attempts AS SELECT
    r.run_id, a.key AS attempt, e.id AS evaluation, c.id AS case_id, m.name AS arm, a.n,
    CASE a.outcome WHEN 0 THEN 'pass' WHEN 1 THEN 'fail' WHEN 2 THEN 'infra_error' WHEN 3 THEN 'unscored' ELSE 'cancelled' END AS outcome,
    a.score, a.epoch, a.input_tokens, a.output_tokens, a.total_tokens, a.cache_read_tokens, a.cache_write_tokens, a.reasoning_tokens,
    a.cost_usd, a.duration_ms, a.working_ms, strftime(iif(a.started_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), a.started_at / 1000.0, 'unixepoch') AS started_at,
    a.retries, a.limit_hit AS "limit", s.signature, a.lines AS transcript_lines, a.error,
    (SELECT o.output FROM outputs_m o WHERE o.attempt_no = a.attempt_no) AS output
FROM attempts_m a JOIN runs_m r ON r.run_no = a.run_no JOIN evaluations_m e ON e.eval_no = a.eval_no JOIN cases_m c ON c.case_no = a.case_no
    JOIN arms_m m ON m.arm_no = a.arm_no LEFT JOIN signatures_m s ON s.signature_no = a.signature_no
WHERE a.n IS NOT NULL;

CREATE VIEW checks AS SELECT
    r.run_id, a.key AS attempt, e.id AS evaluation, c.id AS case_id, m.name AS arm, k.seq, k.name AS check_name, k.kind, k.passed, k.value, k.label,
    k.answer, k.reason
FROM attempts_m a JOIN checks_m k ON k.attempt_no = a.attempt_no JOIN runs_m r ON r.run_no = a.run_no
    JOIN evaluations_m e ON e.eval_no = a.eval_no JOIN cases_m c ON c.case_no = a.case_no JOIN arms_m m ON m.arm_no = a.arm_no
WHERE a.n IS NOT NULL;

CREATE VIEW cells AS SELECT
    c.run_id, e.id AS evaluation, m.name AS arm,
    CASE c.verdict WHEN 0 THEN 'pass' WHEN 1 THEN 'fail' WHEN 2 THEN 'mixed' WHEN 3 THEN 'infra_error' ELSE 'unscored' END AS verdict,
    c.passed, c.failed, c.infra, c.unscored, c.missing, c.passed + c.failed AS n, CAST(c.passed AS REAL) / nullif(c.passed + c.failed, 0) AS rate,
    c.threshold, strftime(iif(c.created_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), c.created_at / 1000.0, 'unixepoch') AS created_at
FROM cells_m c JOIN evaluations_m e ON e.eval_no = c.eval_no JOIN arms_m m ON m.arm_no = c.arm_no;

CREATE VIEW rounds AS SELECT
    round, count(*) AS runs, strftime(iif(min(created_at) % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), min(created_at) / 1000.0, 'unixepoch') AS created_at,
    sum(passed) AS passed, sum(failed) AS failed, sum(infra) AS infra, sum(unscored) AS unscored, sum(missing) AS missing
FROM runs_m WHERE round IS NOT NULL GROUP BY round;

-- Nothing accepts a baseline yet; the columns are the contract.
CREATE TABLE baselines_m (
    run_no INTEGER NOT NULL, eval_no INTEGER, accepted_at INTEGER NOT NULL, accepted_by TEXT, note TEXT, replaces_run_no INTEGER
);
CREATE VIEW baselines AS SELECT
    r.run_id, e.id AS evaluation, strftime(iif(b.accepted_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), b.accepted_at / 1000.0, 'unixepoch') AS accepted_at, b.accepted_by, b.note,
    (SELECT o.run_id FROM runs_m o WHERE o.run_no = b.replaces_run_no) AS replaces
FROM baselines_m b JOIN runs_m r ON r.run_no = b.run_no LEFT JOIN evaluations_m e ON e.eval_no = b.eval_no;

-- Declared in runlore.toml; read where they are declared, so that they cannot differ.
CREATE VIEW goals AS SELECT
    json_extract(g.value, '$.id') AS goal, json_extract(g.value, '$.arm') AS arm, json_extract(g.value, '$.versus') AS versus,
    json_extract(g.value, '$.metric') AS metric, json_extract(g.value, '$.margin') AS margin, json_extract(g.value, '$.evaluations') AS evaluations
FROM meta, json_each(meta.value, '$.goal') g WHERE meta.name = 'declared';
CREATE VIEW reference_scores AS SELECT
    json_extract(s.value, '$.evaluation') AS evaluation, json_extract(s.value, '$.metric') AS metric, json_extract(s.value, '$.value') AS value,
    json_extract(s.value, '$.kind') AS kind, json_extract(s.value, '$.source') AS source, json_extract(s.value, '$.n') AS n
FROM meta, json_each(meta.value, '$.reference') s WHERE meta.name = 'declared';
