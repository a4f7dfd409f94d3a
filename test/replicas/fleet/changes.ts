// A change made on one replica applies on all of them: a revoked key, a narrower allowlist, another price, each measured from the
// answer to the change to the last request that was still served by the old state; and who is signed in to the console
// of one is signed in to all.

import { chat } from '../../parts/surfaces.ts'
import { signIn } from './console-visit.ts'
import { type Fleet, startFleet } from './fleet.ts'
import type { Proof } from './proof.ts'

export interface ChangesOptions {
  readonly redis: boolean
  readonly rounds: number
  /** A change that takes longer is a fault. */
  readonly withinMs: number
}

interface Answer {
  readonly status: number
  readonly text: string
}

const priced = 'sandbox/echo'

export async function runChanges({ redis, rounds, withinMs }: ChangesOptions): Promise<Proof> {
  await using fleet = await startFleet({ redis })
  const { data: workspaces } = await fleet.manage('GET', '/api/workspaces')
  const slowest = { key: 0, allowlist: 0, price: 0 }
  const misknown: string[] = []
  for (let round = 1; round <= rounds; round++) {
    const project = await fleet.manage('POST', `/api/workspaces/${workspaces[0].id}/projects`, { name: `p${round}` })
    const key = await fleet.manage('POST', `/api/projects/${project.id}/keys`, { name: 'changed' })
    const note = (what: keyof typeof slowest, ms: number) => {
      slowest[what] = Math.max(slowest[what], ms)
    }
    misknown.push(...(await visitConsole(fleet)))
    await untilAll(fleet, key.secret, ({ status }) => status === 200)
    // Dollars per million tokens are millionths of a dollar per token.
    const input = `${round + 10}.00`
    await fleet.manage('PUT', `/api/models/${priced}/price`, { input, output: '0.00' })
    note(
      'price',
      await untilAll(fleet, key.secret, ({ text }) => microsOf(text) === inputTokensOf(text) * (round + 10)),
    )
    await fleet.manage('PATCH', `/api/projects/${project.id}`, { models: ['test/*'] })
    note('allowlist', await untilAll(fleet, key.secret, ({ status }) => status === 404))
    await fleet.manage('PATCH', `/api/projects/${project.id}`, { models: null })
    await untilAll(fleet, key.secret, ({ status }) => status === 200)
    await fleet.manage('POST', `/api/keys/${key.id}/revoke`, {})
    note('key', await untilAll(fleet, key.secret, ({ status }) => status === 401))
  }
  const late = Object.entries(slowest).filter(([, ms]) => ms > withinMs)
  return {
    faults: [
      ...late.map(([what, ms]) => `a changed ${what} took ${Math.round(ms)} ms`),
      ...misknown,
      ...fleet.errors(),
    ],
    figures: {
      rounds,
      'slowest revoked key, ms': Math.round(slowest.key),
      'slowest allowlist, ms': Math.round(slowest.allowlist),
      'slowest price, ms': Math.round(slowest.price),
    },
  }
}

/** Somebody signs in by each, is known to all, and is by none when one of them has signed everybody out. */
async function visitConsole({ members }: Fleet): Promise<string[]> {
  const urls = members.map(({ url }) => url)
  const visits = await Promise.all(urls.map(signIn))
  const known = async () =>
    (await Promise.all(visits.flatMap((visit) => urls.map((url) => visit.isSignedIn(url))))).filter(Boolean).length
  const before = await known()
  await visits[0]?.signOutEverywhere(urls[1] ?? '')
  const after = await known()
  const all = urls.length * urls.length
  return [
    ...(before === all ? [] : [`sessions were known ${before} times of ${all}`]),
    ...(after === 0 ? [] : [`${after} of ${all} were still known after everybody was signed out`]),
  ]
}

const askEveryMs = 10
const inFlightMax = 6
/** Ends a wait for a change that never arrives. */
const patienceMs = 1_200_000

/**
 * Asks every replica again and again until it answers so. How long after the beginning the last request began that was
 * answered otherwise: how long an answer takes on a busy machine does not count, nor does one that turns away with 503
 * before it looks at the key.
 */
async function untilAll(fleet: Fleet, key: string, isSo: (answer: Answer) => boolean): Promise<number> {
  const startedMs = performance.now()
  const settle = async (url: string): Promise<number> => {
    const inFlight = new Set<Promise<void>>()
    let lastOldMs = 0
    let lastAskedMs = 0
    let isSettled = false
    while (!isSettled && lastAskedMs < patienceMs) {
      const askedMs = performance.now() - startedMs
      lastAskedMs = askedMs
      const asking = ask(url, key).then((answer) => {
        inFlight.delete(asking)
        if (isSo(answer)) isSettled = true
        else if (answer.status !== 503) lastOldMs = Math.max(lastOldMs, askedMs)
      })
      inFlight.add(asking)
      await Promise.race([asking, Bun.sleep(askEveryMs)])
      if (inFlight.size >= inFlightMax) await Promise.race(inFlight)
    }
    await Promise.all(inFlight)
    return isSettled ? lastOldMs : patienceMs
  }
  return Math.max(...(await Promise.all(fleet.members.map(({ url }) => settle(url)))))
}

async function ask(url: string, key: string): Promise<Answer> {
  const response = await fetch(url + chat.path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: priced, max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] }),
  })
  return { status: response.status, text: await response.text() }
}

function microsOf(text: string): number {
  return Math.round(Number(/"cost":([0-9.]+)/.exec(text)?.[1]) * 1e6)
}

function inputTokensOf(text: string): number {
  return Number(/"prompt_tokens":([0-9]+)/.exec(text)?.[1])
}
