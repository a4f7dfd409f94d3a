// Service tiers: carried to providers that have them, held for at the dearest that may be charged, charged by the tier that the
// reply names, named to the caller, kept with the charge and explained, on both engines; refused where they have no price.

import { afterAll, describe, expect, test } from 'bun:test'
import { readRecomputeCharge } from '../../src/catalog/price-versions.ts'
import { formatUsd, type Nano, parseUsd } from '../../src/kernel/money.ts'
import { verify } from '../../src/ledger/verify.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { ask } from '../parts/ask.ts'
import { createEngine } from '../parts/engines.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { chat, gemini, messages, responses } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { type DialectName, say, usageIn } from '../parts/upstream-words.ts'
import {
  type Answer,
  allPaths,
  type Explained,
  expectPaid,
  openTill,
  type Path,
  type Till,
  wholePaths,
} from './till.ts'

const price = `{ input: "1.00", output: "2.00", tiers: {
      flex: { input: "0.50", output: "1.00" }, priority: { input: "2.00", output: "4.00", cache_read: "0.20" },
      ultrafast: { input: "6.00", output: "12.00" }, scale: { input: "0.25", output: "0.25" } } }`
const noTiers = '{ input: "1.00", output: "2.00" }'
const priced = await openTill({ price })
/** One database for each gateway. */
const places = findPostgresPrograms() && {
  priced: await createEngine('postgres').createPlace(),
  unpriced: await createEngine('postgres').createPlace(),
  failover: await createEngine('postgres').createPlace(),
}
const engines = [
  {
    ...{ engine: 'sqlite', url: undefined, failoverUrl: undefined, till: priced },
    unpriced: await openTill({ price: noTiers }),
  },
  ...(places
    ? [
        {
          ...{ engine: 'postgres', url: places.priced.url, failoverUrl: places.failover.url },
          till: await openTill({ price, databaseUrl: places.priced.url }),
          unpriced: await openTill({ price: noTiers, databaseUrl: places.unpriced.url }),
        },
      ]
    : []),
]
afterAll(() => stopAll(...engines.flatMap(({ till, unpriced }) => [till, unpriced])))

type Tier = 'priority' | 'flex' | 'standard' | 'auto'

/** How callers of a surface ask; undefined = they cannot. */
const asks: Readonly<Record<string, Readonly<Partial<Record<Tier, object>>>>> = {
  chat: { priority: { service_tier: 'priority' }, flex: { service_tier: 'flex' }, auto: { service_tier: 'auto' } },
  messages: {
    priority: { speed: 'fast' },
    standard: { service_tier: 'standard_only' },
    auto: { service_tier: 'auto' },
  },
  responses: { priority: { service_tier: 'fast' }, flex: { service_tier: 'flex' }, auto: { service_tier: 'auto' } },
  gemini: { priority: { serviceTier: 'PRIORITY' }, flex: { serviceTier: 'flex' } },
}

/** What a provider is asked; undefined = it has no such tier. */
const sent: Readonly<Record<DialectName, Readonly<Partial<Record<Tier, object>>>>> = {
  chat: { priority: { service_tier: expect.stringMatching(/^(priority|fast)$/) }, flex: { service_tier: 'flex' } },
  messages: { priority: { speed: 'fast' } },
  responses: { priority: { service_tier: expect.stringMatching(/^(priority|fast)$/) }, flex: { service_tier: 'flex' } },
  gemini: { priority: { serviceTier: expect.stringMatching(/^priority$/i) }, flex: { serviceTier: 'flex' } },
}

/** The members by which a reply names a tier. */
function naming(dialect: DialectName, tier: Tier | 'scale' | undefined) {
  const counts = { ...usageIn(dialect, { input: 1000, output: 100 }) }
  const standard = { chat: 'default', responses: 'default', gemini: 'standard', messages: 'standard' }[dialect]
  const word = tier === 'standard' ? standard : tier
  if (tier === undefined) return { usage: counts }
  if (dialect === 'gemini') return { usage: { ...counts, serviceTier: word } }
  if (dialect !== 'messages') return { usage: counts, tier: word }
  const speed = tier === 'priority' ? 'fast' : 'standard'
  return { usage: { ...counts, speed, service_tier: tier === 'scale' ? 'priority' : 'standard' } }
}

function replyNaming(
  { provider }: Pick<Path, 'provider'>,
  tier: Tier | 'scale' | undefined,
  { upstream } = priced,
): void {
  upstream.handle((call, reply) => say(call, reply, { texts: ['here'], ...naming(provider, tier) }))
}

const lastBody = ({ upstream }: { readonly upstream: Upstream } = priced) => upstream.calls.at(-1)?.json()
const explained = async ({ requestId }: Answer, { wallets }: Till = priced) =>
  (await wallets.explain(requestId)) as Explained & { held: string; usage: { service_tier: string | null } }

/** 1,000 tokens in and 100 out. */
const costs = { standard: 1_200_000n, priority: 2_400_000n, flex: 600_000n, scale: 275_000n }

interface Case {
  readonly asked: Tier | undefined
  /** undefined = the reply names none. */
  readonly named: Tier | 'scale' | undefined
  readonly charged: keyof typeof costs
  readonly note?: string
}

const cases: readonly Case[] = [
  { asked: 'priority', named: 'priority', charged: 'priority' },
  {
    ...{ asked: 'priority', named: 'standard', charged: 'standard' },
    note: 'asked for the service tier priority, served and charged as standard',
  },
  {
    ...{ asked: 'priority', named: undefined, charged: 'priority' },
    note: 'the reply names no service tier; charged as priority, as asked',
  },
  { asked: 'flex', named: 'flex', charged: 'flex' },
  {
    ...{ asked: 'flex', named: 'priority', charged: 'priority' },
    note: 'asked for the service tier flex, served and charged as priority',
  },
  { asked: 'auto', named: 'priority', charged: 'priority' },
  { asked: undefined, named: 'standard', charged: 'standard' },
  { asked: undefined, named: undefined, charged: 'standard' },
  { asked: undefined, named: 'scale', charged: 'scale' },
]

/** How an answer names the tier to the caller. */
const shown: Readonly<Record<string, Readonly<Partial<Record<keyof typeof costs, string>>>>> = {
  chat: {
    ...{ standard: '"service_tier":"default"', priority: '"service_tier":"priority"' },
    ...{ flex: '"service_tier":"flex"', scale: '"service_tier":"scale"' },
  },
  messages: {
    ...{ standard: '"speed":"standard"', priority: '"speed":"fast"', scale: '"service_tier":"priority"' },
  },
  gemini: { standard: '"serviceTier":"standard"', priority: '"serviceTier":"priority"', flex: '"serviceTier":"flex"' },
}

/** The dialect of the provider has words for it, and the caller can ask for it. */
function isPossible({ surface, provider }: Path, { asked, named }: Case): boolean {
  if (asked !== undefined && asks[surface.name]?.[asked] === undefined) return false
  if (asked === 'flex' && provider === 'messages') return false
  return !(named === 'scale' && provider === 'gemini')
}

async function expectCharged(till: Till, path: Path, row: Case): Promise<void> {
  const { asked, named, charged, note } = row
  replyNaming(path, named, till)
  const answer = await till.ask(path, asked && asks[path.surface.name]?.[asked])
  expect([row, answer.status]).toEqual([row, 200])
  if (asked === undefined) expect(lastBody(till)).not.toHaveProperty('speed')
  else expect(lastBody(till)).toMatchObject(sent[path.provider][asked] ?? {})
  expect([row, answer.cost]).toEqual([row, formatUsd(costs[charged] as Nano)])
  const { usage, charge, notes } = await explained(answer, till)
  // On a busy machine a commit that took long is noted too.
  const tierNotes = notes.filter((each) => each.includes('service tier'))
  expect([row, charge.total, usage.service_tier, tierNotes]).toEqual([
    row,
    formatUsd(costs[charged] as Nano),
    asked === undefined && named === undefined ? null : charged,
    note === undefined ? [] : [note],
  ])
  // On the byte lane the answer is the provider's.
  if (path.surface.name !== path.provider && usage.service_tier !== null) {
    const word = shown[path.surface.name === 'responses' ? 'chat' : path.surface.name]?.[charged]
    expect([row, answer.text.replaceAll(' ', '')]).toEqual([row, expect.stringContaining(word ?? '')])
  }
  if (till === priced) await expectPaid(till, answer, costs[charged])
}

describe.each(engines)('on $engine', ({ url, failoverUrl, till, unpriced }) => {
  test.each([...allPaths])('$name: every tier is carried, charged, named and explained', async (path) => {
    for (const row of cases) if (isPossible(path, row)) await expectCharged(till, path, row)
  })

  test('promise M7: every charge follows from its usage and its price', async () => {
    const database = await openDatabase({ url, dataFolder: till.gateway.dataFolder })
    const { findings } = await verify(database, { readPrice: readRecomputeCharge })
    await database.close()
    expect(findings).toEqual([])
  })

  describe.each([...wholePaths])('held, $name', (path) => {
    test('as much as the dearest tier that may be charged', async () => {
      replyNaming(path, 'standard', till)
      const held = async (asked: object, max: number) => {
        const answer = await till.ask(path, { ...asked, max_tokens: max })
        return parseUsd((await explained(answer, till)).held) ?? 0n
      }
      // The same request twice, so that only the output differs: a thousand tokens of it.
      const outputOf = async (asked: object) => (await held(asked, 2000)) - (await held(asked, 1000))
      const { priority = {}, flex, auto } = asks[path.surface.name] ?? {}
      expect(await outputOf({})).toBe(2_000_000n)
      expect(await outputOf(priority)).toBe(4_000_000n)
      // No provider chooses the fastest tier by itself.
      if (auto) expect(await outputOf(auto)).toBe(4_000_000n)
      // The reply may name the standard tier.
      if (flex && path.provider !== 'messages') expect(await outputOf(flex)).toBe(2_000_000n)
    })
  })

  describe('refused', () => {
    const refusedBody = async (asking: Till, path: Path, asked: object) => {
      const before = asking.upstream.calls.length
      const answer = await asking.ask(path, asked)
      expect(asking.upstream.calls.length).toBe(before)
      return { status: answer.status, text: answer.text }
    }
    const pathOf = (surface: Path['surface'], provider: DialectName) =>
      wholePaths.find((path) => path.surface === surface && path.provider === provider) as Path

    test.each([
      [chat, 'chat', { service_tier: 'priority' }, 'priority', 'service_tier'],
      [messages, 'messages', { speed: 'fast' }, 'fast', 'speed'],
      [responses, 'responses', { service_tier: 'flex' }, 'flex', 'service_tier'],
      [gemini, 'gemini', { serviceTier: 'priority' }, 'priority', 'serviceTier'],
    ] as const)('$name without a price for the tier', async (surface, provider, asked, word, member) => {
      const { status, text } = await refusedBody(unpriced, pathOf(surface, provider), asked)
      expect(status).toBe(400)
      const name = word === 'fast' ? 'priority' : word
      expect(JSON.parse(text).error.message).toBe(
        `\`till/${provider}-0\` has no price for the service tier \`${word}\`. Leave out \`${member}\`, use a provider key of your own, or ask the operator to set \`price.tiers.${name}\`.`,
      )
    })

    test('a tier that no provider of the model has', async () => {
      const { status, text } = await refusedBody(till, pathOf(chat, 'messages'), { service_tier: 'flex' })
      expect(status).toBe(400)
      expect(JSON.parse(text).error.message).toBe(
        'No provider of `till/messages-0` has the service tier `flex`. Leave out `service_tier`, or use another model.',
      )
    })

    test.each([
      [chat, 'chat', { service_tier: 'turbo' }, 'turbo', 'service_tier'],
      [chat, 'chat', { service_tier: '__proto__' }, '…', 'service_tier'],
      [chat, 'chat', { service_tier: 'constructor' }, 'constructor', 'service_tier'],
      [responses, 'responses', { service_tier: 7 }, 'number', 'service_tier'],
      [messages, 'messages', { service_tier: 'standard' }, 'standard', 'service_tier'],
      [messages, 'messages', { speed: 'turbo' }, 'turbo', 'speed'],
      [messages, 'messages', { speed: {} }, 'object', 'speed'],
      [gemini, 'gemini', { serviceTier: ['flex'] }, 'array', 'serviceTier'],
    ] as const)('$name: what is no tier: %j', async (surface, provider, asked, word, member) => {
      const { status, text } = await refusedBody(till, pathOf(surface, provider), asked)
      expect(status).toBe(400)
      expect(JSON.parse(text).error.message).toBe(
        `\`till/${provider}-0\` has no price for the service tier \`${word}\`. Leave out \`${member}\` or use a provider key of your own.`,
      )
    })
  })

  describe('failover', () => {
    const upstreams = [startUpstream(() => {}), startUpstream(() => {}), startUpstream(() => {})] as const
    const [slow, first, second] = upstreams
    const started = startGateway({
      ...(failoverUrl !== undefined && { env: { DATABASE_URL: failoverUrl } }),
      // The first route has no flex.
      config: `providers:
  - { id: messy, dialect: anthropic-messages, base_url: "${slow.url}", api_key: secret }
  - { id: one, dialect: openai-chat, base_url: "${first.url}/v1", api_key: secret }
  - { id: two, dialect: openai-responses, base_url: "${second.url}/v1", api_key: secret }
models:
  - { id: test/chat, price: ${price}, context_tokens: 100000, routes: [{ provider: messy, model: up, priority: 0 },
      { provider: one, model: up, priority: 1 }, { provider: two, model: up, priority: 2 }] }
  - { id: test/embed, price: { input: "1.00", output: "0", tiers: { flex: { input: "0.50", output: "0" } } },
      tags: [embeddings], routes: [{ provider: one, model: up }] }
`,
    })
    afterAll(async () => stopAll(await started, ...upstreams))
    const providers: readonly DialectName[] = ['messages', 'chat', 'responses']
    /** Those that are called, in this order, where the ones in `failing` answer 500. */
    const called = async (tier: Tier, failing: readonly DialectName[]) => {
      const order: DialectName[] = []
      for (const [at, upstream] of upstreams.entries()) {
        const provider = providers[at] ?? 'chat'
        upstream.handle((call, reply) => {
          order.push(provider)
          if (failing.includes(provider)) return reply.json(500, { error: { message: 'no', type: 'server_error' } })
          return say(call, reply, { texts: ['here'], ...naming(provider, tier) })
        }, 'stay unasked')
      }
      const { url, key } = await started
      const body = { model: 'test/chat', messages: [{ role: 'user', content: 'hi' }], service_tier: tier }
      const answer = await ask({ url, key }, chat, JSON.stringify(body))
      return { order, status: answer.status, text: await answer.text() }
    }

    test('skips the route that lacks the tier, and charges the tier on the route that serves it', async () => {
      const { order, status, text } = await called('flex', ['chat'])
      expect([status, order]).toEqual([200, ['chat', 'responses']])
      expect(JSON.parse(text)).toMatchObject({ service_tier: 'flex', usage: { cost: 0.0006 } })
    })

    test('embeddings are charged in the tier that they ask for, and refused without a price for it', async () => {
      const { url, key } = await started
      const usage = { prompt_tokens: 1000, total_tokens: 1000 }
      const data = [{ object: 'embedding', index: 0, embedding: [1] }]
      first.handle((_, reply) => reply.json(200, { object: 'list', data, usage }))
      const before = first.calls.length
      const embed = async (tier: string) =>
        (await fetch(`${url}/v1/embeddings`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'test/embed', input: 'hi', service_tier: tier }),
        }).then((response) => response.json())) as { usage?: { cost: number }; error?: { param: string } }
      expect((await embed('flex')).usage?.cost).toBe(0.0005)
      expect((await embed('priority')).error?.param).toBe('service_tier')
      expect(first.calls.slice(before).map((call) => call.json())).toMatchObject([{ service_tier: 'flex' }])
    })

    test('does not use it at the standard price when the others fail', async () => {
      const { order, status } = await called('flex', ['chat', 'responses'])
      expect(order).not.toContain('messages')
      expect(status).toBeGreaterThanOrEqual(400)
    })
  })
})

test.each(wholePaths.filter(({ provider }) => provider !== 'gemini'))(
  'a tier counts where the counts of the reply do not, $name',
  async (path) => {
    const { usage, ...named } = naming(path.provider, 'scale')
    const absurd = { ...usage, ...usageIn(path.provider, { input: 900_000_000, output: 100 }) }
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], ...named, usage: absurd }))
    const answer = await priced.ask(path)
    const { usage: charged, charge } = await explained(answer)
    expect([charged.source, charged.service_tier]).toEqual(['estimated', 'scale'])
    expect(new Set(charge.lines.map(({ price_per_million: rate }) => rate))).toEqual(new Set(['0.25']))
  },
)

test.each([...wholePaths].filter(({ provider }) => provider !== 'gemini'))(
  'a reply without usage is estimated in the tier that was asked for, $name',
  async (path) => {
    const { priority } = asks[path.surface.name] ?? {}
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], usage: undefined }))
    const { usage, charge } = await explained(await priced.ask(path, priority))
    expect([usage.source, usage.service_tier]).toEqual(['estimated', 'priority'])
    expect(charge.lines.map(({ price_per_million: rate }) => rate)).toEqual(['2.00', '4.00'])
  },
)

test('a tier without a price costs what was asked for, is noted, logged and counted', async () => {
  const path = wholePaths.find(({ surface, provider }) => surface === chat && provider === 'chat') as Path
  const usage = usageIn('chat', { input: 1000, output: 100 })
  priced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], usage, tier: 'batch' }))
  const answer = await priced.ask(path)
  await expectPaid(priced, answer, costs.standard)
  expect((await explained(answer)).notes).toEqual([
    'the provider served it in the service tier batch, which has no price; charged as standard',
  ])
  const faster = await priced.ask(path, { service_tier: 'priority' })
  await expectPaid(priced, faster, costs.priority)
  const warned = priced.gateway.logged().filter(({ tier }) => tier === 'batch')
  expect(warned).toMatchObject([{ level: 'warn', request_id: answer.requestId, model: 'till/chat-0' }])
})
