-- Counts of requests by what is asked for, in place of counts by key and model: a chart of a month now reads as many rows
-- for a million requests as for a thousand. And which requests were for a model or failed, kept in the background with the
-- counts: as indexes of the log they were the dearest part of writing a request. Amounts are nano-dollars, times epoch
-- milliseconds.

CREATE TABLE request_sums (
  grain TEXT NOT NULL CHECK (grain IN ('hour', 'day', 'week')),
  series TEXT NOT NULL CHECK (series IN ('total', 'model', 'project', 'key')),
  -- Empty = of all workspaces.
  workspace_id TEXT NOT NULL,
  -- When the hour, day or week begins, in UTC; weeks begin on Thursdays, as time itself did.
  start_at BIGINT NOT NULL,
  -- The model or the id; empty in totals, and where no model was named.
  subject TEXT NOT NULL,
  requests BIGINT NOT NULL,
  -- Requests with a code: what went wrong, also inside a stream.
  errors BIGINT NOT NULL,
  -- Cache included.
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  charge BIGINT NOT NULL,
  -- How many requests had their first event within so many milliseconds (and not within fewer).
  first_25 BIGINT NOT NULL,
  first_50 BIGINT NOT NULL,
  first_100 BIGINT NOT NULL,
  first_200 BIGINT NOT NULL,
  first_350 BIGINT NOT NULL,
  first_500 BIGINT NOT NULL,
  first_750 BIGINT NOT NULL,
  first_1000 BIGINT NOT NULL,
  first_1500 BIGINT NOT NULL,
  first_2500 BIGINT NOT NULL,
  first_5000 BIGINT NOT NULL,
  first_10000 BIGINT NOT NULL,
  first_30000 BIGINT NOT NULL,
  first_later BIGINT NOT NULL,
  PRIMARY KEY (grain, series, workspace_id, start_at, subject)
);

INSERT INTO request_sums
  SELECT r.grain, s.series, CASE WHEN s.whole = 1 THEN '' ELSE r.workspace_id END, r.start_at,
    CASE s.series WHEN 'model' THEN r.model WHEN 'project' THEN r.project_id WHEN 'key' THEN r.key_id ELSE '' END,
    SUM(r.requests), SUM(r.errors), SUM(r.input_tokens), SUM(r.output_tokens), SUM(r.charge),
    SUM(r.first_25), SUM(r.first_50), SUM(r.first_100), SUM(r.first_200), SUM(r.first_350), SUM(r.first_500),
    SUM(r.first_750), SUM(r.first_1000), SUM(r.first_1500), SUM(r.first_2500), SUM(r.first_5000), SUM(r.first_10000),
    SUM(r.first_30000), SUM(r.first_later)
  FROM request_rollups r CROSS JOIN (
    SELECT 'total' AS series, 0 AS whole UNION ALL SELECT 'total', 1
    UNION ALL SELECT 'model', 0 UNION ALL SELECT 'model', 1
    UNION ALL SELECT 'project', 0 UNION ALL SELECT 'project', 1
    UNION ALL SELECT 'key', 0 UNION ALL SELECT 'key', 1
  ) s
  WHERE r.grain <> 'total'
  GROUP BY 1, 2, 3, 4, 5;

INSERT INTO request_sums
  SELECT 'week', series, workspace_id, start_at - start_at % 604800000, subject,
    SUM(requests), SUM(errors), SUM(input_tokens), SUM(output_tokens), SUM(charge),
    SUM(first_25), SUM(first_50), SUM(first_100), SUM(first_200), SUM(first_350), SUM(first_500),
    SUM(first_750), SUM(first_1000), SUM(first_1500), SUM(first_2500), SUM(first_5000), SUM(first_10000),
    SUM(first_30000), SUM(first_later)
  FROM request_sums WHERE grain = 'day' GROUP BY 1, 2, 3, 4, 5;

DROP TABLE request_rollups;

-- Requests that were counted, by what they are looked for: `model acme/large`, `failed`, `failed of key key_…`.
CREATE TABLE request_lists (
  list TEXT NOT NULL,
  id TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  PRIMARY KEY (list, id)
);

INSERT INTO request_lists
  SELECT CASE l.kind WHEN 1 THEN 'model ' || r.model WHEN 2 THEN 'failed' WHEN 3 THEN 'failed of key ' || r.key_id
      WHEN 4 THEN 'failed of workspace ' || r.workspace_id ELSE 'failed of model ' || r.model END, r.id, r.workspace_id
    FROM requests r
    CROSS JOIN (SELECT 1 AS kind UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5) l
    CROSS JOIN rollup_cursors c
    WHERE r.id <= c.last_id AND (l.kind = 1 OR r.code IS NOT NULL) AND (l.kind IN (2, 3, 4) OR r.model IS NOT NULL)
      AND c.name = CASE WHEN r.total_ms <= 60000 THEN 'short' WHEN r.total_ms <= 600000 THEN 'long' ELSE 'longest' END;

DROP INDEX requests_by_model;
DROP INDEX requests_failed;
DROP INDEX requests_failed_by_model;
DROP INDEX requests_failed_by_workspace;
