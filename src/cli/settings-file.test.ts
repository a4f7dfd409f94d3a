import { expect, test } from 'bun:test'
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createThrowAwayFolder } from '../../test/parts/engines.ts'
import {
  backupOf,
  keepBackup,
  readSettings,
  realFile,
  renderSettings,
  repositoryOf,
  restore,
  withMembers,
  writeText,
} from './settings-file.ts'

const members = [
  { path: ['env', 'URL'], value: 'http://gate' },
  { path: ['env', 'KEY'], value: 'sk-1' },
]

function connect(file: string): void {
  const settings = readSettings(existsSync(file) ? readFileSync(file, 'utf8') : undefined) ?? {}
  keepBackup(file)
  writeText(file, renderSettings(withMembers(settings, members)))
}

test('adds members to existing ones, and restores the original byte for byte', () => {
  using folder = createThrowAwayFolder()
  const file = join(folder.path, 'settings.json')
  const original = '{"theme":"dark",   "env":{"URL":"http://old"}}'
  writeFileSync(file, original)
  connect(file)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ theme: 'dark', env: { URL: 'http://gate', KEY: 'sk-1' } })
  expect([statSync(file).mode & 0o777, statSync(backupOf(file)).mode & 0o777]).toEqual([0o600, 0o600])
  // A second time must not take what the first one wrote for the original.
  connect(file)
  expect(restore(file, members)).toBe('restored')
  expect(readFileSync(file, 'utf8')).toBe(original)
  expect(existsSync(backupOf(file))).toBe(false)
})

test('removes a file that did not exist before', () => {
  using folder = createThrowAwayFolder()
  const file = join(folder.path, 'new', 'settings.json')
  connect(file)
  expect(restore(file, members)).toBe('restored')
  expect(existsSync(file)).toBe(false)
})

test('keeps later changes and removes only our members', () => {
  using folder = createThrowAwayFolder()
  const file = join(folder.path, 'settings.json')
  writeFileSync(file, '{"env":{"URL":"http://old"}}')
  connect(file)
  const later = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...later, theme: 'light' }))
  expect(restore(file, members)).toBe('taken out')
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ env: { URL: 'http://old' }, theme: 'light' })
})

test('keeps a member that was changed meanwhile', () => {
  using folder = createThrowAwayFolder()
  const file = join(folder.path, 'settings.json')
  writeFileSync(file, '{"model":"old"}')
  const chosen = [...members, { path: ['model'], value: 'ours/1', isOurs: (value: unknown) => value === 'ours/1' }]
  for (const [set, expected] of [
    ['theirs/1', 'theirs/1'],
    ['ours/1', 'old'],
  ] as const) {
    connect(file)
    writeFileSync(file, JSON.stringify({ model: set }))
    restore(file, chosen)
    expect(JSON.parse(readFileSync(file, 'utf8')).model).toBe(expected)
    writeFileSync(file, '{"model":"old"}')
  }
})

test('undoes nothing without a backup, and leaves a file that is no longer JSON unchanged', () => {
  using folder = createThrowAwayFolder()
  const file = join(folder.path, 'settings.json')
  expect(restore(file, members)).toBe('no backup')
  connect(file)
  writeFileSync(file, '{ // a comment\n}')
  expect(restore(file, members)).toBe('not plain')
  expect([readFileSync(file, 'utf8'), existsSync(backupOf(file))]).toEqual(['{ // a comment\n}', true])
})

test('edits only an object of plain JSON', () => {
  expect(readSettings(undefined)).toEqual({})
  expect(readSettings(' \n')).toEqual({})
  expect(['[]', '1', '{,}', '// x\n{}'].map(readSettings)).toEqual([undefined, undefined, undefined, undefined])
})

test('detects a file in a repository, also behind a link, and keeps the link', () => {
  using folder = createThrowAwayFolder()
  const dotfiles = join(folder.path, 'dotfiles')
  mkdirSync(join(dotfiles, '.git'), { recursive: true })
  mkdirSync(join(folder.path, 'home'))
  const file = join(folder.path, 'home', 'settings.json')
  expect(repositoryOf(file)).toBeUndefined()
  writeFileSync(join(dotfiles, 'settings.json'), '{}')
  symlinkSync(join(dotfiles, 'settings.json'), file)
  expect(repositoryOf(file)).toBe(dotfiles)
  writeText(realFile(file), '{"a":1}')
  expect([lstatSync(file).isSymbolicLink(), readFileSync(file, 'utf8')]).toEqual([true, '{"a":1}'])
})
