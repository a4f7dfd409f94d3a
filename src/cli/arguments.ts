// Parses the command line. What is not understood is rejected with the nearest command or option.

import { parseArgs } from 'node:util'
import { assert } from '../kernel/assert.ts'
import { nearestNames } from '../kernel/nearest.ts'
import {
  type CommandDefinition,
  type CommandInput,
  type CommandShape,
  type OptionDefinition,
  optionsOf,
} from './command.ts'
import { commands } from './commands/registry.ts'
import { commandHelp, help, nounHelp } from './help.ts'
import { Refusal, usageRefusal } from './refusal.ts'
import { workerWord } from './supervise.ts'

export interface ManagementCall extends ReadInput {
  readonly definition: CommandDefinition
}

export type Command =
  | { readonly kind: 'serve'; readonly options: ServeOptions }
  | { readonly kind: 'worker' }
  | { readonly kind: 'version' }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'management'; readonly call: ManagementCall }
  | { readonly kind: 'unknown'; readonly message: string }

const words: Readonly<Record<string, Command>> = {
  '--help': { kind: 'help', text: help },
  '-h': { kind: 'help', text: help },
  version: { kind: 'version' },
  '--version': { kind: 'version' },
  '-v': { kind: 'version' },
}

export function readArguments(args: readonly string[]): Command {
  const [word, ...rest] = args
  if (word === undefined) return serve([])
  if (word === workerWord) return { kind: 'worker' }
  // `tollgate help keys create` is `tollgate keys create --help`.
  if (word === 'help') return rest.length === 0 ? { kind: 'help', text: help } : readArguments([...rest, '--help'])
  const asksForHelp = rest.some((arg) => arg === '--help' || arg === '-h')
  if (commands.some((definition) => definition.words[0] === word)) return management(word, rest, asksForHelp)
  if (word === 'serve') return asksForHelp ? { kind: 'help', text: commandHelp(serveCommand) } : serve(rest)
  const command = Object.hasOwn(words, word) ? words[word] : undefined
  if (command === undefined) return word.startsWith('--') ? serve(args) : unknownWord(word)
  if (asksForHelp) return { kind: 'help', text: help }
  const extra = rest[0]
  return extra === undefined
    ? command
    : { kind: 'unknown', message: `"${extra}" is not understood.\nTry: tollgate --help` }
}

function serve(args: readonly string[]): Command {
  const options = readServeOptions(args)
  if (!(options instanceof Refusal)) return { kind: 'serve', options }
  return { kind: 'unknown', message: `${options.message}\nTry: ${options.attempt}` }
}

function unknownWord(word: string): Command {
  const nouns = commands.map((definition) => definition.words[0])
  const near = nearestNames(word, new Set([...Object.keys(words), 'serve', 'help', ...nouns]), 1)[0]
  return { kind: 'unknown', message: `unknown command "${word}".\nTry: tollgate ${near ?? '--help'}` }
}

function management(noun: string, rest: readonly string[], asksForHelp: boolean): Command {
  const own = commands.filter((definition) => definition.words[0] === noun)
  const [verb] = rest
  const named = own.find((definition) => definition.words[1] !== undefined && definition.words[1] === verb)
  if (asksForHelp) {
    return { kind: 'help', text: named === undefined ? nounHelp(noun, commands) : commandHelp(named) }
  }
  const definition = named ?? own.find((each) => each.isDefault || each.words[1] === undefined)
  if (definition === undefined || (named === undefined && isMisspeltVerb(definition, verb))) {
    return unknownVerb(noun, verb, own)
  }
  const read = readInput(definition, named === undefined ? rest : rest.slice(1))
  if (!(read instanceof Refusal)) return { kind: 'management', call: { definition, ...read } }
  return { kind: 'unknown', message: `${read.message}\nTry: ${read.attempt}` }
}

/** Whether the default command does not take this word, so that it was meant as a verb. */
function isMisspeltVerb({ words: [, own], positionals = [] }: CommandDefinition, verb: string | undefined): boolean {
  if (own === undefined || verb === undefined || verb.startsWith('-')) return false
  const [first] = positionals
  return first === undefined || (first.prefix !== undefined && !verb.startsWith(first.prefix))
}

function unknownVerb(noun: string, verb: string | undefined, own: readonly CommandDefinition[]): Command {
  const verbs = own.flatMap(({ words: [, each] }) => (each === undefined ? [] : [each]))
  const near = verb === undefined ? undefined : nearestNames(verb, verbs, 1)[0]
  const what = verb === undefined ? `say what to do with ${noun}: ${verbs.join(', ')}.` : `${noun} cannot "${verb}".`
  return { kind: 'unknown', message: `${what}\nTry: tollgate ${noun} ${near ?? meantName(verb, own) ?? '--help'}` }
}

/** The default command takes an id, and a name was given: `wallet acme` means `wallet show acme`. */
function meantName(word: string | undefined, own: readonly CommandDefinition[]): string | undefined {
  const command = own.find(({ isDefault, positionals }) => isDefault && positionals?.[0]?.prefix !== undefined)
  return word === undefined || !command?.words[1] ? undefined : `${command.words[1]} ${word}`
}

export interface ReadInput {
  readonly input: CommandInput
  readonly json: boolean
}

export function readInput(definition: CommandShape, args: readonly string[]): ReadInput | Refusal {
  const options = optionsOf(definition)
  const given = readTokens(definition, args)
  const command = `tollgate ${definition.words.join(' ')}`
  if ('fault' in given) return usageRefusal(given.fault, `${command} --help`)
  const fault = positionalFault(definition, given.positionals)
  if (fault !== undefined) return usageRefusal(fault, `${command} --help`)
  const valuesOf = (name: string): readonly string[] | undefined => {
    assert(Object.hasOwn(options, name), `${command} has no option ${name}`)
    return given.values.get(name)
  }
  return {
    json: given.values.has('json'),
    input: {
      positionals: given.positionals,
      text: (name) => valuesOf(name)?.[0],
      texts: (name) => valuesOf(name)?.flatMap(splitAtCommas),
      isSet: (name) => valuesOf(name) !== undefined,
    },
  }
}

function splitAtCommas(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

interface Given {
  readonly values: ReadonlyMap<string, readonly string[]>
  readonly positionals: readonly string[]
}

/** Not strict, because parseArgs would throw its own message without the nearest name. */
function readTokens(definition: CommandShape, args: readonly string[]): Given | { readonly fault: string } {
  const options = optionsOf(definition)
  const types = Object.entries(options).map(([name, { value }]) => {
    return [name, { type: value === undefined ? 'boolean' : 'string' }] as const
  })
  const config = { args: [...args], options: Object.fromEntries(types), strict: false, allowPositionals: true }
  const values = new Map<string, string[]>()
  const positionals: string[] = []
  for (const token of parseArgs({ ...config, tokens: true }).tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    const amount = option === undefined ? negativeAmount(definition, args[token.index]) : undefined
    if (option === undefined) return { fault: amount ?? unknownOption(token.rawName, Object.keys(options)) }
    const fault = valueFault(option, token)
    if (fault !== undefined) return { fault: `${token.rawName} ${fault}` }
    const before = values.get(token.name)
    if (before !== undefined && !option.isRepeatable) return { fault: `${token.rawName} is given twice.` }
    values.set(token.name, [...(before ?? []), token.value ?? ''])
  }
  return { values, positionals }
}

/** A value that looks like an option most likely is one, and the value is missing. */
function valueFault(
  { value: expected }: OptionDefinition,
  { value, inlineValue }: { readonly value?: string | undefined; readonly inlineValue?: boolean | undefined },
): string | undefined {
  if (expected === undefined) return value === undefined ? undefined : 'takes no value.'
  if (takesNumber(expected) && isNegative(value)) return `must be above zero, not "${value}".`
  const isForgotten = value === undefined || value.trim() === '' || (value.startsWith('-') && inlineValue !== true)
  return isForgotten ? `needs a value, ${expected}.` : undefined
}

/** `-5` parses as an option but was meant as an amount. */
function negativeAmount({ positionals = [] }: CommandShape, arg: string | undefined): string | undefined {
  const amount = positionals.find(({ name }) => name === 'AMOUNT')
  return amount && isNegative(arg) ? `${amount.name} must be above zero, not "${arg}".` : undefined
}

function takesNumber(expected: string): boolean {
  return expected === 'N' || expected === 'USD'
}

function isNegative(text: string | undefined): boolean {
  return /^-\$?[0-9.]/.test(text ?? '')
}

function unknownOption(name: string, known: readonly string[]): string {
  const near = nearestNames(name.replace(/^-+/, ''), [...known, 'help'], 1)[0]
  return `there is no option ${name}.${near === undefined ? '' : ` Did you mean --${near}?`}`
}

function positionalFault({ positionals = [] }: CommandShape, given: readonly string[]): string | undefined {
  const extra = given[positionals.length]
  if (extra !== undefined) return `"${extra}" is not understood.`
  const missing = positionals.find(({ isOptional }, at) => !isOptional && given[at] === undefined)
  return missing && `${missing.name} is missing.`
}

export interface ServeOptions {
  /** Number of processes; undefined = this one only. */
  readonly workers?: number
  /** By environment variable. */
  readonly settings: Readonly<Record<string, string>>
}

/** Options that override environment variables. */
const variables = { host: 'TOLLGATE_HOST', port: 'TOLLGATE_PORT', data: 'TOLLGATE_DATA', config: 'TOLLGATE_CONFIG' }

export const serveCommand: CommandShape = {
  words: ['serve'],
  summary: 'starts the gateway',
  details:
    'Also without the word: tollgate --port 8081, npm start -- --port 8081. An option stands above its variable, which stands above tollgate.yaml.',
  options: {
    host: { value: 'ADDRESS', help: 'where to listen (127.0.0.1); TOLLGATE_HOST' },
    port: { value: 'N', help: 'the port, 0 for any free one (8080); TOLLGATE_PORT' },
    data: { value: 'FOLDER', help: 'of the database and generated secrets (./data); TOLLGATE_DATA' },
    config: { value: 'FILE', help: 'the configuration (./tollgate.yaml if it is there); TOLLGATE_CONFIG' },
    workers: { value: 'N', help: 'so many processes on one port, with PostgreSQL' },
  },
  examples: ['tollgate serve --port 8081 --data ./data-2', 'DATABASE_URL=postgres://… tollgate serve --workers 2'],
}

export function readServeOptions(args: readonly string[]): ServeOptions | Refusal {
  const read = readInput(serveCommand, args)
  if (read instanceof Refusal) return read
  const { input, json } = read
  const port = input.text('port')
  if (port !== undefined && !(/^[0-9]{1,5}$/.test(port) && Number(port) <= 65_535)) {
    return usageRefusal(`--port must be a number from 0 to 65535, not "${port}".`, 'tollgate serve --port 8081')
  }
  const workers = input.text('workers')
  if (workers !== undefined && !/^[1-9][0-9]?$/.test(workers)) {
    return usageRefusal(`--workers must be a number from 1 to 99, not "${workers}".`, 'tollgate serve --workers 2')
  }
  const given = Object.entries(variables).map(([option, variable]) => [variable, input.text(option)] as const)
  const settings = [...given, ['TOLLGATE_LOG', json ? 'json' : undefined] as const]
  return {
    settings: Object.fromEntries(settings.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    ...(workers !== undefined && { workers: Number(workers) }),
  }
}
