/** @jsxImportSource preact */
// One request: its charge line by line, its attempts, the routes that were considered, and warnings.

import { type ComponentChildren, Fragment } from 'preact'
import { buckets } from '../../../kernel/usage.ts'
import { countOf, exactCount, shortMs, usdText } from '../../catalog/format.ts'
import { type RequestDetails, withQuery } from '../api.ts'
import { CodeBlock, CopyButton, Facts } from '../components.tsx'
import { useApi } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Amount, Card, causeText, NameOf, Outcome, QueryView } from './components.tsx'
import { Moment } from './context.tsx'

/** On its own page, or in a panel beside the list. */
export function RequestView({ id, address }: { readonly id: string; readonly address: string }) {
  const query = useApi('getRequest', { id })
  return (
    <>
      <p class="id">
        <code>{id}</code>
        <CopyButton text={id} what="request id" />
      </p>
      <QueryView what="the request" query={query}>
        {(request) => <Details request={request} address={address} />}
      </QueryView>
    </>
  )
}

function Details({ request, address }: { readonly request: RequestDetails; readonly address: string }) {
  const { id, reason, warnings, notes, candidates } = request
  const messages = [...warnings, ...notes]
  return (
    <>
      {reason !== null && (
        <p class="warning" role="note">
          {reason}
        </p>
      )}
      <Facts facts={factsOf(request)} />
      <div class="request-columns">
        <Card title="Attempts">
          <Attempts {...request} />
        </Card>
        <Card title="Charge">
          <Charge {...request} />
        </Card>
      </div>
      <Card title="Routes considered">
        {candidates.length === 0 && <p>None.</p>}
        <ol>
          {candidates.map(({ provider, upstream_model: model, why }, at) => (
            <li key={at}>
              {provider} <code>{model}</code>
              {why !== null && <span class="muted">: {why}</span>}
            </li>
          ))}
        </ol>
      </Card>
      {messages.length > 0 && (
        <Card title="Warnings">
          <ul>
            {messages.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </Card>
      )}
      <Card title="Open in CLI or API">
        <CodeBlock code={`tollgate explain ${id}`} what="command" />
        <CodeBlock
          code={`curl ${address}/api/requests/${id} -H "Authorization: Bearer $TOLLGATE_ADMIN_TOKEN"`}
          what="API request"
        />
      </Card>
    </>
  )
}

const formats: Readonly<Record<string, string>> = { bytes: 'passed through', translation: 'translated' }

function factsOf(request: RequestDetails) {
  const { usage, lane, key_id, project_id } = request
  return [
    ['Outcome', <Outcome key="outcome" {...request} />],
    ['Started', <Moment key="started" at={request.started_at} />],
    ['Model', request.model ?? request.requested_model ?? 'unknown'],
    ...(request.cause === null ? [] : [['Cause', causeLink(request.cause)] as const]),
    ['Provider', providerText(request)],
    ['Endpoint', <Endpoint key="endpoint" {...request} />],
    ['Format', lane === null ? 'none' : (formats[lane] ?? lane)],
    ['First token', request.first_event_ms === null ? 'none' : shortMs(request.first_event_ms)],
    ['Duration', shortMs(request.total_ms)],
    ['Output', usage ? countOf(usage.output_tokens, 'token') : 'none'],
    ['Client', request.client ?? 'unknown'],
    ...attributionFacts(request),
    ['Key', requestsOf('Key', key_id)],
    ['Project', requestsOf('Project', project_id)],
  ] as const
}

/** What the client says the request is for, each with a link to the other requests for it. */
function attributionFacts({ session, agent, end_user: user, tags }: RequestDetails) {
  const linked = (name: string, text: string) => (
    <a key={text} href={withQuery('/console/requests', { [name]: text })}>
      {text}
    </a>
  )
  const tagTexts = Object.entries(tags).map(([name, value]) => `${name}=${value}`)
  const facts = [
    ['Session', session !== null && linked('session', session)],
    ['Agent', agent !== null && linked('agent', agent)],
    ['End user', user !== null && linked('user', user)],
    ['Tags', tagTexts.length > 0 && <span class="row">{tagTexts.map((tag) => linked('tag', tag))}</span>],
  ] as const
  return facts.flatMap(([name, shown]) => (shown === false ? [] : [[name, shown] as const]))
}

const causeLink = (cause: string) => <a href={withQuery('/console/requests', { cause })}>{causeText(cause)}</a>

const requestsOf = (kind: 'Key' | 'Project', id: string) => (
  <a href={`/console/requests?${kind.toLowerCase()}=${id}`}>
    <NameOf kind={kind} id={id} />
  </a>
)

/** Allows a line break before each slash, so that no word is broken. */
function Endpoint({ path, stream }: RequestDetails) {
  return (
    <>
      {path.split(/(?=\/)/).map((part, place) => (
        <Fragment key={`${place} ${part}`}>
          {place > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
      {stream && ', streamed'}
    </>
  )
}

/** The provider that answered; one that only failed is listed under the attempts. */
function providerText({ provider, upstream_model: model, code, attempts }: RequestDetails): string {
  const hasAnswer = code === null || attempts.some(({ outcome }) => /^(ok|interrupted)/.test(outcome))
  return hasAnswer && provider !== null ? `${provider} ${model ?? ''}` : 'none'
}

interface ChargeRow {
  readonly name: ComponentChildren
  readonly calculation: string
  readonly amount: ComponentChildren
}

const chargeColumns: readonly Column<ChargeRow>[] = [
  { label: 'Kind', show: ({ name }) => name },
  { label: 'Count × price per million', isNumber: true, show: ({ calculation }) => calculation },
  { label: 'Amount', isNumber: true, show: ({ amount }) => amount },
]

/** Count × price of every kind, to the last digit, with what was held and released. */
function Charge(request: RequestDetails) {
  const { charge, transfers, usage, held } = request
  if (!charge) return <p>{noChargeText(request)}</p>
  const rows: ChargeRow[] = charge.lines.map(({ kind, tokens, price_per_million: price, amount }) => ({
    name: buckets[kind].label,
    calculation: `${exactCount(tokens)} × ${usdText(price)}`,
    amount: <Amount usd={amount} />,
  }))
  if (Number(charge.written_off) > 0) {
    const amount = <Amount usd={`-${charge.written_off}`} />
    rows.push({ name: 'Written off: exceeded the balance', calculation: '', amount })
  }
  const total = (
    <strong data-charge={charge.charged}>
      <Amount usd={charge.charged} />
    </strong>
  )
  rows.push({ name: <strong>Total charge</strong>, calculation: '', amount: total })
  return (
    <>
      <DataTable
        class="compact-table charge-table"
        caption="The charge by kind of token"
        columns={chargeColumns}
        rows={rows}
        keyOf={(row) => String(rows.indexOf(row))}
      />
      {transfers.map((transfer) => (
        <p key={transfer.id}>
          The {transfer.kind} <code>{transfer.id}</code> moved <Amount usd={transfer.amount} /> {transferText(transfer)}
          , <Moment at={transfer.created_at} />.
        </p>
      ))}
      <p class="hint">
        Tokens{' '}
        {usage?.source === 'estimated'
          ? 'estimated (the provider reported none, or an implausible number)'
          : 'reported by the provider'}
        {usage?.us_only === true && ', processed in the United States only'}
        {usage?.reasoning_tokens != null && `, ${exactCount(usage.reasoning_tokens)} of the output for reasoning`}. The
        sum is rounded up once, to a billionth of a dollar.{' '}
        {held !== null && (
          <>
            Held before the request: <Amount usd={held} />; released: <Amount usd={charge.released} />.{' '}
          </>
        )}
        Price <code>{charge.price_version}</code>, {charge.price_source}, since{' '}
        <Moment at={charge.price_effective_from} />.
      </p>
    </>
  )
}

function transferText({ direction }: RequestDetails['transfers'][number]): string {
  if (direction === 'none') return 'at the operator’s expense'
  return direction === 'out' ? 'out of the wallet' : 'into the wallet'
}

function noChargeText({ cost, usage, code }: RequestDetails): string {
  if (cost !== null) return `The workspace’s own provider key was used; ${usdText(cost)} was charged.`
  return code !== null && usage === null
    ? 'Nothing was charged: no provider returned an answer.'
    : 'Nothing was charged for this request.'
}

const [barWidth, barHeight] = [600, 14]
/** Some pixels where the timeline is narrow. */
const barMin = barWidth / 40

interface Span {
  readonly name: string
  readonly note: string
  readonly from: number
  readonly to: number
  readonly look: 'ok' | 'failed' | 'rest'
}

/** One time axis: every attempt until it answered or failed, then the answer until its end. */
function spansOf({ attempts, total_ms: total, first_event_ms: first }: RequestDetails): readonly Span[] {
  let elapsed = 0
  const spans = attempts.map(({ provider, upstream_model: model, outcome, start_ms: start, ms }): Span => {
    const from = start ?? elapsed
    elapsed = from + ms
    return { name: `${provider} ${model}`, note: outcome, from, to: elapsed, look: outcome === 'ok' ? 'ok' : 'failed' }
  })
  if (first === null) return spans
  return [
    ...spans,
    { name: 'Answer', note: 'first token to end', from: Math.min(first, total), to: total, look: 'rest' },
  ]
}

const spanColumns = (most: number): readonly Column<Span>[] => [
  { label: 'Attempt', show: ({ name }) => name },
  { label: 'Outcome', show: ({ note }) => note },
  { label: 'From', isNumber: true, show: ({ from }) => shortMs(from) },
  { label: 'To', isNumber: true, show: ({ to }) => shortMs(to) },
  {
    label: `Timeline, 0 to ${shortMs(most)}`,
    show: ({ from, to, look }) => (
      <svg viewBox={`0 0 ${barWidth} ${barHeight}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
        {[0.25, 0.5, 0.75].map((share) => (
          <path key={share} class="axis" d={`M${share * barWidth} 0V${barHeight}`} />
        ))}
        <rect
          class={look}
          x={Math.min((from / most) * barWidth, barWidth - barMin)}
          y="2"
          width={Math.max(barMin, ((to - from) / most) * barWidth)}
          height={barHeight - 4}
        />
      </svg>
    ),
  },
]

function Attempts(request: RequestDetails) {
  const { attempts, total_ms: total } = request
  if (attempts.length === 0) return <p>No provider was called.</p>
  const spans = spansOf(request)
  const most = Math.max(total, 1, ...spans.map(({ to }) => to))
  return (
    <DataTable
      class="compact-table waterfall"
      caption="Attempts and the answer on one time axis"
      columns={spanColumns(most)}
      rows={spans}
      keyOf={(span) => String(spans.indexOf(span))}
    />
  )
}
