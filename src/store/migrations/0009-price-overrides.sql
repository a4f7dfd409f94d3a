-- Prices that the management API has set; each is in force in place of the built-in one. What was in force when, and is
-- named by charges, is in `prices` alone. Times are epoch milliseconds.

CREATE TABLE price_overrides (
  model_id TEXT PRIMARY KEY,
  -- JSON, in the form of `prices`.
  price TEXT NOT NULL,
  set_at BIGINT NOT NULL
);
