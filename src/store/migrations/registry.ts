// Every migration, in the order of application. A new one is a new file and a new last row. A released migration is never
// edited, moved or removed: databases store its checksum.

import schema from './0001-schema.sql' with { type: 'text' }
import contentAndCredit from './0002-content-and-credit.sql' with { type: 'text' }
import batchesAtProviders from './0003-batches-at-providers.sql' with { type: 'text' }

export interface Migration {
  /** The file's name without its ending. */
  readonly name: string
  /** Portable SQL. A line `-- sqlite:` or `-- postgres:` starts a section for one engine, a line `-- both:` ends it. */
  readonly text: string
}

export const allMigrations: readonly Migration[] = [
  { name: '0001-schema', text: schema },
  { name: '0002-content-and-credit', text: contentAndCredit },
  { name: '0003-batches-at-providers', text: batchesAtProviders },
]
