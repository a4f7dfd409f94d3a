// A provider that fails for thirty seconds under load, with a healthy second route: no client sees an error, the bad route
// is skipped after its fifth fault, few calls are made twice, and it gets its traffic back. The clock is advanced step by
// step; only the length of a step is real.

import { describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { failoverConfig, startGateway } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { bothSurfaces, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamCall } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'

/** The gateway looks at its clocks ten times a second. */
const tickMs = 110

type Fault = '503' | 'hang'

interface Tally {
  requests: number
  /** Results of clients that were no whole answer. */
  readonly errors: string[]
}

async function startScene(fault: Fault) {
  const clock = createJumpClock()
  let isBad = false
  const unanswered: UpstreamCall[] = []
  const primary = startUpstream((call, reply) => {
    if (!isBad) return answerHello(call, reply)
    if (fault === '503') return reply.json(503, { error: { message: 'busy' } })
    unanswered.push(call)
  })
  const second = startUpstream(answerHello)
  const gateway = await startGateway({ config: failoverConfig([primary.url, second.url]), clock })
  const tally: Tally = { requests: 0, errors: [] }
  const running = new Set<Promise<void>>()
  /** How long four requests took. */
  let slowestMs = 0

  async function askOnce(surface: TestSurface): Promise<void> {
    tally.requests++
    const body = { model: surface.model, stream: true, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
    const response = await ask(gateway, surface, body)
    const text = await response.text()
    if (response.status !== 200 || text.includes('"error"') || !/\[DONE\]|message_stop/.test(text)) {
      tally.errors.push(`${response.status} ${text}`)
    }
  }

  return {
    clock,
    primary,
    second,
    tally,
    setBad(bad: boolean) {
      isBad = bad
    },
    /** Lets so many seconds pass, with four requests in each. */
    async pass(seconds: number, surface: TestSurface): Promise<void> {
      for (let second = 0; second < seconds; second++) {
        const batch = Array.from({ length: 4 }, () => askOnce(surface))
        for (const asked of batch) {
          running.add(asked)
          void asked.finally(() => running.delete(asked))
        }
        const begunMs = performance.now()
        // However slow this machine is: time advances only when all running requests wait for a silent provider.
        while (running.size > unanswered.filter((call) => !call.isClosed()).length) await Bun.sleep(1)
        slowestMs = Math.max(slowestMs, performance.now() - begunMs)
        // One that hangs ends when its clock does, so that must be looked at in every second; and it must have come to its
        // end before the next one, which takes longer on a slow machine.
        if (running.size > 0) await Bun.sleep(tickMs + slowestMs)
        clock.jump(1)
      }
    },
    settle: () => Promise.all(running),
    ejections: () => gateway.logged().filter(({ message }) => /ejected/.test(String(message))),
    async stop() {
      await gateway.stop()
      primary.stop()
      second.stop()
    },
  }
}

describe.each([...bothSurfaces])('on the $name surface', (surface) => {
  test.each(['503', 'hang'] as const)('an outage by %s is hidden', async (fault) => {
    const scene = await startScene(fault)
    const { primary, second, tally } = scene
    await scene.pass(60, surface)
    await scene.settle()
    expect(second.calls).toHaveLength(0)
    expect(primary.calls).toHaveLength(240)

    scene.setBad(true)
    await scene.pass(30, surface)
    scene.setBad(false)
    const calledWhileBad = primary.calls.length - 240
    // Four in each second until the fifth fault: at once for a 503; for a silence after 15 s, the least limit for a
    // first event. Then the ejection, at least 12 s long, and one request that tests it.
    const untilFifth = fault === '503' ? 8 : 4 * 17
    expect(calledWhileBad).toBeGreaterThanOrEqual(5)
    expect(calledWhileBad).toBeLessThanOrEqual(untilFifth + 2)
    expect(scene.ejections().length).toBeGreaterThanOrEqual(1)

    // Two ejections of 15 and 30 s, each up to a fifth longer, and three tests 5 s apart.
    await scene.pass(75, surface)
    await scene.settle()
    expect(tally.errors).toEqual([])
    const calls = primary.calls.length + second.calls.length
    expect(calls).toBeLessThanOrEqual(tally.requests * 1.2)

    // A test that met the last of the outage doubles the ejection once more: a minute, up to a fifth longer.
    let served = 0
    for (let waited = 0; served < 20 && waited < 120; waited += 5) {
      const before = primary.calls.length
      await scene.pass(5, surface)
      served = primary.calls.length - before
    }
    expect(served).toBe(20)
    await scene.stop()
  })
})
