// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references as files write them

import { expect, test } from 'bun:test'
import { Secret } from '../kernel/secret.ts'
import { formatFault } from './document.ts'
import type { Environment } from './environment.ts'
import { addProvider, type FileReading, type Insertion, readConfigFile } from './file.ts'

const files: Record<string, string> = {
  '/run/secrets/acme': 'sk-from-file\n',
  '/etc/tollgate/keys/acme': 'sk-from-neighbour',
  '/run/secrets/empty': '\n',
  '/run/secrets/two-lines': 'canary-one\ncanary-two',
}

function read(text: string, env: Environment = {}): FileReading {
  return readConfigFile(text, {
    fileName: 'tollgate.yaml',
    folder: '/etc/tollgate',
    env,
    builtInProviderIds: ['openai', 'sandbox'],
    builtInModels: [
      { id: 'known/large', price: { input: '1', output: '2' }, routes: [{ provider: 'openai', model: 'large' }] },
      { id: 'known/vectors', tags: ['embeddings'], routes: [{ provider: 'openai', model: 'vectors' }] },
    ],
    readFile(path) {
      const content = files[path]
      if (content === undefined) throw Object.assign(new Error(`no such file ${path}`), { code: 'ENOENT' })
      return content
    },
  })
}

const faultsOf = (text: string, env: Environment = {}) => read(text, env).faults.map(formatFault)

/** A file with one provider whose last lines are the given ones. */
const provider = (...lines: string[]) =>
  ['providers:', '  - id: acme', '    dialect: openai-chat', ...lines.map((line) => `    ${line}`), ''].join('\n')
const keyed = (key: string) => provider('base_url: http://127.0.0.1:9000/v1', `api_key: ${key}`)

const contractExample = `providers:
  - id: acme                       # any name
    dialect: openai-chat
    base_url: http://127.0.0.1:9000/v1
    api_key: \${ACME_KEY}           # \${ENV}, file:/path, or a literal
  - id: acme-eu
    dialect: openai-chat
    base_url: http://127.0.0.1:9001/v1
models:
  - id: acme/large
    owned_by: acme
    name: Acme Large
    context_tokens: 200000
    max_output_tokens: 32000
    default_max_tokens: 4096       # chat surface, when the caller sends none
    tags: [tools, vision, reasoning, json, caching]
    price: { input: "2.50", output: "10.00", cache_read: "0.25", cache_write: "3.125", cache_write_1h: "5.00", over: { "200000": { input: "5.00", output: "15.00" } } }
    routes:
      - { provider: acme, model: acme-large-v1, priority: 1, weight: 1 }
      - { provider: acme-eu, model: acme-large-v1, priority: 2, timeouts: { connect_ms: 3000, first_event_ms: 15000, idle_ms: 30000, total_ms: 900000 } }
limits:
  requests_per_minute: 600
  tokens_per_minute: 200000
  concurrent_requests: 50
`

test('reads the published example', () => {
  const { settings, faults, warnings, referenced } = read(contractExample, { ACME_KEY: 'sk-acme' })
  expect(faults).toEqual([])
  expect(warnings).toEqual([])
  expect(referenced).toEqual(['ACME_KEY'])
  expect(settings?.providers.map(({ id, source }) => `${id} ${source}`)).toEqual([
    'acme tollgate.yaml:2',
    'acme-eu tollgate.yaml:6',
  ])
  expect(settings?.providers[0]?.apiKey?.reveal()).toBe('sk-acme')
  expect(settings?.providers[1]?.apiKey).toBeUndefined()
  expect(settings?.models[0]?.source).toBe('tollgate.yaml:10')
  expect(settings?.models[0]?.routes[1]?.timeouts).toEqual({
    connectMs: 3000,
    firstEventMs: 15_000,
    idleMs: 30_000,
    totalMs: 900_000,
  })
  expect(settings?.sections.limits).toEqual({
    requests_per_minute: 600,
    tokens_per_minute: 200_000,
    concurrent_requests: 50,
  })
})

test('reads JSON the same way', () => {
  const text =
    '{\n  "models": [\n    { "id": "a/b", "price": "free", "routes": [{ "provider": "openai", "model": 5 }] }\n  ]\n}'
  expect(faultsOf(text)).toEqual([
    'tollgate.yaml:3:81  models[0].routes[0].model  expected text, got the number 5 (put it in quotes)',
  ])
  expect(read(text.replace('5 }', '"b" }')).settings?.models[0]?.price?.free).toBe(true)
})

test.each([
  ['nothing', ''],
  ['only a comment', '# later\n'],
  ['sections with nothing in them', 'server:\nproviders:\nmodels:\nlimits:\nretries:\nsessions:\nwebhooks:\n'],
])('a file with %s sets nothing', (_, text) => {
  expect(read(text).settings).toEqual({
    sections: {
      server: {},
      limits: {},
      own_keys: {},
      content_export: {},
      retries: {},
      sessions: {},
      prices: {},
      reconcile: {},
      batches: {},
      alerts: {},
      webhooks: {},
      payments: {},
      sign_in: {},
    },
    aliases: {},
    disabledProviders: [],
    bills: [],
    policies: [],
    providers: [],
    models: [],
  })
})

test.each([
  ['a variable', `\${ACME_KEY}`, 'sk-from-env'],
  ['a file', 'file:/run/secrets/acme', 'sk-from-file'],
  ['a file address', 'file:///run/secrets/acme', 'sk-from-file'],
  ['a file beside the configuration', 'file:keys/acme', 'sk-from-neighbour'],
  ['the key itself', 'sk-literal', 'sk-literal'],
])('a key is taken from %s', (_, reference, key) => {
  const { settings } = read(keyed(reference), { ACME_KEY: ' sk-from-env\n' })
  expect(settings?.providers[0]?.apiKey?.reveal()).toBe(key)
})

test.each([
  ['a variable that is not set', `\${NOT_SET}`, 'the variable NOT_SET is not set'],
  ['a variable that is empty', `\${EMPTY}`, 'the variable EMPTY is not set'],
  [
    'a variable with something around it',
    `canary-\${ACME_KEY}`,
    `expected \${VARIABLE} to stand alone, with nothing before or after it`,
  ],
  ['a file that is not there', 'file:/canary', 'the file it names cannot be read (ENOENT)'],
  ['a file that is empty', 'file:/run/secrets/empty', 'the file it names is empty'],
  ['a file with two lines', 'file:/run/secrets/two-lines', 'has characters that cannot be sent in a header'],
  ['a key with a letter no header can carry', 'canary-é', 'has characters that cannot be sent in a header'],
  [
    'a number',
    '20261115',
    `expected a string: \${VARIABLE}, file:/path, or the key itself, got a number (put it in quotes)`,
  ],
])('a key from %s is a fault with its line that does not show it', (_, reference, message) => {
  expect(faultsOf(keyed(reference), { ACME_KEY: 'canary', EMPTY: '' })).toEqual([
    `tollgate.yaml:5:14  providers[0].api_key  ${message}`,
  ])
})

const policySecret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`

test('reads a policy with its defaults', () => {
  const text = `policies:\n  - { id: p, url: "http://127.0.0.1:1/x", secret: "\${P_SECRET}" }\n`
  const { settings } = read(text, { P_SECRET: policySecret })
  expect(settings?.policies).toEqual([
    {
      ...{ id: 'p', url: 'http://127.0.0.1:1/x', secret: new Secret(policySecret), timeoutMs: 1000 },
      ...{ when: 'request', onFailure: 'closed', mode: 'enforce', images: 'digest', source: 'tollgate.yaml:2' },
      ...{ workspaceId: undefined, projects: undefined, models: undefined },
    },
  ])
  expect(settings?.policies[0]?.secret.reveal()).toBe(policySecret)
})

test.each([
  ['secret: canary', 'secret  expected whsec_ followed by 24 to 64 bytes in base64'],
  ['secret: whsec_Y2FuYXJ5', 'secret  expected whsec_ followed by 24 to 64 bytes in base64'],
  ['timeout_ms: 10001', 'timeout_ms  expected at most 10000'],
  ['on_failure: opne', 'on_failure  expected closed or open'],
  ['mode: off', 'mode  expected enforce or watch'],
  ['models: ["acme"]', "models[0]  expected a model's id (creator/model) or a pattern"],
  ['projects: [web]', 'projects[0]  expected the id of a project (prj_…)'],
  ['url: "ftp://a.example"', 'url  expected an address such as http://127.0.0.1:9000/check'],
  ['url: "http://u:pw@a.example"', 'url  expected an address without a user, a password or #'],
  ['header: x', 'header  unknown key "header"'],
])('refuses a policy with %s', (member, fault) => {
  const members = { id: 'id: p', url: 'url: "http://a.example"', secret: `secret: ${policySecret}` }
  const all = Object.values({ ...members, [member.slice(0, member.indexOf(':'))]: member })
  const faults = faultsOf(`policies:\n  - { ${all.join(', ')} }\n`)
  expect(faults).toHaveLength(1)
  expect(faults[0]).toContain(`policies[0].${fault}`)
  expect(faults[0]).not.toContain('canary')
})

test('an address may contain variables', () => {
  const text = provider(`base_url: https://\${REGION}.acme.example/\${ACCOUNT}/v1/`)
  const { settings } = read(text, { REGION: 'eu', ACCOUNT: 'a1' })
  expect(settings?.providers[0]?.baseUrl).toBe('https://eu.acme.example/a1/v1')
})

test.each([
  ['names a variable that is not set', `https://\${REGION}.acme.example`, 'the variable REGION is not set'],
  ['names nothing', `https://\${}.acme.example`, `expected the name of a variable between \${ and }`],
  ['does not end', `https://acme.example/\${REGION`, `expected the name of a variable between \${ and }`],
])('an address whose reference %s is one fault', (_, url, message) => {
  expect(faultsOf(provider(`base_url: "${url}"`))).toEqual([`tollgate.yaml:4:15  providers[0].base_url  ${message}`])
})

test('refuses an address that a variable makes wrong, without showing the value', () => {
  expect(faultsOf(provider(`base_url: \${URL}`), { URL: 'canary' })).toEqual([
    'tollgate.yaml:4:15  providers[0].base_url  must start with http:// or https://, as in https://HOST/v1',
  ])
})

test.each([
  ['openai-chat', 'https://acme.example/v1/chat/completions', ''],
  ['openai-chat', 'https://acme.example/v1/chat/completions/', ''],
  ['openai-responses', 'https://acme.example/v1/responses', ''],
  ['openai-chat', 'https://acme.example/v1/messages', ', and this is the path of dialect anthropic-messages'],
  ['anthropic-messages', 'https://acme.example/v1/chat/completions', ', and this is the path of dialect openai-chat'],
  ['gemini', 'https://acme.example/v1beta/models/m:generateContent', ''],
])('an address of %s that ends in the path of a call is refused: %s', (dialect, url, other) => {
  const text = `providers: [{ id: acme, api_key: k, dialect: ${dialect}, base_url: "${url}" }]`
  expect(faultsOf(text).map((fault) => fault.replace(/^\S+ +/, ''))).toEqual([
    `providers[0].base_url  must end before the path of a call, which is appended (https://HOST/v1)${other}`,
  ])
})

test('an address without a scheme is refused, and the error shows one', () => {
  for (const url of ['api.acme.example/v1', 'localhost:9000/v1', '127.0.0.1:9000/v1']) {
    expect(faultsOf(provider(`base_url: "${url}"`))).toEqual([
      'tollgate.yaml:4:15  providers[0].base_url  must start with http:// or https://, as in https://HOST/v1',
    ])
  }
})

test('ignores an address for the sandbox, with a warning', () => {
  const { settings, warnings } = read('providers:\n  - { id: sand, dialect: sandbox, base_url: http://x }\n')
  expect(settings?.providers[0]?.baseUrl).toBeUndefined()
  expect(warnings.map(formatFault)).toEqual([
    'tollgate.yaml:2:35  providers[0].base_url  is ignored: the sandbox answers inside the gateway',
  ])
})

test('refuses a price that is a number, with a hint to quote it', () => {
  const text =
    'models:\n  - id: a/b\n    price: { input: 2.5, output: "1" }\n    routes: [{ provider: openai, model: b }]\n'
  expect(faultsOf(text)).toEqual([
    'tollgate.yaml:3:21  models[0].price.input  expected a decimal string of USD per million tokens such as "2.50", got the number 2.5 (put it in quotes)',
  ])
})

test('refuses an unknown key with the nearest known one, at every depth', () => {
  const text = `modles: []
server: { hots: x }
models:
  - id: a/b
    price: { input: "1", output: "1", cache_raed: "1", over: { 5: { inputs: "1", input: "1", output: "1" } } }
    routes: [{ provider: openai, model: b, wieght: 2, timeouts: { idle: 3 } }]
`
  expect(faultsOf(text)).toEqual([
    'tollgate.yaml:1:1  modles  unknown key "modles"; did you mean "models"?',
    'tollgate.yaml:2:11  server.hots  unknown key "hots"; did you mean "host"?',
    'tollgate.yaml:5:39  models[0].price.cache_raed  unknown key "cache_raed"; did you mean "cache_read"?',
    'tollgate.yaml:5:69  models[0].price.over["5"].inputs  unknown key "inputs"; did you mean "input"?',
    'tollgate.yaml:6:44  models[0].routes[0].wieght  unknown key "wieght"; did you mean "weight"?',
    'tollgate.yaml:6:67  models[0].routes[0].timeouts.idle  unknown key "idle"; known here: connect_ms, first_event_ms, idle_ms, content_idle_ms, total_ms',
  ])
})

test('refuses a route to an unknown provider with the nearest name', () => {
  const text = `${provider('base_url: http://127.0.0.1:9000/v1')}models:
  - id: a/b
    routes: [{ provider: acmee, model: b }, { provider: opnai, model: b }, { provider: sandbox, model: b }]
`
  expect(faultsOf(text)).toEqual([
    'tollgate.yaml:7:26  models[0].routes[0].provider  there is no provider with this id; did you mean "acme"?',
    'tollgate.yaml:7:57  models[0].routes[1].provider  there is no provider with this id; did you mean "openai"?',
  ])
})

test('refuses a repeated id with both lines', () => {
  const text = `providers:
  - { id: acme, dialect: sandbox }
  - { id: acme, dialect: sandbox }
models:
  - { id: a/b, routes: [{ provider: acme, model: b }] }
  - { id: a/c, routes: [{ provider: acme, model: c }] }
  - { id: a/b, routes: [{ provider: acme, model: b }] }
`
  expect(faultsOf(text)).toEqual([
    'tollgate.yaml:3:11  providers[1].id  this id is used twice: in line 2 (providers[0]) and in line 3',
    'tollgate.yaml:7:11  models[2].id  this id is used twice: in line 5 (models[0]) and in line 7',
  ])
})

const routes = 'routes: [{ provider: openai, model: b }]'

test('reads the fallbacks of a model, of one that is built in too, and takes models that name each other', () => {
  const { settings, faults, warnings } = read(`models:
  - { id: a/b, price: free, fallbacks: [known/large, a/c], ${routes} }
  - { id: a/c, price: free, fallbacks: [a/b], ${routes} }
  - { id: known/large, fallbacks: [a/b] }
`)
  expect([faults, warnings]).toEqual([[], []])
  expect(settings?.models.map(({ id, source, fallbacks }) => [id, source, fallbacks])).toEqual([
    ['a/b', 'tollgate.yaml:2', ['known/large', 'a/c']],
    ['a/c', 'tollgate.yaml:3', ['a/b']],
    ['known/large', 'built in', ['a/b']],
  ])
  expect(settings?.models[2]?.price?.free).toBe(false)
})

test('reports every fallback that could not answer', () => {
  const text = `models:
  - { id: a/b, fallbacks: [a/b, a/c, a/c, a/bb, zzz/none], ${routes} }
  - { id: a/c, fallbacks: [a/b, a/d, known/vectors, 1, a/v, known/large], ${routes} }
  - { id: a/v, tags: [embeddings], fallbacks: [a/b], ${routes} }
  - { id: known/vectors, fallbacks: [known/large] }
  - { id: known/small, fallbacks: [known/large] }
  - { id: a/d, fallbacks: a/b, ${routes} }
  - { id: known/large, fallbacks: [], name: Large }
`
  const noVectors =
    'a model that makes embeddings has no fallbacks: vectors of different models cannot be compared. Remove them'
  expect(faultsOf(text)).toEqual([
    'tollgate.yaml:2:28  models[0].fallbacks[0]  is the model itself; name other models',
    'tollgate.yaml:2:38  models[0].fallbacks[2]  is named twice',
    'tollgate.yaml:2:43  models[0].fallbacks[3]  there is no model with this id; did you mean "a/b"?',
    'tollgate.yaml:2:49  models[0].fallbacks[4]  there is no model with this id; `tollgate models --all` lists the built-in ones',
    'tollgate.yaml:3:27  models[1].fallbacks  expected at most 5 models, got a list',
    'tollgate.yaml:3:38  models[1].fallbacks[2]  makes embeddings and does not answer prompts; name another model',
    'tollgate.yaml:3:56  models[1].fallbacks[4]  makes embeddings and does not answer prompts; name another model',
    `tollgate.yaml:4:36  models[2].fallbacks  ${noVectors}`,
    `tollgate.yaml:5:26  models[3].fallbacks  ${noVectors}`,
    'tollgate.yaml:6:11  models[4].id  there is no built-in model with this id, so its entry needs routes; `tollgate models --all` lists the built-in ones',
    'tollgate.yaml:7:27  models[5].fallbacks  expected a list, got "a/b"',
    'tollgate.yaml:8:5  models[6].routes  expected a list, but it is missing',
  ])
})

test('accepts a model without a price', () => {
  const { settings } = read('models:\n  - { id: a/b, routes: [{ provider: openai, model: b }] }\n')
  expect(settings?.models[0]?.price).toBeUndefined()
})

test('reports a missing field at its entry', () => {
  expect(faultsOf('models:\n  - id: a/b\n')).toEqual([
    'tollgate.yaml:2:5  models[0].routes  expected a list, but it is missing',
  ])
})

test.each([
  ['a list', '- a\n', 'tollgate.yaml:1:1  expected a mapping, got a list'],
  ['a word', 'hello\n', 'tollgate.yaml:1:1  expected a mapping, got "hello"'],
  [
    'a mapping where a list belongs',
    'models: { id: a/b }\n',
    'tollgate.yaml:1:9  models  expected a list, got a mapping',
  ],
])('%s is not a configuration', (_, text, fault) => {
  expect(faultsOf(text)).toEqual([fault])
})

test('shows no key in a fault, wherever it was put by mistake', () => {
  const canary = `sk-canary-${'0123456789'.repeat(4)}`
  const text = `providers:
  - id: ${canary}
    dialect: ${canary}
    base_url: ${canary}
    api_key: [${canary}]
    ${canary}: 1
  - { ${canary} }
  - ${canary}
models:
  - { id: ${canary}, price: ${canary}, tags: [${canary}], routes: [{ provider: ${canary}, model: x }] }
server: { log: ${canary} }
`
  const faults = faultsOf(text)
  expect(faults.length).toBeGreaterThan(10)
  expect(faults.join('\n')).not.toContain('0123456789')
})

const acme = {
  id: 'acme',
  dialect: 'openai-chat',
  baseUrl: 'https://api.acme.example/v1',
  keyReference: '${ACME_API_KEY}',
}

function added(text: string): Insertion {
  const insertion = addProvider(text, acme)
  if (typeof insertion === 'string') throw new Error(insertion)
  return insertion
}

const acmeEntry = (indent: string) =>
  ['- id: acme', '  dialect: openai-chat', '  base_url: https://api.acme.example/v1', '  api_key: ${ACME_API_KEY}']
    .map((line) => `${indent}${line}\n`)
    .join('')

test('adds the section at the end of a new file and of one without providers', () => {
  expect(added('').text).toBe(`providers:\n${acmeEntry('  ')}`)
  expect(added('# mine\nserver: { port: 1 }').text).toBe(`# mine\nserver: { port: 1 }\nproviders:\n${acmeEntry('  ')}`)
  expect(added('# only words\n').text).toBe(`# only words\nproviders:\n${acmeEntry('  ')}`)
})

test('adds the entry after the last one with its indentation, and changes no other character', () => {
  const before = `# about us
providers:   # who hosts

- id:    beta      # spaced oddly
  dialect: 'openai-chat'
  base_url: "https://beta.example/v1"   # the end

# about models
models: [ ]
`
  const { text, line } = added(before)
  expect(text).toBe(before.replace('# the end\n', `# the end\n${acmeEntry('')}`))
  expect(line).toBe(7)
})

test('adds a line break after a last entry without one', () => {
  const before = 'providers:\n    - { id: beta, dialect: sandbox }'
  expect(added(before).text).toBe(`${before}\n${acmeEntry('    ')}`)
})

test('fills an empty section', () => {
  expect(added('providers: # none yet\nmodels: []\n').text).toBe(
    `providers: # none yet\n${acmeEntry('  ')}models: []\n`,
  )
})

test('fills an empty list in brackets', () => {
  expect(added('providers: [ ]  # none yet\nmodels: []\n').text).toBe(
    `providers:  # none yet\n${acmeEntry('  ')}models: []\n`,
  )
})

test('leaves a file with the same id, and one in braces, unchanged', () => {
  expect(addProvider('providers:\n  - id: acme\n', acme)).toBe('repeated')
  expect(addProvider('providers: [{ id: acme }]\n', acme)).toBe('repeated')
  expect(addProvider('{ "providers": [] }\n', acme)).toBe('flow')
  expect(addProvider('providers: [{ id: beta }]\n', acme)).toBe('flow')
})
