// The command line, read once. What is not understood is refused with the nearest thing that would be.

import { nearestNames } from '../kernel/nearest.ts'

export type Command =
  | { readonly kind: 'serve' | 'help' | 'version' }
  | { readonly kind: 'unknown'; readonly message: string }

const words: Readonly<Record<string, Command>> = {
  serve: { kind: 'serve' },
  help: { kind: 'help' },
  '--help': { kind: 'help' },
  '-h': { kind: 'help' },
  version: { kind: 'version' },
  '--version': { kind: 'version' },
  '-v': { kind: 'version' },
}

export function readArguments(args: readonly string[]): Command {
  const [word, ...rest] = args
  if (word === undefined) return { kind: 'serve' }
  if (rest.some((arg) => arg === '--help' || arg === '-h')) return { kind: 'help' }
  const command = Object.hasOwn(words, word) ? words[word] : undefined
  if (command === undefined) {
    const near = nearestNames(word, Object.keys(words), 1)[0]
    return { kind: 'unknown', message: `unknown command "${word}". Try: tollgate ${near ?? '--help'}` }
  }
  const extra = rest[0]
  return extra === undefined
    ? command
    : { kind: 'unknown', message: `"${extra}" is not understood. Try: tollgate --help` }
}
