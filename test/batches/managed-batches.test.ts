// Batches for those who manage a workspace: the management API, `tollgate batches` and the webhook that says that one has ended.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { progressText } from '../../src/cli/commands/batches.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createWallets } from '../money/wallets.ts'
import { runHere } from '../parts/command-line.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { everyConfig, type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { adminHeaders, adminToken, manage } from '../parts/manage.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { batchesOn, call, chatLine, createOf, formOf, linesIn, until } from './parts.ts'

forEachEngine((engine) => {
  let place: Place
  let gateway: Gateway
  const folder = mkdtempSync(join(tmpdir(), 'batches-'))
  const upstream = startUpstream(answerHello)
  const received = Promise.withResolvers<{ headers: Record<string, string>; body: string }>()
  const receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      received.resolve({ headers: Object.fromEntries(request.headers), body: await request.text() })
      return new Response(null, { status: 204 })
    },
  })
  beforeAll(async () => {
    place = await engine.createPlace()
    const database = place.url === undefined ? {} : { DATABASE_URL: place.url }
    const config = `${everyConfig(upstream.url)}\nwebhooks: { allow_hosts: ['127.0.0.1'] }\nbatches: { file_bytes_max: 8000 }\n`
    gateway = await startGateway({ config, clock: systemClock, env: { ...batchesOn, ...database } })
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true })
    await receiver.stop(true)
    await stopAll(gateway, upstream, place)
  })

  const open = async () => {
    const { key, workspaceId } = await createWallets(gateway).open('1.00')
    return { as: { url: gateway.url, key }, workspaceId }
  }
  const run = (args: string, key?: string) =>
    runHere(args.split(' '), {
      cwd: folder,
      env: {
        ...{ HOME: folder, TOLLGATE_URL: gateway.url, TOLLGATE_ADMIN_TOKEN: adminToken(gateway.dataFolder) },
        ...(key !== undefined && { TOLLGATE_KEY: key }),
      },
    })

  test('the management API lists, shows, filters by and cancels batches of both APIs, and has their results', async () => {
    const { as, workspaceId } = await open()
    const params = { model: 'test/messages', max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] }
    const requests = [{ custom_id: 'one', params }]
    const first = (await call(as, 'POST', '/messages/batches', { body: { requests } })).body.id
    const second = (await createOf(as, [chatLine('two', 'hi'), chatLine('three', 'hi')])).body.id
    await until(as, second, 'completed')
    while ((await manage(gateway, 'GET', `/api/batches/${first}`)).status !== 'completed') await Bun.sleep(20)

    const list = (query: string) => manage(gateway, 'GET', `/api/batches?workspace_id=${workspaceId}${query}`)
    const newest = await list('&limit=1')
    expect(newest.data).toMatchObject([
      { id: second, status: 'completed', total: 2, succeeded: 2, errored: 0, endpoint: '/v1/chat/completions' },
    ])
    const rest = await list(`&limit=1&cursor=${newest.next_cursor}`)
    expect([rest.data[0].id, rest.data[0].endpoint, rest.next_cursor]).toEqual([first, '/v1/messages', null])
    expect((await list('&state=running')).data).toEqual([])

    const lines = await manage(gateway, 'GET', `/api/requests?workspace_id=${workspaceId}&batch_id=${second}`)
    const charged = lines.data.map(({ batch_id, cost }: Record<string, unknown>) => [batch_id, Number(cost) > 0])
    expect(charged).toEqual([
      [second, true],
      [second, true],
    ])
    const ask = (method: string, path: string) =>
      fetch(gateway.url + path, { method, headers: adminHeaders(gateway.dataFolder) })
    const results = async (id: string) => linesIn(await (await ask('GET', `/api/batches/${id}/results`)).text())
    expect((await results(second)).map(({ custom_id, response }) => [custom_id, response.status_code])).toEqual([
      ['two', 200],
      ['three', 200],
    ])
    expect(await results(first)).toMatchObject([{ custom_id: 'one', result: { type: 'succeeded' } }])
    const exported = linesIn(await (await ask('GET', `/api/workspaces/${workspaceId}/export`)).text())
    const ofType = (type: string) => exported.filter((line) => line.record === type)
    expect([ofType('batch').length, ofType('batch_result').length]).toEqual([2, 3])
    const refused = await ask('POST', `/api/batches/${second}/cancel`)
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('The batch has ended (completed) and cannot be cancelled.'),
    ])
  })

  test('a file has its most bytes, and a batch of messages a quarter more', async () => {
    const { as } = await open()
    const messagesOf = (bytes: number) => {
      const sized = (length: number) => {
        const params = {
          model: 'test/messages',
          max_tokens: 64,
          messages: [{ role: 'user', content: 'x'.repeat(length) }],
        }
        return { requests: [{ custom_id: 'a', params }] }
      }
      return sized(bytes - JSON.stringify(sized(0)).length)
    }
    const statusOf = async (body: object) => (await call(as, 'POST', '/messages/batches', { body })).status
    expect([await statusOf(messagesOf(10_000)), await statusOf(messagesOf(10_001))]).toEqual([200, 413])
    const upload = async (bytes: number) =>
      (await call(as, 'POST', '/files', { body: formOf('x'.repeat(bytes)) })).status
    expect([await upload(8_000), await upload(8_001)]).toEqual([200, 413])
  })

  test('tollgate batches creates, lists, waits, prints results and cancels', async () => {
    const { as, workspaceId } = await open()
    writeFileSync(join(folder, 'lines.jsonl'), [chatLine('a', 'hi'), chatLine('b', 'ho')].join('\n'))
    const created = await run('batches create lines.jsonl', as.key)
    expect([created.exit, created.err]).toEqual([0, expect.stringContaining(' --wait')])
    expect(created.out).toMatch(/^Batch batch_\w{26} created: 2 lines\n$/)
    const id = created.out.split(' ')[1] ?? ''
    const shown = await run(`batches show ${id} --wait`)
    expect(shown.exit).toBe(0)
    expect(shown.out).toContain(`[${'█'.repeat(24)}] 100 %, 2 of 2 lines, $`)
    const results = linesIn((await run(`batches results ${id}`)).out)
    expect(results.map(({ custom_id }) => custom_id)).toEqual(['a', 'b'])
    const { data } = JSON.parse((await run(`batches --workspace ${workspaceId} --json`)).out)
    expect(data).toMatchObject([{ id, status: 'completed', succeeded: 2 }])
    expect((await run(`requests --batch ${id} --json`)).out).toContain(`"batch_id": "${id}"`)

    const ended = await run(`batches cancel ${id}`)
    expect([ended.exit, ended.err]).toEqual([2, expect.stringContaining('has ended (completed)')])
    const unknown = await run('batches show batch_01KA8M0Q2V7TSCXZ9Y5D3E1F4G')
    expect([unknown.exit, unknown.err]).toEqual([4, expect.stringContaining('Try: tollgate batches\n')])
    const keyless = await run('batches create lines.jsonl')
    expect([keyless.exit, keyless.err]).toEqual([3, expect.stringContaining('TOLLGATE_KEY=')])
    expect((await run('batches create lines.jsonl', 'sk-tg-nobody')).exit).toBe(3)
    expect((await run('batches create none.jsonl', as.key)).exit).toBe(2)
    writeFileSync(join(folder, 'wrong.jsonl'), [chatLine('a', 'hi'), chatLine('a', 'ho')].join('\n'))
    const wrong = await run('batches create wrong.jsonl', as.key)
    expect([wrong.exit, wrong.err]).toEqual([2, expect.stringContaining('Lines 1 and 2 have the same `custom_id`.')])
  })

  test('a batch that is cancelled by a person ends, which a webhook says', async () => {
    const { as, workspaceId } = await open()
    const [free, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    upstream.handle(async (asked, reply) => {
      begun.resolve()
      await free.promise
      await answerHello(asked, reply)
    })
    const hook = { url: `http://127.0.0.1:${receiver.port}/`, workspace_id: workspaceId, kinds: ['batch.ended'] }
    const { secret } = await manage(gateway, 'POST', '/api/webhooks', hook)
    const lines = Array.from({ length: 20 }, (_, at) => chatLine(`${at}`, 'hi'))
    const { id } = (await createOf(as, lines)).body
    await begun.promise
    expect((await run(`batches cancel ${id} --json`)).out).toContain('"status": "cancelling"')
    free.resolve()
    const { request_counts: counts } = await until(as, id, 'cancelled')
    upstream.handle(answerHello, 'stay unasked')
    const { headers, body } = await received.promise
    const alert = new Webhook(secret).verify(body, headers) as { type: string; data: Record<string, unknown> }
    expect(alert).toMatchObject({
      type: 'batch.ended',
      data: { batch_id: id, workspace_id: workspaceId, status: 'cancelled', total: 20, succeeded: counts.completed },
    })
    const { data } = await manage(gateway, 'GET', `/api/audit?object=${id}`)
    expect(data).toMatchObject([{ action: 'batch.cancel', object: id }])
  })
})

test('the bar shows lines that are done, of whatever outcome', () => {
  const batch = { total: 1000, succeeded: 240, errored: 10, cancelled: 0, expired: 0, cost: '0.12' }
  expect(progressText(batch as Parameters<typeof progressText>[0])).toBe(
    `[${'█'.repeat(6)}${'░'.repeat(18)}] 25 %, 250 of 1,000 lines, $0.12`,
  )
})
