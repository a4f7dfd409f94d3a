// `npm run compatibility`: runs every fixture on every pair and writes what became of it to docs/compatibility.md. The
// section between the clients' marks is kept as it is. compatibility.test.ts fails when the text is stale, and
// requests.test.ts, replies.test.ts and faults.test.ts when the tables are: they run the same fixtures anyway.

import { join } from 'node:path'
import { answerHello } from '../parts/upstream-words.ts'
import { openStage, type Pair, pairs, replyPairs, type Stage } from './cells.ts'
import { readFault } from './fault-cells.ts'
import { type FaultFixture, type FaultOutcome, faultFixtures } from './replies/faults.ts'
import { replyFixtures } from './replies/index.ts'
import type { Mode } from './replies/read-reply.ts'
import type { ReplyFixture } from './replies/reply-fixture.ts'
import { cellOfReadings, readings } from './reply-cells.ts'
import { type Cell, requestCell } from './request-cells.ts'
import { requestFixtures } from './requests/index.ts'
import type { RequestFixture } from './requests/request-fixture.ts'

export const pagePath = join(import.meta.dir, '../../docs/compatibility.md')

const intro = `# Compatibility

How each request feature and each kind of answer is carried between the four dialects of callers and providers:
\`chat\` is OpenAI's Chat Completions, \`messages\` is Anthropic's Messages, \`gemini\` is Google's generateContent,
\`responses\` is OpenAI's Responses. Every cell is the result of a real request through the gateway; \`npm run compatibility\`
writes this page, and a test fails if it is out of date.

| | |
|---|---|
| **P** | passed through or translated without loss |
| **E** | emulated by the gateway, because the other side has no equivalent |
| **W** | dropped or approximated, with this code in the header \`x-tollgate-warnings\` (with \`x-tollgate-strict: true\` it is a 400 instead) |
| **R** | rejected with a 400 \`INVALID_REQUEST\` that names the field, before any provider is called |
| **–** | does not exist on this surface |
`

const requestsIntro = `## Requests

Surface → provider. Within one dialect the caller's bytes are forwarded, so everything arrives except features that would
cost more than the model's price. Otherwise the result depends on what the model supports. Translations between
callers' dialects are shown for two models; \`plain-1\` stands for an unknown model at a compatible host. Models of
OpenAI's own API that reject tools with reasoning on \`chat\` are called through \`responses\` if a request needs both.

Within one dialect these are the only changes. In requests: the model's name; an output cap that is missing, or higher than
the model's maximum or what the wallet covers; a request for usage in streams; \`prompt_cache_key\`, added for a
[session](reference/prompt-caching.md#cache-keys) or removed where the provider rejects it; names and roles that the
provider spells differently; on \`messages\`, the media type of an image that does not match its content; ids of tool calls in the form that the model accepts, and a short assistant message between
a tool result and a user message, for models that require it; reasoning that only this gateway or another provider can
read; members that choose routes; the [service tier](reference/service-tiers.md), in the words of the host; and tools and models
that the price does not cover. In answers:
the model's id, the usage with its cost, and \`id:\` and \`retry:\` lines of streams, which are removed.
`

const repliesIntro = `## Answers

Provider → surface, streamed and not, checked by a strict parser and by the official clients (\`openai\` 7
and 6, \`@anthropic-ai/sdk\` 1 and 0; for \`gemini\` by the parser only): text, calls with their ids and arguments, stop reason, usage and cost are the same in
all cells of a row.
`

const faultsIntro = `## When a provider fails

With one route, and the same for all dialects of providers. Where a 404 and a 503 are listed, the 404 is that of
\`/v1/chat/completions\` and \`/v1/messages\`. After a failure before the first content, the model's
other routes are tried first; callers do not notice.
`

const openResponses = `## Open Responses

\`/v1/responses\` follows [Open Responses](https://www.openresponses.org) (2026-04-24) over HTTP and WebSockets on every model that is translated and
on the sandbox: every required member of a response in its type, whole and in every event that carries the response, a final
\`[DONE]\`, and \`/v1/responses/compact\`. Replies of providers that speak the API themselves are passed on as they are; OpenAI's
have all members. Unknown input items, extensions (\`slug:type\`) included, are dropped with \`item_dropped\` where the provider
speaks another API; unknown tools are rejected.

Where the standard and OpenAI's clients differ, the clients keep working:

| | standard | here |
|---|---|---|
| HTTP members in a WebSocket message (\`stream\`) | rejected | \`stream\` is accepted, because Codex sends it |
| a stream that the gateway breaks off | \`response.failed\`, \`[DONE]\` | \`response.failed\` alone, as on Chat Completions |
| readable reasoning of a provider of this API | \`response.reasoning.delta\` | OpenAI's \`response.reasoning_text.delta\`, as the provider sends it; translated reasoning is a summary in both |
| \`text.format\` by JSON schema | \`schema\` is null | the schema, as OpenAI repeats it |
| errors without a stream | \`error\` with a \`code\` of the standard | OpenAI's form with [our codes](errors.md) |
| tools in a response | functions | every tool that was sent, also \`custom\` and \`namespace\` |
| \`presence_penalty\`, \`frequency_penalty\` | applied | dropped with \`field_dropped\` on translated models; the response says 0 |
`

const batches = `## Batches and files

[Batches](reference/batches.md) of OpenAI's and Anthropic's APIs run on every model, once the operator has switched them on, and
their official clients work without changes. What is special here:

| | here |
|---|---|
| price of a line | that of other requests, or the price for batches where the provider runs it |
| \`/v1/files\` | only \`purpose=batch\`; others are a 400 |
| \`endpoint\` of \`/v1/batches\` | \`/v1/chat/completions\`, \`/v1/responses\` or \`/v1/embeddings\` |
| \`completion_window\` | only \`24h\` |
| a batch that the wallet or a spend limit does not cover | 402 or 429 when it is created |
| a wallet or a limit that is used up later | the batch waits, and expires after 24 hours |
| where lines run | one by one, or in a batch of their provider if the operator has [named it](reference/batches.md#at-the-provider) |
| results | kept for 7 days ([\`batches.output_days\`](reference/configuration.md#batches)), and then deleted |
| \`stream\` in a line | refused |
| ids of other workspaces | 404 on every path |
`

const clientsMarks = ['<!-- clients -->', '<!-- /clients -->'] as const
const clientsDefault = `${clientsMarks[0]}\n${clientsMarks[1]}`

const sections = { requests: requestsIntro, replies: repliesIntro, faults: faultsIntro } as const
export type TableName = keyof typeof sections

/** `before` is the page as it is, for the section that is written by hand. */
export function pageOf(tables: Readonly<Record<TableName, string>>, before: string): string {
  const written = Object.entries(sections).flatMap(([name, text]) => [text, tables[name as TableName]])
  return `${[intro, ...written, openResponses, batches, '## Clients\n', keptClients(before)].join('\n')}\n`
}

/** The table that a page has below the text of its section; '' if that text is not there. */
export function tableIn(page: string, name: TableName): string {
  const [, after = ''] = page.split(`${sections[name]}\n`)
  return after.slice(0, after.indexOf('\n## '))
}

export function keptClients(before: string): string {
  const [open, close] = clientsMarks
  const from = before.indexOf(open)
  const to = before.indexOf(close)
  return from === -1 || to < from ? clientsDefault : before.slice(from, to + close.length)
}

export async function requestsTable(cellOf: (pair: Pair, fixture: RequestFixture) => Promise<Cell>): Promise<string> {
  const isTranslated = ({ surface, upstream }: Pair): boolean => surface !== upstream
  const titles = pairs.map((pair) => {
    const way = `${pair.surface} → ${pair.upstream}`
    return isTranslated(pair) ? `${way} \`${pair.upstreamModel}\`` : way
  })
  const rows: string[][] = []
  for (const [group, fixtures] of requestFixtures) {
    rows.push([`**${group}**`, ...pairs.map(() => '')])
    for (const fixture of fixtures) {
      const cells: Cell[] = []
      for (const pair of pairs) cells.push(await cellOf(pair, fixture))
      rows.push([fixture.feature, ...cells.map(showCell)])
    }
  }
  return table(['', ...titles], rows)
}

export async function repliesTable(cellOf: (pair: Pair, fixture: ReplyFixture) => Promise<Cell>): Promise<string> {
  const titles = replyPairs.map(({ upstream, surface }) => `${upstream} → ${surface}`)
  const rows: string[][] = []
  for (const fixture of replyFixtures) {
    const cells: Cell[] = []
    for (const pair of replyPairs) cells.push(await cellOf(pair, fixture))
    rows.push([fixture.feature, ...cells.map(showCell)])
  }
  return table(['', ...titles], rows)
}

export async function faultsTable(
  outcomeOf: (pair: Pair, fixture: FaultFixture, mode: Mode) => Promise<FaultOutcome>,
): Promise<string> {
  const rows: string[][] = []
  for (const fixture of faultFixtures) {
    const outcomes = [new Set<string>(), new Set<string>()] as const
    for (const pair of replyPairs) {
      outcomes[0].add(await outcomeOf(pair, fixture, { stream: true }))
      outcomes[1].add(await outcomeOf(pair, fixture, { stream: false }))
    }
    rows.push([fixture.feature, ...outcomes.map((set) => [...set].map(showOutcome).join(' or '))])
  }
  return table(['', 'streamed request', 'unstreamed request'], rows)
}

function showOutcome(outcome: string): string {
  const [status, code] = outcome.split(' ')
  return status === 'stream' ? `an error event, \`${code}\`, and no final event` : `${status} \`${code}\``
}

function showCell({ mark, notes }: Cell): string {
  return [mark, ...notes.map((note) => `\`${note}\``)].join(' ')
}

function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return line(titles) + line(titles.map(() => '---')) + rows.map(line).join('')
}

async function allTables(stage: Stage): Promise<Record<TableName, string>> {
  return {
    requests: await requestsTable((pair, fixture) => requestCell(stage, pair, fixture, { stream: true })),
    replies: await repliesTable(async (pair, fixture) =>
      cellOfReadings(pair, fixture, await readings(stage, pair, fixture)),
    ),
    faults: await faultsTable(async (pair, fixture, mode) => (await readFault(stage, pair, fixture, mode)).outcome),
  }
}

if (import.meta.main) {
  const file = Bun.file(pagePath)
  const stage = await openStage(answerHello)
  await Bun.write(pagePath, pageOf(await allTables(stage), (await file.exists()) ? await file.text() : ''))
  await stage.stop()
  console.log(`wrote ${pagePath}`)
  process.exit(0)
}
