// `tollgate requests`, `tollgate explain` and `tollgate usage`: what was asked, where it went and what it cost.

import type { AnswerOf, CallOf, ItemOf } from '../../api/client.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { CommandContext, CommandDefinition } from '../command.ts'
import { explainText } from '../explain-text.ts'
import { projectNames } from '../lookup.ts'
import { answerCommand, downloadCommand, listCommand, listLimitOption } from '../operation-command.ts'
import { exitCodes, ifPossible, Refusal, usageRefusal } from '../refusal.ts'
import {
  type Columns,
  cleanText,
  padded,
  readTime,
  renderFacts,
  shownCount,
  shownMs,
  shownTime,
  shownUsd,
} from '../values.ts'

type LoggedRequest = ItemOf<'listRequests'>

const columns: Columns<LoggedRequest> = [
  ['TIME (UTC)', ({ started_at }) => shownTime(started_at)],
  // A stream that failed after its headers were sent has status 200, so its code is shown too.
  ['STATUS', ({ status, code }) => (status === 200 && code ? `200 ${code}` : status), 'right'],
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

const workspace = {
  value: 'ID',
  help: 'only requests of this workspace',
  field: 'workspace_id',
  find: 'workspace',
} as const

const listRequests = listCommand({
  words: ['requests', 'list'],
  isDefault: true,
  summary: 'lists requests, newest first; with --follow as they end',
  examples: ['tollgate requests', 'tollgate requests --key key_… --limit 100', 'tollgate requests --follow'],
  operation: 'listRequests',
  options: {
    workspace,
    project: { value: 'ID', help: 'only requests of this project', field: 'project_id', find: 'project' },
    key: { value: 'ID', help: 'only requests of this key', field: 'key_id' },
    model: { value: 'ID', help: 'only requests for this model', field: 'model' },
    limit: listLimitOption,
    follow: { help: 'continue until Ctrl-C; with --json one object per line' },
  },
  columns,
  follow: (context, call, limit) => (context.isSet('follow') ? follow(context, call, limit) : undefined),
  /** Names the filters, because a mistyped id matches nothing without an error. */
  whenEmpty({ isSet, text }) {
    const filters = ['workspace', 'project', 'key', 'model'].filter(isSet)
    if (filters.length === 0) return 'No requests yet.\n'
    const given = filters.map((name) => `--${name} ${cleanText(text(name) ?? '')}`).join(' ')
    const listing = isSet('model') ? ' Ids of models: tollgate models' : ''
    return `No request matches ${given}: none was made, retention has removed it, or the id is wrong.${listing}\n`
  },
})

/** The widths are fixed, because later rows are not known yet. */
const followWidths = [19, 6, 28, 12, 5, 8, 7, 9, 9, 13, 0]
const pollMs = 1000
/** If there are more in one second, only these are shown. */
const pollRows = 200
const seenMax = 2000

/** Rows are written when requests end, so all ids are remembered, not just the newest one. */
async function follow(
  { api, terminal, json }: CommandContext,
  call: CallOf<'listRequests'>,
  limit: number,
): Promise<never> {
  let seen: ReadonlySet<string> | undefined
  for (;;) {
    // As many at first as later, so that old requests are known as such though not all of them are shown.
    const { data } = await api.list('listRequests', call, Math.max(limit, pollRows))
    if (!seen && !json) terminal.print(followLine(columns.map(([title]) => title)))
    const known = seen
    const fresh = known ? data.filter(({ id }) => !known.has(id)) : data.slice(0, limit)
    for (const request of fresh.toReversed()) {
      const line = () => followLine(columns.map(([, cell]) => String(cell(request) ?? '–')))
      terminal.print(json ? `${JSON.stringify(request)}\n` : line())
    }
    seen = new Set([...(seen ?? []), ...data.map(({ id }) => id)].slice(-seenMax))
    await Bun.sleep(pollMs)
  }
}

function followLine(texts: readonly string[]): string {
  const cells = texts.map((text, at) => padded(cleanText(text), followWidths[at] ?? 0, columns[at]?.[2]))
  return `${cells.join('  ').trimEnd()}\n`
}

const showRequest = answerCommand({
  words: ['requests', 'show'],
  summary: 'shows one request: candidates and why, attempts, usage, charge',
  examples: ['tollgate requests show req_…'],
  operation: 'getRequest',
  arguments: [{ name: 'ID', prefix: 'req_', parameter: 'id' }],
  listedBy: 'tollgate requests',
  async text(request, context) {
    return `${requestFacts(request, await callerText(context, request))}\n${explainText(request).text}`
  },
})

/** `ci (key_…) of web`. */
async function callerText({ api }: CommandContext, request: AnswerOf<'getRequest'>): Promise<string> {
  const { key_id: id, project_id: projectId } = request
  const key = await ifPossible(api.call('getKey', { id }))
  const projectName = await projectNames(api, [request])
  return `${key ? `${key.name} (${id})` : id} of ${projectName(projectId)}`
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

const explain = answerCommand({
  words: ['explain'],
  summary: 'explains what one request cost, to the nano-dollar',
  details: 'The id is in the header x-request-id of every response, in the log and in `tollgate requests`.',
  examples: ['tollgate explain req_…', 'tollgate explain req_… --json'],
  operation: 'getRequest',
  arguments: [{ name: 'REQUEST_ID', prefix: 'req_', parameter: 'id' }],
  listedBy: 'tollgate requests',
  text: (request) => explainText(request).text,
  after(_context, request) {
    const { fault } = explainText(request)
    if (fault === undefined) return
    throw new Refusal(exitCodes.failed, `this charge does not add up: ${fault}.`, 'tollgate ledger verify')
  },
})

const usage = downloadCommand({
  words: ['usage', 'export'],
  isDefault: true,
  summary: 'prints tokens and cost as CSV, summed up by day and model or by other groups',
  details: `One line for each combination; amounts are exact and in USD. Requests that retention has removed are not included.
Groups: day, workspace, project, key, model, provider.`,
  examples: ['tollgate usage', 'tollgate usage --by workspace,model --from 2026-11-01 --to 2026-12-01 > november.csv'],
  operation: 'exportUsage',
  options: {
    by: { value: 'GROUPS', help: 'groups such as day,project,model (day,model)', field: 'group_by' },
    from: {
      value: 'TIME',
      help: 'requests that started at or after this time (30 days before the end)',
      field: 'from',
      read: readTime,
    },
    to: { value: 'TIME', help: 'requests that started before this time (now)', field: 'to', read: readTime },
    workspace,
  },
  check({ text, clock }) {
    const [from, to] = [text('from'), text('to')]
    if (from === undefined) return
    // Both are in the same ISO form, so comparing the texts compares the times.
    const now = clock.now()
    const start = readTime(from, '--from', now)
    const end = to === undefined ? isoTime(now) : readTime(to, '--to', now)
    if (start < end) return
    const shownEnd = to === undefined ? `now, ${end}` : `--to, ${end}`
    throw usageRefusal(`there is nothing between --from, ${start}, and ${shownEnd}: --from must be earlier.`)
  },
  body: ({ json }) => ({ format: json ? ('jsonl' as const) : ('csv' as const) }),
  whenEmpty: 'No usage in that time, or retention has removed it. Other times: --from and --to\n',
})

export const requestCommands: readonly CommandDefinition[] = [listRequests, showRequest, explain, usage]
