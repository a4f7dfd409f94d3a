-- Leases of replicas on hot wallets: a slice of a wallet that one process may admit from in memory. The slice is part of
-- the wallet's `held`, so nobody else can spend it. The embedded database has none: its one process needs none.

CREATE TABLE leases (
  wallet_id TEXT NOT NULL,
  -- The replica, and the number of the lease within it: a lease that was taken back never comes again.
  owner TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  -- What it keeps of the wallet's `held`, `spent` included.
  amount BIGINT NOT NULL CHECK (amount >= 0),
  -- What its transfers have charged and the wallet's row does not know yet: `posted` and `held` are both too high by it.
  spent BIGINT NOT NULL CHECK (spent >= 0 AND spent <= amount),
  -- What running requests hold of it, as of the owner's last write; for people to see, nothing is decided by it.
  in_use BIGINT NOT NULL CHECK (in_use >= 0),
  -- wanted: another replica needs the money. closing: the idle part is given back, the rest ends with its requests.
  state TEXT NOT NULL CHECK (state IN ('open', 'wanted', 'closing')),
  -- By the database's clock; afterwards anyone may take it back.
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (wallet_id, owner, epoch)
);
