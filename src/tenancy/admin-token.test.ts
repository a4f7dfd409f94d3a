import { expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { createThrowAwayFolder } from '../../test/parts/engines.ts'
import { Secret } from '../kernel/secret.ts'
import { openDataFolder } from '../store/data-folder.ts'
import { loadAdminToken } from './admin-token.ts'

test('a token is made at the first start, private to the owner, and stays the same', () => {
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

test('two tokens have two fingerprints, and neither shows its token', () => {
  using place = createThrowAwayFolder()
  const folder = openDataFolder(place.path, () => {})
  const tokens = ['canary-one', 'canary-two'].map((text) => loadAdminToken(new Secret(text), folder))
  expect(tokens[0]?.fingerprint).not.toBe(tokens[1]?.fingerprint)
  expect(`${inspect(tokens)}${JSON.stringify(tokens)}`).not.toContain('canary')
})
