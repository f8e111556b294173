-- The groups that cases come in, by which errors are clustered: what a log says of its cases. Rows belong to a log and go with it; of a run's logs
-- the newest one's word on a case stands.

CREATE TABLE case_groups_m (log_no INTEGER NOT NULL, case_no INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (log_no, case_no)) WITHOUT ROWID;
CREATE INDEX case_groups_by_case ON case_groups_m (case_no, log_no);

-- case_group: as the newest log that names one has it. GROUP is a word of SQL's own.
DROP VIEW cases;
CREATE VIEW cases AS SELECT e.id AS evaluation, c.id AS case_id, c.input, c.target,
    (SELECT g.name FROM case_groups_m g CROSS JOIN logs_m l ON l.log_no = g.log_no WHERE g.case_no = c.case_no
     ORDER BY l.created_at DESC, l.log_id DESC LIMIT 1) AS case_group
FROM cases_m c JOIN evaluations_m e ON e.eval_no = c.eval_no
WHERE EXISTS (SELECT 1 FROM run_evaluations_m r JOIN case_cells_m k ON k.run_no = r.run_no AND k.eval_no = r.eval_no AND k.case_no = c.case_no
              WHERE r.eval_no = c.eval_no);
