import { expect } from 'bun:test'
import { storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { listRequests, type RequestQuery } from './request-log.ts'

const noon = Date.UTC(2026, 10, 15, 12)

const caller = (at: number) => ({
  workspaceId: `ws_${at}` as WorkspaceId,
  projectId: `prj_${at}` as ProjectId,
  keyId: `key_${at}` as KeyId,
})
const [one, two] = [caller(1), caller(2)]

/** By their minute after noon. */
const requests = [
  { minute: 1, caller: one, model: 'acme/large' },
  { minute: 2, caller: two, model: 'acme/large', code: 'LIMIT_EXCEEDED' },
  { minute: 3, caller: one, model: 'acme/small', code: 'PROVIDER_ERROR', totalMs: 61_000 },
  { minute: 4, caller: one, model: undefined, code: 'INVALID_REQUEST' },
  { minute: 5, caller: two, model: 'acme/large', totalMs: 700_000 },
  { minute: 6, caller: one, model: 'acme/large' },
]

const questions: readonly (readonly [Omit<RequestQuery, 'limit'>, readonly number[]])[] = [
  [{ model: 'acme/large' }, [6, 5, 2, 1]],
  [{ model: 'acme/small' }, [3]],
  [{ model: 'acme/none' }, []],
  [{ model: 'acme/large', outcome: 'ok' }, [6, 5, 1]],
  [{ model: 'acme/large', workspaceId: one.workspaceId }, [6, 1]],
  [{ model: 'acme/large', from: noon + 2 * 60_000, to: noon + 6 * 60_000 }, [5, 2]],
  [{ outcome: 'failed' }, [4, 3, 2]],
  [{ outcome: 'failed', workspaceId: one.workspaceId }, [4, 3]],
  [{ outcome: 'failed', keyId: two.keyId }, [2]],
  [{ outcome: 'failed', model: 'acme/large' }, [2]],
  [{ outcome: 'failed', keyId: one.keyId, model: 'acme/small' }, [3]],
  [
    { outcome: 'ok', keyId: two.keyId, workspaceId: two.workspaceId, model: 'acme/large', projectId: two.projectId },
    [5],
  ],
  [{ keyId: one.keyId, projectId: two.projectId }, []],
]

async function minutesOf(database: Database, query: Omit<RequestQuery, 'limit'>): Promise<readonly number[]> {
  const found = await listRequests(database.sql, { limit: 10, ...query })
  return found.map(({ startedAt }) => (startedAt - noon) / 60_000)
}

forEachEngine((_, storeTest) => {
  storeTest('lists are narrowed by any filters', async ({ database }) => {
    await storeRequests(
      database,
      requests.map(({ minute, ...facts }) => ({ startedAt: noon + minute * 60_000, ...facts })),
    )
    for (const [query, found] of questions) {
      expect({ query, found: await minutesOf(database, query) }).toEqual({ query, found: [...found] })
    }
  })
})
