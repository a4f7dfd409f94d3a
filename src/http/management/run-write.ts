// Runs the work of a writing call in one transaction, once per idempotency key. What ends as a Failure is rolled back
// and forgotten, so that the key is free for the corrected request.

import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention } from '../../store/sql-error.ts'
import type { Idempotency, KeyedRequest, StoredAnswer } from '../../tenancy/idempotency.ts'

export interface RunWriteDependencies {
  readonly database: Database
  readonly idempotency: Idempotency
}

export interface Written extends StoredAnswer {
  /** An earlier request with this key did it. */
  readonly replayed: boolean
}

export type RunWrite = (
  keyed: (KeyedRequest & { readonly at: number }) | undefined,
  work: (sql: Sql) => Promise<StoredAnswer | Failure>,
) => Promise<Written | Failure>

/** Two that stood in each other's way both went the right way round; the loser's second try nearly always succeeds. */
const triesMax = 4

/** Thrown to leave a transaction without a commit; never leaves this file. */
class RolledBack {
  constructor(readonly failure: Failure) {}
}

export function createRunWrite({ database, idempotency }: RunWriteDependencies): RunWrite {
  return async (keyed, work) => {
    for (let tries = 1; ; tries++) {
      try {
        return await database.transaction(async (sql) => {
          const claim = keyed && (await idempotency.claim(sql, keyed, keyed.at))
          if (claim?.kind === 'answered') return { ...claim.answer, replayed: true }
          if (claim?.kind === 'conflict') throw new RolledBack(usedOtherwise())
          const answer = await work(sql)
          if (answer instanceof Failure) throw new RolledBack(answer)
          if (keyed) await idempotency.remember(sql, keyed, answer)
          return { ...answer, replayed: false }
        })
      } catch (thrown) {
        if (thrown instanceof RolledBack) return thrown.failure
        if (tries === triesMax || !isContention(thrown)) throw thrown
      }
    }
  }
}

export function usedOtherwise(): Failure {
  return invalidRequest('This Idempotency-Key was used for another request. Use a new one.', 'Idempotency-Key')
}
