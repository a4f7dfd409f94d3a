// Parses the command line. Refuses what it does not understand and suggests the nearest command or option.

import { parseArgs } from 'node:util'
import manifest from '../../package.json' with { type: 'json' }
import { variableHelp } from '../config/reference.ts'
import { sections } from '../config/settings.ts'
import { assert } from '../kernel/failure.ts'
import { nearestNames } from '../kernel/nearest.ts'
import {
  aliasOf,
  type CommandDefinition,
  type CommandInput,
  type CommandShape,
  type OptionDefinition,
  optionsOf,
} from './command.ts'
import { commands } from './commands/registry.ts'
import { commandHelp, help, nounHelp } from './help.ts'
import { usageRefusal } from './refusal.ts'
import { workerWord } from './supervise.ts'

export interface ManagementCall {
  readonly definition: CommandDefinition
  readonly input: CommandInput
}

export type Command =
  | { readonly kind: 'serve'; readonly options: ServeOptions }
  | { readonly kind: 'worker' }
  | { readonly kind: 'print'; readonly text: string }
  | { readonly kind: 'management'; readonly call: ManagementCall }

/** Throws a Refusal if it does not understand them. */
export function readArguments(args: readonly string[]): Command {
  const [word = 'serve', ...rest] = args
  const asksForHelp = rest.some((arg) => arg === '--help' || arg === '-h')
  const own = commands.filter((definition) => definition.words[0] === word)
  if (own.length > 0) return management(word, own, rest, asksForHelp)
  switch (word) {
    case workerWord:
      return { kind: 'worker' }
    case 'serve':
      return asksForHelp ? print(commandHelp(serveCommand)) : { kind: 'serve', options: readServeOptions(rest) }
    case 'help':
      // `tollgate help keys create` is `tollgate keys create --help`.
      return rest.length === 0 ? print(help) : readArguments([...rest, '--help'])
    case '--help':
    case '-h':
    case '--version':
    case '-v':
      if (rest[0] !== undefined && !asksForHelp) throw usageRefusal(`"${rest[0]}" is not understood.`, topHelp)
      return print(asksForHelp || word.endsWith('h') || word.endsWith('help') ? help : `${manifest.version}\n`)
  }
  if (word.startsWith('--')) return { kind: 'serve', options: readServeOptions(args) }
  const nouns = commands.map((definition) => definition.words[0])
  const [near] = nearestNames(word, new Set(['--help', '--version', 'serve', 'help', ...nouns]), 1)
  throw usageRefusal(`unknown command "${word}".`, near === undefined ? topHelp : `tollgate ${near}`)
}

const topHelp = 'tollgate --help'

function print(text: string): Command {
  return { kind: 'print', text }
}

function management(
  noun: string,
  own: readonly CommandDefinition[],
  rest: readonly string[],
  asksForHelp: boolean,
): Command {
  const [verb] = rest
  const named = own.find(
    (definition) => verb !== undefined && (definition.words[1] === verb || aliasOf(definition, own) === verb),
  )
  if (asksForHelp) return print(named === undefined ? nounHelp(noun, own) : commandHelp(named, own))
  const definition = named ?? own.find((each) => each.isDefault || each.words[1] === undefined)
  if (definition === undefined || (named === undefined && isMisspeltVerb(definition, verb))) {
    throw unknownVerb(noun, verb, own)
  }
  const input = readInput(definition, named === undefined ? rest : rest.slice(1))
  return { kind: 'management', call: { definition, input } }
}

/** Whether the default command does not take this word, so that it was meant as a verb. */
function isMisspeltVerb({ words: [, own], positionals = [] }: CommandDefinition, verb: string | undefined): boolean {
  if (own === undefined || verb === undefined || verb.startsWith('-')) return false
  const [first] = positionals
  return first === undefined || (first.prefix !== undefined && !verb.startsWith(first.prefix))
}

function unknownVerb(noun: string, verb: string | undefined, own: readonly CommandDefinition[]) {
  const verbs = own.flatMap(({ words: [, each] }) => (each === undefined ? [] : [each]))
  if (verb === undefined) {
    return usageRefusal(`say what to do with ${noun}: ${verbs.join(', ')}.`, `tollgate ${noun} --help`)
  }
  // If the default command takes an id, a name was meant: `wallet acme` is `wallet show acme`.
  const byId = own.find(({ isDefault, positionals }) => isDefault && positionals?.[0]?.prefix !== undefined)?.words[1]
  const meant = nearestNames(verb, verbs, 1)[0] ?? (byId === undefined ? '--help' : `${byId} ${verb}`)
  return usageRefusal(`${noun} has no command "${verb}".`, `tollgate ${noun} ${meant}`)
}

export function readInput(definition: CommandShape, args: readonly string[]): CommandInput {
  const options = optionsOf(definition)
  const command = `tollgate ${definition.words.join(' ')}`
  const { values, positionals, fault } = readTokens(definition, options, args)
  if (fault !== undefined) throw usageRefusal(fault, `${command} --help`)
  const valuesOf = (name: string): readonly string[] | undefined => {
    assert(Object.hasOwn(options, name), `${command} has no option ${name}`)
    return values.get(name)
  }
  return {
    positionals,
    first: positionals[0] ?? '',
    text: (name) => valuesOf(name)?.[0],
    texts: (name) => valuesOf(name)?.flatMap(splitAtCommas),
    isSet: (name) => valuesOf(name) !== undefined,
    json: values.has('json'),
  }
}

function splitAtCommas(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

interface Tokens {
  readonly values: Map<string, string[]>
  readonly positionals: string[]
  /** Describes the first argument that is not understood. */
  readonly fault: string | undefined
}

/** Not strict, because parseArgs would throw its own message without the nearest name. */
function readTokens(
  { positionals: expected = [] }: CommandShape,
  options: Readonly<Record<string, OptionDefinition>>,
  args: readonly string[],
): Tokens {
  const types = Object.entries(options).map(([name, { value }]) => {
    return [name, { type: value === undefined ? 'boolean' : 'string' }] as const
  })
  const config = { args: [...args], options: Object.fromEntries(types), strict: false, allowPositionals: true }
  const values = new Map<string, string[]>()
  const positionals: string[] = []
  const failed = (fault: string): Tokens => ({ values, positionals, fault })
  for (const token of parseArgs({ ...config, tokens: true }).tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    if (option === undefined) {
      const arg = args[token.index]
      // `-5` parses as an option but was meant as an amount.
      const isAmount = isNegative(arg) && expected.some(({ name }) => name === 'AMOUNT')
      return failed(isAmount ? `AMOUNT must be above zero, not "${arg}".` : unknownOption(token.rawName, options))
    }
    const fault = valueFault(option, token)
    if (fault !== undefined) return failed(`${token.rawName} ${fault}`)
    const before = values.get(token.name)
    if (before !== undefined && !option.isRepeatable) return failed(`${token.rawName} is given twice.`)
    values.set(token.name, [...(before ?? []), token.value ?? ''])
  }
  const extra = positionals[expected.length]
  if (extra !== undefined) return failed(`"${extra}" is not understood.`)
  const missing = expected.find(({ isOptional }, at) => !isOptional && positionals[at] === undefined)
  return { values, positionals, fault: missing && `${missing.name} is missing.` }
}

/** A value that looks like an option most likely is one, and the value is missing. */
function valueFault(
  { value: expected }: OptionDefinition,
  { value, inlineValue }: { readonly value?: string | undefined; readonly inlineValue?: boolean | undefined },
): string | undefined {
  if (expected === undefined) return value === undefined ? undefined : 'takes no value.'
  if (/^(N|USD)$/.test(expected) && isNegative(value)) return `must be above zero, not "${value}".`
  const isForgotten = value === undefined || value.trim() === '' || (value.startsWith('-') && inlineValue !== true)
  return isForgotten ? `needs a value, ${expected}.` : undefined
}

function isNegative(text: string | undefined): boolean {
  return /^-\$?[0-9.]/.test(text ?? '')
}

function unknownOption(name: string, known: object): string {
  const [near] = nearestNames(name.replace(/^-+/, ''), [...Object.keys(known), 'help'], 1)
  return `there is no option ${name}.${near === undefined ? '' : ` Did you mean --${near}?`}`
}

export interface ServeOptions {
  /** Number of processes; undefined = this one only. */
  readonly workers?: number
  /** By environment variable. */
  readonly settings: Readonly<Record<string, string>>
}

/** Options that set a variable for this start. */
const settingOptions = {
  host: { value: 'ADDRESS', variable: 'TOLLGATE_HOST' },
  port: { value: 'N', variable: 'TOLLGATE_PORT' },
  data: { value: 'FOLDER', variable: 'TOLLGATE_DATA' },
  config: { value: 'FILE', variable: 'TOLLGATE_CONFIG' },
}

export const serveCommand: CommandShape = {
  words: ['serve'],
  summary: 'starts the gateway',
  details: `"serve" may be left out: tollgate --port 8081. An option takes precedence over its variable,
and the variable over tollgate.yaml.`,
  options: {
    ...Object.fromEntries(
      Object.entries(settingOptions).map(([name, { value, variable }]) => {
        return [name, { value, help: `${variableHelp(variable)}; ${variable}` }]
      }),
    ),
    workers: { value: 'N', help: 'number of processes that share the port; needs PostgreSQL' },
  },
  examples: ['tollgate serve --port 8081 --data ./data-2', 'DATABASE_URL=postgres://… tollgate serve --workers 2'],
}

function readServeOptions(args: readonly string[]): ServeOptions {
  const { text, json } = readInput(serveCommand, args)
  const [port, workers] = [text('port'), text('workers')]
  const { schema } = sections.server.settings.port
  if (port !== undefined && !(/^[0-9]+$/.test(port) && schema.safeParse(Number(port)).success)) {
    const range = `${schema.minValue} to ${schema.maxValue}`
    throw usageRefusal(`--port must be a number from ${range}, not "${port}".`, 'tollgate serve --port 8081')
  }
  if (workers !== undefined && !/^[1-9][0-9]?$/.test(workers)) {
    throw usageRefusal(`--workers must be a number from 1 to 99, not "${workers}".`, 'tollgate serve --workers 2')
  }
  const settings = Object.entries(settingOptions).map(([name, { variable }]) => [variable, text(name)] as const)
  const given = [...settings, ['TOLLGATE_LOG', json ? 'json' : undefined] as const]
  return {
    settings: Object.fromEntries(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    ...(workers !== undefined && { workers: Number(workers) }),
  }
}
