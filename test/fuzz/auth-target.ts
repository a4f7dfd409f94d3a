// The headers that carry a key. Whatever they hold, the answer is a caller or a 401; nothing of a wrong key is repeated
// but its last four characters, and what has not the form of a key costs no question to the database.

import fc from 'fast-check'
import { Failure } from '../../src/kernel/failure.ts'
import type { Database } from '../../src/store/database.ts'
import { createApiKey } from '../../src/tenancy/api-key.ts'
import { createAuthenticator } from '../../src/tenancy/authenticate.ts'
import { trouble } from './corpus.ts'
import { damaged, utf8 } from './damage.ts'
import { type FuzzTarget, insist } from './target.ts'

/** A database without rows that counts its queries. */
function emptyDatabase(): { readonly database: Database; queries(): number } {
  let queries = 0
  const sql = async (): Promise<readonly never[]> => {
    queries++
    return []
  }
  return { database: { sql } as unknown as Database, queries: () => queries }
}

/** Characters that HTTP can carry in a header; the runtime refuses the rest. */
function headerText(bytes: Uint8Array): string {
  return Buffer.from(bytes.filter((byte) => byte === 0x09 || (byte >= 0x20 && byte !== 0x7f))).toString('latin1')
}

const key = createApiKey()
const corpus = [key, `Bearer ${key}`, `bearer  ${key} `, 'Basic dTpw', `Bearer ${key}, Bearer ${key}`, "' OR 1=1 --"]

export const authTarget: FuzzTarget = {
  name: 'auth-header',
  shareInputs: 1_000,
  open() {
    const { database, queries } = emptyDatabase()
    const clock = { now: () => 0, monotonicMs: () => 0 }
    const { authenticate } = createAuthenticator({ database, pepper: new Uint8Array(32), clock })
    const header = damaged([...trouble('auth-header'), ...corpus.map(utf8)]).map(headerText)
    const check = async (authorization: string | undefined, apiKey: string | undefined): Promise<void> => {
      const headers = new Headers()
      if (authorization !== undefined) headers.set('authorization', authorization)
      if (apiKey !== undefined) headers.set('x-api-key', apiKey)
      const before = queries()
      const verdict = await authenticate(headers)
      if (!(verdict instanceof Failure)) throw new Error('a caller out of nothing')
      insist(verdict.code === 'UNAUTHORIZED', `${verdict.code} for a header`)
      for (const sent of [authorization, apiKey]) {
        const secret = sent?.replace(/^\s*bearer +/i, '').trim() ?? ''
        // Shorter ones stand in our own words by chance: `sk-tg-` and `Bearer` do.
        if (secret.length > 20) insist(!verdict.message.includes(secret.slice(0, -4)), `repeated: ${verdict.message}`)
      }
      const looksLikeKey = [authorization, apiKey].some((sent) => sent?.includes('sk-tg-'))
      insist(looksLikeKey || queries() === before, 'a question to the database for what is no key')
    }
    const maybe = fc.option(header, { nil: undefined })
    return {
      property: fc.asyncProperty(maybe, maybe, check),
      examples: corpus.map((text) => [`Bearer ${text}`, text]),
    }
  },
}
