// `tollgate requests`, `tollgate explain` and `tollgate usage`: what was asked, where it went and what it cost.

import type { AnswerOf, ItemOf, QueryOf } from '../../api/client.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { ApiClient } from '../api-client.ts'
import { type CommandContext, type CommandDefinition, type CommandInput, printResult } from '../command.ts'
import { explainText } from '../explain-text.ts'
import { findProject, findWorkspace, projectNames } from '../lookup.ts'
import { listLimitOption, readListLimit } from '../operation-command.ts'
import { exitCodes, ifPossible, listedBy, Refusal, usageRefusal } from '../refusal.ts'
import {
  type Columns,
  cleanText,
  padded,
  readTime,
  renderFacts,
  renderTable,
  shownCount,
  shownMs,
  shownTime,
  shownUsd,
} from '../values.ts'

type LoggedRequest = ItemOf<'listRequests'>

const columns: Columns<LoggedRequest> = [
  ['TIME (UTC)', ({ started_at }) => shownTime(started_at)],
  ['STATUS', shownStatus, 'right'],
  ['MODEL', shownModel],
  ['VIA', ({ provider }) => provider],
  ['TRIES', ({ attempts }) => attempts.length, 'right'],
  ['IN', ({ usage }) => shownCount(inputTokens(usage)), 'right'],
  ['OUT', ({ usage }) => shownCount(usage?.output_tokens), 'right'],
  ['TTFT', ({ first_event_ms }) => shownMs(first_event_ms), 'right'],
  ['TOTAL', ({ total_ms }) => shownMs(total_ms), 'right'],
  ['COST', ({ cost }) => shownUsd(cost), 'right'],
  ['REQUEST', ({ id }) => id],
]

/** A stream that failed after its headers were sent has status 200, so its code is shown too. */
function shownStatus({ status, code }: LoggedRequest): string {
  return status === 200 && code ? `200 ${code}` : String(status)
}

/** Token counts cost nothing and have no usage, so they are marked. */
function shownModel({ model, path }: LoggedRequest): string {
  if (model === null) return path
  return path.endsWith('/count_tokens') ? `${model} (count_tokens)` : model
}

/** Cached or not. */
function inputTokens(usage: LoggedRequest['usage']): number | undefined {
  if (!usage) return undefined
  const counts = [usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens]
  // A gateway of another version may leave a count out.
  return counts.reduce((sum, count) => sum + (count ?? 0), 0)
}

const listRequests: CommandDefinition = {
  words: ['requests', 'list'],
  isDefault: true,
  summary: 'lists requests, newest first; with --follow as they end',
  options: {
    workspace: { value: 'ID', help: 'only requests of this workspace' },
    project: { value: 'ID', help: 'only requests of this project' },
    key: { value: 'ID', help: 'only requests of this key' },
    model: { value: 'ID', help: 'only requests for this model' },
    limit: listLimitOption,
    follow: { help: 'continue until Ctrl-C; with --json one object per line' },
  },
  examples: ['tollgate requests', 'tollgate requests --key key_… --limit 100', 'tollgate requests --follow'],
  async run(context, input) {
    const { api, terminal, json } = context
    const limit = readListLimit(input)
    const workspace_id = await namedWorkspace(api, input)
    const project = input.text('project')
    const project_id = project === undefined ? undefined : await findProject(api, project, workspace_id)
    const query = { workspace_id, project_id, key_id: input.text('key'), model: input.text('model') }
    if (input.isSet('follow')) return await follow(context, query, limit)
    const list = await api.list('listRequests', { query }, limit)
    printResult(context, list, () => renderTable(columns, list.data, terminal))
    if (list.data.length === 0 && !json) terminal.complain(noRequestsText(input))
  },
}

async function namedWorkspace(api: ApiClient, input: CommandInput): Promise<string | undefined> {
  const wanted = input.text('workspace')
  return wanted === undefined ? undefined : await findWorkspace(api, wanted)
}

/** Names the filters, because a mistyped id matches nothing without an error. */
function noRequestsText(input: CommandInput): string {
  const filters = ['workspace', 'project', 'key', 'model'].filter((name) => input.isSet(name))
  if (filters.length === 0) return 'No requests yet.\n'
  const given = filters.map((name) => `--${name} ${cleanText(input.text(name) ?? '')}`).join(' ')
  const listing = input.isSet('model') ? ' Ids of models: tollgate models' : ''
  return `No request matches ${given}: none was made, retention has removed it, or the id is wrong.${listing}\n`
}

/** The widths are fixed, because later rows are not known yet. */
const followWidths = [19, 6, 28, 12, 5, 8, 7, 9, 9, 13, 0]
const pollMs = 1000
/** If there are more in one second, only these are shown. */
const pollRows = 200
const seenMax = 2000

/** Rows are written when requests end, so all ids are remembered, not just the newest one. */
async function follow(
  { api, terminal, json }: CommandContext,
  query: QueryOf<'listRequests'>,
  limit: number,
): Promise<never> {
  let seen: ReadonlySet<string> | undefined
  for (;;) {
    // As many at first as later, so that old requests are known as such though not all of them are shown.
    const list = await api.list('listRequests', { query }, Math.max(limit, pollRows))
    if (!seen && !json) terminal.print(followLine(columns.map(([title]) => title)))
    const known = seen
    const fresh = known ? list.data.filter(({ id }) => !known.has(id)) : list.data.slice(0, limit)
    for (const request of fresh.toReversed()) {
      const line = () => followLine(columns.map(([, cell]) => String(cell(request) ?? '–')))
      terminal.print(json ? `${JSON.stringify(request)}\n` : line())
    }
    seen = new Set([...(seen ?? []), ...list.data.map(({ id }) => id)].slice(-seenMax))
    await Bun.sleep(pollMs)
  }
}

function followLine(texts: readonly string[]): string {
  const cells = texts.map((text, at) => padded(cleanText(text), followWidths[at] ?? 0, columns[at]?.[2]))
  return `${cells.join('  ').trimEnd()}\n`
}

const showRequest: CommandDefinition = {
  words: ['requests', 'show'],
  summary: 'shows one request: candidates and why, attempts, usage, charge',
  positionals: [{ name: 'ID', prefix: 'req_' }],
  examples: ['tollgate requests show req_…'],
  async run(context, input) {
    const request = await readRequest(context, input)
    const facts = context.json ? '' : requestFacts(request, await callerText(context, request))
    printResult(context, request, () => `${facts}\n${explainText(request).text}`)
  },
}

async function readRequest({ api }: CommandContext, input: CommandInput) {
  return await listedBy('tollgate requests', api.call('getRequest', { id: input.positionals[0] ?? '' }))
}

/** `ci (key_…) of web`. */
async function callerText({ api }: CommandContext, request: AnswerOf<'getRequest'>): Promise<string> {
  const { key_id: keyId, project_id: projectId } = request
  const key = await ifPossible(api.call('getKey', { id: keyId }))
  const projectName = await projectNames(api, [request])
  return `${key ? `${key.name} (${keyId})` : keyId} of ${projectName(projectId)}`
}

function requestFacts(request: AnswerOf<'getRequest'>, caller: string): string {
  const { code, warnings, notes } = request
  return renderFacts([
    ['time', `${shownTime(request.started_at)} UTC`],
    ['status', `${request.status}${code === null ? '' : ` ${code}`}`],
    ['reason', request.reason ?? undefined],
    ['path', `${request.path}${request.stream ? ', streamed' : ''}`],
    ['model', request.model ?? '–'],
    ['upstream', request.upstream_model ?? undefined],
    ['lane', request.lane ?? undefined],
    ['key', caller],
    ['client', request.client ?? undefined],
    ['first event', shownMs(request.first_event_ms)],
    ['total', shownMs(request.total_ms)],
    ['warnings', warnings.length === 0 ? undefined : warnings.join('; ')],
    ['notes', notes.length === 0 ? undefined : notes.join('; ')],
  ])
}

const explain: CommandDefinition = {
  words: ['explain'],
  summary: 'explains what one request cost, to the nano-dollar',
  details: 'The id is in the header x-request-id of every response, in the log and in `tollgate requests`.',
  positionals: [{ name: 'REQUEST_ID', prefix: 'req_' }],
  examples: ['tollgate explain req_…', 'tollgate explain req_… --json'],
  async run(context, input) {
    const request = await readRequest(context, input)
    const { text, fault } = explainText(request)
    printResult(context, request, () => text)
    if (fault === undefined) return
    throw new Refusal(exitCodes.failed, `this charge does not add up: ${fault}.`, 'tollgate ledger verify')
  },
}

const usage: CommandDefinition = {
  words: ['usage', 'export'],
  isDefault: true,
  summary: 'prints tokens and cost as CSV, summed up by day and model or by other groups',
  details: `One line for each combination; amounts are exact and in USD. Requests that retention has removed are not included.
Groups: day, workspace, project, key, model, provider.`,
  options: {
    by: { value: 'GROUPS', help: 'groups such as day,project,model (day,model)' },
    from: { value: 'TIME', help: 'requests that started at or after this time (30 days before the end)' },
    to: { value: 'TIME', help: 'requests that started before this time (now)' },
    workspace: { value: 'ID', help: 'only requests of this workspace' },
  },
  examples: ['tollgate usage', 'tollgate usage --by workspace,model --from 2026-11-01 --to 2026-12-01 > november.csv'],
  async run(context, input) {
    const query = await usageQuery(context, input)
    const { api, terminal, json } = context
    let lines = 0
    for await (const text of api.download('exportUsage', { query, typed: { group_by: '--by' } })) {
      lines += text.split('\n').length - 1
      terminal.print(text)
    }
    if (lines <= (json ? 0 : 1)) {
      terminal.complain('No usage in that time, or retention has removed it. Other times: --from and --to\n')
    }
  },
}

async function usageQuery(
  { api, clock, json }: CommandContext,
  input: CommandInput,
): Promise<NonNullable<QueryOf<'exportUsage'>>> {
  const workspace_id = await namedWorkspace(api, input)
  const timeOf = (name: 'from' | 'to') => {
    const text = input.text(name)
    return text === undefined ? undefined : readTime(text, `--${name}`, clock.now())
  }
  const [from, to] = [timeOf('from'), timeOf('to')]
  const now = isoTime(clock.now())
  // Both are in the same ISO form, so comparing the texts compares the times.
  if (from !== undefined && from >= (to ?? now)) {
    const end = to === undefined ? `now, ${now}` : `--to, ${to}`
    throw usageRefusal(`there is nothing between --from, ${from}, and ${end}: --from must be earlier.`)
  }
  return { format: json ? 'jsonl' : 'csv', group_by: input.text('by'), workspace_id, from, to }
}

export const requestCommands: readonly CommandDefinition[] = [listRequests, showRequest, explain, usage]
