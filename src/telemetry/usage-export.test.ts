import { expect } from 'bun:test'
import { usageOf } from '../../test/observe/observed-records.ts'
import { storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { exportUsage, type UsageExport } from './usage-export.ts'

const from = Date.UTC(2026, 10, 1)
const to = Date.UTC(2026, 11, 1)
const hourMs = 60 * 60_000

async function textOf(options: Omit<UsageExport, 'nameOf'>): Promise<string> {
  let text = ''
  const nameOf = async (group: string, id: string) => (id === 'prj_a' ? `${group} a, renamed` : null)
  for await (const piece of exportUsage({ ...options, nameOf })) text += piece
  return text
}

const callerOf = (project: string, workspace = 'ws_1') => ({
  keyId: `key_of_${project}` as KeyId,
  projectId: project as ProjectId,
  workspaceId: workspace as WorkspaceId,
})

forEachEngine((_, storeTest) => {
  storeTest('the requests of the time are in it, the others are not', async ({ database }) => {
    await storeRequests(database, [
      { startedAt: from - 1 },
      { startedAt: from },
      { startedAt: to - 1, status: 400, code: 'INVALID_REQUEST', attempts: [], usage: undefined, charge: undefined },
      { startedAt: to },
    ])
    const csv = await textOf({ database, from, to, format: 'csv', groupBy: ['provider'] })
    expect(csv.split('\n').slice(1)).toEqual([
      'acme,1,0,0,100,0,0,0,20,0.00045,0.00',
      // No provider was called.
      ',1,1,0,0,0,0,0,0,0.00,0.00',
      '',
    ])
  })

  storeTest('sums are exact, by what was asked for, in order', async ({ database }) => {
    const tenth = 100_000_000n as Nano
    await storeRequests(database, [
      ...Array.from({ length: 10 }, () => ({ startedAt: from, charge: tenth, caller: callerOf('prj_b') })),
      { startedAt: from + 1, caller: callerOf('prj_a'), charge: 1n as Nano, code: 'STREAM_INTERRUPTED' },
      {
        startedAt: from + 24 * hourMs,
        caller: callerOf('prj_b'),
        charge: 5n as Nano,
        usage: {
          ...usageOf(3, 4),
          ...{ cacheReadTokens: 9, cacheWriteTokens: 2, cacheWriteLongTokens: 1, source: 'estimated' as const },
        },
        cacheSaved: -3n,
      },
    ])
    const csv = await textOf({ database, from, to, format: 'csv', groupBy: ['day', 'project'] })
    expect(csv.split('\n')).toEqual([
      'day,project_id,project,requests,failed_requests,estimated_requests,' +
        'input_tokens,cache_read_tokens,cache_write_tokens,cache_write_1h_tokens,output_tokens,cost_usd,cache_saved_usd',
      '2026-11-01,prj_a,"project a, renamed",1,1,0,100,0,0,0,20,0.000000001,0.00',
      '2026-11-01,prj_b,,10,0,0,1000,0,0,0,200,1.00,0.00',
      '2026-11-02,prj_b,,1,0,1,3,9,2,1,4,0.000000005,-0.000000003',
      '',
    ])
  })

  storeTest('a workspace sees its own', async ({ database }) => {
    await storeRequests(database, [
      { startedAt: from, caller: callerOf('prj_1', 'ws_1') },
      { startedAt: from, caller: callerOf('prj_2', 'ws_2') },
    ])
    const workspaceId = 'ws_2' as WorkspaceId
    const text = await textOf({ database, from, to, format: 'jsonl', workspaceId, groupBy: ['project'] })
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).project_id),
    ).toEqual(['prj_2'])
  })

  storeTest('more than a portion is read to the end, each request once', async ({ database }) => {
    await storeRequests(
      database,
      Array.from({ length: 2001 }, (_, place) => ({ startedAt: from + Math.floor(place / 10) })),
    )
    let turns = 0
    const others = setInterval(() => turns++, 0)
    const sums = await textOf({ database, from, to, format: 'jsonl', groupBy: ['tag:team'] })
    clearInterval(others)
    expect(JSON.parse(sums)).toMatchObject({ requests: 2001, input_tokens: 200_100 })
    // Whatever else there is to do is done between two portions.
    expect(turns).toBeGreaterThan(0)
  })
})
