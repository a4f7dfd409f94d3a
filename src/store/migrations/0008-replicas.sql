-- What replicas tell each other: changes, so that none goes on with what it remembers, and what scopes have taken of
-- their limits where there is no Redis. Times are epoch milliseconds of the database's clock.

-- sqlite:
CREATE TABLE changes (
  sequence INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  -- The id of what was changed.
  object TEXT NOT NULL,
  at BIGINT NOT NULL
);

-- postgres:
CREATE TABLE changes (
  sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind TEXT NOT NULL,
  object TEXT NOT NULL,
  at BIGINT NOT NULL
);

-- both:
CREATE INDEX changes_by_time ON changes (at);

-- A minute's counts need no log of their own: after a crash of the server the table is empty, and the limits are whole.
-- Rows change all the time; without another index, and with room on the page, that leaves nothing behind in the key's.
-- sqlite:
CREATE TABLE limit_loads (
  scope_id TEXT PRIMARY KEY,
  -- JSON: buckets, reservations, what each replica has running.
  state TEXT NOT NULL,
  -- From then on the row says nothing.
  drained_at BIGINT NOT NULL
);

-- postgres:
CREATE UNLOGGED TABLE limit_loads (
  scope_id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  drained_at BIGINT NOT NULL
) WITH (fillfactor = 50);

-- both:
