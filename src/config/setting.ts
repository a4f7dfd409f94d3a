// What one row of the settings holds, and what follows from it: the value in Config, the text of `tollgate config`, and the
// default and the range in words. It knows no setting by name.

import { resolve } from 'node:path'
import { z } from 'zod'

/** What a default may depend on. */
export interface ProcessFacts {
  /** Relative paths start here. */
  readonly cwd: string
  readonly stdoutIsTerminal: boolean
  readonly usesPostgres: boolean
}

type DefaultOf<Schema extends z.ZodType> =
  | Readonly<z.input<Schema>>
  | ((facts: ProcessFacts) => Readonly<z.input<Schema>>)
  | undefined

interface SettingRow<Schema extends z.ZodType, Member extends string | undefined, Default> {
  /** As the file would set it. Absent = Config holds undefined. */
  readonly default?: Default
  /** The default in words, if it is not a fixed value. Otherwise a setting without a value shows as `none`. */
  readonly unset?: string
  /** Its name in Config, if that differs from the one in the file. */
  readonly member?: Member
  readonly variable?: `TOLLGATE_${string}`
  /** Of the value in the file, such as `seconds`. */
  readonly unit?: string
  /** For `--help`, the JSON Schema and the reference. Markdown; starts in lower case and has no full stop at its end. */
  readonly help: string
  /** Further sentences, for the reference only. */
  readonly details?: string
  /** A relative path, which Config holds as an absolute one. An http address stays as it is. */
  readonly isPath?: true
  /** A change takes effect at the next start. */
  readonly needsRestart?: true
  /** Whether `tollgate --help` lists it. */
  readonly inHelp?: true
  /** The text of `tollgate config`, if it is not the value as the file would set it. */
  show?(value: z.output<Schema>): string
}

export interface Setting<
  Schema extends z.ZodType = z.ZodType,
  Member extends string | undefined = string | undefined,
  Default = unknown,
> extends SettingRow<Schema, Member, Default> {
  /** What the file may contain. A codec converts it to what Config holds, and back for `tollgate config`. */
  readonly schema: Schema
}

export type Settings = Readonly<Record<string, Setting>>

export interface SettingSection {
  /** Its name in Config, if that differs from the one in the file. */
  readonly member?: string
  readonly about: string
  readonly settings: Settings
}

export function setting<
  Schema extends z.ZodType,
  const Member extends string | undefined = undefined,
  const Default extends DefaultOf<Schema> = undefined,
>(schema: Schema, row: SettingRow<Schema, Member, Default>): Setting<Schema, Member, Default> {
  return { schema, ...row }
}

/** The name in Config of a setting or a section: `member` of its row, or else its name in the file. */
export type MemberName<Key, Row> = Row extends { readonly member?: infer Member }
  ? Extract<Member, string> extends never
    ? Key
    : Extract<Member, string>
  : Key

/** Without a default it may be undefined. */
type SettingValue<Row> =
  Row extends Setting<infer Schema, string | undefined, infer Default>
    ? z.output<Schema> | (Default extends undefined ? undefined : never)
    : never

/** The part of Config that these settings make. */
export type SettingValues<Rows extends Settings> = {
  readonly [Key in keyof Rows as MemberName<Key, Rows[Key]> & string]: SettingValue<Rows[Key]>
}

/** `given`: values that passed the schemas of these settings, by their names in the file. */
export function settingValues<Rows extends Settings>(
  rows: Rows,
  given: Readonly<Record<string, unknown>>,
  facts: ProcessFacts,
): SettingValues<Rows> {
  const values = Object.entries(rows).map(([key, row]) => [row.member ?? key, settingValue(row, given[key], facts)])
  // Object.fromEntries loses which value belongs to which name; each value comes from the schema of its own row.
  return Object.fromEntries(values) as SettingValues<Rows>
}

function settingValue(row: Setting, given: unknown, facts: ProcessFacts): unknown {
  const value = given ?? defaultValue(row, facts)
  return row.isPath && typeof value === 'string' && !/^https?:/.test(value) ? resolve(facts.cwd, value) : value
}

function defaultValue({ schema, default: byDefault }: Setting, facts: ProcessFacts): unknown {
  if (byDefault === undefined) return undefined
  return schema.parse(typeof byDefault === 'function' ? byDefault(facts) : byDefault)
}

/** A value of Config as `tollgate config` shows it: as the file would set it. */
export function shownValue({ schema, unset = 'none', show }: Setting, value: unknown): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return unset
  if (show) return show(value)
  const written = z.encode(schema, value)
  return Array.isArray(written) ? written.join(', ') : String(written)
}

/** Markdown: the fixed default as code, or the default in words. */
export function defaultText(row: Setting): string {
  return fixedDefault(row) ?? row.unset ?? 'none'
}

function fixedDefault({ default: byDefault, unit }: Setting): string | undefined {
  if (byDefault === undefined || typeof byDefault === 'function') return undefined
  if (Array.isArray(byDefault) && byDefault.length === 0) return undefined
  // Text that YAML would read as a number needs its quotes.
  const isQuoted = typeof byDefault === 'string' && !Number.isNaN(Number(byDefault))
  const code = `\`${isQuoted ? JSON.stringify(byDefault) : String(byDefault)}\``
  if (unit === 'bytes') return `${code} bytes (${Number(byDefault) / 2 ** 20} MiB)`
  return unit === undefined ? code : `${code} ${unit}`
}

/** Markdown: what the schema accepts. */
export function valuesText({ schema, unit }: Setting): string {
  const { type, enum: choices, anyOf, minimum, maximum, format } = z.toJSONSchema(schema, { io: 'input' })
  const named = choices ?? anyOf?.flatMap((each) => (typeof each === 'object' ? (each.enum ?? []) : []))
  if (named !== undefined) return named.map((choice) => `\`${choice}\``).join(', ')
  if (type === 'boolean') return '`true`, `false`'
  if (type === 'array') return 'list'
  if (type === 'string') return format === 'uri' ? 'URL' : 'text'
  return `${minimum} to ${maximum}${unit === undefined ? '' : ` ${unit}`}`
}

/** The sentences that editors show. */
export function description(row: Setting): string {
  const help = plainText(row.help)
  const colon = fixedDefault(row) === undefined ? ':' : ''
  return `${help.charAt(0).toUpperCase()}${help.slice(1)}. Default${colon} ${plainText(defaultText(row))}.`
}

/** Removes the code marks and links of Markdown. */
export function plainText(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')
}
