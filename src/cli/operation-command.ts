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
  printResult,
  yesOption,
} from './command.ts'
import { findProject, findWorkspace } from './lookup.ts'
import { exitCodes, listedBy, Refusal, tryTo, usageRefusal } from './refusal.ts'
import { type Columns, type ReadValue, readCount, renderTable } from './values.ts'

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

type Parameters = Readonly<Record<string, string>>

interface Row<Name extends OperationName> extends Omit<CommandShape, 'positionals' | 'options'> {
  readonly operation: Name
  readonly arguments?: readonly (Positional & Destination<Name>)[]
  readonly options?: Readonly<Record<string, OptionDefinition & Destination<Name>>>
  /** Checks of options against each other. */
  check?(input: CommandInput): void
  /** Fields that are not simply one option. */
  body?(context: CommandContext, input: CommandInput): Promise<Partial<BodyOf<Name>>>
  /** The question before the call; adds the option --yes. undefined = no question this time. */
  confirm?(context: CommandContext, input: CommandInput, parameters: Parameters): Promise<string | undefined>
  /** The command that lists what can be named, for ids that do not exist. */
  readonly listedBy?: string
  /** Explains a name that does not exist, where that takes more than `listedBy`. */
  missing?(context: CommandContext, parameters: Parameters): Promise<Refusal>
  readonly timeoutMs?: number
}

interface AnswerRow<Name extends OperationName> extends Row<Name> {
  /** The answer as text. */
  text(answer: AnswerOf<Name>, context: CommandContext, parameters: Parameters): string | Promise<string>
  /** What --json prints; absent = the answer. */
  json?(answer: AnswerOf<Name>, parameters: Parameters): unknown
  /** Notes and warnings after the answer, on the standard error. */
  after?(context: CommandContext, answer: AnswerOf<Name>, parameters: Parameters): Promise<void> | void
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

export const listLimitOption = { value: 'N', help: 'maximum number of items (20)' } as const

export function readListLimit(input: CommandInput): number {
  const text = input.text('limit')
  return text === undefined ? 20 : readCount(text, '--limit')
}

/** More than anyone reads. */
export const everyItem = 10_000

/** Prints one answer. */
export function answerCommand<const Name extends OperationName>(row: AnswerRow<Name>): CommandDefinition {
  return command(row, async (context, _input, { call, parameters }) => {
    const answer = await tryTo(listedBy(row.listedBy, context.api.call(row.operation, call)))
    if (answer instanceof Refusal) {
      throw row.missing && answer.exit === exitCodes.notFound ? await row.missing(context, parameters) : answer
    }
    const text = context.json ? '' : await row.text(answer, context, parameters)
    printResult(context, row.json ? row.json(answer, parameters) : answer, () => text)
    await row.after?.(context, answer, parameters)
  })
}

/** Prints a table of all items, or of as many as --limit says. */
export function listCommand<const Name extends ListName>(row: ListRow<Name>): CommandDefinition {
  return command(row, async (context, input, { call }) => {
    const limit = row.options && 'limit' in row.options ? readListLimit(input) : everyItem
    const list = await listedBy(row.listedBy, context.api.list(row.operation, call, limit))
    const columns = typeof row.columns === 'function' ? await row.columns(context, list.data) : row.columns
    printResult(context, list, () => renderTable(columns, list.data, context.terminal))
  })
}

interface Prepared<Name extends OperationName> {
  readonly call: CallOf<Name> & CallSettings
  readonly parameters: Parameters
}

function command<Name extends OperationName>(
  row: Row<Name>,
  run: (context: CommandContext, input: CommandInput, prepared: Prepared<Name>) => Promise<void>,
): CommandDefinition {
  const { operation, arguments: positionals, ...shape } = row
  const options = row.confirm ? { ...row.options, yes: yesOption } : row.options
  return {
    ...shape,
    ...(positionals && { positionals }),
    ...(options && { options }),
    async run(context, input) {
      await run(context, input, await prepare(row, context, input))
    },
  }
}

/** Fields first, because they need no call; then what is found by name; then the question. */
async function prepare<Name extends OperationName>(
  row: Row<Name>,
  context: CommandContext,
  input: CommandInput,
): Promise<Prepared<Name>> {
  row.check?.(input)
  const given = givenValues(row, input)
  const fields = readFields(given, context.clock.now())
  const parameters = await findParameters(given, context, input)
  const more = await row.body?.(context, input)
  const question = row.confirm && isAsked(context, input) ? await row.confirm(context, input, parameters) : undefined
  if (question !== undefined) await confirm(context, input, question)
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

function readFields(given: readonly Given[], now: number): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const { label, destination, value, isSwitchedOn } of given) {
    const { field, read, set, isRequired } = destination
    if (field === undefined) continue
    if (value === undefined && isRequired) throw usageRefusal(`${label} is missing.`)
    if (value === undefined && !isSwitchedOn) continue
    const result = isSwitchedOn ? set : typeof value === 'string' && read ? read(value, label, now) : value
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
): Promise<Parameters> {
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
    parameters[parameter] = id
  }
  return parameters
}
