/** @jsxImportSource preact */
// One request: its charge line by line, its attempts, the routes that were considered, and warnings.

import { type ComponentChildren, Fragment } from 'preact'
import { buckets } from '../../../kernel/usage.ts'
import { countOf, exactCount, shortMs, usdText } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import type { RequestDetails } from '../api.ts'
import { CodeBlock, CopyButton, Facts } from '../components.tsx'
import { useApi } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Amount, Card, NameOf, Outcome, QueryView } from './components.tsx'
import { Moment } from './context.tsx'

export function RequestView({ subject, address }: ConsoleData) {
  const query = useApi('getRequest', { id: subject })
  return (
    <>
      <p class="id">
        <code>{subject}</code>
        <CopyButton text={subject} what="request id" />
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
      <Facts class="facts-grid" facts={factsOf(request)} />
      <Card title="Charge">
        <Charge {...request} />
      </Card>
      <Card title="Attempts">
        <Attempts {...request} />
      </Card>
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
    ['Model', request.model ?? 'unknown'],
    ['Provider', providerText(request)],
    ['Endpoint', <Endpoint key="endpoint" {...request} />],
    ['Format', lane === null ? 'none' : (formats[lane] ?? lane)],
    ['First token', request.first_event_ms === null ? 'none' : shortMs(request.first_event_ms)],
    ['Duration', shortMs(request.total_ms)],
    ['Output', usage ? countOf(usage.output_tokens, 'token') : 'none'],
    ['Client', request.client ?? 'unknown'],
    ['Key', requestsOf('Key', key_id)],
    ['Project', requestsOf('Project', project_id)],
  ] as const
}

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
        Tokens {usage?.source === 'estimated' ? 'estimated (the provider reported none)' : 'reported by the provider'}
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

/** A write-off is not paid from the wallet. */
function transferText({ kind, direction }: RequestDetails['transfers'][number]): string {
  if (kind === 'writeoff') return 'from the operator’s losses'
  return direction === 'out' ? 'out of the wallet' : 'into the wallet'
}

function noChargeText({ cost, usage, code }: RequestDetails): string {
  if (cost !== null) return `${usdText(cost)} was charged without a catalog price.`
  return code !== null && usage === null
    ? 'Nothing was charged: no provider returned an answer.'
    : 'Nothing was charged for this request.'
}

type AttemptRow = RequestDetails['attempts'][number] & { readonly from: number; readonly scale: number }

const barWidth = 400

const attemptColumns: readonly Column<AttemptRow>[] = [
  {
    label: 'Attempt',
    show: ({ provider, upstream_model: model }) => (
      <>
        {provider} <code>{model}</code>
      </>
    ),
  },
  { label: 'Outcome', show: ({ outcome }) => outcome },
  { label: 'Response after', isNumber: true, show: ({ ms }) => shortMs(ms) },
  {
    label: 'Timeline',
    show: ({ outcome, ms, from, scale }) => (
      <svg viewBox={`0 0 ${barWidth} 10`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
        <rect
          class={outcome === 'ok' ? 'ok' : 'failed'}
          x={from * scale}
          y="0"
          width={Math.max(2, ms * scale)}
          height="10"
        />
      </svg>
    ),
  },
]

/** The attempts in order, on one time scale. */
function Attempts({ attempts, total_ms: totalMs }: RequestDetails) {
  if (attempts.length === 0) return <p>No provider was called.</p>
  const spent = attempts.reduce((sum, { ms }) => sum + ms, 0)
  const scale = barWidth / Math.max(spent, totalMs, 1)
  let elapsed = 0
  const rows = attempts.map((attempt) => {
    const row = { ...attempt, from: elapsed, scale }
    elapsed += attempt.ms
    return row
  })
  return (
    <DataTable
      class="compact-table waterfall"
      caption="Attempts in order, with the time until each response"
      columns={attemptColumns}
      rows={rows}
      keyOf={({ from, provider, upstream_model: model }) => `${from} ${provider} ${model}`}
    />
  )
}
