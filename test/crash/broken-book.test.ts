import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { checkBooks, openingCredit, withBooks } from '../parts/crash-books.ts'
import { askForReceipt } from '../parts/crash-client.ts'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { startCrashUpstream } from '../parts/crash-upstream.ts'
import { chat, messages } from '../parts/surfaces.ts'
import { allAsks, expectRefusal, until } from './outage.ts'
import { createSite } from './run-cycles.ts'

// The wallets in memory fail to follow a commit: the one state that a gateway must not go on in.

test('a gateway whose wallets contradict the database answers what it charged, finishes its streams and exits with code 1', async () => {
  const crashUpstream = startCrashUpstream()
  const { calls } = crashUpstream.upstream
  const site = await createSite('sqlite', crashUpstream)
  const preload = [join(import.meta.dir, '..', 'parts', 'break-book.ts')]
  const gateway = await startCrashGateway(site, { preload })
  try {
    crashUpstream.closeGate()
    const order = { inputTokens: 7, outputTokens: 5, pieces: 2, pauseMs: 1 }
    const streams = [chat, messages].map((surface) =>
      askForReceipt(gateway, { surface, model: 'test/chat', stream: true, order }),
    )
    // 13 × 1,000 + 1 × 2,000 nano-dollars: the charge for which break-book.ts fails.
    const breakingOrder = { inputTokens: 13, outputTokens: 1, pieces: 1, pauseMs: 1 }
    const breaking = askForReceipt(gateway, { surface: chat, model: 'test/chat', stream: false, order: breakingOrder })
    await until(() => calls.length === 3)
    crashUpstream.openGate()
    const receipts = await Promise.all([...streams, breaking])
    expect(receipts.map(({ end }) => end)).toEqual(['complete', 'complete', 'complete'])
    // No new request is accepted: rejected, or the socket is closed.
    const [ask] = allAsks
    const refused = ask && (await askForReceipt(gateway, ask))
    if (refused && refused.status !== undefined) expectRefusal(refused)
    expect(await gateway.ended).toBe(1)
    const [error] = gateway.errors()
    expect(gateway.errors()).toHaveLength(1)
    expect(error).toContain('The balances in memory contradict the database')
    expect(error).toContain('broken for a test')

    const next = await startCrashGateway(site)
    expect(await next.stop()).toBe(0)
    await withBooks(site, async (database) => {
      expect(await checkBooks(database, { paidIn: openingCredit, receipts, asked: receipts.length })).toEqual([])
    })
  } finally {
    await gateway.kill()
    crashUpstream.upstream.stop()
    rmSync(site.dataFolder, { recursive: true, force: true })
  }
})
