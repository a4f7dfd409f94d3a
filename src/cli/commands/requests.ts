// `tollgate requests`, `tollgate explain` and `tollgate usage`: requests, their routes and their cost.

import type { AnswerOf, CallOf, ItemOf } from '../../api/client.ts'
import { tagsText } from '../../kernel/attribution.ts'
import { isoTime } from '../../kernel/clock.ts'
import { totalInputInJson } from '../../kernel/usage.ts'
import type { CommandContext, CommandDefinition } from '../command.ts'
import { explainText } from '../explain-text.ts'
import { projectNames } from '../lookup.ts'
import { answerCommand, downloadCommand, listCommand, listLimitOption, workspaceFilter } from '../operation-command.ts'
import { exitCodes, ifPossible, Refusal, usageRefusal } from '../refusal.ts'
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
  type TitledColumn,
} from '../values.ts'

type LoggedRequest = ItemOf<'listRequests'>

const columns: readonly TitledColumn<LoggedRequest>[] = [
  ['TIME (UTC)', ({ started_at }) => shownTime(started_at)],
  // A stream that failed after its headers were sent has status 200, so its code is shown too.
  ['STATUS', ({ status, code }) => (status === 200 && code ? `200 ${code}` : status), 'right'],
  ['MODEL', shownModel],
  ['VIA', ({ provider }) => provider],
  ['TRIES', ({ attempts }) => attempts.length, 'right'],
  ['IN', ({ usage }) => shownCount(usage ? totalInputInJson(usage) : undefined), 'right'],
  ['OUT', ({ usage }) => shownCount(usage?.output_tokens), 'right'],
  ['TTFT', ({ first_event_ms }) => shownMs(first_event_ms), 'right'],
  ['TOTAL', ({ total_ms }) => shownMs(total_ms), 'right'],
  ['COST', ({ cost }) => shownUsd(cost), 'right'],
  ['REQUEST', ({ id }) => id],
]

/** Token counts cost nothing and have no usage, so they are marked. */
function shownModel({ model, requested_model: wanted, path }: LoggedRequest): string {
  if (model === null) return wanted ?? path
  return path.endsWith('/count_tokens') ? `${model} (count_tokens)` : model
}

const filterOptions = {
  workspace: workspaceFilter('only requests of this workspace'),
  project: { value: 'ID', help: 'only requests of this project', field: 'project_id', find: 'project' },
  key: { value: 'ID', help: 'only requests of this key', field: 'key_id', find: 'key' },
  model: { value: 'ID', help: 'only requests for this model', field: 'model' },
  session: { value: 'ID', help: 'only requests of this session', field: 'session' },
  agent: { value: 'NAME', help: 'only requests of this client, such as claude-cli', field: 'agent' },
  user: { value: 'ID', help: 'only requests of this end user', field: 'end_user' },
  tag: { value: 'NAME=VALUE', help: 'only requests with this tag', field: 'tag' },
} as const

const listRequests = listCommand({
  words: ['requests', 'list'],
  isDefault: true,
  summary: 'lists requests, newest first; with --follow as they end',
  examples: ['tollgate requests', 'tollgate requests --key key_… --sort cost', 'tollgate requests --follow'],
  operation: 'listRequests',
  options: {
    ...filterOptions,
    batch: { value: 'ID', help: 'only the lines of this batch', field: 'batch_id' },
    sort: {
      value: 'FIELD',
      help: 'started_at, total_ms, first_event_ms, input_tokens, output_tokens or cost',
      field: 'sort',
    },
    order: { value: 'WORD', help: 'desc, highest or newest first, or asc (desc)', field: 'order' },
    limit: listLimitOption,
    follow: { help: 'continue until Ctrl-C; with --json one object per line' },
  },
  columns,
  check({ isSet }) {
    if (!isSet('follow') || !(isSet('sort') || isSet('order'))) return
    throw usageRefusal('--follow prints requests as they end, so it takes neither --sort nor --order.')
  },
  follow: (context, call, limit) => (context.isSet('follow') ? follow(context, call, limit) : undefined),
  /** Names the filters, because a mistyped id matches nothing without an error. */
  whenEmpty({ isSet, text }) {
    const filters = Object.keys(filterOptions).filter(isSet)
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
    ['model', request.model ?? '(no model)'],
    ['upstream', request.upstream_model ?? undefined],
    ['translation', translationText(request.lane)],
    ['key', caller],
    ['client', request.agent ?? undefined],
    ['user agent', request.client ?? undefined],
    ['session', request.session ?? undefined],
    ['batch', request.batch_id ?? undefined],
    ['end user', request.end_user ?? undefined],
    ['tags', tagsText(request.tags) || undefined],
    ['first event', shownMs(request.first_event_ms)],
    ['total', shownMs(request.total_ms)],
    ['warnings', warnings.length === 0 ? undefined : warnings.join('; ')],
    ['notes', notes.length === 0 ? undefined : notes.join('; ')],
  ])
}

/** undefined = no provider was called. */
function translationText(lane: string | null): string | undefined {
  if (lane === null) return undefined
  return lane === 'bytes' ? 'none' : 'to the API of the provider'
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

const usageOptions = {
  from: {
    value: 'TIME',
    help: 'requests that started at or after this time (30 days before the end)',
    field: 'from',
    read: readTime,
  },
  to: { value: 'TIME', help: 'requests that started before this time (now)', field: 'to', read: readTime },
  ...filterOptions,
} as const

const longSeconds = 2
/** Reports of very long logs. */
const reportTimeoutMs = 30 * 60_000

/** Says how long a report takes that reads the rows of the log. An end of this process ends the connection, and so the report. */
async function announce(
  report: 'usage' | 'margin',
  { api, terminal }: CommandContext,
  query: CallOf<'getUsage'>['query'],
): Promise<void> {
  const { format: _, ...wanted } = { format: undefined, ...query }
  const estimate = await ifPossible(api.call('estimateReport', { query: { ...wanted, report } }))
  if (!estimate || estimate.seconds < longSeconds) return
  const [rows, seconds] = [shownCount(estimate.rows), Math.round(estimate.seconds)]
  terminal.complain(`Reading ${rows} requests from the log: about ${seconds} s. Ctrl-C stops it.\n`)
  terminal.complainWhenStopped('Stopped before the report was complete.\n')
}

/** Refuses an empty period, which would look like no usage. */
function checkPeriod({ text, clock }: CommandContext): void {
  const [from, to] = [text('from'), text('to')]
  if (from === undefined) return
  // Both are in the same ISO form, so comparing the texts compares the times.
  const now = clock.now()
  const start = readTime(from, '--from', now)
  const end = to === undefined ? isoTime(now) : readTime(to, '--to', now)
  if (start < end) return
  const shownEnd = to === undefined ? `now, ${end}` : `--to, ${end}`
  throw usageRefusal(`there is nothing between --from, ${start}, and ${shownEnd}: --from must be earlier.`)
}

const usage = downloadCommand({
  words: ['usage', 'export'],
  isDefault: true,
  summary: 'prints tokens and cost as CSV, summed up by day and model or by other groups',
  details: `One line for each combination; amounts are exact and in USD. Requests that retention has removed are included only
where sums have the answer: docs/reference/attribution.md. Groups: day, workspace, project, key, person (who owns the key), group, model, provider, route, session, agent, user, tag:NAME.
An empty cell: the requests have none. By group, a request has a line in each group that its key or person is in now.`,
  examples: [
    'tollgate usage',
    'tollgate usage --by tag:team,model --json',
    'tollgate usage --by person,model',
    'tollgate usage --by session --tag team=web',
    'tollgate usage --by workspace,model --from 2026-11-01 --to 2026-12-01 > november.csv',
  ],
  operation: 'exportUsage',
  options: {
    by: { value: 'GROUPS', help: 'groups such as day,tag:team,model (day,model)', field: 'group_by' },
    ...usageOptions,
  },
  check: checkPeriod,
  announce: (context, { query }) => announce('usage', context, query),
  body: ({ json }) => ({ format: json ? ('jsonl' as const) : ('csv' as const) }),
  whenEmpty: 'No usage in that time, or retention has removed it. Other times: --from and --to\n',
})

type UsageSum = AnswerOf<'getUsage'>['groups'][number]

const cacheColumns: Columns<Omit<UsageSum, 'values' | 'names'>> = [
  ['REQUESTS', ({ requests }) => shownCount(requests), 'right'],
  ['INPUT', ({ input_tokens }) => shownCount(input_tokens), 'right'],
  ['CACHED', ({ cache_read_tokens }) => shownCount(cache_read_tokens), 'right'],
  ['WRITTEN', ({ cache_write_tokens }) => shownCount(cache_write_tokens), 'right'],
  ['HIT RATE', ({ cache_hit_rate: rate }) => (rate === null ? undefined : `${(rate * 100).toFixed(1)} %`), 'right'],
  ['COST', ({ cost }) => shownUsd(cost), 'right'],
  ['SAVED', ({ cache_saved }) => shownUsd(cache_saved), 'right'],
]

const cacheReport = answerCommand({
  words: ['usage', 'cache'],
  summary: 'shows how much input came from prompt caches, and what that saved',
  details: `Hit rate: input read from a cache ÷ all input. Saved: what the same tokens would have cost without a cache, less their price;
negative if writing to the cache cost more than reading from it saved. Groups: as in \`tollgate usage export\`; the total counts each request once.`,
  examples: [
    'tollgate usage cache',
    'tollgate usage cache --by group',
    'tollgate usage cache --by route',
    'tollgate usage cache --by session --key key_…',
  ],
  operation: 'getUsage',
  options: {
    by: { value: 'GROUPS', help: 'groups such as model, route, key or session (model)', field: 'group_by' },
    ...usageOptions,
  },
  check: checkPeriod,
  announce: (context, { query }) => announce('usage', context, query),
  timeoutMs: reportTimeoutMs,
  text: (report, context) => renderReport(report, context, 'model', cacheColumns),
})

type MarginSum = AnswerOf<'getMargin'>['total']

const marginColumns: Columns<MarginSum> = [
  ['REQUESTS', ({ requests }) => shownCount(requests), 'right'],
  ['CHARGED', ({ charged }) => shownUsd(charged), 'right'],
  ['COST', ({ upstream_cost }) => shownUsd(upstream_cost), 'right'],
  ['FAILED ATTEMPTS', ({ failed_cost }) => shownUsd(failed_cost), 'right'],
  ['MARGIN', ({ margin }) => shownUsd(margin), 'right'],
  ['CHARGED, COST UNKNOWN', ({ charged_without_cost }) => shownUsd(charged_without_cost), 'right'],
]

const marginReport = answerCommand({
  words: ['usage', 'margin'],
  summary: 'shows what was charged, what providers bill for it, and the difference',
  details: `The cost of a request is its usage at the cost of its route: \`cost\` in the configuration file, or the built-in price of a
built-in model. Charges on routes without a known cost are listed apart and not part of the margin. Failed attempts cost
what providers probably bill for them; calls on own provider keys cost nothing here. Groups: as in \`tollgate usage export\`.`,
  examples: ['tollgate usage margin', 'tollgate usage margin --by workspace,model --from 2026-11-01'],
  operation: 'getMargin',
  options: {
    by: { value: 'GROUPS', help: 'groups such as day, workspace, model, provider or route (day)', field: 'group_by' },
    ...usageOptions,
  },
  check: checkPeriod,
  announce: (context, { query }) => announce('margin', context, query),
  timeoutMs: reportTimeoutMs,
  text: (report, context) => renderReport(report, context, 'day', marginColumns),
})

interface Report<Sums> {
  readonly groups: readonly (Sums & {
    readonly values: readonly (string | null)[]
    readonly names: readonly (string | null)[]
  })[]
  readonly total: Sums
  readonly groups_left_off: number
}

/** What a group is called: the console says client too. */
function headOf(group: string): string {
  return group === 'agent' ? 'client' : group.replace(/^tag:/, '')
}

/** One line for each group, and the total. */
function renderReport<Sums>(
  { groups, total, groups_left_off: left }: Report<Sums>,
  { terminal, text }: CommandContext,
  usual: string,
  sums: Columns<Sums>,
): string {
  type Line = Report<Sums>['groups'][number]
  const by = (text('by') ?? usual).split(',')
  const columns: Columns<Line> = [
    ...by.map(
      (name, at) =>
        [
          headOf(name).toUpperCase(),
          ({ values, names }: Line) => names[at] ?? values[at] ?? `(no ${headOf(name)})`,
        ] as const,
    ),
    ...sums,
  ]
  const sum: Line = { ...total, values: by.map(() => ''), names: by.map((_, at) => (at === 0 ? 'total' : '')) }
  const rest = left === 0 ? '' : `${left} more groups are in the total.\n`
  return `${renderTable(columns, [...groups, sum], terminal)}${rest}`
}

export const requestCommands: readonly CommandDefinition[] = [
  listRequests,
  showRequest,
  explain,
  usage,
  cacheReport,
  marginReport,
]
