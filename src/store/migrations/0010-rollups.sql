-- Requests counted by the hour and day, so that charts need not read the log; and the places of the log that are asked for.
-- Amounts are nano-dollars, times epoch milliseconds. Kept in the background, a minute or two behind the log.

CREATE TABLE request_rollups (
  -- hour, day: by key and model, in UTC; total: hours by workspace alone, where project, key and model are empty. Each
  -- request is in all three, so that a question about a month reads some thousand rows and not a hundred times as many.
  grain TEXT NOT NULL CHECK (grain IN ('hour', 'day', 'total')),
  -- When the hour or day begins.
  start_at BIGINT NOT NULL,
  workspace_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  -- Empty = none was named.
  model TEXT NOT NULL,
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
  PRIMARY KEY (grain, start_at, workspace_id, key_id, model)
);

-- The last request that was counted. Ids ascend with the start of a request but it is written at its end, so those that
-- took long are counted by themselves, when none like them can still come.
CREATE TABLE rollup_cursors (
  name TEXT PRIMARY KEY,
  last_id TEXT NOT NULL
);

INSERT INTO rollup_cursors (name, last_id) VALUES ('short', ''), ('long', ''), ('longest', '');

-- Few requests are in the first four, so they cost next to nothing.
CREATE INDEX requests_long ON requests (id) WHERE total_ms > 60000;
CREATE INDEX requests_failed ON requests (id) WHERE code IS NOT NULL;
CREATE INDEX requests_failed_by_model ON requests (model, id) WHERE code IS NOT NULL;
CREATE INDEX requests_failed_by_workspace ON requests (workspace_id, id) WHERE code IS NOT NULL;
CREATE INDEX requests_by_model ON requests (model, id);
