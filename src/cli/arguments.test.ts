import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { type ManagementCall, readArguments } from './arguments.ts'
import { optionsOf } from './command.ts'
import { commands } from './commands/registry.ts'
import { commandHelp, help, usageLine } from './help.ts'
import { Refusal } from './refusal.ts'

const read = (line: string) => readArguments(line === '' ? [] : line.split(' '))

function callOf(line: string): ManagementCall {
  const command = read(line)
  if (command.kind !== 'management') throw new Error(`${line}: ${JSON.stringify(command)}`)
  return command.call
}

test('finds commands by noun and verb, and runs the default command of a noun', () => {
  const words = (line: string) => callOf(line).definition.words.join(' ')
  expect(words('keys')).toBe('keys list')
  expect(words('keys --json')).toBe('keys list')
  expect(words('keys create --name ci')).toBe('keys create')
  expect(words('wallet ws_1')).toBe('wallet show')
  expect(words('wallet topup 5')).toBe('wallet topup')
  expect(words('models --tag tools')).toBe('models')
  expect(words('explain req_1')).toBe('explain')
  expect(words('ledger verify')).toBe('ledger verify')
})

test('takes ls, get, set and delete for the verbs of a noun that has no such verb, and shows them in help', () => {
  const words = (line: string) => callOf(line).definition.words.join(' ')
  expect(words('keys ls')).toBe('keys list')
  expect(words('keys get ci')).toBe('keys show')
  expect(words('keys delete ci')).toBe('keys revoke')
  expect(words('projects get web')).toBe('projects show')
  expect(words('projects set web --name x')).toBe('projects update')
  expect(words('projects delete web')).toBe('projects delete')
  expect(words('people delete mem_1')).toBe('people remove')
  expect(words('sessions delete ses_1')).toBe('sessions end')
  expect(words('credentials set acme')).toBe('credentials put')
  // These have the verb itself.
  expect(words('limits set ci --rpm 1')).toBe('limits set')
  expect(words('price-lists delete a')).toBe('price-lists delete')
  expect(catchRefusal(() => read('workspaces delete acme')).message).toBe('workspaces has no command "delete".')
  const text = (line: string) => {
    const page = read(line)
    return page.kind === 'print' ? page.text : ''
  }
  expect(text('keys --help')).toMatch(/keys revoke KEY .*\(also: delete\)/)
  expect(text('keys delete --help')).toContain(
    'Usage\n  tollgate keys revoke KEY [options]\n  tollgate keys delete is the same\n',
  )
  expect(text('people invite --help')).toContain('operator, admin, member, viewer; required\n')
  expect(text('limits put --help')).not.toContain('is the same')
})

test('reads options in every usual form', () => {
  const { input } = callOf('keys create --name=ci --models a/*,b/c --rpm 60 --json --models d/e')
  expect(input.json).toBe(true)
  expect([input.text('name'), input.text('rpm'), input.text('expires')]).toEqual(['ci', '60', undefined])
  expect(input.texts('models')).toEqual(['a/*', 'b/c', 'd/e'])
  expect([input.isSet('rpm'), input.isSet('tpm')]).toEqual([true, false])
  expect(callOf('connect claude --print').input.positionals).toEqual(['claude'])
  // After two dashes everything is a word.
  expect(callOf('workspaces create -- --odd').input.positionals).toEqual(['--odd'])
})

test('serve takes settings of one start, with and without the word', () => {
  const settings = { TOLLGATE_PORT: '8081', TOLLGATE_DATA: './d', TOLLGATE_CONFIG: 'c.yaml', TOLLGATE_HOST: '::' }
  expect(read('')).toEqual({ kind: 'serve', options: { settings: {} } })
  for (const word of ['', 'serve ']) {
    expect(read(`${word}--port 8081 --data=./d --config c.yaml --host ::`)).toEqual({
      kind: 'serve',
      options: { settings },
    })
    expect(read(`${word}--workers 3 --json`)).toEqual({
      kind: 'serve',
      options: { settings: { TOLLGATE_LOG: 'json' }, workers: 3 },
    })
  }
  expect(read('serve --help')).toMatchObject({ kind: 'print', text: expect.stringContaining('--data FOLDER') })
})

test.each([
  ['kyes', 'unknown command "kyes".\nTry: tollgate keys'],
  ['srve', 'unknown command "srve".\nTry: tollgate serve'],
  ['xyzzy', 'unknown command "xyzzy".\nTry: tollgate --help'],
  ['serve now', '"now" is not understood.\nTry: tollgate serve --help'],
  ['serve --port high', '--port must be a number from 0 to 65535, not "high".\nTry: tollgate serve --port 8081'],
  ['serve --workers 100', '--workers must be a number from 1 to 99, not "100".\nTry: tollgate serve --workers 2'],
  ['--hlep', 'there is no option --hlep. Did you mean --help?\nTry: tollgate serve --help'],
  ['keys crate', 'keys has no command "crate".\nTry: tollgate keys create'],
  ['wallet tpup 5', 'wallet has no command "tpup".\nTry: tollgate wallet topup'],
  ['wallet acme-eu', 'wallet has no command "acme-eu".\nTry: tollgate wallet show acme-eu'],
  ['ledger', 'say what to do with ledger: verify.\nTry: tollgate ledger --help'],
  ['keys create --nmae ci', 'there is no option --nmae. Did you mean --name?\nTry: tollgate keys create --help'],
  ['keys create --zzzzzzz', 'there is no option --zzzzzzz.\nTry: tollgate keys create --help'],
  ['keys create --name', '--name needs a value, TEXT.\nTry: tollgate keys create --help'],
  ['keys create --name --rpm 5', '--name needs a value, TEXT.\nTry: tollgate keys create --help'],
  ['keys create --name a --name b', '--name is given twice.\nTry: tollgate keys create --help'],
  ['keys revoke key_1 --yes=no', '--yes takes no value.\nTry: tollgate keys revoke --help'],
  ['wallet topup -5', 'AMOUNT must be above zero, not "-5".\nTry: tollgate wallet topup --help'],
  ['keys create --name ci --rpm -5', '--rpm must be above zero, not "-5".\nTry: tollgate keys create --help'],
  ['keys create --name -5', '--name needs a value, TEXT.\nTry: tollgate keys create --help'],
  ['keys revoke', 'KEY is missing.\nTry: tollgate keys revoke --help'],
  ['keys revoke key_1 key_2', '"key_2" is not understood.\nTry: tollgate keys revoke --help'],
])('refuses: %s', (line, message) => {
  const refusal = catchRefusal(() => read(line))
  expect([refusal.exit, refusal.text('')]).toEqual([2, `tollgate: ${message}\n`])
})

function catchRefusal(work: () => unknown): Refusal {
  try {
    throw new Error(`understood: ${JSON.stringify(work())}`)
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown
    throw thrown
  }
}

test('prints the version or the help, and nothing after it', () => {
  for (const line of ['--version', '-v']) expect(read(line)).toEqual({ kind: 'print', text: `${manifest.version}\n` })
  for (const line of ['help', '--help', '-h']) expect(read(line)).toEqual({ kind: 'print', text: help })
  expect(() => read('version keys')).toThrow('"keys" is not understood.')
})

test('every command has a help page, and every noun is on the main one', () => {
  for (const definition of commands) {
    const page = read(`${definition.words.join(' ')} --help`)
    expect(page).toMatchObject({ kind: 'print', text: expect.stringContaining(usageLine(definition)) })
    expect(read(`help ${definition.words.join(' ')}`)).toEqual(page)
    expect(help).toContain(`tollgate ${definition.words[0]} `)
    if (definition.words[0] === 'workspaces') expect(help).toMatch(new RegExp(`workspaces .*${definition.words[1]}`))
  }
  expect(read('keys --help')).toMatchObject({ kind: 'print', text: expect.stringContaining('keys rotate KEY') })
})

test('the reference page has every command and every option', () => {
  const pageOf = (name: string) =>
    readFileSync(join(import.meta.dir, '..', '..', 'docs', 'reference', `${name}.md`), 'utf8')
  const [page, settings] = [pageOf('cli'), pageOf('configuration')]
  const missing = commands.flatMap((definition) => {
    const command = `tollgate ${definition.words.join(' ')}`
    // The options of prices are the keys of `price`, with hyphens.
    const isKey = (name: string) =>
      command === 'tollgate prices set' && settings.includes(`| \`${name.replaceAll('-', '_')}\` |`)
    const options = Object.keys(optionsOf(definition)).filter((name) => !isKey(name))
    return [command, ...options.map((name) => `--${name}`)].filter((text) => !page.includes(text))
  })
  expect(missing).toEqual([])
})

test('a paragraph of a help page is broken at 110 characters, wherever its source breaks it', () => {
  const word = 'abcdefghi'
  const paragraph = (words: number) => Array(words).fill(word).join(' ')
  const shape = {
    words: ['x'],
    summary: 's',
    examples: [],
    details: `${paragraph(12)}\n${paragraph(2)}\n  1. a step`,
  } as const
  const lines = commandHelp(shape).split('\n')
  // Eleven words of nine letters and ten spaces are 109 characters.
  expect(lines.slice(5, 8)).toEqual([paragraph(11), paragraph(3), '  1. a step'])
})

test.each(commands.map((command) => [command.words.join(' '), command] as const))(
  'the explanation of %s fits a terminal of 110 columns',
  (_, command) => {
    const lines = commandHelp(command).split('\n')
    const explanation = lines.slice(5, lines.indexOf('Options'))
    expect(explanation.filter((line) => line.length > 110)).toEqual([])
  },
)
