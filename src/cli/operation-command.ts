// Commands that are one call of the management API, as rows: which operation, how arguments and options fill its path,
// query and body, and how the answer is printed. The types of fields and answers come from the operation.

import type { AnswerOf, BodyOf, CallOf, ItemOf, ListName, ParametersOf, QueryOf } from '../api/client.ts'
import { endpoints, type OperationName } from '../api/endpoints.ts'
import type { CallSettings } from './api-client.ts'
import {
  type CommandContext,
  type CommandDefinition,
  type CommandShape,
  confirm,
  isAsked,
  type OptionDefinition,
  type Positional,
  printResult,
  yesOption,
} from './command.ts'
import { findGroup, findKey, findProject, findWorkspace } from './lookup.ts'
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
  readonly set?: null | true | readonly []
  /** A part of the path. */
  readonly parameter?: keyof ParametersOf<Name> & string
  /** Takes a name as well as an id. As a parameter it may be absent if only one exists. */
  readonly find?: 'workspace' | 'project' | 'group' | 'key'
  readonly isRequired?: true
}

type Parameters = Readonly<Record<string, string>>

interface Row<Name extends OperationName> extends Omit<CommandShape, 'positionals' | 'options'> {
  readonly operation: Name
  readonly arguments?: readonly (Positional & Destination<Name>)[]
  readonly options?: Readonly<Record<string, OptionDefinition & Destination<Name>>>
  /** Checks of options against each other. */
  check?(context: CommandContext): void
  /** Fields that are not simply one option. */
  body?(context: CommandContext): Partial<Fields<Name>> | Promise<Partial<Fields<Name>>>
  /** The question before the call; adds the option --yes. undefined = no question this time. */
  confirm?(context: CommandContext, parameters: Parameters): string | undefined | Promise<string | undefined>
  /** The command that lists what can be named, for ids that do not exist. */
  readonly listedBy?: string
  /** Explains a name that does not exist, where that takes more than `listedBy`. */
  missing?(context: CommandContext, parameters: Parameters): Refusal | Promise<Refusal>
  readonly timeoutMs?: number
  /** Runs before the call, such as to say that it will take long. */
  announce?(context: CommandContext, call: CallOf<Name>): Promise<void>
}

interface AnswerRow<Name extends OperationName> extends Row<Name> {
  /** The answer as text. */
  text(answer: AnswerOf<Name>, context: CommandContext, parameters: Parameters): string | Promise<string>
  /** The output of --json; absent = the answer. */
  json?(answer: AnswerOf<Name>, parameters: Parameters): unknown
  /** A hint for the user, written to standard error; omitted with --json. */
  note?(answer: AnswerOf<Name>, context: CommandContext): string
  /** Further calls after the answer, for notes and warnings on the standard error. */
  after?(context: CommandContext, answer: AnswerOf<Name>, parameters: Parameters): Promise<void> | void
}

interface ListRow<Name extends ListName> extends Row<Name> {
  readonly columns:
    | Columns<ItemOf<Name>>
    | ((context: CommandContext, items: readonly ItemOf<Name>[]) => Promise<Columns<ItemOf<Name>>>)
  /** Runs instead of the table, and does not return if it did. */
  follow?(context: CommandContext, call: CallOf<Name>, limit: number): Promise<void> | undefined
  /** On the standard error, if there are none. */
  whenEmpty?(context: CommandContext): string
}

export const workspaceOption = {
  value: 'ID',
  help: 'the workspace; without it the only one, or the one called default',
  find: 'workspace',
} as const
export const projectOption = {
  value: 'ID',
  help: 'the project; without it the only one, or the one called default',
  find: 'project',
} as const
/** Narrows a list to a workspace. */
export function workspaceFilter(help: string) {
  return { value: 'ID', help, field: 'workspace_id', find: 'workspace' } as const
}
export const idempotencyOption = {
  value: 'TEXT',
  help: 'a repeated call with the same text gets the first answer, and nothing is done twice',
} as const
export const listLimitOption = { value: 'N', help: 'maximum number of items (20)' } as const

/** Prints one answer. */
export function answerCommand<const Name extends OperationName>(row: AnswerRow<Name>): CommandDefinition {
  return command(row, async (context, call, parameters) => {
    const answer = await tryTo(listedBy(row.listedBy, context.api.call(row.operation, call)))
    if (answer instanceof Refusal) {
      throw row.missing && answer.exit === exitCodes.notFound ? await row.missing(context, parameters) : answer
    }
    const text = context.json ? '' : await row.text(answer, context, parameters)
    printResult(context, row.json ? row.json(answer, parameters) : answer, () => text)
    await row.after?.(context, answer, parameters)
    if (row.note && !context.json) context.terminal.complain(row.note(answer, context))
  })
}

/** Prints a table of all items, or of as many as --limit says. */
export function listCommand<const Name extends ListName>(row: ListRow<Name>): CommandDefinition {
  return command(row, async (context, call) => {
    const { api, terminal, json, text } = context
    const limited = row.options && 'limit' in row.options ? (text('limit') ?? '20') : undefined
    const limit = limited === undefined ? undefined : readCount(limited, '--limit')
    const following = row.follow?.(context, call, limit ?? 0)
    if (following) return await following
    const list = await listedBy(row.listedBy, api.list(row.operation, call, limit))
    const columns = typeof row.columns === 'function' ? await row.columns(context, list.data) : row.columns
    printResult(context, list, () => renderTable(columns, list.data, terminal))
    if (list.data.length === 0 && row.whenEmpty && !json) terminal.complain(row.whenEmpty(context))
  })
}

interface DownloadRow<Name extends OperationName> extends Row<Name> {
  /** On the standard error, if the file has no more lines than its head. */
  readonly whenEmpty?: string
}

/** Prints a file as it arrives. */
export function downloadCommand<const Name extends OperationName>(row: DownloadRow<Name>): CommandDefinition {
  return command(row, async ({ api, terminal, json }, call) => {
    let lines = 0
    for await (const text of api.download(row.operation, call)) {
      lines += text.split('\n').length - 1
      terminal.print(text)
    }
    if (row.whenEmpty !== undefined && lines <= (json ? 0 : 1)) terminal.complain(row.whenEmpty)
  })
}

type PreparedCall<Name extends OperationName> = CallOf<Name> & CallSettings

function command<Name extends OperationName>(
  row: Row<Name>,
  run: (context: CommandContext, call: PreparedCall<Name>, parameters: Parameters) => Promise<void>,
): CommandDefinition {
  const { operation, arguments: positionals, ...shape } = row
  const options = row.confirm ? { ...row.options, yes: yesOption } : row.options
  return {
    ...shape,
    ...(positionals && { positionals }),
    ...(options && { options }),
    async run(context) {
      const { fields, filters, named, typed } = readInput(row, context)
      const parameters = await findAll(named, row, context)
      const values = { ...fields, ...(await findAll(filters, row, context)), ...(await row.body?.(context)) }
      const question = row.confirm && isAsked(context) ? await row.confirm(context, parameters) : undefined
      if (question !== undefined) await confirm(context, question)
      const [method] = endpoints[operation]
      const call = {
        ...parameters,
        ...(method === 'GET' ? { query: values } : method === 'DELETE' ? {} : { body: values }),
        typed,
        timeoutMs: row.timeoutMs,
        idempotencyKey: row.options && 'idempotency-key' in row.options ? context.text('idempotency-key') : undefined,
      }
      await row.announce?.(context, call as unknown as PreparedCall<Name>)
      // The rows name fields of their operation; the API checks the values.
      await run(context, call as unknown as PreparedCall<Name>, parameters)
    },
  }
}

interface Named {
  readonly text: string | undefined
  readonly find: Destination<OperationName>['find']
}

/** Returns the fields, those still to be resolved by name, the parts of the path, and how errors name each field. */
function readInput<Name extends OperationName>(row: Row<Name>, context: CommandContext) {
  row.check?.(context)
  const fields: Record<string, unknown> = {}
  const filters: Record<string, Named> = {}
  const named: Record<string, Named> = {}
  const typed: Record<string, string> = {}
  for (const { label, destination, value } of givenValues(row, context)) {
    const { field, read, isRequired, parameter, find } = destination
    // A part of the path may come from an argument or an option; the first one given counts.
    if (parameter !== undefined && named[parameter]?.text === undefined) {
      named[parameter] = { text: typeof value === 'string' ? value : undefined, find }
    }
    if (field === undefined) continue
    // If two options fill one field, errors name the one that was given.
    if (value !== undefined || typed[field] === undefined) typed[field] = label
    if (value === undefined && isRequired) throw usageRefusal(`${label} is missing.`)
    if (value === undefined) continue
    const result = typeof value === 'string' && read ? read(value, label, context.clock.now()) : value
    const [outer = '', inner] = field.split('.')
    if (find !== undefined) filters[field] = { text: String(value), find }
    else fields[outer] = inner === undefined ? result : { ...(fields[outer] as object | undefined), [inner]: result }
  }
  return { fields, filters, named, typed }
}

/** `label` is how an error names it: `--name` or `NAME`. */
function givenValues<Name extends OperationName>(row: Row<Name>, { positionals, text, texts, isSet }: CommandContext) {
  return [
    ...(row.arguments ?? []).map((destination, at) => {
      return { label: destination.name, destination, value: positionals[at] }
    }),
    ...Object.entries(row.options ?? {}).map(([name, destination]) => {
      const { value: placeholder, isRepeatable, set } = destination
      const given = isRepeatable ? texts(name) : text(name)
      return {
        label: `--${name}`,
        destination,
        value: placeholder !== undefined ? given : isSet(name) ? set : undefined,
      }
    }),
  ]
}

async function findAll<Name extends OperationName>(
  named: Readonly<Record<string, Named>>,
  { options = {} }: Row<Name>,
  { api, text: optionText }: CommandContext,
): Promise<Parameters> {
  const workspace = 'workspace' in options ? optionText('workspace') : undefined
  const found: Record<string, string> = {}
  for (const [name, { text, find }] of Object.entries(named)) {
    if (find === 'project') found[name] = await findProject(api, text, workspace)
    else if (find === 'group') found[name] = await findGroup(api, text ?? '', workspace)
    else if (find === 'key') found[name] = await findKey(api, text ?? '')
    else found[name] = find === 'workspace' ? await findWorkspace(api, text) : (text ?? '')
  }
  return found
}
