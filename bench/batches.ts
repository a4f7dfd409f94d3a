// A batch of 10,000 lines, some of which the provider refuses, beside interactive calls: how much longer those take while it
// runs. Windows with and without it take turns, in one warm process: the batch is switched off and on again in the
// configuration file. `npm run bench:batches`, or with `-- --lines 2000 --wait 0`. It exits with 1 if the 99th percentile of
// the interactive calls is above its target.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import { PATHS, requestBody, requestHeaders } from './cells.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { switchBatches, tollgateBatches } from './contenders/tollgate.ts'
import { runLoad } from './run-load.ts'
import { median } from './statistics.ts'
import { REFUSED } from './upstream-replies.ts'

/** Of the 99th percentile without a batch. */
const ratioMax = 1.2
/** One line in so many is refused by the provider: 3 %. */
const refusedEvery = 33
const arrivalsPerSecond = 100
/** The code of a request and of a line is compiled while they run: until then both take several times as long. */
const warmSeconds = 20
const warmLines = 2000
const windowMs = 12_000
/** After each switch. */
const settleMs = 3000
/** Windows of each kind. */
const pairs = 7

const usage = `npm run bench:batches -- [options]
  --lines N   of the batch; 10000
  --wait MS   how long the provider takes for a line, on average; 50`

interface Batch {
  readonly id: string
  readonly status: string
  readonly output_file_id?: string | null
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number }
}

function clientOf(port: number, headers: Readonly<Record<string, string>>) {
  return async (path: string, init: RequestInit = {}): Promise<Response> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      ...init,
      headers: { ...headers, ...(typeof init.body === 'string' && { 'content-type': 'application/json' }) },
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response
  }
}

type Client = ReturnType<typeof clientOf>

function lineOf(at: number, waitMs: number, model: string): string {
  const shape = { surface: 'chat', provider: 'chat', events: 0, paceMs: 0, waitMs, promptBytes: 1000 } as const
  const body = JSON.parse(requestBody(shape, model))
  if (at % refusedEvery === 0) body.messages[0].content = `${REFUSED} ${body.messages[0].content}`
  return JSON.stringify({ custom_id: `line-${at}`, method: 'POST', url: '/v1/chat/completions', body })
}

async function createBatch(call: Client, lines: readonly string[]): Promise<Batch> {
  const form = new FormData()
  form.append('purpose', 'batch')
  form.append('file', new File([lines.join('\n')], 'lines.jsonl'))
  const file = (await (await call('/v1/files', { method: 'POST', body: form })).json()) as { id: string }
  const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
  return (await (await call('/v1/batches', { method: 'POST', body: JSON.stringify(order) })).json()) as Batch
}

async function main(): Promise<void> {
  const options = scriptOptions(usage, { lines: { type: 'string' }, wait: { type: 'string' } })
  const [count, waitMs] = [Number(options.lines ?? 10_000), Number(options.wait ?? 50)]
  if (!Number.isInteger(count) || count < 100) refuseOptions('--lines takes a whole number from 100 on.', usage)
  if (!Number.isInteger(waitMs) || waitMs < 0) refuseOptions('--wait takes milliseconds.', usage)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-batches-'))
  const upstream = await startUpstream(folder)
  const { url: upstreamUrl, pid: upstreamPid } = upstream
  const started = await tollgateBatches.start({
    upstreamUrl,
    upstreamPid,
    folder,
    peersFolder: '',
    installPeers: false,
  })
  if ('absent' in started) throw new Error(started.absent)
  const { running } = started
  try {
    const { model = '', headers = {} } = running.call('chat', 'chat') ?? {}
    const call = clientOf(running.port, headers)
    const shape = { surface: 'chat', provider: 'chat', events: 0, paceMs: 0, waitMs: 0, promptBytes: 1000 } as const
    const load = { port: running.port, pid: running.pid, path: PATHS.chat, connections: 64, eventsExpected: 0 }
    const calls = { headers: [{ ...requestHeaders('chat'), ...headers }], bodies: [requestBody(shape, model)] }
    const measure = async (name: string): Promise<number> => {
      const result = await runLoad({ ...load, ...calls, arrivalsPerSecond, warmupMs: settleMs, windowMs })
      if (!result || result.errors > 0 || result.p99Ms === null)
        throw new Error(`requests failed: ${result?.firstError}`)
      console.log(`${name}: p50 ${result.p50Ms?.toFixed(2)} ms, p99 ${result.p99Ms.toFixed(2)} ms`)
      return result.p99Ms
    }
    const linesOf = (many: number) => Array.from({ length: many }, (_, at) => lineOf(at, waitMs, model))
    const read = async (id: string) => (await (await call(`/v1/batches/${id}`)).json()) as Batch
    const ended = async (id: string) => {
      for (;;) {
        const batch = await read(id)
        if (batch.status === 'completed') return batch
        await Bun.sleep(500)
      }
    }
    const { id: first } = await createBatch(call, linesOf(warmLines))
    await runLoad({ ...load, ...calls, arrivalsPerSecond: 0, warmupMs: 0, windowMs: warmSeconds * 1000 })
    await ended(first)
    console.log(`${arrivalsPerSecond} interactive calls a second, and a batch of ${count} lines`)
    const { id } = await createBatch(call, linesOf(count))
    const ratios: number[] = []
    const [alone, beside]: [number[], number[]] = [[], []]
    for (let pair = 1; pair <= pairs; pair++) {
      switchBatches(folder, false)
      const without = await measure(`${pair} alone `)
      switchBatches(folder, true)
      const during = await measure(`${pair} beside`)
      const { status, request_counts: done } = await read(id)
      if (status !== 'in_progress') break
      console.log(`  × ${(during / without).toFixed(2)}; ${done.completed + done.failed} lines are done`)
      alone.push(without)
      beside.push(during)
      ratios.push(during / without)
    }
    if (ratios.length < 3) throw new Error('the batch ended too early: pass more lines or a longer wait')
    const { completed, failed, total } = (await ended(id)).request_counts
    console.log(`the batch: ${completed} lines done, ${failed} failed, of ${total}`)
    const wanted = Math.ceil(count / refusedEvery)
    if (failed !== wanted || completed !== count - wanted) throw new Error(`${wanted} lines should have failed`)
    const ratio = median(ratios)
    const medians = `p99 beside it ${median(beside).toFixed(2)} ms, alone ${median(alone).toFixed(2)} ms`
    console.log(`${medians}; median of the ratios within each pair × ${ratio.toFixed(2)}, at most ${ratioMax}`)
    process.exitCode = ratio > ratioMax ? 1 : 0
  } finally {
    await running.stop()
    await upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
