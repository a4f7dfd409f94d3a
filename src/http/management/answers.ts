// Renders stored objects as the API answers them. Times are ISO 8601, amounts decimal strings in USD, absent values null.
// No secret passes through here; only the handlers that create a key add its `secret`.

import type { z } from 'zod'
import type { AnswerOf, BodyOf, ItemOf } from '../../api/client.ts'
import { listAnswer } from '../../api/fields.ts'
import { groupSchema } from '../../api/groups.ts'
import type { CheckedBody } from '../../api/operation.ts'
import type { Operations } from '../../api/operations.ts'
import { keySchema, projectSchema } from '../../api/projects.ts'
import { credentialSchema } from '../../api/providers.ts'
import { auditSchema } from '../../api/system.ts'
import { transferSchema } from '../../api/wallet.ts'
import { workspaceSchema } from '../../api/workspaces.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import { scopeText, subjectText } from '../../kernel/spend-limit.ts'
import { walletOf } from '../../ledger/account.ts'
import type { Wallet } from '../../ledger/ledger.ts'
import type { Transfer } from '../../ledger/transfer.ts'
import type { Sql } from '../../store/sql.ts'
import type { KeyInfo } from '../../tenancy/keys.ts'
import { readLabels } from '../../tenancy/limit-subjects.ts'
import { type Limits, labelled, limitsFrom, namedSubjects, shownLimits } from '../../tenancy/limits.ts'
import type { Page, PageQuery } from '../../tenancy/management.ts'
import type { Project, Workspace } from '../../tenancy/workspaces.ts'
import { type CountedLimit, readSpent, type Spent, spendStateOf } from './spend-states.ts'

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

/** About a millisecond of work, after which other requests have a turn. */
const pageSize = 50

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

export function limitsFromBody(body: CheckedBody<Operations['putKeyLimits']>, at?: string): Limits {
  return limitsFrom(body, at)
}

export async function limitsAnswer(sql: Sql, limits: Limits): Promise<BodyOf<'putKeyLimits'>> {
  return shownLimits(limits, await readLabels(sql, namedSubjects(limits)))
}

/** A workspace, project or key. */
interface Scope {
  readonly id: string
  readonly limits: Limits
}

interface SpendFacts {
  readonly spent: Spent
  /** What to call people and groups. */
  readonly labels: ReadonlyMap<string, string>
}

/** Those with one counter: not the limits of each end user or each person. */
function countedLimits({ id: owner, limits: { spend = [], startsAt } }: Scope): readonly CountedLimit[] {
  return spend.flatMap((limit) => {
    const { subject, models } = limit
    const { kind, name = '' } = subject
    if (kind !== 'all' && subject.name === undefined) return []
    return [{ scope: scopeText({ owner, kind, name, models }), limit, startsAt }]
  })
}

/** For all scopes of a page. */
async function readSpendFacts(sql: Sql, owners: readonly Scope[], now: number): Promise<SpendFacts> {
  const named = [...new Set(owners.flatMap(({ limits }) => namedSubjects(limits)))]
  const spent = await readSpent(sql, owners.flatMap(countedLimits), now)
  return { spent, labels: await readLabels(sql, named) }
}

/** The state of its spend limits. */
function spendAnswer(scope: Scope, now: number, { spent, labels }: SpendFacts) {
  return countedLimits(scope).map((counted) => {
    const { subject } = counted.limit
    const whose = subject.kind === 'all' ? {} : { subject: subjectText(labelled(subject, labels)) }
    return { ...spendStateOf(counted, now, spent), ...whose }
  })
}

function withLimits<Item extends Scope>(item: Item, now: number, { spent, labels }: SpendFacts) {
  const limits: BodyOf<'putKeyLimits'> = shownLimits(item.limits, labels)
  return { ...item, limits, spend: spendAnswer(item, now, { spent, labels }) }
}

/** Answers scopes with the state of their limits. */
function scopeAnswers<Item extends Scope, Answered>(
  render: (item: ReturnType<typeof withLimits<Item>>, now: number) => Answered,
) {
  return {
    async one(sql: Sql, item: Item, now: number) {
      return render(withLimits(item, now, await readSpendFacts(sql, [item], now)), now)
    },
    async page(sql: Sql, page: Page<Item>, now: number) {
      const facts = await readSpendFacts(sql, page.items, now)
      return pageAnswer(page, (item) => render(withLimits(item, now, facts), now))
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

export function walletAnswer({ posted, held, available }: Wallet, credit: Nano): AnswerOf<'getWallet'> {
  return {
    balance: formatUsd(posted),
    held: formatUsd(held),
    available: formatUsd(available),
    credit: formatUsd(credit),
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

export const groupAnswer = answerAs(groupSchema)
export const credentialAnswer = answerAs(credentialSchema)
export const auditAnswer = answerAs(auditSchema)
