import { expect, test } from 'bun:test'
import { firstStartNotice, prettyStart, type StartFacts, shellWord, startLogLines } from './start-output.ts'

const facts: StartFacts = {
  version: '1.2.3',
  url: 'http://127.0.0.1:8080',
  publicUrl: undefined,
  isBehindProxy: false,
  dataFolder: './data',
  engine: 'sqlite',
  first: { key: 'sk-tg-first', keyFile: './data/first-key', signInPath: '/console?t=once', openingCredit: '5.00' },
  keyReference: '$(cat ./data/first-key)',
  managementToken: './data/admin-token (0600)',
  providersOn: [{ id: 'sandbox', source: 'built in', models: 9, offline: true }],
  providersOff: [],
}

const warnings = (changed: Partial<StartFacts>) => {
  const shown = { ...facts, ...changed }
  const logged = startLogLines(shown).filter(({ level }) => level === 'warn')
  const printed = prettyStart(shown)
    .split('\n')
    .filter((line) => line.startsWith('warning: '))
  expect(printed).toEqual(logged.map(({ message }) => `warning: ${message}`))
  return printed.length
}

test('warns about a public address without TLS, and not about loopback', () => {
  for (const url of ['http://0.0.0.0:8080', 'http://[::]:8080', 'http://192.0.2.7:80']) {
    expect([url, warnings({ url }), warnings({ url, isBehindProxy: true })]).toEqual([url, 1, 0])
  }
  for (const url of ['http://127.0.0.1:8080', 'http://127.0.0.2:8080', 'http://[::1]:8080', 'http://localhost:80']) {
    expect([url, warnings({ url })]).toEqual([url, 0])
  }
})

test('shows a wildcard address as loopback', () => {
  for (const [url, reached] of [
    ['http://0.0.0.0:8080', 'http://127.0.0.1:8080'],
    ['http://[::]:8080', 'http://[::1]:8080'],
  ] as const) {
    const text = prettyStart({ ...facts, url })
    expect(text).toContain(`  Console     ${reached}/console?t=once`)
    expect(text).toContain(`  OpenAI      ${reached}/v1    Chat Completions, Responses, Embeddings\n`)
    expect(text).toContain(`  Anthropic   ${reached}\n  Gemini      ${reached}\n`)
    expect(text).toContain(`curl -N ${reached}/v1/chat/completions`)
    expect(text).toContain(`listening on ${url}\n`)
    expect(firstStartNotice({ ...facts, url })).toContain(`Console ${reached}/console?t=once `)
    expect(startLogLines({ ...facts, url })[0]?.fields).toMatchObject({ console: `${reached}/console` })
  }
})

test('shows the public address, with a call that also works before a proxy serves it', () => {
  const publicUrl = 'https://gate.example'
  const text = prettyStart({ ...facts, publicUrl })
  expect(text).toContain(`  Console     ${publicUrl}/console?t=once`)
  expect(text).toContain(`  Catalog     ${publicUrl}/\n  OpenAI      ${publicUrl}/v1 `)
  expect(text).toContain(`  Anthropic   ${publicUrl}\n  Gemini      ${publicUrl}\n`)
  expect(text).toContain('curl -N http://127.0.0.1:8080/v1/chat/completions')
  expect(text).toContain('listening on http://127.0.0.1:8080\n')
  expect(prettyStart({ ...facts, publicUrl, first: undefined })).toContain(`  Console     ${publicUrl}/console    new`)
  expect(firstStartNotice({ ...facts, publicUrl })).toContain(`Console ${publicUrl}/console?t=once `)
  expect(startLogLines({ ...facts, publicUrl })[0]?.fields).toMatchObject({ console: `${publicUrl}/console` })
})

test('the JSON log of a first start has no secret, and its curl line reads the key from its file', () => {
  const text = JSON.stringify(startLogLines(facts))
  expect(text).not.toContain('sk-tg-first')
  expect(text).not.toContain('?t=once')
  expect(text).toContain('Authorization: Bearer $(cat ./data/first-key)')
  expect(shellWord("/my data/it's/first-key")).toBe(`'/my data/it'\\''s/first-key'`)
})

test('prints next to the JSON log only at a first start', () => {
  expect(firstStartNotice({ ...facts, first: undefined })).toBe('')
  const lines = firstStartNotice(facts).trimEnd().split('\n')
  expect(lines.every((line) => line.startsWith('tollgate: first start: '))).toBe(true)
  expect(lines[0]).toContain('API key sk-tg-first ')
  expect(lines.at(-1)).toContain('-H "Authorization: Bearer sk-tg-first"')
})

test('shows the call again at a later start, without the key', () => {
  const text = prettyStart({ ...facts, first: undefined })
  expect(text).toContain('-H "Authorization: Bearer $(cat ./data/first-key)"')
  expect(text).toContain('http://127.0.0.1:8080/console    new sign-in link: npx tollgate console\n')
  expect(text).not.toContain('sk-tg-')
})

test('suggests a call that works without the sandbox', () => {
  const providersOn = [{ id: 'acme', source: 'ACME_API_KEY', models: 1, offline: false }]
  const text = prettyStart({ ...facts, providersOn })
  expect(text).not.toContain('sandbox/echo')
  expect(text).toContain('curl http://127.0.0.1:8080/v1/models -H "Authorization: Bearer sk-tg-first"')
})
