// The real code that is simulated: as it stands in src, or a copy of it with one deliberate mistake, made in a throw-away
// folder. The product contains none of this.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { priceUsage } from '../../src/catalog/price.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import type { Mutation } from './mutations.ts'

export interface LedgerParts {
  readonly createLedger: typeof createLedger
  readonly priceUsage: typeof priceUsage
  /** A disk that says "written" before it writes. */
  readonly acknowledgesEarly: boolean
}

export const realParts: LedgerParts = { createLedger, priceUsage, acknowledgesEarly: false }

const source = join(import.meta.dir, '../../src')

/** Throws if the text that the mutation changes is not there any more: then it must be written anew. */
export async function mutatedParts({ name, edits, acknowledgesEarly = false }: Mutation): Promise<LedgerParts> {
  if (edits.length === 0) return { ...realParts, acknowledgesEarly }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-mutation-'))
  try {
    for (const part of ['kernel', 'ledger', 'store', 'catalog/price.ts']) {
      mkdirSync(dirname(join(folder, part)), { recursive: true })
      cpSync(join(source, part), join(folder, part), { recursive: true })
    }
    for (const { file, from, to } of edits) {
      const text = readFileSync(join(folder, file), 'utf8')
      const mutated = text.replace(from, () => to)
      if (mutated === text) throw new Error(`the mutation "${name}" no longer fits src/${file}: write it anew`)
      writeFileSync(join(folder, file), mutated)
    }
    const ledger: { createLedger: typeof createLedger } = await import(join(folder, 'ledger/create-ledger.ts'))
    const price: { priceUsage: typeof priceUsage } = await import(join(folder, 'catalog/price.ts'))
    return { createLedger: ledger.createLedger, priceUsage: price.priceUsage, acknowledgesEarly }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
