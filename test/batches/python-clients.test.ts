// Batches with the official clients for Python: created, polled, cancelled and read, with a model of every dialect. On one
// engine: the clients see no difference, and the tests beside this one run both.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import { createWallets } from '../money/wallets.ts'
import { everyConfig, type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { fetchPython, pythonVersions } from '../recipes/python.ts'
import { batchesOn } from './parts.ts'

const upstream = startUpstream(answerHello)
let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ config: everyConfig(upstream.url), clock: systemClock, env: batchesOn })
})
afterAll(() => stopAll(gateway, upstream))

const models = ['test/chat', 'test/messages', 'test/responses', 'test/gemini']

const expected = {
  openai: {
    ...Object.fromEntries(models.map((model) => [model, ['completed', ['line-0', model], ['line-1', model]]])),
    cancelled: ['cancelled', 40, 40],
    listed: ['sandbox/slow', ...models].sort(),
  },
  anthropic: { models, cancelled: [40, true, 40], listed: 2, left: 1 },
} as const

for (const name of ['openai', 'anthropic'] as const) {
  const { python, missing } = await fetchPython(name, pythonVersions[name][0])
  const title = `the Python package ${name} creates, polls, cancels, reads and lists`
  if (missing !== undefined) test.skip(`${title}: ${missing}`, () => {})
  else
    test(title, async () => {
      const { key } = await createWallets(gateway).open('1.00')
      const program = join(import.meta.dir, `${name}_client.py`)
      const child = Bun.spawn([python, program, gateway.url, key], { stdio: ['ignore', 'pipe', 'pipe'] })
      const [out, err, exit] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
      expect([exit, err]).toEqual([0, ''])
      expect(JSON.parse(out)).toEqual(expected[name])
    })
}
