-- A workspace's own keys at providers, encrypted. The column text alone opens nothing: the wrapped key needs the master
-- secret, which is never in the database. Times are epoch milliseconds.

CREATE TABLE credentials (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  provider TEXT NOT NULL,
  -- Names this secret: a replacement is a new one, and what is known about the old one does not concern it.
  id TEXT NOT NULL UNIQUE,
  -- The only place the secret may be sent to: scheme, host, port.
  origin TEXT NOT NULL,
  -- NULL = the provider's own address.
  base_url TEXT,
  ciphertext TEXT NOT NULL,
  -- The key of the ciphertext, encrypted under the master secret that key_version names.
  wrapped_key TEXT NOT NULL,
  key_version TEXT NOT NULL,
  last4 TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, provider)
);

-- What a rotation of the master secret still has to do.
CREATE INDEX credentials_by_key_version ON credentials (key_version, id);
