// A command as data: its words, its arguments and options, its help, and what it does. Argument parsing, help and the
// reference page are all made from these definitions, so they cannot disagree.

import type { ClientSettings } from '../config/client-settings.ts'
import type { ConfigInputs } from '../config/config.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ApiClient } from './api-client.ts'
import { exitCodes, Refusal } from './refusal.ts'
import type { Terminal } from './terminal.ts'

export interface OptionDefinition {
  /** The placeholder of the value in help, as in `--name TEXT`; absent = a switch. */
  readonly value?: string
  /** May be given several times. */
  readonly isRepeatable?: true
  readonly help: string
}

export interface Positional {
  /** As help writes it: `NAME`. */
  readonly name: string
  readonly isOptional?: true
  /** What a value starts with, such as `ws_`; tells a value from a misspelt verb. */
  readonly prefix?: string
}

/** What a command takes, and its help. */
export interface CommandShape {
  /** `['keys', 'create']`, or one word if the noun has no verbs. */
  readonly words: readonly [noun: string, verb?: string]
  /** Runs when only the noun is given. */
  readonly isDefault?: true
  readonly summary: string
  readonly details?: string
  readonly positionals?: readonly Positional[]
  /** In addition to `--json` and `--help`, which every command has. */
  readonly options?: Readonly<Record<string, OptionDefinition>>
  readonly examples: readonly string[]
}

export interface CommandDefinition extends CommandShape {
  /** Works on the settings themselves: also runs when they are wrong, and `settings` then holds defaults. */
  readonly isLocal?: true
  /** Works on the database or the data folder without calling the gateway: also runs when its port is unknown. */
  readonly isOffline?: true
  run(context: CommandContext, input: CommandInput): Promise<Refusal | undefined>
}

const commonOptions: Readonly<Record<string, OptionDefinition>> = {
  json: { help: 'print JSON instead of text' },
}

/** With those that every command has. */
export function optionsOf(definition: CommandShape): Readonly<Record<string, OptionDefinition>> {
  return { ...definition.options, ...commonOptions }
}

/** The command line, checked against the definition. */
export interface CommandInput {
  /** Undefined for an optional one that is absent. */
  readonly positionals: readonly (string | undefined)[]
  text(option: string): string | undefined
  /** The values of a repeatable option, also split at commas. */
  texts(option: string): readonly string[] | undefined
  isSet(option: string): boolean
}

export interface CommandContext {
  readonly settings: ClientSettings
  /** What the settings were made from. */
  readonly inputs: ConfigInputs
  readonly api: ApiClient
  readonly terminal: Terminal
  readonly clock: Clock
  /** Print JSON instead of text. */
  readonly json: boolean
}

export function printJson({ terminal }: CommandContext, value: unknown): undefined {
  terminal.print(`${JSON.stringify(value, null, 2)}\n`)
}

export const yesOption: OptionDefinition = { help: 'do not ask for confirmation' }

/** Only on a terminal and without --yes: scripts mean what they say. */
export function isAsked({ terminal }: CommandContext, input: CommandInput): boolean {
  return terminal.isInteractive && !input.isSet('yes')
}

export async function confirm(
  context: CommandContext,
  input: CommandInput,
  question: string,
): Promise<Refusal | undefined> {
  if (!isAsked(context, input)) return undefined
  const answer = await context.terminal.ask(`${question} [y/N] `)
  return /^y(es)?$/i.test(answer.trim()) ? undefined : new Refusal(exitCodes.failed, 'nothing was changed.', '--yes')
}
