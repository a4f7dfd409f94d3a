import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { createId, firstIdAt, type KeyId, type ProjectId, type RequestId, type WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { createRequestLog, listRequests, type RequestQuery } from './request-log.ts'
import { RequestRecord } from './request-record.ts'

import { createRequestTail } from './request-tail.ts'

const noon = Date.UTC(2026, 10, 15, 12)
const project = createId('prj') as ProjectId
const [one, two] = [createId('ws') as WorkspaceId, createId('ws') as WorkspaceId]
const [a, b] = [createId('key') as KeyId, createId('key') as KeyId]

interface Sketch {
  readonly at: number
  readonly model?: string
  readonly code?: string
  readonly workspaceId?: WorkspaceId
  readonly keyId?: KeyId
}

async function write(database: Database, sketches: readonly Sketch[]): Promise<readonly RequestId[]> {
  const onLost = (_count: number, error: unknown) => {
    throw error
  }
  const log = createRequestLog({ database, onLost })
  const ids = sketches.map(({ at, model, code, workspaceId = one, keyId = a }) => {
    const record = new RequestRecord(firstIdAt(at), at, '/v1/messages')
    record.caller = { workspaceId, keyId, projectId: project }
    record.model = model ?? 'acme/large'
    record.code = code
    record.status = code === undefined ? 200 : 429
    log.write(record)
    return record.id
  })
  await log.close()
  return ids
}

forEachEngine((_, storeTest) => {
  storeTest('listeners get what was written since, once, also what began long ago', async ({ database }) => {
    let look: () => unknown = () => {}
    let looking = 0
    const events: string[] = []
    const tail = createRequestTail({
      database,
      clock: { now: () => noon, monotonicMs: () => 0 },
      onFault: (error) => events.push(String(error)),
      every(_milliseconds, work) {
        look = work
        looking++
        return () => void looking--
      },
    })
    await write(database, [{ at: noon - 5_000 }])
    const leave = tail.listen({
      onRequests: (found) => events.push(...found.map(({ id }) => id)),
      onEnd: () => events.push('end'),
    })
    // The first look may still run; what it finds is not new.
    await look()
    await look()
    expect(events).toEqual([])
    const [fresh, slow] = await write(database, [{ at: noon - 1_000 }, { at: noon - 600_000 }])
    await look()
    await look()
    expect(events).toEqual([slow ?? '', fresh ?? ''])
    leave?.()
    expect(looking).toBe(0)
    tail.listen({ onRequests: () => {}, onEnd: () => events.push('end') })
    tail.close()
    expect([events.at(-1), looking]).toEqual(['end', 0])
    expect(tail.listen({ onRequests: () => {}, onEnd: () => {} })).toBeUndefined()
  })

  storeTest('requests are listed by model, outcome, key, workspace and time, in any company', async ({ database }) => {
    await write(database, [
      { at: noon + 1, model: 'acme/small' },
      { at: noon + 2, code: 'LIMIT_EXCEEDED' },
      { at: noon + 3, keyId: b },
      { at: noon + 4, keyId: b, code: 'LIMIT_EXCEEDED', model: 'acme/small' },
      { at: noon + 5, workspaceId: two, code: 'LIMIT_EXCEEDED' },
    ])
    const listed = async (query: Omit<RequestQuery, 'limit'>) =>
      (await listRequests(database.sql, { limit: 10, ...query })).map(({ startedAt }) => startedAt - noon)
    expect(await listed({})).toEqual([5, 4, 3, 2, 1])
    expect(await listed({ outcome: 'failed' })).toEqual([5, 4, 2])
    expect(await listed({ outcome: 'ok' })).toEqual([3, 1])
    expect(await listed({ outcome: 'failed', workspaceId: one })).toEqual([4, 2])
    expect(await listed({ outcome: 'failed', workspaceId: one, model: 'acme/small' })).toEqual([4])
    expect(await listed({ outcome: 'ok', workspaceId: one })).toEqual([3, 1])
    expect(await listed({ model: 'acme/small' })).toEqual([4, 1])
    expect(await listed({ model: 'acme/small', outcome: 'ok' })).toEqual([1])
    expect(await listed({ model: 'acme/large', workspaceId: two })).toEqual([5])
    expect(await listed({ keyId: b })).toEqual([4, 3])
    expect(await listed({ keyId: b, outcome: 'ok' })).toEqual([3])
    expect(await listed({ keyId: b, outcome: 'failed', model: 'acme/large' })).toEqual([])
    expect(await listed({ keyId: b, workspaceId: two })).toEqual([])
    expect(await listed({ from: noon + 2, to: noon + 4 })).toEqual([3, 2])
    expect(await listed({ from: noon + 2, before: firstIdAt(noon + 4), outcome: 'failed' })).toEqual([2])
    expect(await listed({ to: noon + 3, before: firstIdAt(noon + 5) })).toEqual([2, 1])
  })
})
