// A batch of 10,000 lines, some of which the provider refuses, beside interactive calls: how much longer those take while it
// runs. `npm run bench:batches`, or with `-- --lines 2000 --wait 0`. It exits with 1 if the 99th percentile of the
// interactive calls is above its target.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import { PATHS, requestBody, requestHeaders } from './cells.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { tollgateBatches } from './contenders/tollgate.ts'
import { runLoad } from './run-load.ts'
import { median } from './statistics.ts'
import { REFUSED } from './upstream-replies.ts'

/** Of the 99th percentile without a batch. */
const ratioMax = 1.2
/** One line in so many is refused by the provider: 3 %. */
const refusedEvery = 33
const arrivalsPerSecond = 100
const windowMs = 8000
const windowsBeside = 7
/** Before it and after it. */
const windowsAlone = 4

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
    const measure = async (): Promise<number> => {
      const result = await runLoad({
        ...{ port: running.port, pid: running.pid, path: PATHS.chat, connections: 64, arrivalsPerSecond },
        headers: [{ ...requestHeaders('chat'), ...headers }],
        bodies: [requestBody(shape, model)],
        ...{ warmupMs: 1000, windowMs, eventsExpected: 0 },
      })
      if (!result || result.errors > 0 || result.p99Ms === null)
        throw new Error(`requests failed: ${result?.firstError}`)
      console.log(`  p50 ${result.p50Ms?.toFixed(2)} ms, p99 ${result.p99Ms.toFixed(2)} ms`)
      return result.p99Ms
    }
    console.log(`${arrivalsPerSecond} interactive calls a second`)
    const alone: number[] = []
    for (let at = 0; at < windowsAlone; at++) alone.push(await measure())
    const { id } = await createBatch(
      call,
      Array.from({ length: count }, (_, at) => lineOf(at, waitMs, model)),
    )
    const read = async () => (await (await call(`/v1/batches/${id}`)).json()) as Batch
    const beside: number[] = []
    while (beside.length < windowsBeside) {
      const before = (await read()).request_counts
      console.log(`beside a batch of ${count} lines, ${before.completed + before.failed} of them done`)
      const p99 = await measure()
      if ((await read()).status !== 'in_progress') break
      beside.push(p99)
    }
    if (beside.length === 0)
      throw new Error('the batch ended within the first window: pass more lines or a longer wait')
    let batch = await read()
    for (; batch.status !== 'completed'; batch = await read()) await Bun.sleep(500)
    console.log('after it')
    for (let at = 0; at < windowsAlone; at++) alone.push(await measure())
    const { completed, failed, total } = batch.request_counts
    console.log(`the batch: ${completed} lines done, ${failed} failed, of ${total}`)
    const wanted = Math.ceil(count / refusedEvery)
    if (failed !== wanted || completed !== count - wanted) throw new Error(`${wanted} lines should have failed`)
    const ratio = median(beside) / median(alone)
    console.log(
      `p99 beside it ${median(beside).toFixed(2)} ms, alone ${median(alone).toFixed(2)} ms, × ${ratio.toFixed(2)}`,
    )
    process.exitCode = ratio > ratioMax ? 1 : 0
  } finally {
    await running.stop()
    await upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
