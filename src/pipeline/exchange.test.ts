import { describe, expect, test } from 'bun:test'
import { received } from '../../test/parts/http.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import type { Candidate } from '../routing/plan.ts'
import { Exchange } from './exchange.ts'

const connection = { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined }

describe('attempts', () => {
  const candidate = (id: string) => ({ provider: { id }, route: { upstreamModel: 'up' } }) as Candidate

  /** A request that started at 100 ms. */
  function start() {
    let nowMs = 100
    const clock = { now: () => 0, monotonicMs: () => nowMs }
    const exchange = new Exchange(clock, received(new Request('http://gateway.test')), openaiChat, '/', connection)
    const wait = (milliseconds: number) => {
      nowMs += milliseconds
    }
    const recorded = () => exchange.record.attempts.map((each) => [each.provider, each.outcome, each.startMs, each.ms])
    return {
      attempts: exchange.attempts,
      record: exchange.record,
      wait,
      recorded,
      begin: (id: string) => exchange.attempts.begin(candidate(id)),
    }
  }

  test('are recorded from their start', () => {
    const { attempts, record, begin, wait, recorded } = start()
    wait(5)
    const attempt = begin('acme')
    expect(recorded()).toEqual([['acme', '', 5, 0]])
    wait(20)
    attempts.end(attempt, '503')
    expect(recorded()).toEqual([['acme', '503', 5, 20]])
    expect(record.waitedMs).toBe(20)
  })

  test('that are still open end with their request, and only once', () => {
    const { attempts, record, begin, wait, recorded } = start()
    attempts.end(begin('acme'), '503')
    wait(10)
    const open = begin('other')
    wait(30)
    attempts.endOpen('client left')
    const ended = [
      ['acme', '503', 0, 0],
      ['other', 'client left', 10, 30],
    ]
    expect(recorded()).toEqual(ended)
    attempts.end(open, 'broken')
    expect(recorded()).toEqual(ended)
    expect(record.waitedMs).toBe(30)
  })

  test('that sent nothing are removed', () => {
    const { attempts, begin, recorded } = start()
    const attempt = begin('acme')
    begin('other')
    attempts.remove(attempt)
    expect(recorded()).toEqual([['other', '', 0, 0]])
  })

  test('end with the one that replied, even if it began before others', () => {
    const { attempts, begin, recorded } = start()
    attempts.end(begin('acme'), 'broken')
    const first = begin('acme')
    const second = begin('other')
    attempts.end(first, 'ok')
    attempts.replied(candidate('acme'))
    attempts.end(second, 'superseded')
    expect(recorded().map(([provider, outcome]) => `${provider} ${outcome}`)).toEqual([
      'acme broken',
      'other superseded',
      'acme ok',
    ])
  })
})
