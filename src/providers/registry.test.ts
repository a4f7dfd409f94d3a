import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import { systemClock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { builtInProviders } from './data/built-in.ts'
import { localServers } from './local.ts'
import type { Endpoint } from './provider.ts'
import { builtInProviderIds, createProviders, dormantEndpoints } from './registry.ts'

/** The compiler demands a line for each rule there is, and none besides. */
const ruleNames: Readonly<Record<keyof TargetRules, true>> = {
  ...{ sampling: true, temperatureMax: true, temperatureOrTopP: true, topK: true, penalties: true, seed: true },
  ...{ logitBias: true, efforts: true, thinking: true, thinksByDefault: true, thinkingBindingControls: true },
  ...{ effortHighAtMostWith: true, toolsWithReasoning: true, forcedToolChoice: true, midSystem: true, prefill: true },
  ...{ jsonOutput: true, strictTools: true, customTools: true, images: true, documents: true, stopMax: true },
  ...{ toolsMax: true, toolNameMax: true, toolIdMax: true, toolIdPattern: true, outputCapName: true },
  capExcludesReasoning: true,
  promptCacheKey: true,
  cachesOnlyMarked: true,
  ...{ systemRole: true, systemAsParts: true, reasoningEcho: true, cacheStyle: true, endUserIdMax: true },
  ...{
    endUserId: true,
    streamUsage: true,
    reasoningMembers: true,
    unstreamedOutputMax: true,
    mediaUrls: true,
    attributionLine: true,
  },
  ...{ endUserIdName: true, parallelFlag: true, allowedTools: true, emptyContent: true, assistantAfterTool: true },
  ...{ thinkTags: true, serviceTiers: true },
}

/** Example values for the variables in URLs. */
const settings: Readonly<Record<string, string>> = {
  '{AZURE_OPENAI_ENDPOINT}': 'https://acme.openai.azure.com',
  '{AWS_REGION}': 'eu-west-1',
  '{HOST}': 'aiplatform.googleapis.com',
  '{GOOGLE_CLOUD_PROJECT}': 'acme',
  '{LOCATION}': 'global',
}

const providers = builtInProviders.map((provider) => [provider.id, provider] as const)
const endpoints = builtInProviders.flatMap(({ id, endpoints }) =>
  endpoints.map((endpoint) => [id, endpoint.dialect, endpoint] as const),
)

describe('every built-in provider', () => {
  test('has an id and a variable that no other has', () => {
    const ids = [...builtInProviderIds, ...localServers.map(({ id }) => id)]
    expect(new Set(ids).size).toBe(ids.length)
    expect(new Set(builtInProviders.map(({ variable }) => variable)).size).toBe(builtInProviders.length)
  })

  test.each(providers)('%s is named as the configuration file would name it', (id, { variable }) => {
    expect(id).toMatch(/^[a-z0-9][a-z0-9-]{0,62}$/)
    expect(variable).toMatch(/^[A-Z][A-Z0-9_]*_(API_KEY|TOKEN|ACCESS_KEY_ID|APPLICATION_CREDENTIALS)$/)
  })

  test.each(providers)('%s speaks a dialect at one address', (_, { endpoints }) => {
    const dialects = endpoints.map(({ dialect }) => dialect)
    expect(dialects.length).toBeGreaterThan(0)
    expect(new Set(dialects).size).toBe(dialects.length)
  })

  test.each(providers)('%s names the source of its facts and the month they were checked', async (id) => {
    const text = await Bun.file(join(import.meta.dir, 'data', 'built-in.ts')).text()
    const [, comment] = new RegExp(`((?:^  //.*\\n)+)  \\{\\n    id: '${id}',`, 'm').exec(text) ?? []
    expect(comment).toMatch(/https:\/\/\S+, 20\d\d-\d\d\b/)
  })
})

describe('every endpoint', () => {
  test.each(endpoints)('has an address to append paths to: %s in %s', (_, dialect, { baseUrl }) => {
    const url = new URL(baseUrl.replaceAll(/\{[A-Z_]+\}/g, (name) => settings[name] ?? `unknown variable ${name}`))
    expect(url.protocol).toBe('https:')
    expect([url.search, url.hash, url.username, url.port]).toEqual(['', '', '', ''])
    expect(baseUrl).not.toEndWith('/')
    if (dialect === 'anthropic-messages') expect(baseUrl).not.toEndWith('/v1')
    if (dialect.startsWith('openai-')) expect(baseUrl).not.toEndWith('/chat')
  })

  test.each(endpoints)('has a credential header: %s in %s', (_, __, { auth }) => {
    expect(auth).not.toBe('none')
  })

  test.each(endpoints)(
    'of %s in %s has rules that exist, and says what dialects leave open',
    (_, dialect, endpoint) => {
      const { rules = {} }: Endpoint = endpoint
      expect(Object.keys(rules).filter((name) => !(name in ruleNames))).toEqual([])
      if (dialect === 'openai-chat') expect(rules.outputCapName).toBeDefined()
    },
  )
})

describe('a provider is switched on', () => {
  const input = {
    entries: [],
    keys: {},
    sandboxOn: false,
    sandboxTransport: async () => new Response(),
    clock: systemClock,
  }

  test('only by its variable', () => {
    expect(createProviders(input).size).toBe(0)
    for (const { id, variable, endpoints, needs } of builtInProviders) {
      const apiKey = new Secret(`key of ${id}`)
      const on = createProviders({ ...input, keys: { [variable]: apiKey } })
      expect([...on.values()]).toEqual(needs ? [] : [{ id, endpoints, apiKey, source: variable }])
    }
  })

  const on = (keys: Readonly<Record<string, string>>, id: string) =>
    createProviders({
      ...input,
      keys: Object.fromEntries(Object.entries(keys).map(([name, value]) => [name, new Secret(value)])),
    }).get(id)

  test('at the address that its variables make', () => {
    const keys = { AZURE_OPENAI_API_KEY: 'k', AZURE_OPENAI_ENDPOINT: 'https://acme.openai.azure.com/' }
    const azure = on(keys, 'azure')
    expect(azure?.endpoints.map(({ baseUrl }) => baseUrl)).toEqual([
      'https://acme.openai.azure.com/openai/v1',
      'https://acme.openai.azure.com/openai/v1',
    ])
    expect(azure?.apiKey?.reveal()).toBe('k')
    expect(on({ AZURE_OPENAI_API_KEY: 'k' }, 'azure')).toBeUndefined()
  })

  test('with a credential of several parts', () => {
    const keys = { AWS_ACCESS_KEY_ID: 'AKID', AWS_SECRET_ACCESS_KEY: 'shh', AWS_REGION: 'eu-west-1' }
    const bedrock = on(keys, 'amazon-bedrock')
    expect(bedrock?.apiKey?.reveal()).toBe('AKID:shh')
    expect(bedrock?.endpoints[0]?.baseUrl).toBe('https://bedrock-runtime.eu-west-1.amazonaws.com')
    expect(bedrock?.endpoints[0]?.sign).toBeDefined()
    expect(on({ ...keys, AWS_SESSION_TOKEN: 'tok' }, 'amazon-bedrock')?.apiKey?.reveal()).toBe('AKID:shh:tok')
  })

  test('at the host of its region, or at the one of none', () => {
    const keys = { GOOGLE_APPLICATION_CREDENTIALS: '/key.json', GOOGLE_CLOUD_PROJECT: 'acme' }
    const addressOf = (more: Readonly<Record<string, string>>) =>
      on({ ...keys, ...more }, 'google-vertex')?.endpoints[0]?.baseUrl
    expect(addressOf({})).toBe('https://aiplatform.googleapis.com/v1/projects/acme/locations/global/publishers/google')
    expect(addressOf({ GOOGLE_CLOUD_LOCATION: 'europe-west1' })).toBe(
      'https://europe-west1-aiplatform.googleapis.com/v1/projects/acme/locations/europe-west1/publishers/google',
    )
    // googleapis/python-genai#2498: the multi-regions are not reached by a prefix.
    expect(addressOf({ GOOGLE_CLOUD_LOCATION: 'eu' })).toBe(
      'https://aiplatform.eu.rep.googleapis.com/v1/projects/acme/locations/eu/publishers/google',
    )
  })

  test('for a workspace’s own service account, which calls its own project at the same host', () => {
    const keys = { GOOGLE_APPLICATION_CREDENTIALS: '/key.json', GOOGLE_CLOUD_PROJECT: 'operators' }
    const vertex = on({ ...keys, GOOGLE_CLOUD_LOCATION: 'europe-west1' }, 'google-vertex')
    const own = new Secret('{"client_email":"a@b","private_key":"k","project_id":"theirs"}')
    const place = 'https://europe-west1-aiplatform.googleapis.com/v1/projects/theirs/locations/europe-west1/publishers'
    expect(vertex?.endpoints.map(({ baseUrlOf }) => baseUrlOf?.(own))).toEqual([
      `${place}/google`,
      `${place}/anthropic`,
      `${place}/google`,
    ])
  })

  test('an entry that only own keys open is not on, replaces a built-in one, and keeps its way to take keys', () => {
    const [first] = builtInProviders
    const keys = { [first?.variable ?? '']: new Secret('k') }
    const entry = { id: first?.id ?? '', dialect: 'openai-chat', baseUrl: 'https://acme.example/v1' } as const
    const entries = [{ ...entry, apiKey: undefined, ownKeysOnly: true as const, source: 'tollgate.yaml:2' }]
    const providers = createProviders({ ...input, keys, entries })
    expect(providers.has(entry.id)).toBe(false)
    const dormant = dormantEndpoints(providers, { ...input, keys, entries }).get(entry.id)
    expect(dormant).toEqual([{ dialect: 'openai-chat', baseUrl: 'https://acme.example/v1', auth: 'bearer' }])
  })

  test('a disabled provider is not called, nor with own keys', () => {
    const [first] = builtInProviders
    const [id, variable] = [first?.id ?? '', first?.variable ?? '']
    const given = { ...input, keys: { [variable]: new Secret('k') }, disabled: [id] }
    const providers = createProviders(given)
    expect([providers.has(id), dormantEndpoints(providers, given).has(id)]).toEqual([false, false])
  })

  test('or is not, and a workspace’s own credential works if it supplies the missing settings', () => {
    const asleep = (keys: Readonly<Record<string, Secret>>) =>
      dormantEndpoints(createProviders({ ...input, keys }), { ...input, keys })
    const dormant = asleep({ OPENAI_API_KEY: new Secret('k') })
    expect([...dormant.keys()].sort()).toEqual(builtInProviders.flatMap(({ id }) => (id === 'openai' ? [] : id)).sort())
    expect(dormant.get('anthropic')).toEqual(builtInProviders[0]?.endpoints ?? [])
    const own = new Secret('{"client_email":"a@b","private_key":"k","project_id":"theirs"}')
    const place = 'https://aiplatform.googleapis.com/v1/projects'
    const [vertex] = dormant.get('google-vertex') ?? []
    expect(vertex?.baseUrl).toBe(`${place}/{GOOGLE_CLOUD_PROJECT}/locations/global/publishers/google`)
    expect(vertex?.baseUrlOf?.(own)).toBe(`${place}/theirs/locations/global/publishers/google`)
    expect(vertex?.sign).toBeDefined()
    const bedrockIn = (keys: Readonly<Record<string, Secret>>) => asleep(keys).get('amazon-bedrock')?.[0]?.baseUrl
    expect(bedrockIn({})).toBe('https://bedrock-runtime.{AWS_REGION}.amazonaws.com')
    expect(bedrockIn({ AWS_REGION: new Secret('eu-west-1') })).toBe('https://bedrock-runtime.eu-west-1.amazonaws.com')
  })

  test('by an entry of the file, which takes the place of the built-in one', () => {
    const [provider] = builtInProviders
    if (provider === undefined) throw new Error('no providers')
    const entry = {
      id: provider.id,
      dialect: 'openai-chat' as const,
      baseUrl: 'http://127.0.0.1:9/v1',
      apiKey: undefined,
      source: 'tollgate.yaml:2',
    }
    const on = createProviders({ ...input, entries: [entry], keys: { [provider.variable]: new Secret('key') } })
    expect([...on.values()].map(({ source }) => source)).toEqual(['tollgate.yaml:2'])
  })
})
