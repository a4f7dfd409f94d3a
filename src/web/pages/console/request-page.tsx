/** @jsxImportSource preact */
// One request: what happened and where to fix it, its charge line by line, its attempts, the routes that were considered, and
// warnings.

import type { ComponentChildren } from 'preact'
import type { OperationName } from '../../../api/endpoints.ts'
import { buckets, totalInputInJson } from '../../../kernel/usage.ts'
import { countOf, exactCount, shortMs, usdText } from '../../catalog/format.ts'
import { may } from '../../page-data.ts'
import { type RequestDetails, withQuery } from '../api.ts'
import { Amount, CopyButton, Facts, Path, SidePanel } from '../components.tsx'
import { type Query, useApi } from '../hooks.ts'
import { Markdown } from '../markdown.tsx'
import { amountColumn, type Column, DataTable } from '../table.tsx'
import { Card, causeLevel, causeText, DetailHead, NameOf, Outcome, outcomeText, QueryView } from './components.tsx'
import { Moment, useViewer } from './context.tsx'
import { useConsolePath, useTitle } from './navigation.ts'

interface RequestProps {
  readonly id: string
  readonly address: string
}

/** A request's own page. */
export function RequestPage({ id, address }: RequestProps) {
  const query = useApi('getRequest', { id })
  const to = useConsolePath()
  const title = query.value ? titleOf(query.value) : 'Request'
  useTitle(title)
  return (
    <>
      <DetailHead trail={[['Requests', to('requests')]]} title={title} />
      <RequestContent {...{ id, address, query }} />
    </>
  )
}

/** A request in a panel beside the list. */
export function RequestPanel({ id, address, onClose }: RequestProps & { onClose(): void }) {
  const query = useApi('getRequest', { id })
  const to = useConsolePath()
  return (
    <SidePanel
      title={query.value ? titleOf(query.value) : 'Request'}
      action={<a href={to(`requests/${id}`)}>Open page</a>}
      onClose={onClose}
    >
      <RequestContent {...{ id, address, query }} />
    </SidePanel>
  )
}

/** `404 · acme/legacy · no route available` */
function titleOf(request: RequestDetails): string {
  const outcome = outcomeText(request)
  return [String(request.status), modelText(request), ...(outcome === '' ? [] : [outcome])].join(' · ')
}

function modelText({ model, requested_model: wanted }: RequestDetails): string {
  return model ?? wanted ?? '(no model)'
}

function RequestContent({ id, address, query }: RequestProps & { readonly query: Query<RequestDetails> }) {
  const curlText = `curl ${address}/api/requests/${id} -H "Authorization: Bearer $TOLLGATE_ADMIN_TOKEN"`
  return (
    <>
      <p class="row">
        <span class="id">
          <code>{id}</code>
          <CopyButton text={id} what="request id" />
        </span>
        <CopyButton text={`tollgate explain ${id}`} what="command" label="Command" />
        <CopyButton text={curlText} what="API request" label="API request" />
      </p>
      <QueryView what="the request" query={query}>
        {(request) => <Details request={request} />}
      </QueryView>
    </>
  )
}

function Details({ request }: { readonly request: RequestDetails }) {
  const { warnings, notes, candidates } = request
  const messages = [...warnings, ...notes]
  return (
    <>
      <Reason request={request} />
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
        <Card title={warnings.length > 0 ? 'Warnings' : 'Notes'}>
          <ul>
            {messages.map((text) => (
              <li key={text}>
                <Markdown text={text} />
              </li>
            ))}
          </ul>
        </Card>
      )}
    </>
  )
}

/** What the caller was told, and where to change what led to it. */
function Reason({ request }: { readonly request: RequestDetails }) {
  const { reason, code } = request
  const fixes = useFixes(request)
  if (reason === null && fixes.length === 0) return null
  return (
    <div
      class={causeLevel(request.cause ?? 'ok') === 'error' ? 'warning stack tight' : 'remark stack tight'}
      role="note"
    >
      {reason !== null && <Markdown text={reason} />}
      <p class="row">
        {fixes.map(({ label, href }) => (
          <a key={href} class="button quiet small" href={href}>
            {label}
          </a>
        ))}
        {code !== null && <a href={`/docs/errors#${code.toLowerCase()}`}>About {code}</a>}
      </p>
    </div>
  )
}

interface Fix {
  readonly label: string
  readonly href: string
}

const providerCauses = ['no_route', 'routes_failed', 'provider_throttled', 'provider_refused', 'stream_interrupted']

/** Where the viewer can change what led to a failure; empty = nowhere, or they may not. */
function useFixes(request: RequestDetails): readonly Fix[] {
  const { cause, workspace_id: workspace, key_id: key, project_id: project, attempts, candidates } = request
  const viewer = useViewer()
  const to = useConsolePath()
  const fix = (operation: OperationName, label: string, path: string): readonly Fix[] =>
    may(viewer, operation, workspace) ? [{ label, href: to(path) }] : []
  if (cause !== null && providerCauses.includes(cause)) {
    const failed = attempts.filter(({ outcome }) => outcome !== 'ok')
    const names = [...new Set((failed.length > 0 ? failed : candidates).map(({ provider }) => provider))]
    if (names.length === 0) return fix('listCredentials', 'Providers & routes', 'providers')
    return names.flatMap((name) => fix('listCredentials', `Provider ${name}`, `providers/${encodeURIComponent(name)}`))
  }
  if (cause === 'model_not_allowed') return fix('updateProject', 'Models of the project', `projects/${project}`)
  if (cause === 'spend_limit' || cause === 'limit_exceeded')
    return fix('putKeyLimits', 'Limits of the key', `keys/${key}`)
  if (cause === 'insufficient_balance') return fix('createCheckout', 'Billing', 'wallet')
  return cause === 'unknown_model' ? [{ label: 'Models', href: '/' }] : []
}

const translations: Readonly<Record<string, string>> = { bytes: 'none', translation: 'translated' }

function factsOf(request: RequestDetails) {
  const { usage, lane, key_id, project_id, cost, batch_id: batch } = request
  const cached = usage ? usage.cache_read_tokens : 0
  return [
    ['Outcome', <Outcome key="outcome" {...request} />],
    ['Started', <Moment key="started" at={request.started_at} />],
    ['Model', modelText(request)],
    ...(request.model !== null && request.requested_model !== null
      ? [['Fallback for', request.requested_model] as const]
      : []),
    ...(request.cause === null ? [] : [['Cause', causeLink(request.cause)] as const]),
    ['Provider', providerText(request)],
    ['Cost', <Amount key="cost" usd={cost} />],
    ['Input', usage ? countOf(totalInputInJson(usage), 'token') : 'none'],
    ...(cached > 0 ? [['From cache', countOf(cached, 'token')] as const] : []),
    ['Output', usage ? countOf(usage.output_tokens, 'token') : 'none'],
    ['First token', request.first_event_ms === null ? 'none' : shortMs(request.first_event_ms)],
    ['Duration', shortMs(request.total_ms)],
    [
      'Endpoint',
      <>
        <Path path={request.path} />
        {request.stream && ', streamed'}
      </>,
    ],
    ['Translation', lane === null ? '–' : (translations[lane] ?? lane)],
    ...attributionFacts(request),
    ['User agent', request.client ?? 'unknown'],
    ...(batch === null ? [] : [['Batch', <BatchLink key="batch" id={batch} />] as const]),
    ['Key', requestsOf('Key', key_id)],
    ['Project', requestsOf('Project', project_id)],
  ] as const
}

/** What the client says the request is for, each with a link to the other requests for it. */
function attributionFacts({ session, agent, end_user: user, tags }: RequestDetails) {
  const linked = (name: string, text: string) => (
    <a key={text} href={withQuery('/console/requests', { range: linkedRange, [name]: text })}>
      {text}
    </a>
  )
  const tagTexts = Object.entries(tags).map(([name, value]) => `${name}=${value}`)
  const facts = [
    ['Client', agent !== null && linked('agent', agent)],
    ['Session', session !== null && linked('session', session)],
    ['End user', user !== null && linked('user', user)],
    ['Tags', tagTexts.length > 0 && <span class="row">{tagTexts.map((tag) => linked('tag', tag))}</span>],
  ] as const
  return facts.flatMap(([name, shown]) => (shown === false ? [] : [[name, shown] as const]))
}

/** The request may be some days old. */
const linkedRange = '30d'

const causeLink = (cause: string) => (
  <a href={withQuery('/console/requests', { range: linkedRange, cause })}>{causeText(cause)}</a>
)

const BatchLink = ({ id }: { readonly id: string }) => <a href={`/console/batches/${id}`}>{id}</a>

const requestsOf = (kind: 'Key' | 'Project', id: string) => (
  <a href={withQuery('/console/requests', { range: linkedRange, [kind.toLowerCase()]: id })}>
    <NameOf kind={kind} id={id} />
  </a>
)

/** The provider that answered; one that only failed is listed under the attempts. */
function providerText({ provider, upstream_model: model, code, attempts }: RequestDetails): string {
  const hasAnswer = code === null || attempts.some(({ outcome }) => /^(ok|interrupted)/.test(outcome))
  return hasAnswer && provider !== null ? `${provider} ${model ?? ''}` : 'none'
}

interface ChargeRow {
  readonly name: ComponentChildren
  readonly calculation: string
  readonly amount: string
  readonly isTotal?: boolean
}

const chargeColumns: readonly Column<ChargeRow>[] = [
  { label: 'Kind', show: ({ name }) => name },
  { label: 'Count × price per million', isNumber: true, show: ({ calculation }) => calculation },
  {
    ...amountColumn('Amount', ({ amount }: ChargeRow) => amount, { isExact: true }),
    show: ({ amount, isTotal }, decimals) => {
      const shown = <Amount usd={amount} isExact decimals={decimals} />
      return isTotal ? <strong data-charge={amount}>{shown}</strong> : shown
    },
  },
]

/** Count × price of every kind, to the last digit, with what was held and released. */
function Charge(request: RequestDetails) {
  const { charge, transfers, plan_credits: credits, usage, held } = request
  if (!charge) return <p>{noChargeText(request)}</p>
  const rows: ChargeRow[] = charge.lines.map(({ kind, tokens, price_per_million: price, amount }) => ({
    name: buckets[kind].label,
    calculation: `${exactCount(tokens)} × ${usdText(price)}`,
    amount,
  }))
  if (Number(charge.written_off) > 0) {
    const amount = `-${charge.written_off}`
    rows.push({ name: 'Written off: exceeded the balance', calculation: '', amount })
  }
  rows.push({ name: <strong>Total charge</strong>, calculation: '', amount: charge.charged, isTotal: true })
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
          The {transfer.kind} <code>{transfer.id}</code> moved <Amount usd={transfer.amount} isExact />{' '}
          {transferText(transfer)}, <Moment at={transfer.created_at} />.
        </p>
      ))}
      {credits.map(({ id, plan, period, amount }) => (
        <p key={id}>
          <Amount usd={amount} isExact /> of it was paid from the credit of the plan {plan} for {period}, granted by{' '}
          <code>{id}</code>.
        </p>
      ))}
      <p class="hint">
        Tokens{' '}
        {usage?.source === 'estimated'
          ? 'estimated (the provider reported none, or an implausible number)'
          : 'reported by the provider'}
        {usage?.us_only === true && ', processed in the United States only'}
        {usage?.service_tier && `, service tier ${usage.service_tier}`}
        {usage?.reasoning_tokens != null && `, ${exactCount(usage.reasoning_tokens)} of the output for reasoning`}. The
        sum is rounded up once, to a billionth of a dollar.{' '}
        {held !== null && (
          <>
            Held before the request: <Amount usd={held} isExact />; released: <Amount usd={charge.released} isExact />.{' '}
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
