-- Who is signed in to the console, and the one-time links that nobody has used yet: of all replicas, so that a browser may
-- come to any of them. Only hashes of what the browser holds; the secrets have 256 bits, so nothing can be made of these.

CREATE TABLE console_sessions (
  hash TEXT PRIMARY KEY,
  opened_at BIGINT NOT NULL,
  -- Written some minutes late at most: a look is no reason for a write.
  used_at BIGINT NOT NULL,
  -- Of the management token under which it was opened.
  fingerprint TEXT NOT NULL
);

CREATE TABLE console_links (
  hash TEXT PRIMARY KEY,
  expires_at BIGINT NOT NULL,
  fingerprint TEXT NOT NULL
);
