// Hostile providers against the whole gateway: every trick, from a provider of each dialect, on each surface, streamed and
// not. Whatever the provider does, the client gets a legal answer or error, and the next request is served.

import { afterAll, describe, expect, test } from 'bun:test'
import { type Answer, allPaths, openTill, type Path } from '../money/till.ts'
import { stopAll } from '../parts/gateway.ts'
import { startUpstream } from '../parts/upstream.ts'
import { bodyTricks } from './body-tricks.ts'
import { formTricks } from './form-tricks.ts'
import { httpTricks } from './http-tricks.ts'
import { expectFairBooks, expectPrototypesIntact, outcomeOf, residentBytes } from './judge.ts'
import { toolTricks } from './tool-tricks.ts'
import { goodBody, mebibyte, respond, type Trick, turnOf } from './turn.ts'

/** The tricks speak Chat Completions and Messages. */
const paths = allPaths.filter(({ provider }) => provider === 'chat' || provider === 'messages')
const tricks: readonly Trick[] = [...httpTricks, ...formTricks, ...bodyTricks, ...toolTricks]
/** MiB. Sockets and the garbage of two requests on each path stay below it; a buffered answer would be far above. */
const growthMax = 13 * paths.length

const canary = startUpstream((_, reply) => reply.json(200, {}))
// A model for each cell: a route that failed is not tried again for a while. No retries: a second attempt shows nothing
// new, and some tricks send hundreds of megabytes.
const pathsPerProvider = Math.max(
  ...Map.groupBy(paths, ({ provider }) => provider)
    .values()
    .map(({ length }) => length),
)
const till = await openTill({ models: pathsPerProvider * tricks.length + 1, retries: '{ attempts: 1 }' })
await expectGood()
afterAll(() => stopAll(till, canary))

/** A good provider is called on every path, over connections that a hostile one may have left behind. */
async function expectGood(): Promise<void> {
  till.upstream.handle((call, reply) => {
    const turn = turnOf(call, reply, canary.url)
    return respond(turn, goodBody(turn))
  })
  const answers = await Promise.all(paths.map((path) => till.ask(path)))
  for (const { status, text } of answers) {
    expect(`${status} ${text}`).toMatch(/^200 .*hello/s)
    expect(text).not.toContain('canary')
  }
}

const askOn = (path: Path): Promise<Answer> => till.ask(path, till.fresh(path))

async function judge(trick: Trick, path: Path, answer: Answer): Promise<void> {
  // Only the Messages requests have an output cap here; other answers may be long, and are streamed if they are translated.
  const isLong = path.surface.name !== 'messages' && path.surface.name !== path.provider
  const streamsUpstream = path.stream || isLong
  const { outcome: expected } = trick
  const wanted = typeof expected === 'string' ? expected : expected({ stream: path.stream, streamsUpstream })
  try {
    const outcome = outcomeOf(path, answer)
    if (wanted !== 'legal') expect(outcome).toBe(wanted)
    expect(answer.text).not.toMatch(/canary-(after|cookie: |poison|id)/)
    await expectFairBooks(till, answer, outcome)
  } catch (error) {
    throw new Error(`${path.name}: ${String(error)}\n${answer.status} ${answer.text.slice(0, 2000)}`)
  }
}

async function playEverywhere(trick: Trick): Promise<void> {
  till.upstream.handle((call, reply) => trick.play(turnOf(call, reply, canary.url)))
  const answers: Answer[] = []
  if (trick.growthMax === undefined) answers.push(...(await Promise.all(paths.map(askOn))))
  else for (const path of paths) answers.push(await askOn(path))
  // Concurrently: the record of a refused request is written a moment later, and each judgement waits for it.
  await Promise.all(paths.map((path, at) => judge(trick, path, answers[at] as Answer)))
}

/** Resident bytes after a collection. */
let collected = residentBytes()

/** Collects only if memory, garbage included, has grown by more than the limit: a collection takes longer than most tricks. */
function expectBoundedMemory(mebibytes: number): void {
  if ((process.memoryUsage.rss() - collected) / mebibyte < mebibytes) return
  const before = collected
  collected = residentBytes()
  expect((collected - before) / mebibyte).toBeLessThan(mebibytes)
}

describe('U6: every surface, two dialects, streamed and whole:', () => {
  test.each([...tricks])('$name', async (trick) => {
    await playEverywhere(trick)
    await expectGood()
    expectPrototypesIntact()
    expect((await till.wallets.read()).held).toBe(0n)
    expectBoundedMemory(trick.growthMax ?? growthMax)
    // A defect in the gateway is logged as an error even if the client got a legal answer.
    expect(till.gateway.logged().filter(({ level }) => level === 'error')).toEqual([])
  })
})

test('S4: no redirect was followed', () => {
  expect(canary.calls).toEqual([])
})
