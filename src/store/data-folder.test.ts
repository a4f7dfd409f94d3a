import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createThrowAwayFolder } from '../../test/parts/engines.ts'
import { ensurePrivateFile, openDataFolder } from './data-folder.ts'
import { StartRefusal } from './start-refusal.ts'

const silent = () => {}

function mode(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

test('creates the folder for its owner alone', () => {
  using parent = createThrowAwayFolder()
  const path = join(parent.path, 'deep', 'data')
  openDataFolder(path, silent)
  expect(mode(path)).toBe('700')
})

test('tightens an open folder and says so', () => {
  using parent = createThrowAwayFolder()
  const path = join(parent.path, 'data')
  mkdirSync(path)
  chmodSync(path, 0o755)
  const lines: string[] = []
  openDataFolder(path, (line) => lines.push(line))
  expect(mode(path)).toBe('700')
  expect(lines).toEqual([`${path} was open to other users (0755); it is now 0700.`])
  openDataFolder(path, (line) => lines.push(line))
  expect(lines).toHaveLength(1)
})

test('refuses a path that is a file', () => {
  using parent = createThrowAwayFolder()
  const path = join(parent.path, 'data')
  writeFileSync(path, '')
  expect(() => openDataFolder(path, silent)).toThrow(StartRefusal)
  expect(() => openDataFolder(path, silent)).toThrow(`Cannot use ${path} as the data folder`)
})

test('K2: makes a secret once, private, with as many random bytes as asked for, and reads it ever after', () => {
  using folder = createThrowAwayFolder()
  const data = openDataFolder(folder.path, silent)
  const made = data.readOrCreateSecret('secret', 32)
  expect(made.created).toBe(true)
  expect(Buffer.from(made.text, 'base64url')).toHaveLength(32)
  expect(mode(data.file('secret'))).toBe('600')
  expect(data.readOrCreateSecret('secret', 32)).toEqual({ text: made.text, created: false })
  expect(data.readOrCreateSecret('other', 32).text).not.toBe(made.text)
  expect(readdirSync(folder.path).sort()).toEqual(['other', 'secret'])
})

test('tightens a secret that others could read, and says so', () => {
  using folder = createThrowAwayFolder()
  const lines: string[] = []
  const data = openDataFolder(folder.path, (line) => lines.push(line))
  writeFileSync(data.file('secret'), 'from-the-operator\n')
  chmodSync(data.file('secret'), 0o644)
  expect(data.readOrCreateSecret('secret', 32)).toEqual({ text: 'from-the-operator', created: false })
  expect(mode(data.file('secret'))).toBe('600')
  expect(lines).toEqual([`${data.file('secret')} was open to other users (0644); it is now 0600.`])
})

test('refuses an empty secret instead of using or replacing it', () => {
  using folder = createThrowAwayFolder()
  const data = openDataFolder(folder.path, silent)
  writeFileSync(data.file('secret'), '\n', { mode: 0o600 })
  expect(() => data.readOrCreateSecret('secret', 32)).toThrow(`${data.file('secret')} is empty.`)
  expect(readFileSync(data.file('secret'), 'utf8')).toBe('\n')
})

test.each([
  ['a folder', (path: string) => mkdirSync(path)],
  ['a link to itself', (path: string) => symlinkSync(path, path)],
])('refuses %s in place of the secret, and says what to do', (_, make) => {
  using folder = createThrowAwayFolder()
  const data = openDataFolder(folder.path, silent)
  make(data.file('secret'))
  const read = () => data.readOrCreateSecret('secret', 32)
  expect(read).toThrow(StartRefusal)
  expect(read).toThrow(`Tollgate cannot read or create ${data.file('secret')}: `)
  expect(read).toThrow('chmod 600')
})

test('replaces a file as a whole and keeps it private', () => {
  using folder = createThrowAwayFolder()
  const data = openDataFolder(folder.path, silent)
  writeFileSync(data.file('first-key'), 'an older and longer text\n')
  chmodSync(data.file('first-key'), 0o644)
  data.write('first-key', 'new\n')
  expect(readFileSync(data.file('first-key'), 'utf8')).toBe('new\n')
  expect(mode(data.file('first-key'))).toBe('600')
  expect(readdirSync(folder.path)).toEqual(['first-key'])
})

test('makes sure of a private file without touching what is in it', () => {
  using folder = createThrowAwayFolder()
  const path = join(folder.path, 'file')
  ensurePrivateFile(path)
  expect(mode(path)).toBe('600')
  writeFileSync(path, 'content')
  chmodSync(path, 0o666)
  ensurePrivateFile(path)
  expect(mode(path)).toBe('600')
  expect(readFileSync(path, 'utf8')).toBe('content')
})
