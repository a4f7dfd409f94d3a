// The PostgreSQL database that a copy goes to: opened, looked at before anything is written, and given its tables.

import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../database.ts'
import { migrate } from '../migrate.ts'
import { openPostgres } from '../postgres.ts'
import { StartRefusal } from '../start-refusal.ts'

/** Throws a StartRefusal if it cannot be reached or belongs to something else. */
export async function openCopyTarget(url: string, clock: Clock): Promise<Database> {
  const target = await openPostgres(url)
  try {
    const tables = await target.sql<{ name: string }>`SELECT table_name AS name FROM information_schema.tables
      WHERE table_schema = current_schema()`
    const isOurs = tables.length === 0 || tables.some(({ name }) => name === 'schema_migrations')
    if (!isOurs) {
      throw new StartRefusal(`${shownTarget(url)} has tables of something else in it. Use an empty database.`)
    }
    await migrate({ database: target, clock })
    return target
  } catch (thrown) {
    await target.close()
    throw thrown
  }
}

/** Where it is, for a message; without user, password and options. */
export function shownTarget(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}
