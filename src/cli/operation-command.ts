// Commands that are one call of the management API, as rows: which operation, how arguments and options fill its path,
// query and body, and how the answer is printed. The types of fields and answers come from the operation.

import type { AnswerOf, BodyOf, CallOf, ItemOf, ListName, ParametersOf, QueryOf } from '../api/client.ts'
import { endpoints, type OperationName } from '../api/endpoints.ts'
import type { CallSettings } from './api-client.ts'
import {
  type CommandContext,
  type CommandDefinition,
  type CommandInput,
  type CommandShape,
  confirm,
  isAsked,
  type OptionDefinition,
  type Positional,
  printJson,
  yesOption,
} from './command.ts'
import { findProject, findWorkspace } from './lookup.ts'
import { orListedBy, Refusal, usageRefusal } from './refusal.ts'
import { type Column, renderTable } from './table.ts'
import { type ReadValue, readListLimit } from './values.ts'

type Fields<Name extends OperationName> = NonNullable<BodyOf<Name>> | NonNullable<QueryOf<Name>>
type KeysOf<Union> = Union extends unknown ? keyof Union & string : never

/** A field of the body or the query; `limits.spend_per_day` is inside an object. */
type FieldOf<Name extends OperationName> = KeysOf<Fields<Name>> | `limits.${KeysOf<BodyOf<'putKeyLimits'>>}`

/** Where the value of an argument or option goes. */
interface Destination<Name extends OperationName> {
  readonly field?: FieldOf<Name>
  /** Converts the text; absent = as typed. */
  readonly read?: ReadValue
  /** The value of a switch. */
  readonly set?: null
  /** A part of the path. */
  readonly parameter?: keyof ParametersOf<Name> & string
  /** Takes a name as well as an id, and may be absent if only one exists. */
  readonly find?: 'workspace' | 'project'
  readonly isRequired?: true
}

type Cell<Item> = (item: Item) => string | number | null | undefined
export type Columns<Item> = readonly (readonly [title: string, cell: Cell<Item>, align?: 'right'])[]

type Parameters = Readonly<Record<string, string>>

interface Row<Name extends OperationName> extends Omit<CommandShape, 'positionals' | 'options'> {
  readonly operation: Name
  readonly arguments?: readonly (Positional & Destination<Name>)[]
  readonly options?: Readonly<Record<string, OptionDefinition & Destination<Name>>>
  /** Checks of options against each other. */
  check?(input: CommandInput): Refusal | undefined
  /** Fields that are not simply one option. */
  body?(context: CommandContext, input: CommandInput): Promise<Partial<BodyOf<Name>> | Refusal>
  /** The question before the call; adds the option --yes. undefined = no question this time. */
  confirm?(context: CommandContext, input: CommandInput, parameters: Parameters): Promise<string | Refusal | undefined>
  /** The command that lists what can be named, for ids that do not exist. */
  readonly listedBy?: string
  readonly timeoutMs?: number
  /** After the answer is printed: notes and warnings, on the standard error. */
  after?(context: CommandContext, answer: AnswerOf<Name>, parameters: Parameters): Promise<void>
}

interface AnswerRow<Name extends OperationName> extends Row<Name> {
  /** The answer as text. */
  text(answer: AnswerOf<Name>, context: CommandContext, parameters: Parameters): string | Promise<string>
  /** What --json prints; absent = the answer. */
  json?(answer: AnswerOf<Name>, parameters: Parameters): unknown
}

interface ListRow<Name extends ListName> extends Row<Name> {
  readonly columns:
    | Columns<ItemOf<Name>>
    | ((context: CommandContext, items: readonly ItemOf<Name>[]) => Promise<Columns<ItemOf<Name>>>)
}

export const workspaceOption = {
  value: 'ID',
  help: 'the workspace; optional if there is only one',
  find: 'workspace',
} as const
export const projectOption = {
  value: 'ID',
  help: 'the project; optional if there is only one',
  find: 'project',
} as const
export const idempotencyOption = { value: 'TEXT', help: 'makes a repeated call do nothing' } as const

/** More than anyone reads. */
export const everyItem = 10_000

/** Prints one answer. */
export function answerCommand<const Name extends OperationName>(row: AnswerRow<Name>): CommandDefinition {
  return command(row, async (context, _input, { call, parameters }) => {
    const answer = await context.api.call(row.operation, call)
    const found = row.listedBy === undefined ? answer : orListedBy(answer, row.listedBy)
    if (found instanceof Refusal) return found
    if (context.json) printJson(context, row.json ? row.json(found, parameters) : found)
    else context.terminal.print(await row.text(found, context, parameters))
    await row.after?.(context, found, parameters)
    return undefined
  })
}

/** Prints a table of all items, or of as many as --limit says. */
export function listCommand<const Name extends ListName>(row: ListRow<Name>): CommandDefinition {
  return command(row, async (context, input, { call }) => {
    const limit = row.options && 'limit' in row.options ? readListLimit(input) : everyItem
    if (limit instanceof Refusal) return limit
    const list = await context.api.list(row.operation, call, limit)
    if (list instanceof Refusal) return list
    if (context.json) return printJson(context, list)
    const columns = typeof row.columns === 'function' ? await row.columns(context, list.data) : row.columns
    printTable(context, columns, list.data)
    return undefined
  })
}

export function printTable<Item>({ terminal }: CommandContext, columns: Columns<Item>, items: readonly Item[]): void {
  const heads = columns.map(([title, , align]): Column => (align === undefined ? { title } : { title, align }))
  const rows = items.map((item) => columns.map(([, cell]) => shownCell(cell(item))))
  terminal.print(renderTable(heads, rows, terminal))
}

function shownCell(value: string | number | null | undefined): string {
  return value === null || value === undefined ? '–' : String(value)
}

interface Prepared<Name extends OperationName> {
  readonly call: CallOf<Name> & CallSettings
  readonly parameters: Parameters
}

function command<Name extends OperationName>(
  row: Row<Name>,
  run: (context: CommandContext, input: CommandInput, prepared: Prepared<Name>) => Promise<Refusal | undefined>,
): CommandDefinition {
  const { operation, arguments: positionals, ...shape } = row
  const options = row.confirm ? { ...row.options, yes: yesOption } : row.options
  return {
    ...shape,
    ...(positionals && { positionals }),
    ...(options && { options }),
    async run(context, input) {
      const prepared = await prepare(row, context, input)
      return prepared instanceof Refusal ? prepared : await run(context, input, prepared)
    },
  }
}

/** Fields first, because they need no call; then what is found by name; then the question. */
async function prepare<Name extends OperationName>(
  row: Row<Name>,
  context: CommandContext,
  input: CommandInput,
): Promise<Prepared<Name> | Refusal> {
  const refused = row.check?.(input)
  if (refused) return refused
  const given = givenValues(row, input)
  const fields = readFields(given, context.clock.now())
  if (fields instanceof Refusal) return fields
  const parameters = await findParameters(given, context, input)
  if (parameters instanceof Refusal) return parameters
  const more = await row.body?.(context, input)
  if (more instanceof Refusal) return more
  const question = row.confirm && isAsked(context, input) ? await row.confirm(context, input, parameters) : undefined
  if (question instanceof Refusal) return question
  const declined = question === undefined ? undefined : await confirm(context, input, question)
  if (declined) return declined
  // If two options fill one field, errors name the one that was typed.
  const typedLast = given.toSorted((a, b) => Number(isGiven(a)) - Number(isGiven(b)))
  const typed = typedLast.flatMap(({ destination: { field }, label }) => (field === undefined ? [] : [[field, label]]))
  const [method] = endpoints[row.operation]
  const values = { ...fields, ...more }
  const call = {
    ...parameters,
    ...(method === 'GET' ? { query: values } : method === 'DELETE' ? {} : { body: values }),
    typed: Object.fromEntries(typed),
    ...(row.timeoutMs !== undefined && { timeoutMs: row.timeoutMs }),
    ...(row.options && 'idempotency-key' in row.options && { idempotencyKey: input.text('idempotency-key') }),
  }
  // The rows name fields of their operation; the API checks the values.
  return { call: call as unknown as CallOf<Name> & CallSettings, parameters }
}

interface Given {
  /** As an error names it: `--name` or `NAME`. */
  readonly label: string
  readonly destination: Destination<OperationName>
  readonly value: string | readonly string[] | undefined
  readonly isSwitchedOn: boolean
}

function isGiven({ value, isSwitchedOn }: Given): boolean {
  return value !== undefined || isSwitchedOn
}

function givenValues<Name extends OperationName>(row: Row<Name>, input: CommandInput): readonly Given[] {
  const positionals = (row.arguments ?? []).map((destination, at): Given => {
    return { label: destination.name, destination, value: input.positionals[at], isSwitchedOn: false }
  })
  const options = Object.entries(row.options ?? {}).map(([name, destination]): Given => {
    const value = destination.isRepeatable ? input.texts(name) : input.text(name)
    const isSwitch = destination.value === undefined
    return {
      label: `--${name}`,
      destination,
      value: isSwitch ? undefined : value,
      isSwitchedOn: isSwitch && input.isSet(name),
    }
  })
  return [...positionals, ...options]
}

function readFields(given: readonly Given[], now: number): Record<string, unknown> | Refusal {
  const fields: Record<string, unknown> = {}
  for (const { label, destination, value, isSwitchedOn } of given) {
    const { field, read, set, isRequired } = destination
    if (field === undefined) continue
    if (value === undefined && isRequired) return usageRefusal(`${label} is missing.`)
    if (value === undefined && !isSwitchedOn) continue
    const result = isSwitchedOn ? set : typeof value === 'string' && read ? read(value, label, now) : value
    if (result instanceof Refusal) return result
    const [outer = '', inner] = field.split('.')
    if (inner === undefined) fields[outer] = result
    else fields[outer] = { ...(fields[outer] as object | undefined), [inner]: result }
  }
  return fields
}

/** A part of the path may come from an argument or an option; the first one given counts. */
async function findParameters(
  given: readonly Given[],
  { api }: CommandContext,
  input: CommandInput,
): Promise<Parameters | Refusal> {
  const parameters: Record<string, string> = {}
  for (const [parameter, sources] of Map.groupBy(given, ({ destination }) => destination.parameter)) {
    if (parameter === undefined) continue
    const found = sources.find(({ value }) => value !== undefined) ?? sources[0]
    const text = typeof found?.value === 'string' ? found.value : undefined
    const kind = found?.destination.find
    const isProject = kind === 'project'
    const workspace =
      isProject && given.some(({ label }) => label === '--workspace') ? input.text('workspace') : undefined
    const id = isProject
      ? await findProject(api, text, workspace)
      : kind === 'workspace'
        ? await findWorkspace(api, text)
        : (text ?? '')
    if (id instanceof Refusal) return id
    parameters[parameter] = id
  }
  return parameters
}
