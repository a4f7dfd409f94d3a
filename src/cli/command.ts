// A command as data: its words, what it takes, what it says about itself, and what it does. Reading arguments, help and
// the reference page are all made from these, so that none can say something else.

import type { ClientSettings } from '../config/client-settings.ts'
import type { ConfigInputs } from '../config/config.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ApiClient } from './api-client.ts'
import type { Refusal } from './refusal.ts'
import type { Terminal } from './terminal.ts'

export interface OptionDefinition {
  /** What stands for the value in help: `--name TEXT`; absent = a switch. */
  readonly value?: string
  /** May be given several times. */
  readonly isRepeatable?: true
  readonly help: string
}

export interface Positional {
  /** As help writes it: `NAME`. */
  readonly name: string
  readonly isOptional?: true
  /** What a value begins with, `ws_`; tells a value from a misspelt verb. */
  readonly prefix?: string
}

/** What it takes, and what help says of it. */
export interface CommandShape {
  /** `['keys', 'create']`, or one word where the noun has no verbs. */
  readonly words: readonly [noun: string, verb?: string]
  /** What the noun alone does. */
  readonly isDefault?: true
  readonly summary: string
  readonly details?: string
  readonly positionals?: readonly Positional[]
  /** Beside `--json` and `--help`, which every command has. */
  readonly options?: Readonly<Record<string, OptionDefinition>>
  readonly examples: readonly string[]
}

export interface CommandDefinition extends CommandShape {
  /** About the settings themselves: runs also where they are wrong, and `settings` then holds what can be guessed. */
  readonly isLocal?: true
  /** Works on the database or the data folder, and never calls the gateway: runs also where its port is not known. */
  readonly isOffline?: true
  run(context: CommandContext, input: CommandInput): Promise<Refusal | undefined>
}

/** What was typed, checked against the definition. */
export interface CommandInput {
  /** Undefined for an optional one that was left out. */
  readonly positionals: readonly (string | undefined)[]
  text(option: string): string | undefined
  /** Of a repeatable option, also split at commas. */
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
  /** JSON for programs instead of text for people. */
  readonly json: boolean
}

/** Prints the API's answer as it is. */
export function printJson({ terminal }: CommandContext, value: unknown): undefined {
  terminal.print(`${JSON.stringify(value, null, 2)}\n`)
}
