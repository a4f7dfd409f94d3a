// Renders stored objects as the API answers them. Times are ISO 8601, amounts decimal strings in USD, absent values null.
// No secret passes through here; only the handlers that create a key add its `secret`.

import type { z } from 'zod'
import type { AnswerOf, BodyOf, ItemOf } from '../../api/client.ts'
import { listAnswer } from '../../api/fields.ts'
import type { CheckedBody } from '../../api/operation.ts'
import type { Operations } from '../../api/operations.ts'
import { keySchema, projectSchema } from '../../api/projects.ts'
import { credentialSchema } from '../../api/providers.ts'
import { auditSchema } from '../../api/system.ts'
import { transferSchema } from '../../api/wallet.ts'
import { workspaceSchema } from '../../api/workspaces.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano, zeroNano } from '../../kernel/money.ts'
import { walletOf } from '../../ledger/account.ts'
import { windowAt, windowEnd, windowStart } from '../../ledger/budget.ts'
import type { Wallet } from '../../ledger/ledger.ts'
import type { Transfer } from '../../ledger/transfer.ts'
import { templateOf } from '../../store/insert-rows.ts'
import type { Sql } from '../../store/sql.ts'
import type { KeyInfo } from '../../tenancy/keys.ts'
import { type Limits, limitNames, shownLimits, spendLimits } from '../../tenancy/limits.ts'
import type { Page, PageQuery } from '../../tenancy/management.ts'
import type { Project, Workspace } from '../../tenancy/workspaces.ts'

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name

/** The stored value of an answer's member: undefined becomes null, epoch milliseconds a time, and an amount USD. */
type SourceOf<Name, Value> = null extends Value
  ? SourceOf<Name, NonNullable<Value>> | undefined
  : Name extends 'at' | `${string}_at`
    ? number
    : Value extends readonly (infer Item)[]
      ? readonly Item[]
      : string extends Value
        ? Value | Nano
        : Value

type SourcesOf<Answer> = {
  readonly [Name in keyof Answer & string as Camel<Name>]: SourceOf<Name, Answer[Name]>
}

/** Answers what the schema names, and nothing else of an object: `created_at` from its `createdAt`. */
export function answerAs<Schema extends z.ZodObject>(schema: Schema) {
  const members = Object.keys(schema.shape).map((name) => {
    return {
      name,
      from: name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
      isTime: /(^|_)at$/.test(name),
    }
  })
  return (object: SourcesOf<z.input<Schema>>): z.input<Schema> => {
    const values = object as Readonly<Record<string, unknown>>
    const answer: Record<string, unknown> = {}
    for (const { name, from, isTime } of members) answer[name] = shown(values[from], isTime)
    return answer as z.input<Schema>
  }
}

function shown(value: unknown, isTime: boolean): unknown {
  if (value === undefined) return null
  if (typeof value === 'bigint') return formatUsd(value as Nano)
  return isTime ? isoTime(value as number) : value
}

/** Leaves out members that are null or undefined: the stores expect absent members. */
export function given<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: NonNullable<Members[Name]> } {
  const entries = Object.entries(members).filter(([, value]) => value != null)
  return Object.fromEntries(entries) as { [Name in keyof Members]?: NonNullable<Members[Name]> }
}

export function pageOf({ limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined }) {
  return { limit, ...given({ cursor }) }
}

export function pageAnswer<Item, Answered>({ items, nextCursor }: Page<Item>, render: (item: Item) => Answered) {
  return listAnswer(items.map(render), nextCursor)
}

const pageSize = 200

/** Page by page, so that a year of requests is never in memory at once. */
export async function* everyPage<Item>(
  read: (page: PageQuery) => Promise<Page<Item>>,
): AsyncGenerator<readonly Item[]> {
  let cursor: string | undefined
  do {
    const page = await read(pageOf({ limit: pageSize, cursor }))
    yield page.items
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

export function limitsFromBody(body: CheckedBody<Operations['putKeyLimits']>): Limits {
  return given(Object.fromEntries(limitNames.map(({ field, name }) => [field, body[name]])))
}

export function limitsAnswer(limits: Limits): BodyOf<'putKeyLimits'> {
  return shownLimits(limits)
}

/** A workspace, project or key. */
interface Scope {
  readonly id: string
  readonly limits: Limits
}

/** The spend of scopes, by scope and window. */
type Spent = (scopeId: string, window: string) => Nano

/** One query for all scopes of a page. */
async function readSpent(sql: Sql, scopes: readonly Scope[]): Promise<Spent> {
  const limited = scopes.filter(({ limits }) => spendLimits(limits).some(({ cap }) => cap !== undefined))
  if (limited.length === 0) return () => zeroNano
  const ids = limited.map(({ id }) => id)
  const text = ['SELECT scope_id, time_window, spent FROM budgets WHERE scope_id IN (', ...ids.slice(1).fill(', '), ')']
  const rows = await sql<{ scope_id: string; time_window: string; spent: bigint }>(templateOf(text), ...ids)
  const spent = new Map(rows.map((row) => [`${row.scope_id} ${row.time_window}`, row.spent as Nano]))
  return (scopeId, window) => spent.get(`${scopeId} ${window}`) ?? zeroNano
}

/** The state of its spend limits. */
function spendAnswer({ id, limits }: Scope, now: number, spent: Spent) {
  return spendLimits(limits).flatMap(({ period, cap }) => {
    if (cap === undefined) return []
    const { startsAt = 0 } = limits
    const window = windowAt(period, Math.max(now, startsAt), startsAt)
    const [start = 0, end = 0] = [windowStart(window), windowEnd(window)]
    const amounts = { limit: formatUsd(cap), spent: formatUsd(spent(id, window)) }
    return [{ period, ...amounts, starts_at: isoTime(start), resets_at: isoTime(end) }]
  })
}

function withLimits<Item extends Scope>(item: Item, now: number, spent: Spent) {
  return { ...item, limits: limitsAnswer(item.limits), spend: spendAnswer(item, now, spent) }
}

/** Answers scopes with the state of their limits. */
function scopeAnswers<Item extends Scope, Answered>(
  render: (item: ReturnType<typeof withLimits<Item>>, now: number) => Answered,
) {
  return {
    async one(sql: Sql, item: Item, now: number) {
      return render(withLimits(item, now, await readSpent(sql, [item])), now)
    },
    async page(sql: Sql, page: Page<Item>, now: number) {
      const spent = await readSpent(sql, page.items)
      return pageAnswer(page, (item) => render(withLimits(item, now, spent), now))
    },
  }
}

const keyFrom = answerAs(keySchema)
export const workspaceAnswers = scopeAnswers<Workspace, AnswerOf<'getWorkspace'>>(answerAs(workspaceSchema))
export const projectAnswers = scopeAnswers<Project, AnswerOf<'getProject'>>(answerAs(projectSchema))
export const keyAnswers = scopeAnswers<KeyInfo, AnswerOf<'getKey'>>((key, now) =>
  keyFrom({ ...key, status: keyStatus(key, now) }),
)

function keyStatus(
  { revokedAt, expiresAt }: Pick<KeyInfo, 'revokedAt' | 'expiresAt'>,
  now: number,
): 'active' | 'expired' | 'revoked' {
  if (revokedAt !== undefined && revokedAt <= now) return 'revoked'
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : 'active'
}

export function walletAnswer({ posted, held, available }: Wallet): AnswerOf<'getWallet'> {
  return {
    balance: formatUsd(posted),
    held: formatUsd(held),
    available: formatUsd(available),
    currency: 'USD',
  }
}

const transferFrom = answerAs(transferSchema)

export function transferAnswer(transfer: Transfer, workspaceId: WorkspaceId): ItemOf<'listTransfers'> {
  const wallet = walletOf(workspaceId)
  const { creditAccount, debitAccount } = transfer
  const direction = creditAccount === wallet ? 'in' : debitAccount === wallet ? 'out' : 'none'
  const usage = transfer.usage === undefined ? undefined : JSON.parse(transfer.usage)
  return transferFrom({ ...transfer, direction, usage })
}

export const credentialAnswer = answerAs(credentialSchema)
export const auditAnswer = answerAs(auditSchema)
