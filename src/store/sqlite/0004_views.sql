-- The 18 views that answer a question by themselves (DESIGN.md section 6), and the helper tables that their statistics stand in. Those are worked
-- out in Rust (`refresh`); views select, join and count. What every row of them means is said in src/tools/query/views.rs.

-- What changed since the helper tables were last worked out: evaluation 0 stands for the run's arms.
CREATE TABLE stale_m (eval_no INTEGER NOT NULL, run_no INTEGER NOT NULL, PRIMARY KEY (eval_no, run_no)) WITHOUT ROWID;
INSERT INTO stale_m (eval_no, run_no) SELECT eval_no, run_no FROM run_evaluations_m UNION SELECT 0, run_no FROM runs_m;

-- Numbers for what parts and sums are keyed by; given once and kept.
CREATE TABLE variants_m (variant_no INTEGER PRIMARY KEY, arm_no INTEGER NOT NULL, factors TEXT NOT NULL, UNIQUE (arm_no, factors));
CREATE TABLE check_names_m (check_no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

-- parts_m: what a recorded, completed run adds to its evaluation's sums. sums_m: those sums. data: whole numbers, packed (`refresh::sums`).
CREATE TABLE parts_m (eval_no INTEGER NOT NULL, run_no INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run_no, eval_no)) WITHOUT ROWID;
CREATE TABLE sums_m (eval_no INTEGER PRIMARY KEY, family TEXT, data BLOB NOT NULL);

-- Each pair of arms stands in both directions; forward: 1 where arm_a's name comes first.
CREATE TABLE contrasts_m (
    eval_no INTEGER NOT NULL, arm_a INTEGER NOT NULL, arm_b INTEGER NOT NULL, forward INTEGER NOT NULL, rate_a REAL NOT NULL, rate_b REAL NOT NULL,
    n_a INTEGER NOT NULL, n_b INTEGER NOT NULL, difference REAL, ci_low REAL, ci_high REAL, p_value REAL, n_pairs INTEGER NOT NULL,
    PRIMARY KEY (eval_no, arm_a, arm_b)
) WITHOUT ROWID;
CREATE TABLE arm_roles_m (arm_no INTEGER PRIMARY KEY, role TEXT NOT NULL);
CREATE TABLE family_lift_m (
    family TEXT NOT NULL, treatment_no INTEGER NOT NULL, control_no INTEGER NOT NULL, lift REAL NOT NULL, se REAL, ci_low REAL, ci_high REAL,
    n_evaluations INTEGER NOT NULL, PRIMARY KEY (family, treatment_no, control_no)
) WITHOUT ROWID;
CREATE TABLE effort_m (
    eval_no INTEGER NOT NULL, seq INTEGER NOT NULL, harness TEXT, model TEXT, effort TEXT, n INTEGER NOT NULL, rate REAL NOT NULL, ci_low REAL,
    ci_high REAL, cost_usd_mean REAL, tokens_in_mean REAL, tokens_out_mean REAL, turns_mean REAL, duration_ms_p50 INTEGER,
    duration_ms_p90 INTEGER, PRIMARY KEY (eval_no, seq)
) WITHOUT ROWID;
CREATE TABLE levels_m (
    eval_no INTEGER NOT NULL, factor TEXT NOT NULL, level TEXT NOT NULL, passed INTEGER NOT NULL, counted INTEGER NOT NULL, difference REAL,
    PRIMARY KEY (eval_no, factor, level)
) WITHOUT ROWID;
CREATE TABLE factor_effects_m (
    factor TEXT NOT NULL, level TEXT NOT NULL, n INTEGER NOT NULL, rate REAL NOT NULL, effect REAL, ci_low REAL, ci_high REAL,
    n_evaluations INTEGER NOT NULL, PRIMARY KEY (factor, level)
) WITHOUT ROWID;
CREATE TABLE flaky_m (
    run_no INTEGER NOT NULL, eval_no INTEGER NOT NULL, arm_no INTEGER NOT NULL, flip_rate REAL NOT NULL, PRIMARY KEY (run_no, eval_no, arm_no)
) WITHOUT ROWID;
CREATE TABLE drift_m (
    eval_no INTEGER NOT NULL, arm_no INTEGER NOT NULL, runs INTEGER NOT NULL, earlier_rate REAL NOT NULL, recent_rate REAL NOT NULL, change REAL,
    p_value REAL, n_earlier INTEGER NOT NULL, n_recent INTEGER NOT NULL, PRIMARY KEY (eval_no, arm_no)
) WITHOUT ROWID;
CREATE TABLE check_rates_m (
    eval_no INTEGER NOT NULL, check_no INTEGER NOT NULL, n INTEGER NOT NULL, passed INTEGER NOT NULL, rate REAL NOT NULL, ci_low REAL, ci_high REAL,
    rest_n INTEGER NOT NULL, rest_rate REAL, item_rest_correlation REAL, PRIMARY KEY (eval_no, check_no)
) WITHOUT ROWID;
-- last_run_no: the newest run of the streak, so that a newer one can be added without counting again.
CREATE TABLE check_streaks_m (
    eval_no INTEGER NOT NULL, arm_no INTEGER NOT NULL, check_no INTEGER NOT NULL, passing INTEGER NOT NULL, streak INTEGER NOT NULL,
    since_run_no INTEGER NOT NULL, last_run_no INTEGER NOT NULL, PRIMARY KEY (eval_no, arm_no, check_no)
) WITHOUT ROWID;

-- A series by time, whatever the verdict: all that a trend and a flip need. CROSS JOIN in views fixes the order that answers stand in, so that
-- what is not shown is not worked out.
CREATE INDEX cells_by_time ON cells_m (eval_no, arm_no, created_at, run_id, verdict, passed, failed, infra, unscored, missing)
    WHERE recorded = 1;

CREATE VIEW lift AS SELECT
    e.id AS evaluation, a.name AS treatment_arm, b.name AS control_arm, k.rate_a AS treatment_rate, k.rate_b AS control_rate, k.difference AS lift,
    k.ci_low, k.ci_high, k.n_a AS n_treatment, k.n_b AS n_control, k.n_pairs
FROM contrasts_m k JOIN arm_roles_m ra ON ra.arm_no = k.arm_a AND ra.role = 'variant' JOIN arm_roles_m rb ON rb.arm_no = k.arm_b AND rb.role = 'control'
    JOIN evaluations_m e ON e.eval_no = k.eval_no JOIN arms_m a ON a.arm_no = k.arm_a JOIN arms_m b ON b.arm_no = k.arm_b;

CREATE VIEW family_lift AS SELECT
    f.family, a.name AS treatment_arm, b.name AS control_arm, f.lift, f.se, f.ci_low, f.ci_high, f.n_evaluations
FROM family_lift_m f JOIN arms_m a ON a.arm_no = f.treatment_no JOIN arms_m b ON b.arm_no = f.control_no;

CREATE VIEW effort AS SELECT
    e.id AS evaluation, f.harness, f.model, f.effort, f.n, f.rate, f.ci_low, f.ci_high, f.cost_usd_mean, f.tokens_in_mean, f.tokens_out_mean,
    f.turns_mean, f.duration_ms_p50, f.duration_ms_p90
FROM effort_m f JOIN evaluations_m e ON e.eval_no = f.eval_no;

CREATE VIEW contrasts AS SELECT
    e.id AS evaluation, a.name AS arm_a, b.name AS arm_b, k.rate_a, k.rate_b, k.difference, k.ci_low, k.ci_high, k.p_value, k.n_pairs, k.n_a, k.n_b
FROM contrasts_m k JOIN evaluations_m e ON e.eval_no = k.eval_no JOIN arms_m a ON a.arm_no = k.arm_a JOIN arms_m b ON b.arm_no = k.arm_b
WHERE k.forward = 1;

-- The factor: the one in which the two arms differ; null where they differ in none or several.
CREATE VIEW question_pairs AS SELECT
    r.run_id, e.id AS evaluation, p.question,
    (SELECT CASE count(DISTINCT d.key) WHEN 1 THEN min(d.key) END FROM (
        SELECT * FROM (SELECT key, value FROM json_each(ma.factors) EXCEPT SELECT key, value FROM json_each(mb.factors))
        UNION ALL
        SELECT * FROM (SELECT key, value FROM json_each(mb.factors) EXCEPT SELECT key, value FROM json_each(ma.factors))) d) AS factor,
    a.key AS attempt_a, b.key AS attempt_b, CASE p.picked WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'tie' END AS picked,
    p.picked = p.picked_swapped AS consistent, p.judge
FROM pairs_m p JOIN logs_m l ON l.log_no = p.log_no JOIN runs_m r ON r.run_no = l.run_no JOIN evaluations_m e ON e.eval_no = p.eval_no
    JOIN attempts_m a ON a.attempt_no = p.a_attempt_no JOIN attempts_m b ON b.attempt_no = p.b_attempt_no
    LEFT JOIN run_arms_m ma ON ma.run_no = r.run_no AND ma.arm_no = a.arm_no LEFT JOIN run_arms_m mb ON mb.run_no = r.run_no AND mb.arm_no = b.arm_no
WHERE a.key IS NOT NULL AND b.key IS NOT NULL;

CREATE VIEW attempt_answers AS SELECT r.run_id, a.key AS attempt, w.question, w.answer, w.passed, w.judge
FROM answers_m w JOIN attempts_m a ON a.attempt_no = w.attempt_no JOIN runs_m r ON r.run_no = a.run_no
WHERE a.key IS NOT NULL;

CREATE VIEW factor_effects AS SELECT factor, level, n, rate, effect, ci_low, ci_high, n_evaluations FROM factor_effects_m;

CREATE VIEW skill_reads AS SELECT r.run_id, a.key AS attempt, s.skill, s.file, s.reads, s.first_turn
FROM skill_reads_m s JOIN attempts_m a ON a.attempt_no = s.attempt_no JOIN runs_m r ON r.run_no = a.run_no
WHERE a.key IS NOT NULL;

CREATE VIEW context_use AS SELECT
    r.run_id, a.key AS attempt, x.tokens_peak, x.window_tokens, CAST(x.tokens_peak AS REAL) / nullif(x.window_tokens, 0) AS share
FROM contexts_m x JOIN attempts_m a ON a.attempt_no = x.attempt_no JOIN runs_m r ON r.run_no = a.run_no
WHERE a.key IS NOT NULL;

-- Where several logs of a run have the file, the newest one's word stands.
CREATE VIEW skill_files AS SELECT r.run_id, s.skill, s.file, s.bytes, s.sha256
FROM skill_files_m s JOIN logs_m l ON l.log_no = s.log_no JOIN runs_m r ON r.run_no = l.run_no
WHERE NOT EXISTS (SELECT 1 FROM logs_m o JOIN skill_files_m t ON t.log_no = o.log_no WHERE o.run_no = l.run_no AND t.skill = s.skill AND t.file = s.file
                  AND (o.created_at, o.log_id, t.seq) > (l.created_at, l.log_id, s.seq));

CREATE VIEW flaky_cells AS SELECT
    c.run_id, e.id AS evaluation, m.name AS arm, c.passed, c.passed + c.failed AS counted, CAST(c.passed AS REAL) / nullif(c.passed + c.failed, 0) AS rate,
    f.flip_rate, c.passed + c.failed AS n, c.infra, c.unscored, c.missing
FROM flaky_m f CROSS JOIN cells_m c ON c.run_no = f.run_no AND c.eval_no = f.eval_no AND c.case_no = 0 AND c.arm_no = f.arm_no
    JOIN evaluations_m e ON e.eval_no = f.eval_no JOIN arms_m m ON m.arm_no = f.arm_no;

CREATE VIEW drift AS SELECT
    e.id AS evaluation, m.name AS arm, d.runs, d.earlier_rate, d.recent_rate, d.change, d.p_value, d.n_earlier, d.n_recent
FROM drift_m d JOIN evaluations_m e ON e.eval_no = d.eval_no JOIN arms_m m ON m.arm_no = d.arm_no;

-- The case's history as `failures` tells it. w.bad_*: the first failing cell since the last passing one, before this run.
CREATE VIEW failing_attempts AS SELECT
    r.run_id, a.key AS attempt, e.id AS evaluation, c.id AS case_id, m.name AS arm,
    CASE a.outcome WHEN 1 THEN 'fail' ELSE 'infra_error' END AS outcome,
    (SELECT k.name FROM checks_m k WHERE k.attempt_no = a.attempt_no AND k.passed = 0 ORDER BY k.seq LIMIT 1) AS first_failed_check,
    coalesce((SELECT k.reason FROM checks_m k WHERE k.attempt_no = a.attempt_no AND k.passed = 0 ORDER BY k.seq LIMIT 1), a.error) AS reason,
    coalesce((SELECT x.run_id FROM (
        SELECT * FROM (SELECT b.created_at, b.run_id FROM case_cells_m b WHERE b.recorded = 1 AND b.eval_no = a.eval_no AND b.case_no = a.case_no
            AND b.arm_no = a.arm_no AND b.verdict = 1 AND (b.created_at, b.run_id) < (r.created_at, r.run_id) AND (b.created_at, b.run_id) > (
                SELECT z.created_at, z.run_id FROM (SELECT * FROM (SELECT p.created_at, p.run_id FROM case_cells_m p WHERE p.recorded = 1
                    AND p.eval_no = a.eval_no AND p.case_no = a.case_no AND p.arm_no = a.arm_no AND p.verdict = 0
                    AND (p.created_at, p.run_id) < (r.created_at, r.run_id) ORDER BY p.created_at DESC, p.run_id DESC LIMIT 1)
                    UNION ALL SELECT -9223372036854775808, '') z LIMIT 1)
            ORDER BY b.created_at, b.run_id LIMIT 1)
        UNION ALL
        SELECT * FROM (SELECT b.created_at, b.run_id FROM case_cells_m b WHERE b.recorded = 1 AND b.eval_no = a.eval_no AND b.case_no = a.case_no
            AND b.arm_no = a.arm_no AND b.verdict = 2 AND (b.created_at, b.run_id) < (r.created_at, r.run_id) AND (b.created_at, b.run_id) > (
                SELECT z.created_at, z.run_id FROM (SELECT * FROM (SELECT p.created_at, p.run_id FROM case_cells_m p WHERE p.recorded = 1
                    AND p.eval_no = a.eval_no AND p.case_no = a.case_no AND p.arm_no = a.arm_no AND p.verdict = 0
                    AND (p.created_at, p.run_id) < (r.created_at, r.run_id) ORDER BY p.created_at DESC, p.run_id DESC LIMIT 1)
                    UNION ALL SELECT -9223372036854775808, '') z LIMIT 1)
            ORDER BY b.created_at, b.run_id LIMIT 1)
        ORDER BY 1, 2) x LIMIT 1), r.run_id) AS failing_since,
    coalesce((SELECT x.verdict = 0 FROM (
        SELECT * FROM (SELECT b.created_at, b.run_id, b.verdict FROM case_cells_m b WHERE b.recorded = 1 AND b.eval_no = a.eval_no
            AND b.case_no = a.case_no AND b.arm_no = a.arm_no AND b.verdict = 0 AND (b.created_at, b.run_id) < (r.created_at, r.run_id)
            ORDER BY b.created_at DESC, b.run_id DESC LIMIT 1)
        UNION ALL
        SELECT * FROM (SELECT b.created_at, b.run_id, b.verdict FROM case_cells_m b WHERE b.recorded = 1 AND b.eval_no = a.eval_no
            AND b.case_no = a.case_no AND b.arm_no = a.arm_no AND b.verdict = 1 AND (b.created_at, b.run_id) < (r.created_at, r.run_id)
            ORDER BY b.created_at DESC, b.run_id DESC LIMIT 1)
        UNION ALL
        SELECT * FROM (SELECT b.created_at, b.run_id, b.verdict FROM case_cells_m b WHERE b.recorded = 1 AND b.eval_no = a.eval_no
            AND b.case_no = a.case_no AND b.arm_no = a.arm_no AND b.verdict = 2 AND (b.created_at, b.run_id) < (r.created_at, r.run_id)
            ORDER BY b.created_at DESC, b.run_id DESC LIMIT 1)
        ORDER BY 1 DESC, 2 DESC) x LIMIT 1), 0) AS is_new
FROM runs_m r CROSS JOIN attempts_m a ON a.run_no = r.run_no JOIN evaluations_m e ON e.eval_no = a.eval_no JOIN cases_m c ON c.case_no = a.case_no
    JOIN arms_m m ON m.arm_no = a.arm_no
WHERE a.key IS NOT NULL AND a.outcome IN (1, 2);

CREATE VIEW eval_trend AS SELECT
    e.id AS evaluation, m.name AS arm, c.run_id,
    strftime(iif(c.created_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), c.created_at / 1000.0, 'unixepoch') AS created_at,
    CAST(c.passed AS REAL) / nullif(c.passed + c.failed, 0) AS rate, c.passed + c.failed AS n,
    (SELECT avg(w.rate) FROM (SELECT CAST(p.passed AS REAL) / nullif(p.passed + p.failed, 0) AS rate FROM cells_m p
        WHERE p.recorded = 1 AND p.eval_no = c.eval_no AND p.arm_no = c.arm_no AND (p.created_at, p.run_id) <= (c.created_at, c.run_id)
        ORDER BY p.created_at DESC, p.run_id DESC LIMIT 5) w) AS moving_rate,
    c.infra, c.unscored, c.missing
FROM evaluations_m e CROSS JOIN cells_m c ON c.eval_no = e.eval_no JOIN arms_m m ON m.arm_no = c.arm_no
WHERE c.recorded = 1;

CREATE VIEW verdict_flips AS SELECT
    e.id AS evaluation, m.name AS arm, c.run_id, p.run_id AS previous_run,
    CASE p.verdict WHEN 0 THEN 'pass' WHEN 1 THEN 'fail' ELSE 'mixed' END AS verdict_from,
    CASE c.verdict WHEN 0 THEN 'pass' WHEN 1 THEN 'fail' ELSE 'mixed' END AS verdict_to, r.sha AS git_sha,
    strftime(iif(c.created_at % 1000, '%Y-%m-%dT%H:%M:%fZ', '%Y-%m-%dT%H:%M:%SZ'), c.created_at / 1000.0, 'unixepoch') AS created_at
FROM evaluations_m e CROSS JOIN cells_m c ON c.eval_no = e.eval_no CROSS JOIN cells_m p ON p.eval_no = c.eval_no AND p.case_no = 0 AND p.arm_no = c.arm_no AND p.run_no = (
        SELECT q.run_no FROM cells_m q WHERE q.recorded = 1 AND q.eval_no = c.eval_no AND q.arm_no = c.arm_no AND q.verdict <= 2
            AND (q.created_at, q.run_id) < (c.created_at, c.run_id) ORDER BY q.created_at DESC, q.run_id DESC LIMIT 1)
    JOIN arms_m m ON m.arm_no = c.arm_no JOIN runs_m r ON r.run_no = c.run_no
WHERE c.recorded = 1 AND c.verdict <= 2 AND p.verdict <> c.verdict;

CREATE VIEW check_discrimination AS SELECT e.id AS evaluation, n.name AS check_name, k.rest_n AS n, k.rest_rate AS rate, k.item_rest_correlation
FROM check_rates_m k JOIN evaluations_m e ON e.eval_no = k.eval_no JOIN check_names_m n ON n.check_no = k.check_no
WHERE k.rest_n > 0;

CREATE VIEW check_rates AS SELECT e.id AS evaluation, n.name AS check_name, k.n, k.passed, k.rate, k.ci_low, k.ci_high
FROM check_rates_m k JOIN evaluations_m e ON e.eval_no = k.eval_no JOIN check_names_m n ON n.check_no = k.check_no;

CREATE VIEW check_streaks AS SELECT
    e.id AS evaluation, m.name AS arm, n.name AS check_name, CASE s.passing WHEN 1 THEN 'passing' ELSE 'failing' END AS state, s.streak,
    r.run_id AS since_run
FROM check_streaks_m s JOIN evaluations_m e ON e.eval_no = s.eval_no JOIN arms_m m ON m.arm_no = s.arm_no JOIN check_names_m n ON n.check_no = s.check_no
    JOIN runs_m r ON r.run_no = s.since_run_no;
