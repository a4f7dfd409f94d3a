import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { managementToken, openManagement, type TestManagement } from '../../../test/parts/management.ts'
import { createId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { listRequests } from '../../telemetry/list-requests.ts'
import { createRequestLog } from '../../telemetry/request-log.ts'
import { createRecord } from '../../telemetry/request-record.ts'
import type { RequestTail, TailListener } from '../../telemetry/request-tail.ts'
import { requestSchema } from './request-answer.ts'

interface Place {
  readonly workspace: `ws_${string}`
  readonly project: `prj_${string}`
  readonly key: `key_${string}`
}

async function openPlace(management: TestManagement): Promise<Place> {
  const { id: workspace } = await management.make('/api/workspaces', { name: 'acme' })
  const { id: project } = await management.make(`/api/workspaces/${workspace}/projects`, { name: 'web' })
  const { id: key } = await management.make(`/api/projects/${project}/keys`, { name: 'ci' })
  return { workspace, project, key }
}

/** Of 10 tokens in and 6 out, at $1.00 and $2.00 per million: 22,000 nano-dollars. */
async function writeRequest(management: TestManagement, { workspace, project, key }: Place, code?: string) {
  const { database, clock } = management
  const log = createRequestLog({ database, onLost: (_count, error) => void management.defects.push(error) })
  const record = createRecord(createId('req'), clock.now() - 60_000, '/v1/chat/completions')
  record.caller = { workspaceId: workspace, projectId: project, keyId: key }
  record.model = 'acme/large'
  record.status = code === undefined ? 200 : 429
  record.code = code
  if (code === undefined) {
    const cache = { cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0 }
    record.usage = { inputTokens: 10, ...cache, outputTokens: 6, source: 'reported' }
    record.charge = 22_000n as Nano
    record.firstEventMs = 100
  }
  log.write(record)
  await log.close()
  return record.id
}

forEachEngine((engine) => {
  test('requests are added up by the hour and by key, with names', async () => {
    await using management = await openManagement(engine)
    const place = await openPlace(management)
    await writeRequest(management, place)
    await writeRequest(management, place)
    await writeRequest(management, place, 'LIMIT_EXCEEDED')
    const { body, status } = await management.ask('GET', `/api/stats?group=key&workspace_id=${place.workspace}`)
    expect(status).toBe(200)
    // Half of two that took between 50 and 100 ms, estimated in proportion: 75; 95 % of the way: 97.5, rounded.
    const first = { count: 2, p50: 75, p95: 98 }
    const figures = {
      requests: 3,
      errors: 1,
      input_tokens: 20,
      output_tokens: 12,
      cost: '0.000044',
      first_event_ms: first,
    }
    expect(body.total).toEqual(figures)
    expect(body.groups).toEqual([{ id: place.key, name: 'ci', ...figures }])
    expect(body.hours).toHaveLength(1)
    expect(body.groups_left_off).toBe(0)
    const byProject = await management.ask('GET', '/api/stats?group=project')
    expect(byProject.body.groups).toMatchObject([{ id: place.project, name: 'web' }])
    const elsewhere = await management.ask('GET', `/api/stats?workspace_id=${createId('ws')}`)
    expect(elsewhere.body.total).toMatchObject({ requests: 0, cost: '0.00', first_event_ms: null })
  })

  test('a span that ends before it begins, or is too long, is refused by name', async () => {
    await using management = await openManagement(engine)
    for (const [query, words] of [
      ['from=2026-11-15T00:00:00Z&to=2026-11-14T00:00:00Z', '`from` must be before'],
      ['from=2026-01-01T00:00:00Z&to=2026-11-14T00:00:00Z', 'At most 92 days'],
      ['group=colour', '`group` must be model, project or key'],
    ]) {
      const { status, body } = await management.ask('GET', `/api/stats?${query}`)
      expect([status, body.error.message]).toEqual([400, expect.stringContaining(words ?? '')])
    }
  })

  test('requests can be followed as they end, by those who may see them', async () => {
    let listener: TailListener | undefined
    const tail: RequestTail = {
      listen(next) {
        listener = next
        return () => {}
      },
      close() {},
    }
    await using management = await openManagement(engine, { tail })
    const place = await openPlace(management)
    const address = `${management.url}/api/requests/events?outcome=failed`
    expect((await fetch(address)).status).toBe(401)
    expect(listener).toBeUndefined()
    const response = await fetch(address, { headers: { authorization: `Bearer ${managementToken}` } })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    await writeRequest(management, place)
    const failed = await writeRequest(management, place, 'LIMIT_EXCEEDED')
    listener?.onRequests(await listRequests(management.database.sql, { limit: 10 }))
    listener?.onEnd()
    const text = await response.text()
    const told = [...text.matchAll(/^event: request\ndata: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? ''))
    expect(told).toMatchObject([{ id: failed, code: 'LIMIT_EXCEEDED', key_id: place.key }])
    // One request looks the same in the stream and in the list.
    expect(requestSchema.parse(told[0])).toEqual(told[0])
  })
})
