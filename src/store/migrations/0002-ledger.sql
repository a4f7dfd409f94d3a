-- Money. Amounts are nano-dollars, times epoch milliseconds. A transfer has both legs in one row, so the books balance
-- by construction; it is never changed, a correction is another transfer.

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('wallet', 'revenue', 'funding', 'grants', 'writeoff')),
  -- Of wallets.
  workspace_id TEXT REFERENCES workspaces (id),
  created_at BIGINT NOT NULL
);

INSERT INTO accounts (id, kind, created_at)
  VALUES ('revenue', 'revenue', 0), ('funding', 'funding', 0), ('grants', 'grants', 0), ('writeoff', 'writeoff', 0);

-- Wallets only: a running balance of the others would be one hot row for all tenants. The upper bound keeps
-- every sum below 2^63, where SQLite would turn to floats without a word.
CREATE TABLE balances (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  posted BIGINT NOT NULL CHECK (posted >= 0 AND posted <= 9000000000000000000),
  held BIGINT NOT NULL CHECK (held >= 0),
  CHECK (posted - held >= 0)
);

-- The accounts are not foreign keys: PostgreSQL would lock the row of `revenue` for every charge. `verify` looks instead.
CREATE TABLE transfers (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('charge', 'writeoff', 'topup', 'grant', 'correction')),
  -- The request that was charged; NULL = funding or correction.
  request_id TEXT,
  seq BIGINT NOT NULL,
  debit_account TEXT NOT NULL,
  credit_account TEXT NOT NULL CHECK (credit_account <> debit_account),
  amount BIGINT NOT NULL CHECK (amount >= 0 AND amount <= 1000000000000000),
  price_version TEXT,
  usage TEXT,
  estimated BIGINT NOT NULL CHECK (estimated IN (0, 1)),
  -- Free text of whoever funded.
  reference TEXT,
  -- The payment provider's id; one payment funds once, for ever.
  payment_id TEXT,
  created_at BIGINT NOT NULL,
  CONSTRAINT transfers_once UNIQUE (request_id, kind, seq)
);

CREATE UNIQUE INDEX transfers_by_payment ON transfers (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX transfers_by_debit ON transfers (debit_account, id);
-- Nobody lists the charges of `revenue`.
CREATE INDEX transfers_by_credit ON transfers (credit_account, id) WHERE kind <> 'charge';

-- Holds of replicas; the embedded database has none, its one process keeps them in memory.
CREATE TABLE holds (
  request_id TEXT PRIMARY KEY,
  wallet_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  amount BIGINT NOT NULL CHECK (amount >= 0),
  state TEXT NOT NULL CHECK (state IN ('open', 'settled', 'released', 'reaped')),
  owner TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  -- When the body went upstream; NULL = not yet.
  sent_at BIGINT
);

CREATE INDEX holds_open ON holds (request_id) WHERE state = 'open';
CREATE INDEX holds_ended ON holds (expires_at) WHERE state <> 'open';

-- A process that holds. Its epoch goes up when it is taken for dead; what it held under the old one is lost to it.
CREATE TABLE replicas (
  id TEXT PRIMARY KEY,
  epoch BIGINT NOT NULL,
  heartbeat_at BIGINT NOT NULL
);

CREATE TABLE prices (
  version TEXT PRIMARY KEY,
  model_id TEXT NOT NULL,
  -- JSON: pico-dollars per token and bucket, as decimal strings; tiers included.
  price TEXT NOT NULL,
  source TEXT NOT NULL,
  effective_from BIGINT NOT NULL
);

CREATE INDEX prices_by_model ON prices (model_id, effective_from);

CREATE TABLE idempotency (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  body_sha256 TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'done')),
  status BIGINT,
  response TEXT,
  request_id TEXT,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (scope, key)
);

CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);

-- sqlite:
CREATE TRIGGER transfers_not_updated BEFORE UPDATE ON transfers
  BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;
CREATE TRIGGER transfers_not_deleted BEFORE DELETE ON transfers
  BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;
CREATE TRIGGER prices_not_updated BEFORE UPDATE ON prices
  BEGIN SELECT RAISE(ABORT, 'prices are append-only'); END;
CREATE TRIGGER prices_not_deleted BEFORE DELETE ON prices
  BEGIN SELECT RAISE(ABORT, 'prices are append-only'); END;

-- postgres:
CREATE FUNCTION refuse_edit() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION '% are append-only', TG_TABLE_NAME; END $$;
CREATE TRIGGER transfers_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON transfers
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_edit();
CREATE TRIGGER prices_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON prices
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_edit();
-- both:
