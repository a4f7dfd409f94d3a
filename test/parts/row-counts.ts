// How much of the growing tables a piece of work reads: every statement it sends is sent again as a question for the plan.
// PostgreSQL counts the rows that were looked at; SQLite only says whether it goes through a whole table.

import type { Database } from '../../src/store/database.ts'
import type { Sql, SqlPart, SqlValue } from '../../src/store/sql.ts'

/** Tables that grow with every request. */
const growing = ['requests', 'archived_charges', 'fundings', 'request_sums', 'request_hours']

export interface Reading {
  /** Rows of growing tables, on PostgreSQL; rows that were filtered out are counted too. */
  readonly rows: number
  /** Steps that go through a whole growing table. */
  readonly scans: readonly string[]
  /** All steps of the plans: in SQLite's words, or PostgreSQL's types of nodes. */
  readonly steps: readonly string[]
}

/** `tables`: what is counted. */
export async function readingOf(
  database: Database,
  work: (database: Database) => Promise<unknown>,
  tables = growing,
): Promise<Reading> {
  const statements: Statement[] = []
  const recorded = (sql: Sql): Sql => {
    const record = (text: unknown, ...values: readonly (SqlValue | SqlPart)[]) => {
      if (typeof text === 'string' || !isTemplate(text)) return sql(text as string)
      statements.push({ text, values })
      return sql(text, ...values)
    }
    return record as Sql
  }
  await work({
    ...database,
    sql: recorded(database.sql),
    snapshot: (read) => database.snapshot((sql) => read(recorded(sql))),
  })
  const readings = []
  for (const statement of statements) readings.push(await explain(database, statement, tables))
  return {
    rows: readings.reduce((sum, { rows }) => sum + rows, 0),
    scans: readings.flatMap(({ scans }) => scans),
    steps: readings.flatMap(({ steps }) => steps),
  }
}

interface Statement {
  readonly text: TemplateStringsArray
  readonly values: readonly (SqlValue | SqlPart)[]
}

function isTemplate(text: unknown): text is TemplateStringsArray {
  return Array.isArray(text) && Object.hasOwn(text, 'raw')
}

function explain({ engine, sql }: Database, statement: Statement, tables: readonly string[]): Promise<Reading> {
  return engine === 'sqlite' ? explainSqlite(sql, statement, tables) : explainPostgres(sql, statement, tables)
}

function prefixed(prefix: string, { text }: Statement): TemplateStringsArray {
  const parts = [prefix + text[0], ...text.slice(1)]
  // As in a template of the language, which a library may insist on.
  return Object.defineProperty(parts, 'raw', { value: parts }) as unknown as TemplateStringsArray
}

async function explainSqlite(sql: Sql, statement: Statement, tables: readonly string[]): Promise<Reading> {
  const plan = await sql<{ detail: string }>(prefixed('EXPLAIN QUERY PLAN ', statement), ...statement.values)
  const steps = plan.map(({ detail }) => detail)
  const isScan = new RegExp(`^SCAN (${tables.join('|')})\\b`)
  return { rows: 0, scans: steps.filter((step) => isScan.test(step)), steps }
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly PlanNode[]
}

async function explainPostgres(sql: Sql, statement: Statement, tables: readonly string[]): Promise<Reading> {
  const text = prefixed('EXPLAIN (ANALYZE, FORMAT JSON) ', statement)
  const [row] = await sql<Record<string, unknown>>(text, ...statement.values)
  const found = Object.values(row ?? {})[0]
  const [plan] = (typeof found === 'string' ? JSON.parse(found) : found) as { Plan: PlanNode }[]
  return plan ? readPlan(plan.Plan, tables) : { rows: 0, scans: [], steps: [] }
}

function readPlan(node: PlanNode, tables: readonly string[]): Reading {
  const below = (node.Plans ?? []).map((each) => readPlan(each, tables))
  const isGrowing = tables.includes(node['Relation Name'] ?? '')
  const looked =
    node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  return {
    rows: below.reduce((sum, { rows }) => sum + rows, isGrowing ? looked * node['Actual Loops'] : 0),
    scans: below.flatMap(({ scans }) => scans),
    steps: [node['Node Type'], ...below.flatMap(({ steps }) => steps)],
  }
}
