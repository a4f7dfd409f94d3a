-- One row per request of a known key, written with its charge where there is one. Prompts and answers are not kept.
-- Ids ascend with time, so the newest are found by id alone. Amounts are nano-dollars, times epoch milliseconds.

CREATE TABLE requests (
  id TEXT PRIMARY KEY,
  started_at BIGINT NOT NULL,
  workspace_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  path TEXT NOT NULL,
  stream BIGINT NOT NULL CHECK (stream IN (0, 1)),
  model TEXT,
  -- 499: the client left before the end.
  status BIGINT NOT NULL,
  code TEXT,
  reason TEXT,
  provider TEXT,
  upstream_model TEXT,
  -- bytes | translation
  lane TEXT,
  -- JSON: the routes that were planned, the attempts with their outcome, what was dropped, what was odd.
  candidates TEXT NOT NULL,
  attempts TEXT NOT NULL,
  warnings TEXT NOT NULL,
  notes TEXT NOT NULL,
  -- JSON: tokens by bucket.
  usage TEXT,
  price_version TEXT,
  held BIGINT,
  charge BIGINT,
  first_event_ms BIGINT,
  total_ms BIGINT NOT NULL,
  -- What the client calls itself.
  client TEXT
);

CREATE INDEX requests_by_workspace ON requests (workspace_id, id);
CREATE INDEX requests_by_key ON requests (key_id, id);
