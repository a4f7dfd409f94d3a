import { expect } from 'bun:test'
import { createHash } from 'node:crypto'
import { forEachEngine } from '../../test/parts/engines.ts'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import type { Database } from '../store/database.ts'
import { insertRows } from '../store/insert-rows.ts'
import { readRotationStatus, rotateSecrets } from './rotation.ts'
import { createKeyRing } from './sealing.ts'
import type { MasterSecret } from './secrets.ts'
import { createStoredResponses } from './stored-responses.ts'
import { insertWorkspace } from './workspaces.ts'

const secretOf = (word: string): MasterSecret => ({ bytes: createHash('sha256').update(word).digest(), source: word })
const [before, after] = [secretOf('before'), secretOf('after')]
const stored = { id: 'resp_1', input: '["what"]', response: '{"id":"resp_1"}' }

const openWith = (database: Database, ...secrets: readonly [MasterSecret, MasterSecret?]) =>
  createStoredResponses({
    ...{ database, clock: createJumpClock(), keys: createKeyRing(...secrets) },
    days: () => 1,
  })

forEachEngine((_, storeTest) => {
  storeTest('a row opens for its workspace and its id only', async ({ database }) => {
    const responses = openWith(database, before)
    const [own, other] = await database.transaction(async (sql) => [
      await insertWorkspace(sql, { name: 'own', createdAt: 1 }),
      await insertWorkspace(sql, { name: 'other', createdAt: 1 }),
    ])
    if (!own || !other) throw new Error('two workspaces')
    await responses.keep(own, stored)
    await database.transaction(async (sql) => {
      const [row] = await sql<Record<string, string | bigint>>`SELECT * FROM stored_responses`
      const copies = [
        { ...row, workspace_id: other },
        { ...row, id: 'resp_2' },
      ]
      await insertRows(sql, 'stored_responses', copies)
    })
    expect(await responses.find(own, 'resp_1')).toEqual(stored)
    expect(await responses.find(other, 'resp_1')).toBeUndefined()
    expect(await responses.find(own, 'resp_2')).toBeUndefined()
  })

  storeTest(
    'K3: a rotation of the master secret keeps it readable, and without one it reads as unknown',
    async ({ database }) => {
      const own = await database.transaction((sql) => insertWorkspace(sql, { name: 'own', createdAt: 1 }))
      await openWith(database, before).keep(own, stored)
      expect(await openWith(database, after).find(own, 'resp_1')).toBeUndefined()
      expect(await openWith(database, after, before).find(own, 'resp_1')).toEqual(stored)
      const waiting = () => readRotationStatus(database.sql, after, Date.now())
      expect((await waiting()).responses).toBe(1)
      await rotateSecrets({ database, from: before, to: after })
      expect((await waiting()).responses).toBe(0)
      expect(await openWith(database, after).find(own, 'resp_1')).toEqual(stored)
    },
  )
})
