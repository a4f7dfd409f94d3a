// `tollgate batches`: files of requests that are answered in the background. Creating one takes an API key, which pays for it; the
// rest are calls of the management API.

import { existsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import type { AnswerOf } from '../../api/client.ts'
import { readAnswer, unreachable } from '../api-client.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { answerCommand, downloadCommand, listCommand, listLimitOption, workspaceFilter } from '../operation-command.ts'
import { exitCodes, listedBy, Refusal, tryTo, usageRefusal } from '../refusal.ts'
import { cleanText, counted, renderFacts, shownCount, shownTime, shownUsd } from '../values.ts'

type Batch = AnswerOf<'getBatch'>

const batchId = { name: 'ID', parameter: 'id' } as const
const listing = 'tollgate batches'

const done = ({ succeeded, errored, cancelled, expired }: Batch) => succeeded + errored + cancelled + expired

const barWidth = 24

/** `[██████░░░░░░░░░░░░░░░░░░] 25 %, 250 of 1,000 lines, $0.12` */
export function progressText(batch: Batch): string {
  const share = batch.total === 0 ? 1 : done(batch) / batch.total
  const full = Math.floor(share * barWidth)
  const bar = `[${'█'.repeat(full)}${'░'.repeat(barWidth - full)}]`
  const lines = `${shownCount(done(batch))} of ${shownCount(batch.total)} lines`
  return `${bar} ${Math.floor(share * 100)} %, ${lines}, ${shownUsd(batch.cost)}`
}

const waits = {
  balance: 'its wallet cannot pay for the next line: tollgate wallet topup',
  limit: 'a limit of its key, project or workspace is reached',
  provider: 'its provider does not take or report batches now; it is tried again',
} as const

const errorsShown = 10

function batchText(batch: Batch): string {
  const { errors, waits_for: waitsFor } = batch
  const facts = renderFacts([
    ['status', batch.status],
    ['waits', waitsFor === null ? undefined : waits[waitsFor]],
    ['progress', batch.status === 'failed' ? 'nothing was run' : progressText(batch)],
    ['failed', shownCount(batch.errored)],
    ['not run', batch.cancelled + batch.expired === 0 ? undefined : shownCount(batch.cancelled + batch.expired)],
    ['runs', batch.provider === null ? 'line by line' : `in batches of ${batch.provider}, at its batch price`],
    [batch.provider === null ? 'estimate' : 'held at first', shownUsd(batch.estimate)],
    ['tokens', `${shownCount(batch.input_tokens)} in, ${shownCount(batch.output_tokens)} out`],
    ['endpoint', batch.endpoint],
    ['key', batch.key_id],
    ['workspace', batch.workspace_id],
    ['created', `${shownTime(batch.created_at)} UTC`],
    ['ended', batch.ended_at === null ? undefined : `${shownTime(batch.ended_at)} UTC`],
    batch.erase_at === null
      ? ['expires', `${shownTime(batch.expires_at)} UTC`]
      : ['results until', `${shownTime(batch.erase_at)} UTC`],
    ...(errors ?? []).slice(0, errorsShown).map(({ message }) => ['error', message] as const),
    ...((errors?.length ?? 0) > errorsShown ? [['', 'more errors: --json'] as const] : []),
  ])
  return `${batch.id}\n${facts}`
}

const pollMs = 1000

/** Shows the progress until it has ended. */
async function waitForEnd({ api, terminal }: CommandContext, id: string): Promise<Batch> {
  for (;;) {
    const batch = await listedBy(listing, api.call('getBatch', { id }))
    if (batch.ended_at !== null) {
      terminal.showProgress('')
      return batch
    }
    terminal.showProgress(progressText(batch))
    await Bun.sleep(pollMs)
  }
}

const show: CommandDefinition = {
  words: ['batches', 'show'],
  summary: 'shows a batch: its status, progress and cost so far',
  details:
    'With --wait it shows the progress until the batch has ended. The exit code is then 1 unless it was completed.',
  positionals: [{ name: 'ID' }],
  options: { wait: { help: 'wait until it has ended' } },
  examples: ['tollgate batches show batch_…', 'tollgate batches show batch_… --wait'],
  async run(context) {
    const { first: id, api, isSet } = context
    const batch = isSet('wait') ? await waitForEnd(context, id) : await listedBy(listing, api.call('getBatch', { id }))
    printResult(context, batch, () => batchText(batch))
    if (!isSet('wait') || batch.status === 'completed') return
    throw new Refusal(
      exitCodes.failed,
      `the batch was not completed: ${batch.status}.`,
      `tollgate batches results ${id}`,
    )
  },
}

const create: CommandDefinition = {
  words: ['batches', 'create'],
  summary: 'creates a batch from a file of requests; the API key in TOLLGATE_KEY pays for it',
  details: `FILE has a request on each line: {"custom_id", "method": "POST", "url", "body"}. - is the standard input. Every line is
checked before the first one runs, and its estimated cost has to be in the wallet. The gateway needs batches.enabled.`,
  positionals: [{ name: 'FILE' }],
  options: { endpoint: { value: 'PATH', help: 'the path of all lines (the "url" of the first one)' } },
  examples: [
    'TOLLGATE_KEY=sk-tg-… tollgate batches create requests.jsonl',
    'tollgate batches create requests.jsonl --endpoint /v1/responses',
  ],
  async run(context) {
    const { first: path, text, json, terminal } = context
    const isFile = path !== '-'
    const place = resolve(context.inputs.cwd, path)
    if (isFile && !existsSync(place)) throw usageRefusal(`there is no file ${cleanText(path)}.`)
    const file = isFile ? Bun.file(place) : new Blob([await terminal.readInput()])
    const endpoint = text('endpoint') ?? (await firstUrl(file))
    const form = new FormData()
    form.set('purpose', 'batch')
    form.set('file', file, isFile ? basename(path) : 'requests.jsonl')
    const { id: fileId } = await callWithKey<{ id: string }>(context, '/v1/files', form)
    const order = { input_file_id: fileId, endpoint, completion_window: '24h' }
    const batch = await callWithKey<CreatedBatch>(context, '/v1/batches', JSON.stringify(order))
    if (batch.status === 'failed') throw wrongLines(batch)
    const { id, request_counts: counts } = batch
    printResult(context, batch, () => `Batch ${id} created: ${counted(counts.total, 'line')}\n`)
    if (!json) terminal.complain(`Next: tollgate batches show ${id} --wait\n`)
  },
}

interface CreatedBatch {
  readonly id: string
  readonly status: string
  readonly request_counts: { readonly total: number }
  readonly errors: { readonly data: readonly { readonly message: string }[] } | null
}

function wrongLines({ errors }: CreatedBatch): Refusal {
  const messages = (errors?.data ?? []).slice(0, errorsShown).map(({ message }) => `\n  ${cleanText(message)}`)
  return new Refusal(exitCodes.usage, `nothing was run, because lines are wrong:${messages.join('')}`)
}

/** The gateway says what is wrong with the file, if it has none. */
async function firstUrl(file: Blob): Promise<string> {
  let start = ''
  for await (const piece of file.stream()) {
    start += Buffer.from(piece).toString('latin1')
    if (start.includes('\n')) break
  }
  try {
    const { url } = JSON.parse(start.split('\n', 1)[0] ?? '') as { url?: unknown }
    if (typeof url === 'string') return url
  } catch {}
  return '/v1/chat/completions'
}

/** Of the public API. Errors are in the form that the management API has, too. */
async function callWithKey<Answer>({ settings, api }: CommandContext, path: string, body: FormData | string) {
  const attempt = 'TOLLGATE_KEY=sk-tg-…, from `tollgate keys create`'
  const { apiKey } = settings
  if (apiKey === undefined)
    throw new Refusal(exitCodes.unauthorized, 'an API key pays for a batch, and there is none.', attempt)
  const headers: Record<string, string> = { authorization: `Bearer ${apiKey.reveal()}` }
  if (typeof body === 'string') headers['content-type'] = 'application/json'
  const response = await fetch(api.url + path, { method: 'POST', headers, body, redirect: 'manual' }).catch(
    (thrown) => {
      throw unreachable(api.url, thrown)
    },
  )
  const text = await response.text()
  const answer = await tryTo((async () => readAnswer(response, text, api.url))())
  if (!(answer instanceof Refusal)) return answer as Answer
  throw response.status === 404 && path === '/v1/files'
    ? new Refusal(answer.exit, 'batches are off at this gateway.', 'TOLLGATE_BATCHES=on for the gateway')
    : new Refusal(answer.exit, answer.message, response.status === 401 ? attempt : answer.attempt)
}

export const batchCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['batches', 'list'],
    isDefault: true,
    summary: 'lists batches, newest first',
    examples: ['tollgate batches', 'tollgate batches --state running', 'tollgate batches list --json'],
    operation: 'listBatches',
    options: {
      workspace: workspaceFilter('only batches of this workspace'),
      state: { value: 'running|ended', help: 'only those that have not ended, or that have', field: 'state' },
      limit: listLimitOption,
    },
    columns: [
      'id',
      'status',
      ['LINES', ({ total }) => shownCount(total), 'right'],
      ['DONE', (batch) => shownCount(done(batch)), 'right'],
      ['FAILED', ({ errored }) => shownCount(errored), 'right'],
      ['COST', ({ cost }) => shownUsd(cost), 'right'],
      'created_at',
    ],
    whenEmpty: () => 'There are no batches. Next: tollgate batches create FILE\n',
  }),
  show,
  create,
  answerCommand({
    words: ['batches', 'cancel'],
    summary: 'cancels a batch: running lines are finished and charged, no further one is started',
    examples: ['tollgate batches cancel batch_… --yes'],
    operation: 'cancelBatch',
    arguments: [batchId],
    confirm: ({ first }) => `Cancel the batch ${cleanText(first)}?`,
    listedBy: listing,
    text: (batch) => `Batch ${batch.id} is ${batch.status}: ${progressText(batch)}\n`,
  }),
  downloadCommand({
    words: ['batches', 'results'],
    summary: 'prints the results so far, one JSON object to a line',
    details: 'Each has its custom_id. They are in the form of the API that the batch was created with.',
    examples: ['tollgate batches results batch_… > results.jsonl'],
    operation: 'exportBatch',
    arguments: [batchId],
    listedBy: listing,
  }),
]
