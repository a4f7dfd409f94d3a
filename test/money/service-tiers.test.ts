// Service tiers: carried to providers that have them, held for at the dearest that may be charged, charged by the tier that the
// reply names, kept with the charge and explained; refused where they have no price.

import { afterAll, describe, expect, test } from 'bun:test'
import { readRecomputeCharge } from '../../src/catalog/price-versions.ts'
import { verify } from '../../src/ledger/verify.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { stopAll } from '../parts/gateway.ts'
import { chat, gemini, messages, responses } from '../parts/surfaces.ts'
import { type DialectName, say, usageIn } from '../parts/upstream-words.ts'
import { type Answer, allPaths, type Explained, expectPaid, openTill, type Path, wholePaths } from './till.ts'

const priced = await openTill({
  price: `{ input: "1.00", output: "2.00", tiers: {
      flex: { input: "0.50", output: "1.00" }, priority: { input: "2.00", output: "4.00", cache_read: "0.20" },
      scale: { input: "0.25", output: "0.25" } } }`,
})
const unpriced = await openTill({ price: '{ input: "1.00", output: "2.00" }' })
afterAll(() => stopAll(priced, unpriced))

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

function replyNaming({ provider }: Path, tier: Tier | 'scale' | undefined): void {
  priced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], ...naming(provider, tier) }))
}

const lastBody = () => priced.upstream.calls.at(-1)?.json()
const explained = async ({ requestId }: Answer) =>
  (await priced.wallets.explain(requestId)) as Explained & { usage: { service_tier: string | null } }

/** 1,000 tokens in and 100 out. */
const costs = { standard: 1_200_000n, priority: 2_400_000n, flex: 600_000n, scale: 275_000n }

const flexPaths = allPaths.filter(({ surface, provider }) => surface.name !== 'messages' && provider !== 'messages')

describe.each([...allPaths])('priority, $name', (path) => {
  const asked = asks[path.surface.name]?.priority

  test('is carried, charged and explained', async () => {
    replyNaming(path, 'priority')
    const answer = await priced.ask(path, asked)
    expect(answer.status).toBe(200)
    expect(lastBody()).toMatchObject(sent[path.provider].priority ?? {})
    expect(answer.cost).toBe('0.0024')
    await expectPaid(priced, answer, costs.priority)
    expect(priced.charges(answer.requestId)[0]?.usage).toMatchObject({ tier: 'priority' })
    const { usage, charge } = await explained(answer)
    expect(usage.service_tier).toBe('priority')
    expect(charge.lines).toEqual([
      { kind: 'input', tokens: 1000, price_per_million: '2.00', amount: '0.002' },
      { kind: 'output', tokens: 100, price_per_million: '4.00', amount: '0.0004' },
    ])
  })

  test('costs the standard price if the reply names the standard tier, and says so', async () => {
    replyNaming(path, 'standard')
    const answer = await priced.ask(path, asked)
    await expectPaid(priced, answer, costs.standard)
    const { usage, notes } = await explained(answer)
    expect(usage.service_tier).toBe('standard')
    expect(notes).toEqual(['asked for the service tier priority, served and charged as standard'])
  })

  test('costs its price if the reply names no tier', async () => {
    replyNaming(path, undefined)
    const answer = await priced.ask(path, asked)
    await expectPaid(priced, answer, costs.priority)
    expect((await explained(answer)).notes).toEqual(['the reply names no service tier; charged as priority, as asked'])
  })
})

describe.each([...flexPaths])('flex, $name', (path) => {
  test('is carried and charged', async () => {
    replyNaming(path, 'flex')
    const answer = await priced.ask(path, asks[path.surface.name]?.flex)
    expect(lastBody()).toMatchObject(sent[path.provider].flex ?? {})
    await expectPaid(priced, answer, costs.flex)
    expect((await explained(answer)).usage.service_tier).toBe('flex')
  })
})

describe.each([...allPaths])('unasked, $name', (path) => {
  test('costs the standard price, and purchased capacity its own', async () => {
    for (const tier of ['standard', undefined, ...(path.provider === 'gemini' ? [] : ['scale' as const])] as const) {
      replyNaming(path, tier)
      const answer = await priced.ask(path)
      expect(lastBody()).not.toHaveProperty('speed')
      await expectPaid(priced, answer, costs[tier ?? 'standard'])
    }
  })
})

describe.each([...wholePaths])('held, $name', (path) => {
  test('as much as the dearest tier that may be charged', async () => {
    replyNaming(path, 'standard')
    const held = async (asked: object, max: number) => {
      const answer = await priced.ask(path, { ...asked, max_tokens: max })
      return (await priced.line(answer.requestId)).held ?? 0n
    }
    // The same request twice, so that only the output differs: a thousand tokens of it.
    const outputOf = async (asked: object) => (await held(asked, 2000)) - (await held(asked, 1000))
    const { priority = {}, flex, auto } = asks[path.surface.name] ?? {}
    expect(await outputOf({})).toBe(2_000_000n)
    expect(await outputOf(priority)).toBe(4_000_000n)
    if (auto) expect(await outputOf(auto)).toBe(4_000_000n)
    // The reply may name the standard tier.
    if (flex && path.provider !== 'messages') expect(await outputOf(flex)).toBe(2_000_000n)
  })
})

describe('refused', () => {
  const refusedBody = async (till: typeof priced, path: Path, asked: object) => {
    const before = till.upstream.calls.length
    const answer = await till.ask(path, asked)
    expect(till.upstream.calls.length).toBe(before)
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
    const { status, text } = await refusedBody(priced, pathOf(chat, 'messages'), { service_tier: 'flex' })
    expect(status).toBe(400)
    expect(JSON.parse(text).error.message).toBe(
      'No provider of `till/messages-0` has the service tier `flex`. Leave out `service_tier`, or use another model.',
    )
  })

  test('a word that is no tier', async () => {
    const { status, text } = await refusedBody(priced, pathOf(chat, 'chat'), { service_tier: 'turbo' })
    expect(status).toBe(400)
    expect(JSON.parse(text).error.message).toBe(
      '`till/chat-0` has no price for the service tier `turbo`. Leave out `service_tier`, use a provider key of your own.',
    )
  })
})

test('a tier without a price costs what was asked for, is noted, logged and counted', async () => {
  const path = wholePaths.find(({ surface, provider }) => surface === chat && provider === 'chat') as Path
  const usage = usageIn('chat', { input: 1000, output: 100 })
  priced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], usage, tier: 'ultrafast' }))
  const answer = await priced.ask(path)
  await expectPaid(priced, answer, costs.standard)
  expect((await explained(answer)).notes).toEqual([
    'the provider served it in the service tier ultrafast, which has no price; charged as standard',
  ])
  const faster = await priced.ask(path, { service_tier: 'priority' })
  await expectPaid(priced, faster, costs.priority)
  const warned = priced.gateway.logged().filter(({ tier }) => tier === 'ultrafast')
  expect(warned).toMatchObject([{ level: 'warn', request_id: answer.requestId, model: 'till/chat-0' }])
})

test('promise M7: every charge follows from its usage and its price', async () => {
  const database = await openDatabase({ url: undefined, dataFolder: priced.gateway.dataFolder })
  const { findings } = await verify(database, { readPrice: readRecomputeCharge })
  await database.close()
  expect(findings).toEqual([])
})
