// The migration of an invented next version, with the kinds of changes that a migration may make while the previous version
// still runs: a table, columns with a default on tables that every request uses, values for them, and an index.

import { allMigrations, type Migration } from '../../src/store/migrations/registry.ts'

export const nextStatements: readonly string[] = [
  'CREATE TABLE labels (key_id TEXT PRIMARY KEY, label TEXT NOT NULL)',
  "ALTER TABLE requests ADD COLUMN region TEXT NOT NULL DEFAULT 'eu'",
  "ALTER TABLE api_keys ADD COLUMN region TEXT NOT NULL DEFAULT 'eu'",
  "ALTER TABLE management_tokens ADD COLUMN region TEXT NOT NULL DEFAULT 'eu'",
  'ALTER TABLE balances ADD COLUMN limit_reached BIGINT',
  "INSERT INTO labels (key_id, label) SELECT id, 'old' FROM api_keys",
  "UPDATE requests SET region = 'us' WHERE stream = 1",
  'CREATE INDEX requests_by_path ON requests (path, id)',
]

export const nextMigration: Migration = { name: '9999-next', text: nextStatements.join(';\n') }

export const nextMigrations: readonly Migration[] = [...allMigrations, nextMigration]
