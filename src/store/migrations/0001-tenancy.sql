-- Who calls: workspaces pay, projects group, keys authenticate. Times are epoch milliseconds.

CREATE TABLE workspaces (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  -- JSON array of model ids and prefix/* patterns; NULL = all models.
  models TEXT,
  created_at BIGINT NOT NULL
);

CREATE INDEX projects_by_workspace ON projects (workspace_id);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  -- HMAC-SHA256 of the key under the pepper, hex; the key itself is nowhere.
  verifier TEXT NOT NULL UNIQUE,
  pepper_version BIGINT NOT NULL,
  last4 TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT
);

CREATE INDEX api_keys_by_project ON api_keys (project_id);

-- Facts about this installation, such as the check of the master secret.
CREATE TABLE installation (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
