import { expect } from 'bun:test'
import { answeredRequest } from '../../test/observe/observed-records.ts'
import { storeRecords } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import { createId, type RequestId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { CommitUnknown } from '../store/sql-error.ts'
import { createRequestLog } from './request-log.ts'
import type { RequestRecord } from './request-record.ts'

/** Writes them in one batch; returns what is in the log then, and what was reported as lost. */
async function logged(database: Database, records: readonly (Partial<RequestRecord> & { readonly id: RequestId })[]) {
  const lost: number[] = []
  const log = createRequestLog({ database, onLost: (count) => void lost.push(count) })
  for (const record of records) log.write(answeredRequest(record))
  await log.close()
  return { lost, requests: await log.list({ limit: 100 }) }
}

forEachEngine((engine, storeTest) => {
  storeTest('replaces characters that PostgreSQL cannot store, and loses no line', async ({ database }) => {
    const [bad, good] = [createId('req'), createId('req')]
    const facts = { reason: 'no model a\0b', model: 'a\0b', client: 'x\ud800y' }
    const { lost, requests } = await logged(database, [{ id: bad, ...facts }, { id: good }])
    expect(lost).toEqual([])
    expect(requests.map(({ id }) => id).sort()).toEqual([bad, good].sort())
    const kept = { reason: 'no model a\ufffdb', model: 'a\ufffdb', client: 'x\ufffdy' }
    expect(requests.find(({ id }) => id === bad)).toMatchObject(kept)
  })

  storeTest('notes that were made after a row was written are written too', async ({ database }) => {
    const [slow, other] = [createId('req'), createId('req')]
    await logged(database, [{ id: slow, notes: ['one'] }, { id: other }])
    const log = createRequestLog({ database, onLost: () => {} })
    log.write(answeredRequest({ id: slow, notes: ['one', 'two'] }))
    await log.close()
    expect(await log.find(slow)).toMatchObject({ notes: ['one', 'two'] })
    expect(await log.find(other)).toMatchObject({ notes: [] })
  })

  storeTest('lines that an outage of the database loses are counted', async ({ database }) => {
    const lost: number[] = []
    let isAway = true
    const { journal } = database
    const unlessAway = <T>(work: () => Promise<T>): Promise<T> =>
      isAway ? Promise.reject(new CommitUnknown('away')) : work()
    const failing: Database = {
      ...database,
      transaction: (work, shape) => unlessAway(() => database.transaction(work, shape)),
      journal: journal && { ...journal, append: (requests) => unlessAway(() => journal.append(requests)) },
    }
    const log = createRequestLog({ database: failing, onLost: (count) => void lost.push(count) })
    for (let n = 0; n < 3; n++) log.write(answeredRequest({ id: createId('req') }))
    await log.close()
    isAway = false
    const kept = createId('req')
    log.write(answeredRequest({ id: kept }))
    await log.close()
    expect([lost, log.lost()]).toEqual([[3], 3])
    expect((await log.list({ limit: 100 })).map(({ id }) => id)).toEqual([kept])
  })

  storeTest('a flood of lines is written in small commits, and an outage loses only its own', async ({ database }) => {
    const commits: number[] = []
    const lost: number[] = []
    const { journal } = database
    // The second one of three fails.
    const count = <T>(work: () => Promise<T>): Promise<T> =>
      commits.push(1) === 2 ? Promise.reject(new CommitUnknown('away')) : work()
    const counting: Database = {
      ...database,
      transaction: (work, shape) => count(() => database.transaction(work, shape)),
      journal: journal && { ...journal, append: (requests) => count(() => journal.append(requests)) },
    }
    const log = createRequestLog({ database: counting, onLost: (rows) => void lost.push(rows) })
    for (let n = 0; n < 300; n++) log.write(answeredRequest({ id: createId('req') }))
    await log.close()
    // 128 + 128 + 44.
    expect([commits.length, lost]).toEqual([3, [128]])
    expect(await log.list({ limit: 500 })).toHaveLength(172)
  })

  storeTest('a line that the database refuses is lost alone', async ({ database }) => {
    const [refused, first, last] = [createId('req'), createId('req'), createId('req')]
    const nobody = { workspaceId: null as never, projectId: 'prj_1', keyId: 'key_1' } as const
    const records = [{ id: first }, { id: refused, caller: nobody }, { id: last }]
    const { lost, requests } = await logged(database, records)
    // On SQLite the thread that writes finds that out later, and reports it.
    expect(lost).toEqual(engine.name === 'sqlite' ? [] : [1])
    expect(requests.map(({ id }) => id).sort()).toEqual([first, last].sort())
  })

  storeTest(
    'a row that was written with its charge keeps its amounts and is corrected to what the caller got',
    async ({ database }) => {
      const [late, other] = [createId('req'), createId('req')]
      const charge = 5n as Nano
      await storeRecords(database, [answeredRequest({ id: late, status: 200, charge, totalMs: 59_000 })])
      const unknown = { status: 503, code: 'OVERLOADED', reason: 'not known', notes: ['it was made'] }
      const { lost, requests } = await logged(database, [
        { id: other },
        { id: late, ...unknown, charge: undefined, usage: undefined, totalMs: 89_000 },
      ])
      expect(lost).toEqual([])
      expect(requests).toHaveLength(2)
      const row = requests.find(({ id }) => id === late)
      expect(row).toMatchObject({ ...unknown, charge, totalMs: 59_000, usage: { source: 'reported' } })
    },
  )
})
