// The command line, read once. What is not understood is refused with the nearest thing that would be.

import { nearestNames } from '../kernel/nearest.ts'
import { type ConformanceOptions, conformanceHelp, readConformanceOptions } from './conformance/options.ts'
import { help } from './help.ts'

export type Command =
  | { readonly kind: 'serve' | 'version' }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'conformance'; readonly options: ConformanceOptions }
  | { readonly kind: 'unknown'; readonly message: string }

const words: Readonly<Record<string, Command>> = {
  serve: { kind: 'serve' },
  help: { kind: 'help', text: help },
  '--help': { kind: 'help', text: help },
  '-h': { kind: 'help', text: help },
  version: { kind: 'version' },
  '--version': { kind: 'version' },
  '-v': { kind: 'version' },
}

export function readArguments(args: readonly string[]): Command {
  const [word, ...rest] = args
  if (word === undefined) return { kind: 'serve' }
  const asksForHelp = rest.some((arg) => arg === '--help' || arg === '-h')
  if (word === 'conformance') return asksForHelp ? { kind: 'help', text: conformanceHelp } : conformance(rest)
  if (asksForHelp) return { kind: 'help', text: help }
  const command = Object.hasOwn(words, word) ? words[word] : undefined
  if (command === undefined) {
    const near = nearestNames(word, [...Object.keys(words), 'conformance'], 1)[0]
    return { kind: 'unknown', message: `unknown command "${word}". Try: tollgate ${near ?? '--help'}` }
  }
  const extra = rest[0]
  return extra === undefined
    ? command
    : { kind: 'unknown', message: `"${extra}" is not understood. Try: tollgate --help` }
}

function conformance(args: readonly string[]): Command {
  const options = readConformanceOptions(args)
  if (!('fault' in options)) return { kind: 'conformance', options }
  return { kind: 'unknown', message: `${options.fault}. Try: tollgate conformance --help` }
}
