// The command line, read once. What is not understood is refused with the nearest thing that would be.

import { nearestNames } from '../kernel/nearest.ts'
import type { CommandDefinition } from './command.ts'
import { commands } from './commands/registry.ts'
import { commandHelp, help, nounHelp } from './help.ts'
import { type ReadInput, readInput } from './read-input.ts'
import { Refusal } from './refusal.ts'
import { readServeOptions, type ServeOptions, serveCommand } from './serve-options.ts'
import { workerWord } from './workers/start-worker.ts'

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
  // `tollgate help keys create` asks what `tollgate keys create --help` asks.
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

/** A word where the default command takes none, or none that begins so. */
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

/** A name where the default command takes an id: `wallet acme` is `wallet show acme`. */
function meantName(word: string | undefined, own: readonly CommandDefinition[]): string | undefined {
  const command = own.find(({ isDefault, positionals }) => isDefault && positionals?.[0]?.prefix !== undefined)
  return word === undefined || !command?.words[1] ? undefined : `${command.words[1]} ${word}`
}
