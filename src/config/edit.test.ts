import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from './config.ts'
import { createConfigEditor } from './edit.ts'

let folder = ''
let written = 0
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-edit-'))
  written = 0
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const file = `# Our gateway.
providers:
  # Pays for itself.
  - id: acme
    dialect: openai-chat # as they say
    base_url: https://acme.example/v1
    api_key: \${ACME_API_KEY}
models:
  - id: acme/large # the big one
    price: { input: "1.00", output: "2.00" }
    routes: [{ provider: acme, model: large-v1 }]
`

function editorOf(text: string | undefined) {
  const path = join(folder, 'tollgate.yaml')
  if (text !== undefined) writeFileSync(path, text, { mode: 0o640 })
  const inputs = {
    env: { ACME_API_KEY: 'sk-acme' },
    cwd: folder,
    stdoutIsTerminal: false,
    providerVariables: [],
    builtInProviderIds: ['sandbox'],
    builtInModels: [],
  }
  const editor = createConfigEditor({
    path,
    dataFolder: join(folder, 'data'),
    check(fileText) {
      const loaded = loadConfig({ ...inputs, fileText })
      return 'faults' in loaded ? loaded.faults : []
    },
    onWritten: async () => void written++,
  })
  return { ...editor, path, load: () => loadConfig(inputs), content: () => readFileSync(path, 'utf8') }
}

const beta = { dialect: 'openai-chat', base_url: 'https://beta.example/v1' }

test('adds a provider with its key in a private file, and keeps comments, mode and the other entries', () => {
  const { change, content, path, load } = editorOf(file)
  const after = change({ providers: { beta: { ...beta, api_key: 'sk-beta' } } })
  const key = join(folder, 'data', 'provider-keys', 'beta')
  expect(readFileSync(key, 'utf8')).toBe('sk-beta')
  expect(statSync(key).mode & 0o777).toBe(0o600)
  expect(statSync(path).mode & 0o777).toBe(0o640)
  expect(content()).not.toContain('sk-beta')
  for (const comment of ['# Our gateway.', '# Pays for itself.', '# as they say', '# the big one']) {
    expect(content()).toContain(comment)
  }
  expect(after.providers).toEqual([
    { id: 'acme', dialect: 'openai-chat', base_url: 'https://acme.example/v1', api_key: `\${ACME_API_KEY}` },
    { id: 'beta', ...beta, api_key: `file:${key}` },
  ])
  const loaded = load()
  expect('config' in loaded && loaded.config.providers.map(({ id, apiKey }) => [id, apiKey?.reveal()])).toEqual([
    ['acme', 'sk-acme'],
    ['beta', 'sk-beta'],
  ])
  expect(written).toBe(1)
  change({ providers: { beta: null } })
  expect(existsSync(key)).toBe(false)
})

test('disables and enables providers in a list of the file', () => {
  const { change, content } = editorOf('# ours\naliases: { fast: acme/large }\ndisabled_providers: [acme] # for now\n')
  expect(change({ disabled_providers: { bolt: true, acme: true } }).disabled_providers).toEqual(['acme', 'bolt'])
  expect(content()).toContain('disabled_providers: [ acme, bolt ] # for now')
  expect(change({ disabled_providers: { acme: false } }).disabled_providers).toEqual(['bolt'])
  expect(change({ disabled_providers: { bolt: false, other: false } }).disabled_providers).toEqual([])
  expect(content()).toBe('# ours\naliases: { fast: acme/large }\n')
})

test('changes, adds and removes models and aliases', () => {
  const { change, content } = editorOf(file)
  const large = { price: 'free', routes: [{ provider: 'acme', model: 'large-v1' }] }
  const small = { routes: [{ provider: 'acme', model: 'small-v1' }], price: { input: '0.10', output: '0.20' } }
  const after = change({ models: { 'acme/large': large, 'acme/small': small }, aliases: { fast: 'acme/small' } })
  expect(after.models).toEqual([
    { id: 'acme/large', ...large },
    { id: 'acme/small', ...small },
  ])
  expect(after.aliases).toEqual({ fast: 'acme/small' })
  expect(content()).toContain('# the big one')
  const removed = change({ models: { 'acme/small': null }, aliases: { fast: null } })
  expect([removed.models.map(({ id }) => id), removed.aliases]).toEqual([['acme/large'], {}])
})

test('creates the file if there is none', () => {
  const { change, read } = editorOf(undefined)
  expect(read()).toMatchObject({ digest: null, read_only: null, providers: [] })
  change({ providers: { beta: { ...beta, api_key: 'sk-beta' } } })
  expect(read().providers.map(({ id }) => id)).toEqual(['beta'])
})

const moved = { dialect: 'openai-chat', base_url: 'https://elsewhere.example/v1' }

test.each([
  ['a route to an unknown provider', { models: { 'a/b': { routes: [{ provider: 'nobody', model: 'x' }] } } }],
  ['an unknown field', { providers: { beta: { ...beta, api_key: 'sk-beta', colour: 'red' } } }],
  ['an id that is a path', { providers: { '../beta': { ...beta, api_key: 'sk-beta' } } }],
  // A stored key would be sent there.
  ['a moved address without the key', { providers: { acme: moved } }],
  ['an address with a variable', { providers: { beta: { ...beta, base_url: `https://x.example/\${ACME_API_KEY}` } } }],
  ['a removal of what is not there', { providers: { beta: null } }],
  ['a change of an older file', { aliases: { fast: 'acme/large' }, digest: 'older' }],
])('refuses %s, and changes nothing', (_, wanted) => {
  const { change, content } = editorOf(file)
  expect(() => change(wanted)).toThrow()
  expect(content()).toBe(file)
  expect(existsSync(join(folder, 'data', 'provider-keys', 'beta'))).toBe(false)
  expect(written).toBe(0)
})

test('takes a reference in place of a key for the key itself, and so reads no file or variable', () => {
  const { change, load } = editorOf(file)
  change({ providers: { acme: { ...moved, api_key: `\${ACME_API_KEY}` } } })
  const loaded = load()
  const key = 'config' in loaded ? loaded.config.providers[0]?.apiKey?.reveal() : undefined
  expect(key).toBe(`\${ACME_API_KEY}`)
})

test('shows a key in the file as set, and a file that it cannot change as read-only', () => {
  const { read } = editorOf(file.replace(`\${ACME_API_KEY}`, 'sk-literal'))
  expect(read().providers[0]?.api_key).toBe('set')
  const broken = editorOf('providers: [')
  expect(broken.read().read_only).toBe('it is not valid YAML')
  expect(() => broken.change({ aliases: { a: 'b/c' } })).toThrow('not valid YAML')
  // The superuser may write everywhere.
  if (process.getuid?.() === 0) return
  const locked = editorOf(file)
  chmodSync(folder, 0o500)
  expect(locked.read().read_only).toContain('read-only')
  chmodSync(folder, 0o700)
})
