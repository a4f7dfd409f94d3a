import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Ask, askForReceipt, askKinds, type Receipt } from '../parts/crash-client.ts'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { readTrace, type TracedCall, tracer, wholeTrace } from '../parts/crash-trace.ts'
import { startCrashUpstream } from '../parts/crash-upstream.ts'
import { createSite } from './run-cycles.ts'

// kill -9 says nothing about the disk: what was written and not synced survives it in the kernel's memory, and not a
// power cut. The order of the calls to the kernel does say it.

const order = { inputTokens: 7, outputTokens: 5, pieces: 2, pauseMs: 1 }
const asks: readonly Ask[] = askKinds.flatMap((kind) => [true, false].map((stream) => ({ ...kind, stream, order })))

interface Traced {
  readonly calls: readonly TracedCall[]
  readonly receipts: readonly Receipt[]
  readonly clientSocket: string
}

async function traceCalls(): Promise<Traced> {
  const crashUpstream = startCrashUpstream()
  const site = await createSite('sqlite', crashUpstream)
  try {
    const file = join(site.dataFolder, 'trace')
    const gateway = await startCrashGateway(site, { prefix: tracer(file) })
    const receipts: Receipt[] = []
    // One after the other, so that each has a separate commit.
    for (const ask of asks) receipts.push(await askForReceipt(gateway, ask))
    expect(await gateway.stop()).toBe(0)
    return {
      calls: readTrace(await wholeTrace(file, gateway.pid)),
      receipts,
      clientSocket: `TCP:[127.0.0.1:${new URL(gateway.url).port}->`,
    }
  } finally {
    crashUpstream.upstream.stop()
    rmSync(site.dataFolder, { recursive: true, force: true })
  }
}

const toLog = (call: TracedCall): boolean => call.target.endsWith('/tollgate.db-wal')
const isSync = ({ name }: TracedCall): boolean => name === 'fsync' || name === 'fdatasync'

function terminalBytes({ surface, stream }: Ask, { requestId }: Receipt): string {
  if (!stream) return `x-request-id: ${requestId}`
  return surface.name === 'chat' ? '[DONE]' : 'event: message_stop'
}

test.skipIf(Bun.which('strace') === null)(
  'the log with the charge is synced before the last bytes of its answer are written to the client (strace)',
  async () => {
    const { calls, receipts, clientSocket } = await traceCalls()
    expect(receipts.map(({ end }) => end)).toEqual(asks.map(() => 'complete'))
    let from = 0
    for (const [at, ask] of asks.entries()) {
      const receipt = receipts[at] as Receipt
      const terminal = terminalBytes(ask, receipt)
      // Nothing else of a request is written before its charge.
      const charge = calls.find((call) => toLog(call) && call.text.includes(`${receipt.requestId}`))
      const last = calls.find(
        (call) => call.begin >= from && call.target.startsWith(clientSocket) && call.text.includes(terminal),
      )
      if (charge === undefined || last === undefined) throw new Error(`not in the trace: ${terminal}`)
      const logged = calls.filter((call) => toLog(call) && call.begin > from && call.begin < last.begin)
      const lastPage = logged.findLast((call) => !isSync(call)) as TracedCall
      const sync = logged.findLast(isSync)
      if (sync === undefined) throw new Error(`${receipt.requestId} was answered without a sync of the log`)
      const orderSeen = [charge.begin, lastPage.end, sync.begin, sync.end, last.begin].map(Number)
      expect(orderSeen).toEqual(orderSeen.toSorted((a, b) => a - b))
      expect(sync.result).toBe(0)
      from = last.begin
    }
  },
)
