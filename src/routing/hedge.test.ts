import { describe, expect, jest, test } from 'bun:test'
import { createHedgeBudget, hedgePair, type Race, race } from './failover.ts'
import { createHealth } from './health.ts'
import type { Candidate } from './plan.ts'

const clock = { now: () => 0, monotonicMs: () => 0 }

describe('the budget', () => {
  test('allows one request in twenty', () => {
    const budget = createHedgeBudget({ clock })
    let hedged = 0
    for (let n = 0; n < 1000; n++) {
      budget.earn()
      if (budget.spend()) hedged++
    }
    expect(hedged).toBe(50)
  })

  test('saves up at most five', () => {
    const budget = createHedgeBudget({ clock })
    for (let n = 0; n < 1000; n++) budget.earn()
    let hedged = 0
    while (budget.spend()) hedged++
    expect(hedged).toBe(5)
  })
})

describe('the second route', () => {
  /** Routes at these addresses; the first has a hundred answers behind it, the k-th after k ms. */
  function plan(urls: readonly string[], samples = 100) {
    const health = createHealth({ clock, random: () => 0.5 })
    const ordered = urls.map((baseUrl, at) => {
      const key = health.route({ providerId: `p${at}`, baseUrl, upstreamModel: 'm', credentialId: 'platform' })
      return { provider: { id: `p${at}` }, health: key } as unknown as Candidate
    })
    const [first] = ordered
    for (let ms = 1; ms <= samples; ms++) if (first) health.recordOk(first.health, 0, ms)
    return { ordered, reasons: [], excluded: [], mode: 'ordinary' as const }
  }

  test('is the next one at another host, after the p95 of the first', () => {
    const pair = hedgePair(plan(['https://a.test/v1', 'https://a.test/v2', 'https://b.test/v1']), clock)
    expect(pair?.first.provider.id).toBe('p0')
    expect(pair?.second.provider.id).toBe('p2')
    expect(pair?.afterMs).toBe(95)
  })

  test.each([
    ['if all are at one host', plan(['https://a.test/v1', 'https://a.test/v2'])],
    ['before twenty samples', plan(['https://a.test', 'https://b.test'], 19)],
    ['in a panic', { ...plan(['https://a.test', 'https://b.test']), mode: 'panic' as const }],
  ])('is none %s', (_, none) => {
    expect(hedgePair(none, clock)).toBeUndefined()
  })
})

describe('a race', () => {
  /** Outcomes that begin with `ok` have won. */
  function start(more: Partial<Race<string>> | { readonly timer: 'real' } = {}) {
    const first = Promise.withResolvers<string>()
    const second = Promise.withResolvers<string>()
    const waited = Promise.withResolvers<void>()
    const lost: { first?: AbortSignal; second?: AbortSignal } = {}
    const discarded: string[] = []
    const result = race<string>({
      afterMs: 95,
      runFirst(signal) {
        lost.first = signal
        return first.promise
      },
      runSecond(signal) {
        lost.second = signal
        return second.promise
      },
      hasWon: (outcome) => outcome.startsWith('ok'),
      discard: (outcome) => void discarded.push(outcome),
      ...('timer' in more ? {} : { wait: () => waited.promise, ...more }),
    })
    return { first, second, waited, lost, discarded, result }
  }

  test.each([
    ['while that is fast', 'ok first'],
    ['if that fails early: failover is not hedging', '503'],
  ])('has one runner %s', async (_, outcome) => {
    const { first, lost, result } = start()
    first.resolve(outcome)
    expect(await result).toEqual([outcome])
    expect(lost.second).toBeUndefined()
  })

  async function withFakeTimers(body: () => Promise<void>): Promise<void> {
    jest.useFakeTimers()
    try {
      await body()
    } finally {
      jest.useRealTimers()
    }
  }

  test.each([
    ['ok first', '["ok first"]'],
    ['503', '["503"]'],
    [new TypeError('a defect'), 'TypeError: a defect'],
  ])('leaves no timer behind when the first runner ends early with %s', (outcome, expected) =>
    withFakeTimers(async () => {
      const timersBefore = jest.getTimerCount()
      const { first, result } = start({ timer: 'real' })
      expect(jest.getTimerCount()).toBe(timersBefore + 1)
      if (typeof outcome === 'string') first.resolve(outcome)
      else first.reject(outcome)
      expect(await result.then(JSON.stringify, String)).toBe(expected)
      expect(jest.getTimerCount()).toBe(timersBefore)
    }),
  )

  test('starts the second runner when its timer expires', () =>
    withFakeTimers(async () => {
      const { second, lost, result } = start({ timer: 'real' })
      jest.advanceTimersByTime(94)
      await Promise.resolve()
      expect(lost.second).toBeUndefined()
      jest.advanceTimersByTime(1)
      second.resolve('ok second')
      expect(await result).toEqual(['ok second'])
    }))

  test('is won by the first answer, and the other is aborted', async () => {
    const { first, second, waited, lost, result, discarded } = start()
    waited.resolve()
    await Bun.sleep(0)
    second.resolve('ok second')
    expect(await result).toEqual(['ok second'])
    expect(lost.first?.aborted).toBe(true)
    expect(lost.second?.aborted).toBe(false)
    // It had answered before it was aborted.
    first.resolve('ok first')
    await Bun.sleep(0)
    expect(discarded).toEqual(['ok first'])
  })

  test('continues with the other if one fails', async () => {
    const { first, second, waited, lost, result } = start()
    waited.resolve()
    await Bun.sleep(0)
    second.resolve('503')
    await Bun.sleep(0)
    expect(lost.first?.aborted).toBe(false)
    first.resolve('ok first')
    expect(await result).toEqual(['ok first'])
  })

  test.each(['first', 'second'] as const)('in which the %s runner has a defect ends the other too', async (which) => {
    const scene = start()
    const { waited, lost, result, discarded } = scene
    const [bad, good] = which === 'first' ? [scene.first, scene.second] : [scene.second, scene.first]
    waited.resolve()
    await Bun.sleep(0)
    bad.reject(new TypeError('a defect'))
    expect(await result.catch(String)).toBe('TypeError: a defect')
    expect([lost.first?.aborted, lost.second?.aborted]).toEqual([true, true])
    good.resolve('ok after all')
    await Bun.sleep(0)
    expect(discarded).toEqual(['ok after all'])
  })

  test('without a winner returns both outcomes', async () => {
    const { first, second, waited, result } = start()
    waited.resolve()
    await Bun.sleep(0)
    second.resolve('503')
    first.resolve('timed out')
    expect(await result).toEqual(['timed out', '503'])
  })

  test('has one runner if no second may start', async () => {
    const { first, waited, result } = start({ runSecond: () => undefined })
    waited.resolve()
    await Bun.sleep(0)
    first.resolve('ok first')
    expect(await result).toEqual(['ok first'])
  })
})
