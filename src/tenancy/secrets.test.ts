import { expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { createThrowAwayFolder, forEachEngine } from '../../test/parts/engines.ts'
import { Secret } from '../kernel/secret.ts'
import { openDataFolder } from '../store/data-folder.ts'
import { StartRefusal } from '../store/start-refusal.ts'
import {
  confirmSecret,
  deriveSubkey,
  isSecretOnRecord,
  loadAdminToken,
  loadMasterSecret,
  refuseLostSecret,
} from './secrets.ts'

const counting = Uint8Array.from({ length: 32 }, (_, at) => at)
const source = 'TOLLGATE_SECRET'

function load(text: string) {
  using folder = createThrowAwayFolder()
  return loadMasterSecret(
    new Secret(text),
    openDataFolder(folder.path, () => {}),
  )
}

test('derives a different key for every label', () => {
  const secret = { bytes: counting, source }
  // RFC 5869 with SHA-256, no salt, the label as info; worked out with Python's hmac.
  expect(Buffer.from(deriveSubkey(secret, 'api-key-pepper')).toString('hex')).toBe(
    'c2767bf1d555245583768a8dcf102bfb1bd44070fc43c9bcc00e790cb95e8c89',
  )
  expect(Buffer.from(deriveSubkey(secret, 'credential-kek')).toString('hex')).toBe(
    '2e046d176b0162a01a5e925d8907cf193293cd4d473a5123f000180cf563fea5',
  )
})

test('reads the same bytes from base64, base64url and hexadecimal', () => {
  const bytes = Uint8Array.from({ length: 32 }, (_, at) => 255 - at * 7)
  const buffer = Buffer.from(bytes)
  for (const encoding of ['base64', 'base64url', 'hex'] as const) {
    expect(new Uint8Array(load(` ${buffer.toString(encoding)}\n`).bytes)).toEqual(bytes)
  }
})

test('a text of 32 characters or more that does not encode 32 bytes is used as text', () => {
  const texts = [
    'a passphrase: 12 green Herrings & more',
    'prod-master-key-7f3e91ab20c4d5-Zurich',
    Buffer.from(counting.slice(0, 31)).toString('base64url'),
  ]
  const made = texts.map((text) => load(text).bytes)
  for (const bytes of made) expect(bytes).toHaveLength(32)
  expect(new Set(made.map((bytes) => Buffer.from(bytes).toString('hex'))).size).toBe(texts.length)
  expect(load(`  ${texts[0]}\n`).bytes).toEqual(load(texts[0] as string).bytes)
})

test('K2: refuses short and repetitive secrets, and never shows them', () => {
  const refusals: [text: string, reason: string][] = [
    ['', 'has 0 characters; at least 32'],
    ['correct horse battery staple', 'has 28 characters; at least 32'],
    [Buffer.from(counting.slice(0, 22)).toString('base64url'), 'has 30 characters; at least 32'],
    ['correct horse battery staple correct horse battery staple', 'repeats itself'],
    ['a'.repeat(64), 'repeats itself'],
    ['x'.repeat(64), 'repeats itself'],
    ['changeme'.repeat(8), 'repeats itself'],
    ['0123456789abcdef'.repeat(4), 'repeats itself'],
  ]
  for (const [text, reason] of refusals) {
    const attempt = () => load(text)
    expect(attempt).toThrow(StartRefusal)
    expect(attempt).toThrow(`TOLLGATE_SECRET ${reason}`)
    if (text !== '') expect(attempt).not.toThrow(text)
  }
})

test('K2: without a configured secret creates a private one in the data folder, once', () => {
  using folder = createThrowAwayFolder()
  const data = openDataFolder(folder.path, () => {})
  const made = loadMasterSecret(undefined, data)
  expect(made.bytes).toHaveLength(32)
  expect(made.source).toBe(data.file('secret'))
  expect(statSync(data.file('secret')).mode & 0o777).toBe(0o600)
  expect(loadMasterSecret(undefined, data)).toEqual(made)
})

forEachEngine((_, storeTest) => {
  storeTest('accepts the secret of the database and refuses another, naming its source', async ({ database }) => {
    const right = { bytes: counting, source }
    const wrong = { bytes: counting.toReversed(), source: './data/secret' }
    await database.transaction((sql) => confirmSecret(sql, right))
    await database.transaction((sql) => confirmSecret(sql, right))
    const refusal = await database.transaction((sql) => confirmSecret(sql, wrong)).catch((thrown: unknown) => thrown)
    expect(refusal).toBeInstanceOf(StartRefusal)
    expect((refusal as Error).message).toStartWith(
      'The secret in ./data/secret is not the one this database was set up with',
    )
    await database.transaction((sql) => confirmSecret(sql, right))
  })

  storeTest(
    'a missing secret file stops the start; a database without a secret gets one',
    async ({ database, place }) => {
      const folder = openDataFolder(place.dataFolder, () => {})
      await refuseLostSecret(database.sql, undefined, folder)
      const made = loadMasterSecret(undefined, folder)
      await database.transaction((sql) => confirmSecret(sql, made))
      await refuseLostSecret(database.sql, undefined, folder)
      rmSync(folder.file('secret'))
      const refusal = await refuseLostSecret(database.sql, undefined, folder).catch((thrown: unknown) => thrown)
      expect(refusal).toBeInstanceOf(StartRefusal)
      const { message } = refusal as Error
      expect(message).toStartWith('The master secret is missing')
      for (const part of [folder.file('secret'), 'Restore the file', 'TOLLGATE_SECRET', 'a-lost-secret']) {
        expect(message).toContain(part)
      }
      expect(existsSync(folder.file('secret'))).toBe(false)
      // One from a variable needs no file.
      await refuseLostSecret(database.sql, new Secret('x'), folder)
    },
  )

  storeTest('K2: the database contains nothing of the secret', async ({ database }) => {
    await database.transaction((sql) => confirmSecret(sql, { bytes: counting, source }))
    const rows = await database.sql<{ value: string }>`SELECT value FROM installation`
    expect(rows).toHaveLength(1)
    const hex = Buffer.from(counting).toString('hex')
    expect(rows[0]?.value).toMatch(/^[0-9a-f]{64}$/)
    expect(rows[0]?.value).not.toBe(hex)
  })

  storeTest('K3: the new secret replaces the recorded one if that is given as the previous', async ({ database }) => {
    const first = { bytes: counting, source }
    const next = { bytes: counting.map((byte) => byte + 100), source }
    const other = { bytes: counting.map((byte) => byte + 50), source }
    const confirm = (secret: typeof first, previous?: typeof first) =>
      database.transaction((sql) => confirmSecret(sql, secret, previous)).catch((thrown: unknown) => thrown)
    expect(await confirm(first)).toBeUndefined()
    expect(await confirm(next, other)).toBeInstanceOf(StartRefusal)
    expect(await isSecretOnRecord(database.sql, first)).toBe(true)
    expect(await confirm(next, first)).toBeUndefined()
    expect(await isSecretOnRecord(database.sql, first)).toBe(false)
    expect(await isSecretOnRecord(database.sql, next)).toBe(true)
    // Again with both, then without the old one, as a rotation ends; the old one alone is a wrong one from then on.
    expect(await confirm(next, first)).toBeUndefined()
    expect(await confirm(next)).toBeUndefined()
    expect(await confirm(first)).toBeInstanceOf(StartRefusal)
  })
})

test('a token is created at the first start, private to the owner, and stays the same', () => {
  using place = createThrowAwayFolder()
  const folder = openDataFolder(place.path, () => {})
  const token = loadAdminToken(undefined, folder)
  expect(token.file).toBe(folder.file('admin-token'))
  expect(token.source).toBe(folder.file('admin-token'))
  expect(statSync(folder.file('admin-token')).mode & 0o777).toBe(0o600)
  const written = readFileSync(folder.file('admin-token'), 'utf8').trim()
  // 32 bytes in base64url without padding: 43 characters.
  expect(written).toMatch(/^[0-9A-Za-z_-]{43}$/)
  expect(token.matches(written)).toBe(true)
  expect(loadAdminToken(undefined, folder).matches(written)).toBe(true)
  expect(loadAdminToken(undefined, folder).fingerprint).toBe(token.fingerprint)
})

test("the operator's token wins over the file, and nothing is written", () => {
  using place = createThrowAwayFolder()
  const folder = openDataFolder(place.path, () => {})
  writeFileSync(folder.file('admin-token'), 'from-the-file\n')
  const token = loadAdminToken(new Secret('from-the-operator'), folder)
  expect(token).toMatchObject({ source: 'TOLLGATE_ADMIN_TOKEN', file: undefined })
  expect(token.matches('from-the-operator')).toBe(true)
  expect(token.matches('from-the-file')).toBe(false)
  expect(readFileSync(folder.file('admin-token'), 'utf8')).toBe('from-the-file\n')
})

test.each([
  '',
  'canary',
  'canary-tokem',
  'canary-token ',
  'canary-token-and-more',
  'CANARY-TOKEN',
  'canary-tok\u00e9n',
])('A10: %p is not the token', (text) => {
  using place = createThrowAwayFolder()
  const token = loadAdminToken(
    new Secret('canary-token'),
    openDataFolder(place.path, () => {}),
  )
  expect(token.matches(text)).toBe(false)
  expect(token.matches('canary-token')).toBe(true)
})

test('two tokens have different fingerprints, which reveal neither', () => {
  using place = createThrowAwayFolder()
  const folder = openDataFolder(place.path, () => {})
  const tokens = ['canary-one', 'canary-two'].map((text) => loadAdminToken(new Secret(text), folder))
  expect(tokens[0]?.fingerprint).not.toBe(tokens[1]?.fingerprint)
  expect(`${inspect(tokens)}${JSON.stringify(tokens)}`).not.toContain('canary')
})
