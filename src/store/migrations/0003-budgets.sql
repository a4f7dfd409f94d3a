-- Spend limits: what a key, project or workspace has spent and reserved in one day or month. The limit itself is not
-- here; it is compared when money is held, so that a changed one holds at once.

CREATE TABLE budgets (
  scope_id TEXT NOT NULL,
  -- `day:2026-11-15` or `month:2026-11`, UTC. (`window` alone is a word of PostgreSQL's.)
  time_window TEXT NOT NULL,
  spent BIGINT NOT NULL CHECK (spent >= 0),
  -- Always 0 in the embedded database: its one process keeps holds in memory.
  held BIGINT NOT NULL CHECK (held >= 0),
  PRIMARY KEY (scope_id, time_window)
);

-- The budgets that a charge was counted in, `scope window,scope window`; NULL = none. A charge belongs to the windows in
-- which its money was held, and only to the limits that existed then, so no later question could find them again.
ALTER TABLE transfers ADD COLUMN budgets TEXT;

-- The same, so that whoever ends the hold knows what to give back.
ALTER TABLE holds ADD COLUMN budgets TEXT;
