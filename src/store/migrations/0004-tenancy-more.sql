-- What restricts workspaces, projects and keys, secrets that a rotation replaced, and the audit log.

-- JSON, names as in the management API, amounts as decimal strings of nano-dollars; NULL = no limit.
ALTER TABLE workspaces ADD COLUMN limits TEXT;
ALTER TABLE projects ADD COLUMN limits TEXT;
ALTER TABLE api_keys ADD COLUMN limits TEXT;

-- Who may change it: 'api' (whoever has the management token) or 'file' (the configuration file).
ALTER TABLE workspaces ADD COLUMN managed_by TEXT NOT NULL DEFAULT 'api';
ALTER TABLE projects ADD COLUMN managed_by TEXT NOT NULL DEFAULT 'api';
ALTER TABLE api_keys ADD COLUMN managed_by TEXT NOT NULL DEFAULT 'api';

-- A key's own allowlist, beside its project's; NULL = all that the project allows.
ALTER TABLE api_keys ADD COLUMN models TEXT;
-- JSON array of addresses and ranges it may be used from; NULL = anywhere.
ALTER TABLE api_keys ADD COLUMN sources TEXT;
-- That of its project, which never moves; here so that the keys of a workspace are read by one index.
ALTER TABLE api_keys ADD COLUMN workspace_id TEXT REFERENCES workspaces (id);

UPDATE api_keys SET workspace_id = (SELECT p.workspace_id FROM projects p WHERE p.id = api_keys.project_id);

DROP INDEX projects_by_workspace;
DROP INDEX api_keys_by_project;
CREATE INDEX projects_by_workspace ON projects (workspace_id, id);
CREATE INDEX api_keys_by_project ON api_keys (project_id, id);
CREATE INDEX api_keys_by_workspace ON api_keys (workspace_id, id);

-- Secrets that were a key's before its rotation. They stay, so that their refusal can say what became of them.
CREATE TABLE rotated_secrets (
  verifier TEXT PRIMARY KEY,
  key_id TEXT NOT NULL REFERENCES api_keys (id),
  pepper_version BIGINT NOT NULL,
  rotated_at BIGINT NOT NULL,
  -- From then on it is not accepted; the same as rotated_at = without an overlap.
  ends_at BIGINT NOT NULL CHECK (ends_at >= rotated_at)
);

CREATE INDEX rotated_secrets_by_key ON rotated_secrets (key_id);

-- Apart from the keys, because it is written all the time and must not get in the way of their readers.
CREATE TABLE key_uses (
  key_id TEXT PRIMARY KEY,
  last_used_at BIGINT NOT NULL
);

-- Who changed what. Every row carries the hash of the one before it; never changed, never removed.
CREATE TABLE audit (
  sequence BIGINT PRIMARY KEY,
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  -- The id of what was changed.
  object TEXT NOT NULL,
  -- JSON object: ids, numbers and settings; no secret, and no name that may have to be erased one day.
  details TEXT NOT NULL,
  request_id TEXT,
  previous_hash TEXT NOT NULL,
  hash TEXT NOT NULL
);

CREATE INDEX audit_by_object ON audit (object, sequence);

-- The end of the chain, one row: who appends takes it first, so that replicas cannot fork the chain.
CREATE TABLE audit_head (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  sequence BIGINT NOT NULL,
  hash TEXT NOT NULL
);

INSERT INTO audit_head (id, sequence, hash) VALUES (1, 0, '');

-- sqlite:
CREATE TRIGGER audit_not_updated BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'audit rows are append-only'); END;
CREATE TRIGGER audit_not_deleted BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'audit rows are append-only'); END;

-- postgres:
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_edit();
-- both:
