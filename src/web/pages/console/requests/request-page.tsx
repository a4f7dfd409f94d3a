/** @jsxImportSource preact */
// One request: its charge line by line, its attempts, the routes that were considered, and warnings.

import { Fragment } from 'preact'
import { buckets } from '../../../../kernel/usage.ts'
import { countOf, exactCount, shortMs } from '../../../catalog/format.ts'
import type { ConsoleData } from '../../../page-data.ts'
import { CopyButton } from '../../components.tsx'
import type { AttemptItem, RequestDetails } from '../api-types.ts'
import { Amount, CodeBlock, NameOf, Outcome, QueryView } from '../components.tsx'
import { Moment } from '../context.tsx'
import { useQuery } from '../hooks.ts'
import { usdText } from '../values.ts'

export function RequestPage({ subject, address }: ConsoleData) {
  const query = useQuery<RequestDetails>(`/api/requests/${encodeURIComponent(subject)}`)
  return (
    <>
      <p class="breadcrumbs">
        <a href="/console/requests">Requests</a>
      </p>
      <div class="console-head">
        <h1>Request</h1>
        <p class="id">
          <code>{subject}</code>
          <CopyButton text={subject} what="request id" />
        </p>
      </div>
      <QueryView what="the request" query={query}>
        {(request) => <Details request={request} address={address} />}
      </QueryView>
    </>
  )
}

interface RequestProps {
  readonly request: RequestDetails
}

function Details({ request, address }: RequestProps & { readonly address: string }) {
  const { reason, warnings, notes, candidates, attempts } = request
  const messages = [...warnings, ...notes]
  return (
    <>
      {reason !== null && (
        <p class="warning" role="note">
          {reason}
        </p>
      )}
      <Facts request={request} />
      <section class="card" aria-labelledby="charge">
        <h2 id="charge">Charge</h2>
        <Charge request={request} />
      </section>
      <section class="card" aria-labelledby="attempts">
        <h2 id="attempts">Attempts</h2>
        <Attempts attempts={attempts} totalMs={request.total_ms} />
      </section>
      <section class="card" aria-labelledby="candidates">
        <h2 id="candidates">Routes considered</h2>
        {candidates.length === 0 ? (
          <p>None.</p>
        ) : (
          <ol>
            {candidates.map(({ provider, upstream_model: model, why }, at) => (
              <li key={`${at} ${provider} ${model}`}>
                {provider} <code>{model}</code>
                {why !== null && <span class="muted">: {why}</span>}
              </li>
            ))}
          </ol>
        )}
      </section>
      {messages.length > 0 && (
        <section class="card" aria-labelledby="warnings">
          <h2 id="warnings">Warnings</h2>
          <ul>
            {messages.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </section>
      )}
      <section class="card" aria-labelledby="cli">
        <h2 id="cli">Open in CLI or API</h2>
        <CodeBlock code={`tollgate explain ${request.id}`} what="command" />
        <CodeBlock
          code={`curl ${address}/api/requests/${request.id} -H "Authorization: Bearer $TOLLGATE_ADMIN_TOKEN"`}
          what="API request"
        />
      </section>
    </>
  )
}

const formats: Readonly<Record<string, string>> = { bytes: 'passed through', translation: 'translated' }

function Facts({ request }: RequestProps) {
  const { usage, lane } = request
  const facts = [
    ['Outcome', <Outcome key="outcome" request={request} />],
    ['Started', <Moment key="started" at={request.started_at} />],
    ['Model', request.model ?? 'unknown'],
    ['Provider', providerText(request)],
    ['Endpoint', <Endpoint key="endpoint" request={request} />],
    ['Format', lane === null ? 'none' : (formats[lane] ?? lane)],
    ['First token', request.first_event_ms === null ? 'none' : shortMs(request.first_event_ms)],
    ['Duration', shortMs(request.total_ms)],
    ['Output', usage ? countOf(usage.output_tokens, 'token') : 'none'],
    ['Client', request.client ?? 'unknown'],
    [
      'Key',
      <a key="key" href={`/console/requests?key=${request.key_id}`}>
        <NameOf kind="keys" id={request.key_id} />
      </a>,
    ],
    [
      'Project',
      <a key="project" href={`/console/requests?project=${request.project_id}`}>
        <NameOf kind="projects" id={request.project_id} />
      </a>,
    ],
  ] as const
  return (
    <dl class="facts-grid">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Allows a line break before each slash, so that no word is broken. */
function Endpoint({ request: { path, stream } }: RequestProps) {
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

/** Count × price of every kind, to the last digit, with what was held and released. */
function Charge({ request }: RequestProps) {
  const { charge, transfers, usage, held } = request
  if (!charge) return <p>{noChargeText(request)}</p>
  return (
    <>
      <table class="compact-table charge-table">
        <caption class="visually-hidden">The charge by kind of token</caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col" class="number">
              Count × price per million
            </th>
            <th scope="col" class="number">
              Amount
            </th>
          </tr>
        </thead>
        <tbody>
          {charge.lines.map(({ kind, tokens, price_per_million: price, amount }) => (
            <tr key={kind}>
              <th scope="row">{buckets[kind].label}</th>
              <td class="number">
                {exactCount(tokens)} × {usdText(price)}
              </td>
              <td class="number">
                <Amount usd={amount} />
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          {Number(charge.written_off) > 0 && (
            <tr>
              <th scope="row" colSpan={2}>
                Written off: exceeded the balance
              </th>
              <td class="number">
                −<Amount usd={charge.written_off} />
              </td>
            </tr>
          )}
          <tr>
            <th scope="row" colSpan={2}>
              Total charge
            </th>
            <td class="number" data-charge={charge.charged}>
              <Amount usd={charge.charged} />
            </td>
          </tr>
        </tfoot>
      </table>
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

const barWidth = 400

/** The attempts in order, on one time scale. */
function Attempts({ attempts, totalMs }: { readonly attempts: readonly AttemptItem[]; readonly totalMs: number }) {
  if (attempts.length === 0) return <p>No provider was called.</p>
  const spent = attempts.reduce((sum, { ms }) => sum + ms, 0)
  const scale = barWidth / Math.max(spent, totalMs, 1)
  let elapsed = 0
  const rows = attempts.map((attempt) => {
    const row = { ...attempt, from: elapsed }
    elapsed += attempt.ms
    return row
  })
  return (
    <table class="compact-table waterfall">
      <caption class="visually-hidden">Attempts in order, with the time until each response</caption>
      <thead>
        <tr>
          <th scope="col">Attempt</th>
          <th scope="col">Outcome</th>
          <th scope="col" class="number">
            Response after
          </th>
          <th scope="col">
            <span class="visually-hidden">Timeline</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ provider, upstream_model: model, outcome, ms, from }, at) => (
          <tr key={`${at} ${provider}`}>
            <th scope="row">
              {provider} <code>{model}</code>
            </th>
            <td>{outcome}</td>
            <td class="number">{shortMs(ms)}</td>
            <td class="bar">
              <svg viewBox={`0 0 ${barWidth} 10`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
                <rect
                  class={outcome === 'ok' ? 'ok' : 'failed'}
                  x={from * scale}
                  y="0"
                  width={Math.max(2, ms * scale)}
                  height="10"
                />
              </svg>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
