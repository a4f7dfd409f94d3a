// Checks the layers: src obeys the rules, and every rule is shown to fail on an example that breaks it.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the examples are source text

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { readSources } from './layers/read-sources.ts'
import { checkHouse } from './layers/rules.ts'
import { readSource } from './layers/source-text.ts'

test('src obeys the layer rules', async () => {
  const sources = await readSources(join(import.meta.dir, '..'))
  expect(sources.has('src/kernel/clock.ts')).toBe(true)
  expect(checkHouse(sources)).toEqual([])
})

test("no import that Bun's own scan finds is missed", async () => {
  for (const [path, text] of await readSources(join(import.meta.dir, '..'))) {
    const transpiler = new Bun.Transpiler({ loader: path.endsWith('x') ? 'tsx' : 'ts' })
    const seen = readSource(text).imports.map(({ specifier }) => specifier)
    const missed = transpiler
      .scanImports(text)
      // Bun adds these two for JSX, whatever the file's own pragma says.
      .filter(({ path: found }) => !/^react(\/|$)/.test(found) && !seen.includes(found))
    expect({ path, missed }).toEqual({ path, missed: [] })
  }
})

const house = (files: Record<string, string>) => checkHouse(new Map(Object.entries(files)))

const examples: readonly [breaks: string, files: Record<string, string>, finding: string][] = [
  [
    'a file outside every folder',
    { 'src/helpers.ts': '' },
    'src/helpers.ts:1: stands in no layer. Put it into one of the folders main, app, config, http, web, cli, api, batches, pipeline, routing, alerts, reconcile, providers, dialects, catalog, ledger, limits, tenancy, telemetry, wire, store, kernel',
  ],
  [
    'an import from a layer above',
    { 'src/kernel/ids.ts': "// why\nimport { readBody } from '../wire/read-body.ts'\n" },
    'src/kernel/ids.ts:2: imports src/wire/read-body.ts, a layer above. Take it as an argument of an interface that kernel owns, passed in from app.ts',
  ],
  [
    'an import of types from a layer above',
    { 'src/routing/plan.ts': "import type { Step } from '../pipeline/run.ts'\n" },
    'src/routing/plan.ts:1: imports src/pipeline/run.ts, a layer above. Take it as an argument of an interface that routing owns, passed in from app.ts',
  ],
  [
    'an export from a layer above',
    { 'src/wire/sse.ts': "export {\n  type Model,\n} from '../catalog/model.ts'\n" },
    'src/wire/sse.ts:3: imports src/catalog/model.ts, a layer above. Take it as an argument of an interface that wire owns, passed in from app.ts',
  ],
  [
    'an import from a sibling',
    { 'src/limits/admit.ts': "const keys = await import('../tenancy/keys.ts')\n" },
    'src/limits/admit.ts:1: imports src/tenancy/keys.ts, a sibling. Move what limits and tenancy share below both, or join them in a layer above',
  ],
  [
    'a worker in a sibling',
    { 'src/http/serve.ts': "new Worker(new URL('../web/render.ts', import.meta.url))\n" },
    'src/http/serve.ts:1: imports src/web/render.ts, a sibling. Move what http and web share below both, or join them in a layer above',
  ],
  [
    'the configuration imported from within',
    { 'src/http/serve.ts': "import type { Config } from '../config/config.ts'\n" },
    'src/http/serve.ts:1: imports src/config/config.ts, a layer above. Take it as an argument of an interface that http owns, passed in from app.ts',
  ],
  [
    'a configuration that builds things',
    { 'src/config/file.ts': "import { createCatalog } from '../catalog/catalog.ts'\n" },
    'src/config/file.ts:1: imports src/catalog/catalog.ts. Config imports catalog/entry.ts, catalog/model.ts, providers/entry.ts and kernel only; build the rest in app.ts',
  ],
  [
    'a ledger that sees tokens',
    { 'src/ledger/settle.ts': "import type { Usage } from '../kernel/usage.ts'\n" },
    'src/ledger/settle.ts:1: imports src/kernel/usage.ts. The ledger knows amounts, not tokens; price the usage first and hand it a Nano',
  ],
  [
    'a product that needs its tests',
    { 'src/app.ts': "import { fakeUpstream } from '../test/fake-upstream.ts'\n" },
    'src/app.ts:1: imports test/fake-upstream.ts. Move what the product needs into src, outside tests',
  ],
  [
    'a dialect that imports a dialect',
    { 'src/dialects/gemini/index.ts': "import { meter } from '../openai-chat/meter.ts'\n" },
    'src/dialects/gemini/index.ts:1: dialect gemini imports dialect openai-chat. Meet in the canonical form, in a file of src/dialects/',
  ],
  [
    'a cycle, even of types',
    {
      'src/wire/a.ts': "import './c.ts'\nimport { b } from './b.ts'\n",
      'src/wire/b.ts': "import type { A } from './a.ts'\n",
      'src/wire/c.ts': '',
    },
    'src/wire/a.ts:2: import cycle src/wire/a.ts → src/wire/b.ts → src/wire/a.ts. Move what they share into a file below them',
  ],
  [
    "a provider's name in code",
    {
      'src/providers/data/acme.ts': "export const acme = { id: 'acme', auth: 'bearer' }\n",
      'src/routing/plan.ts': "\nif (route.providerId === 'acme') skip()\n",
    },
    'src/routing/plan.ts:2: names the provider acme. Ask for a capability, or take the id from src/providers/data/acme.ts',
  ],
  [
    "a provider's name before a model's",
    {
      'src/providers/local/models.ts': "export const id = 'local'\n",
      'src/catalog/catalog.ts': 'const id = `local/${name}`\n',
    },
    'src/catalog/catalog.ts:1: names the provider local. Ask for a capability, or take the id from src/providers/local/',
  ],
  [
    'the environment read outside config/config.ts',
    { 'src/telemetry/log.ts': 'const format = process.env.TOLLGATE_LOG\n' },
    'src/telemetry/log.ts:1: reads the environment. Use a field of Config (config/config.ts reads the environment), not process.env',
  ],
  [
    'the environment imported',
    { 'src/store/open.ts': "import { env } from 'bun'\n" },
    'src/store/open.ts:1: reads the environment. Use a field of Config (config/config.ts reads the environment), not bun env',
  ],
  [
    'the clock read outside kernel/clock',
    { 'src/limits/bucket.ts': 'const now =\n  Date.now()\n' },
    'src/limits/bucket.ts:2: reads the clock. Use kernel/clock (Clock), not Date.now',
  ],
  [
    'the clock read by a date without an argument',
    { 'src/limits/bucket.ts': 'const day = new Date(epochMs)\nconst today = new Date()\n' },
    'src/limits/bucket.ts:2: reads the clock. Use kernel/clock (Clock), not new Date',
  ],
  [
    'another program started',
    { 'src/cli/open.ts': "Bun.spawn(['xdg-open', url])\n" },
    'src/cli/open.ts:1: starts another program. The gateway is one process; use a Bun API or a Worker, not Bun.spawn',
  ],
  [
    'another program started through Node',
    { 'src/cli/open.ts': "import { exec } from 'node:child_process'\n" },
    'src/cli/open.ts:1: starts another program. The gateway is one process; use a Bun API or a Worker, not node:child_process',
  ],
  [
    'code made from text',
    { 'src/routing/order.ts': 'const order = new Function(text)\n' },
    'src/routing/order.ts:1: runs code made from text. Use a table of functions, not new Function',
  ],
  [
    'randomness that a test cannot fix',
    { 'src/routing/order.ts': 'const draw = Math.random()\n' },
    'src/routing/order.ts:1: draws at random. Take a random source as an argument; only kernel makes one, not Math.random',
  ],
  [
    'a stream without backpressure',
    { 'src/pipeline/answer.ts': "new ReadableStream({\n  type: 'direct',\n  pull,\n})\n" },
    "src/pipeline/answer.ts:2: a direct stream, which does not wait for slow readers by itself. Use a pull-based ReadableStream, not type: 'direct'",
  ],
]

describe('a rule fails on', () => {
  for (const [breaks, files, finding] of examples) {
    test(breaks, () => expect(house(files)).toEqual([finding]))
  }
})

describe('a rule accepts', () => {
  const accepted: Record<string, Record<string, string>> = {
    'imports downwards, within a folder and from packages': {
      'src/main.ts': "import { createApp } from './app.ts'\nimport { readConfig } from './config/config.ts'\n",
      'src/app.ts': "import { createApi } from './http/api.ts'\nimport type { Config } from './config/config.ts'\n",
      'src/config/config.ts': "import { z } from 'zod'\nimport { modelEntry } from '../catalog/entry.ts'\n",
      'src/providers/provider.ts': "import type { DialectId } from '../dialects/dialect.ts'\n",
      'src/dialects/registry.ts': "import { openaiChat } from './openai-chat/index.ts'\n",
      'src/dialects/openai-chat/index.ts': "import type { Dialect } from '../dialect.ts'\nimport './meter.ts'\n",
    },
    'the agreed exception of the command line': {
      'src/cli/doctor.ts': "import { readConfig } from '../config/config.ts'\n",
    },
    'each thing in its own place': {
      'src/config/config.ts': 'const { env } = process\nconst port = Bun.env.PORT\n',
      'src/kernel/clock.ts': 'const clock = { now: () => Date.now(), monotonicMs: () => performance.now() }\n',
      'src/kernel/draw.ts': 'const draw = Math.random\n',
      'src/providers/data/acme.ts': "export const acme = { id: 'acme' }\n",
      'src/catalog/data/acme.ts': "export const large = { id: 'acme/large', provider: 'acme' }\n",
      'src/dialects/dialect.ts': "const ids = ['acme-chat']\n",
    },
    'tests beside the code, which may use any part': {
      'src/kernel/clock.test.ts': "import { app } from '../app.ts'\nconst now = Date.now()\n",
    },
    "what only comments, texts and patterns say, and a provider's JSON": {
      'src/wire/sse.ts': [
        "// import x from '../app.ts', Date.now()",
        "/* process.env */ const a = \"Date.now()\" + 'it\\'s Math.random()'",
        'const b = `Date.now() ${`process.env`} Math.random()`',
        'const c = /["\'`]Date.now/.test(a) ? 4 / 2 / 1 : a.replace(/[/"]/g, "process.env")',
        "const d = { caller: { type: 'direct' } }",
      ].join('\n'),
    },
  }
  for (const [what, files] of Object.entries(accepted)) {
    test(what, () => expect(house(files)).toEqual([]))
  }
})

describe('reading a source', () => {
  test('sees code inside a substitution, and after it', () => {
    const { code } = readSource('`a ${now({ b: `c` })} d` + e')
    expect(code).toBe('`  ${now({ b: ` ` })}  ` + e')
  })

  test('keeps a division and blanks a regular expression', () => {
    expect(readSource("a / b; return /'/g; c() / d / 'e'").code).toBe("a / b; return     ; c() / d / ' '")
  })

  test('lists what an import takes, types included', () => {
    expect(readSource("import { type A, b as c } from './d.ts'\nimport type E from 'f'").imports).toEqual([
      { specifier: './d.ts', names: ['A', 'b'], line: 1 },
      { specifier: 'f', names: [], line: 2 },
    ])
  })

  test('takes an apostrophe in the text of a page for an apostrophe', () => {
    expect(readSource("<p>Don't</p>\nDate.now()").code).toBe("<p>Don't</p>\nDate.now()")
  })
})
