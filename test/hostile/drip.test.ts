// Providers that keep a request busy without ever giving it anything: a byte now and then, a ping now and then, a head
// that does not end. A clock of ours ends each of them, on a clock that is pushed and not waited for.

import { describe, expect, test } from 'bun:test'
import { allPaths, openTill, type Path } from '../money/till.ts'
import { createJumpClock, type JumpClock } from '../parts/jump-clock.ts'
import type { UpstreamCall } from '../parts/upstream.ts'
import { expectFairBooks, outcomeOf } from './judge.ts'
import { chunkedHead, type Outcome, type Turn, turnOf } from './turn.ts'

interface Drip {
  readonly name: string
  begin(turn: Turn): Promise<void>
  /** Sent again and again while time passes. */
  drop(turn: Turn): Promise<void>
  outcome(path: Path): Outcome
}

const drips: readonly Drip[] = [
  {
    name: 'a byte of the head at a time',
    begin: ({ reply }) => reply.write('HTTP/1.1 200 OK\r\nx-slow: '),
    drop: ({ reply }) => reply.write('y'),
    outcome: () => 'refused',
  },
  {
    name: 'a head, then comments and white space',
    begin: chunkedHead,
    drop: ({ reply, streams }) => reply.chunk(streams ? ': still here\n\n' : ' '),
    outcome: () => 'refused',
  },
  {
    name: 'some content, then comments for ever',
    async begin(turn) {
      await chunkedHead(turn)
      await turn.reply.chunk(turn.streams ? turn.words.opening + turn.words.says('hello') : '{"id":"x",')
    },
    drop: ({ reply, streams }) => reply.chunk(streams ? ': still here\n\n' : ' '),
    outcome: (path) => (path.stream ? 'interrupted' : 'refused'),
  },
]

/** Drops while the clock runs, until the gateway hangs up. */
async function dripOn(drip: Drip, turn: Turn, clock: JumpClock): Promise<void> {
  const { call } = turn
  await drip.begin(turn)
  while (!call.isClosed()) {
    await drip.drop(turn)
    // The gateway looks at its clock ten times a second.
    clock.jump(20)
    await Bun.sleep(60)
  }
}

describe.each([...drips])('U6, R7: $name', (drip) => {
  // Each waits for its gateway's clock most of the time.
  test.concurrent.each([...allPaths])('$name: is given up', async (path) => {
    const clock = createJumpClock()
    await using till = await openTill({ clock })
    let called: UpstreamCall | undefined
    till.upstream.handle((call, reply) => {
      called = call
      return dripOn(drip, turnOf(call, reply, ''), clock)
    })
    const answer = await till.ask(path)
    expect(outcomeOf(path, answer)).toBe(drip.outcome(path))
    await called?.closed
    await expectFairBooks(till, answer, drip.outcome(path))
    expect((await till.wallets.read()).held).toBe(0n)
  })
})
