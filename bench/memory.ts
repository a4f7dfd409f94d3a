// Memory at rest after many calls: the gateway serves JSON requests, billed, in a closed loop of 32 connections, and is read
// at each of a few counts: resident memory (the least of several readings, because the allocator gives pages back late) and
// the heap of the main thread after a collection. What a call leaves behind shows as growth from the first count to the last.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CELLS, PATHS, requestBody, requestHeaders } from './cells.ts'
import type { Running } from './contenders/contender.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { tollgateWith } from './contenders/tollgate.ts'
import { costOf } from './measure.ts'
import { runLoad } from './run-load.ts'

const usage = `npm run bench:memory -- [options]
  --calls a,b,c   read the memory after so many calls (100000,300000,1000000; about five minutes on two free cores)
  --cell ID       what is called (chat)`

/** Pages come back within seconds. */
const restMs = 4_000
const readings = 12
const readingMs = 500
const portionMs = 5_000
const mebibyte = 1024 * 1024
/** From the first count to the last. */
const growthMax = 10 * mebibyte

interface Reading {
  readonly calls: number
  readonly residentBytes: number
  readonly heapBytes: number
  readonly objects: number
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { calls: { type: 'string' }, cell: { type: 'string' }, help: { type: 'boolean' } },
  })
  const counts = (values.calls ?? '100000,300000,1000000').split(',').map(Number)
  const cell = CELLS.find(({ id }) => id === (values.cell ?? 'chat'))
  const isWrong = !cell || counts.some((count, at) => !(count > (counts[at - 1] ?? 0)))
  if (values.help || isWrong) {
    console[isWrong ? 'error' : 'log'](usage)
    return isWrong ? 2 : 0
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-memory-'))
  const upstream = await startUpstream(folder)
  const setting = { upstreamUrl: upstream.url, upstreamPid: upstream.pid, folder, peersFolder: '', installPeers: false }
  const started = await tollgateWith(join(import.meta.dir, 'report-heap.ts')).start(setting)
  try {
    if ('absent' in started) throw new Error(`tollgate: ${started.absent}`)
    const { running } = started
    const call = running.call(cell.surface, cell.provider)
    if (!call) throw new Error(`tollgate does not serve ${cell.id}`)
    const plan = {
      port: running.port,
      path: call.path ?? PATHS[cell.surface],
      headers: [{ ...requestHeaders(cell.surface), ...call.headers }],
      bodies: [requestBody(cell, call.model)],
      ...{ connections: 32, arrivalsPerSecond: 0, warmupMs: 0, windowMs: portionMs, pid: running.pid },
      eventsExpected: 0,
    }
    const rows: Reading[] = []
    let served = 0
    console.log('    calls   resident MiB   heap MiB   objects')
    for (const count of counts) {
      while (served < count) {
        const { requests, errors } = (await runLoad(plan)) ?? { requests: 0, errors: 1 }
        // On a busy machine a portion may end before its first answer, without an error.
        if (requests === 0 && errors > 0) throw new Error(`no request was answered; ${errors} failed`)
        served += requests
      }
      const row = await readAtRest(running, join(folder, 'tollgate.log'), served)
      rows.push(row)
      console.log(
        `${String(row.calls).padStart(9)}${mib(row.residentBytes).padStart(15)}${mib(row.heapBytes).padStart(11)}${String(row.objects).padStart(10)}`,
      )
    }
    const grown = (rows.at(-1)?.residentBytes ?? 0) - (rows[0]?.residentBytes ?? 0)
    console.log(`Growth of memory at rest: ${mib(grown)} MiB, below 10: ${grown < growthMax ? 'kept' : 'broken'}`)
    return 0
  } finally {
    if ('running' in started) await started.running.stop()
    await upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function readAtRest({ pid }: Running, logPath: string, calls: number): Promise<Reading> {
  await Bun.sleep(restMs)
  const heap = await readHeap(pid, logPath)
  let residentBytes = Number.POSITIVE_INFINITY
  for (let at = 0; at < readings; at++) {
    await Bun.sleep(readingMs)
    residentBytes = Math.min(residentBytes, costOf(pid).rssBytes)
  }
  return { calls, residentBytes, heapBytes: heap.heapSize, objects: heap.objectCount }
}

async function readHeap(
  pid: number,
  logPath: string,
): Promise<{ readonly heapSize: number; readonly objectCount: number }> {
  // The log has hundreds of megabytes by then.
  const before = Bun.file(logPath).size
  process.kill(pid, 'SIGUSR2')
  for (let at = 0; at < 100; at++) {
    await Bun.sleep(100)
    const [line] = /^\{"heapSize.*$/m.exec(await Bun.file(logPath).slice(before).text()) ?? []
    if (line) return JSON.parse(line)
  }
  throw new Error('the gateway did not report its heap')
}

function mib(bytes: number): string {
  return (bytes / mebibyte).toFixed(1)
}

process.exitCode = await main()
