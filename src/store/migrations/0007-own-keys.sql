-- Whether a workspace that has its own credential for a model's provider may fall back to routes on the operator's.
ALTER TABLE workspaces ADD COLUMN shares_routes BIGINT NOT NULL DEFAULT 0 CHECK (shares_routes IN (0, 1));
