// Every migration, in the order of application. A new one is a new file and a new last line; one that was released is
// never edited, moved or removed: its checksum stands in the databases it was applied to.

import tenancy from './0001-tenancy.sql' with { type: 'text' }
import ledger from './0002-ledger.sql' with { type: 'text' }
import budgets from './0003-budgets.sql' with { type: 'text' }
import tenancyMore from './0004-tenancy-more.sql' with { type: 'text' }
import credentials from './0005-credentials.sql' with { type: 'text' }
import requests from './0006-requests.sql' with { type: 'text' }
import ownKeys from './0007-own-keys.sql' with { type: 'text' }
import replicas from './0008-replicas.sql' with { type: 'text' }
import priceOverrides from './0009-price-overrides.sql' with { type: 'text' }
import rollups from './0010-rollups.sql' with { type: 'text' }
import requestSums from './0011-request-sums.sql' with { type: 'text' }
import consoleSessions from './0013-console-sessions.sql' with { type: 'text' }
import budgetSeeds from './0014-budget-seeds.sql' with { type: 'text' }

export interface Migration {
  /** The file's name without its ending. */
  readonly name: string
  /** Portable SQL; what must differ stands below a line `-- sqlite:` or `-- postgres:`, up to a line `-- both:`. */
  readonly text: string
}

export const allMigrations: readonly Migration[] = [
  { name: '0001-tenancy', text: tenancy },
  { name: '0002-ledger', text: ledger },
  { name: '0003-budgets', text: budgets },
  { name: '0004-tenancy-more', text: tenancyMore },
  { name: '0005-credentials', text: credentials },
  { name: '0006-requests', text: requests },
  { name: '0007-own-keys', text: ownKeys },
  { name: '0008-replicas', text: replicas },
  { name: '0009-price-overrides', text: priceOverrides },
  { name: '0010-rollups', text: rollups },
  { name: '0011-request-sums', text: requestSums },
  { name: '0013-console-sessions', text: consoleSessions },
  { name: '0014-budget-seeds', text: budgetSeeds },
]
