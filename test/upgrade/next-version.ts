// Loaded into a gateway before it starts, this makes it the next version: the same code with one more migration.

import { allMigrations, type Migration } from '../../src/store/migrations/registry.ts'
import { nextMigration } from './next-migration.ts'

if (Bun.isMainThread) (allMigrations as Migration[]).push(nextMigration)
