// `tollgate requests`: what was asked, where it went, what it cost; as a list, as a live tail, or one of them.

import { type CommandContext, type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { explainText } from '../explain-text.ts'
import { findProject, findWorkspace } from '../find-things.ts'
import { type JsonObject, numberAt, objectOf, objectsOf, shownAt, textAt, textsOf } from '../json-members.ts'
import { projectNames } from '../names.ts'
import { listLimitOption, readListLimit } from '../read-values.ts'
import { orListedBy, Refusal } from '../refusal.ts'
import { shownCount, shownMs, shownTime, shownUsd } from '../shown-values.ts'
import { type Column, cleanText, padded, renderFacts, renderTable } from '../table.ts'

const right = 'right' as const
const columns: readonly Column[] = [
  { title: 'TIME (UTC)' },
  { title: 'STATUS', align: right },
  { title: 'MODEL' },
  { title: 'VIA' },
  { title: 'TRIES', align: right },
  { title: 'IN', align: right },
  { title: 'OUT', align: right },
  { title: 'TTFT', align: right },
  { title: 'TOTAL', align: right },
  { title: 'COST', align: right },
  { title: 'REQUEST' },
]
/** A tail cannot know how wide later rows will be. */
const tailWidths = [19, 6, 28, 12, 5, 8, 7, 9, 9, 13, 0]
const pollMs = 1000
/** More than that in one second is told in part; a log, not a tail, is for that. */
const pollRows = 200
const seenMax = 2000

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
    follow: { help: 'goes on until Ctrl-C; with --json one object per line' },
  },
  examples: ['tollgate requests', 'tollgate requests --key key_… --limit 100', 'tollgate requests --follow'],
  async run(context, input) {
    const limit = readListLimit(input)
    if (limit instanceof Refusal) return limit
    const [workspace, project] = [input.text('workspace'), input.text('project')]
    const workspaceId = workspace === undefined ? undefined : await findWorkspace(context.api, workspace)
    if (workspaceId instanceof Refusal) return workspaceId
    const projectId = project === undefined ? undefined : await findProject(context.api, project, workspaceId)
    if (projectId instanceof Refusal) return projectId
    const query = {
      workspace_id: workspaceId,
      project_id: projectId,
      key_id: input.text('key'),
      model: input.text('model'),
    }
    if (input.isSet('follow')) return await follow(context, query, limit)
    const list = await context.api.list('/api/requests', query, limit)
    if (list instanceof Refusal) return list
    if (context.json) return printJson(context, list)
    context.terminal.print(renderTable(columns, list.data.map(cells), context.terminal))
    if (list.data.length === 0) context.terminal.complain(nothingText(input))
    return undefined
  },
}

/** Which of what was asked for may be wrong: the filters take what nothing has without a word. */
function nothingText(input: CommandInput): string {
  const filters = ['workspace', 'project', 'key', 'model'].filter((name) => input.isSet(name))
  if (filters.length === 0) return 'No requests yet.\n'
  const asked = filters.map((name) => `--${name} ${cleanText(input.text(name) ?? '')}`).join(' ')
  const listing = input.isSet('model') ? ' Ids of models: tollgate models' : ''
  return `No request fits ${asked}: none was made, retention has removed it, or the id is another.${listing}\n`
}

function cells(request: JsonObject): string[] {
  const usage = objectOf(request.usage)
  return [
    shownTime(textAt(request, 'started_at')),
    shownStatus(request),
    shownModel(request),
    shownAt(request, 'provider'),
    String(objectsOf(request.attempts).length),
    shownCount(inputTokens(usage)),
    shownCount(numberAt(usage, 'output_tokens')),
    shownMs(numberAt(request, 'first_event_ms')),
    shownMs(numberAt(request, 'total_ms')),
    shownUsd(textAt(request, 'cost')),
    shownAt(request, 'id'),
  ]
}

/** A stream that failed after its headers were sent has status 200, so its code is shown too. */
function shownStatus(request: JsonObject): string {
  const [status, code] = [shownAt(request, 'status'), textAt(request, 'code')]
  return code !== undefined && status === '200' ? `200 ${code}` : status
}

/** A count of tokens costs nothing and has no usage; it says that it is one. */
function shownModel(request: JsonObject): string {
  const [model, path] = [textAt(request, 'model'), shownAt(request, 'path')]
  if (model === undefined) return path
  return path.endsWith('/count_tokens') ? `${model} (count_tokens)` : model
}

const inputKinds = ['input_tokens', 'cache_read_tokens', 'cache_write_tokens', 'cache_write_1h_tokens']

/** Cached or not; undefined where there is no usage. */
function inputTokens(usage: JsonObject): number | undefined {
  const counts = inputKinds.flatMap((kind) => numberAt(usage, kind) ?? [])
  return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0)
}

/** Asks again and again. Rows are written when requests end, so ids seen are remembered, not just the newest one. */
async function follow(
  context: CommandContext,
  query: Readonly<Record<string, string | undefined>>,
  limit: number,
): Promise<Refusal | undefined> {
  let seen: ReadonlySet<string> | undefined
  for (;;) {
    // As many at first as later, so that what is old is known to be so, though not all of it is shown.
    const list = await context.api.list('/api/requests', query, Math.max(limit, pollRows))
    if (list instanceof Refusal) return list
    if (!seen && !context.json) context.terminal.print(tailLine(columns.map(({ title }) => title)))
    const known = seen
    const fresh = known ? list.data.filter((request) => !known.has(shownAt(request, 'id'))) : list.data.slice(0, limit)
    for (const request of fresh.toReversed()) {
      context.terminal.print(context.json ? `${JSON.stringify(request)}\n` : tailLine(cells(request)))
    }
    seen = new Set([...(seen ?? []), ...list.data.map((request) => shownAt(request, 'id'))].slice(-seenMax))
    await Bun.sleep(pollMs)
  }
}

function tailLine(texts: readonly string[]): string {
  const padding = texts.map((text, at) => padded(cleanText(text), tailWidths[at] ?? 0, columns[at]?.align))
  return `${padding.join('  ').trimEnd()}\n`
}

const showRequest: CommandDefinition = {
  words: ['requests', 'show'],
  summary: 'shows one request: candidates and why, attempts, usage, charge',
  positionals: [{ name: 'ID', prefix: 'req_' }],
  examples: ['tollgate requests show req_…'],
  async run(context, input: CommandInput) {
    const path = `/api/requests/${encodeURIComponent(input.positionals[0] ?? '')}`
    const request = orListedBy(await context.api.call({ path }), 'tollgate requests')
    if (request instanceof Refusal) return request
    if (context.json) return printJson(context, request)
    const asker = await askerText(context, request)
    context.terminal.print(`${factsText(request, asker)}\n${explainText(request).text}`)
    return undefined
  },
}

/** `ci (key_…) of web`: the log has ids, and people know names. */
async function askerText({ api }: CommandContext, request: JsonObject): Promise<string> {
  const keyId = shownAt(request, 'key_id')
  const key = await api.call({ path: `/api/keys/${encodeURIComponent(keyId)}` })
  const name = key instanceof Refusal ? undefined : textAt(key, 'name')
  const projectName = await projectNames(api, [request])
  return `${name === undefined ? keyId : `${name} (${keyId})`} of ${projectName(shownAt(request, 'project_id'))}`
}

function factsText(request: JsonObject, asker: string): string {
  const code = textAt(request, 'code')
  const [warnings, notes] = [textsOf(request.warnings), textsOf(request.notes)]
  return renderFacts([
    ['time', `${shownTime(textAt(request, 'started_at'))} UTC`],
    ['status', `${shownAt(request, 'status')}${code === undefined ? '' : ` ${code}`}`],
    ['reason', textAt(request, 'reason')],
    ['path', `${shownAt(request, 'path')}${request.stream === true ? ', streamed' : ''}`],
    ['model', shownAt(request, 'model')],
    ['upstream', textAt(request, 'upstream_model')],
    ['lane', textAt(request, 'lane')],
    ['key', asker],
    ['client', textAt(request, 'client')],
    ['first event', shownMs(numberAt(request, 'first_event_ms'))],
    ['total', shownMs(numberAt(request, 'total_ms'))],
    ['warnings', warnings.length === 0 ? undefined : warnings.join('; ')],
    ['notes', notes.length === 0 ? undefined : notes.join('; ')],
  ])
}

export const requestCommands: readonly CommandDefinition[] = [listRequests, showRequest]
