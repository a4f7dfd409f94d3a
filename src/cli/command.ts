// A command as data: its words, its arguments and options, its help, and what it does. Argument parsing, help and the
// reference page are generated from these definitions, so they cannot disagree. A command that fails throws a Refusal.

import type { ClientSettings } from '../config/client-settings.ts'
import { type Config, type ConfigInputs, loadConfig } from '../config/config.ts'
import { type ConfigFault, formatFault } from '../config/document.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ApiClient } from './api-client.ts'
import { exitCodes, Refusal } from './refusal.ts'
import type { Terminal } from './terminal.ts'

export interface OptionDefinition {
  /** The placeholder of the value in help, as in `--name TEXT`; absent = a switch. */
  readonly value?: string
  /** May be given several times. */
  readonly isRepeatable?: true
  readonly isRequired?: true
  readonly help: string
}

export interface Positional {
  /** As help writes it: `NAME`. */
  readonly name: string
  readonly isOptional?: true
  /** The prefix of its values, such as `ws_`; distinguishes a value from a misspelt verb. */
  readonly prefix?: string
}

/** Arguments and options of a command, and its help. */
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
  run(context: CommandContext): Promise<void>
}

/** Words that mean one of these verbs, where a noun has no verb of that name. */
const otherWords: Readonly<Record<string, readonly string[]>> = {
  ls: ['list'],
  get: ['show'],
  set: ['update', 'put'],
  delete: ['revoke', 'remove', 'withdraw', 'end'],
}

/** `ls` for `keys list`. `own`: the commands of the noun. */
export function aliasOf({ words: [, verb = ''] }: CommandShape, own: readonly CommandShape[]): string | undefined {
  const alias = Object.keys(otherWords).find((each) => otherWords[each]?.includes(verb))
  return own.some(({ words }) => words[1] === alias) ? undefined : alias
}

/** Includes the options that every command has. */
export function optionsOf({ options }: CommandShape): Readonly<Record<string, OptionDefinition>> {
  return { ...options, json: { help: 'print JSON instead of text' } }
}

/** The command line, checked against the definition. */
export interface CommandInput {
  readonly positionals: readonly string[]
  /** The first positional; empty if it is optional and absent. */
  readonly first: string
  text(option: string): string | undefined
  /** The values of a repeatable option, also split at commas. */
  texts(option: string): readonly string[] | undefined
  isSet(option: string): boolean
  /** Print JSON instead of text. */
  readonly json: boolean
}

export interface CommandContext extends CommandInput {
  readonly settings: ClientSettings
  /** The source of the settings. */
  readonly inputs: ConfigInputs
  readonly api: ApiClient
  readonly terminal: Terminal
  readonly clock: Clock
}

/** Prints the value with --json, the text otherwise. */
export function printResult({ terminal, json }: CommandContext, value: unknown, text: () => string): void {
  terminal.print(json ? `${JSON.stringify(value, null, 2)}\n` : text())
}

export const yesOption: OptionDefinition = { help: 'do not ask for confirmation' }

/** Only on a terminal and without --yes; scripts are never asked. */
export function isAsked({ terminal, isSet }: CommandContext): boolean {
  return terminal.isInteractive && !isSet('yes')
}

/** Throws if the answer is no. */
export async function confirm(context: CommandContext, question: string): Promise<void> {
  if (!isAsked(context)) return
  const answer = await context.terminal.ask(`${question} [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new Refusal(exitCodes.failed, 'nothing was changed.', '--yes')
}

/** The configuration that a gateway started here would read. */
export function readConfig({ inputs }: CommandContext): Config {
  const loaded = loadConfig(inputs)
  if ('faults' in loaded) throw wrongConfig(loaded.faults)
  return loaded.config
}

export function wrongConfig(faults: readonly ConfigFault[]): Refusal {
  return new Refusal(exitCodes.failed, `the configuration is wrong:${faultLines(faults)}`, 'tollgate doctor')
}

export function faultLines(faults: readonly ConfigFault[]): string {
  return faults.map((fault) => `\n  ${formatFault(fault)}`).join('')
}
