-- Batches that run at the API for batches of their provider.

-- The provider; NULL = their lines are called one by one.
ALTER TABLE batches ADD COLUMN provider TEXT;

-- What is held for such a batch.
CREATE TABLE batch_holds (
  batch_id TEXT PRIMARY KEY REFERENCES batches (id) ON DELETE CASCADE,
  -- Of all its lines.
  model TEXT NOT NULL,
  -- The standing hold; NULL = none was placed yet.
  hold_id TEXT,
  -- For each line, in their order: `line:amount`, separated by commas.
  shares TEXT NOT NULL
);

-- A batch at the provider: some lines of one of ours.
CREATE TABLE batch_jobs (
  id TEXT PRIMARY KEY,
  batch_id TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
  provider TEXT NOT NULL,
  -- Of the endpoint: it decides which API the provider has.
  dialect TEXT NOT NULL,
  -- Their numbers, in order: `1-500,502`.
  lines TEXT NOT NULL,
  -- Before anything is sent. The provider may have got it if it has no id here.
  created_at BIGINT NOT NULL,
  upstream_id TEXT,
  -- Every line has its result.
  ended_at BIGINT
);

CREATE INDEX batch_jobs_by_batch ON batch_jobs (batch_id);
CREATE INDEX batch_jobs_by_upstream ON batch_jobs (upstream_id) WHERE upstream_id IS NOT NULL;
