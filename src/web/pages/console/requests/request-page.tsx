/** @jsxImportSource preact */
// One request explained: what it cost and why, what was tried, where it could have gone, what was lost on the way.

import { Fragment } from 'preact'
import { countOf, shortMs } from '../../../catalog/figures.ts'
import type { ConsoleData } from '../../../page-data.ts'
import { CopyButton } from '../../shell/copy-button.tsx'
import type { ExplainedItem } from '../parts/api-answers.ts'
import { NameOf } from '../parts/name-of.tsx'
import { Outcome } from '../parts/outcome.tsx'
import { CodeBlock, Loading, Refused } from '../parts/resource-view.tsx'
import { useResource } from '../parts/use-resource.ts'
import { Moment } from '../parts/zone.tsx'
import { AttemptWaterfall } from './attempt-waterfall.tsx'
import { ChargeReceipt } from './charge-receipt.tsx'

export function RequestPage({ subject, address }: ConsoleData) {
  const { value, refusal, again } = useResource<ExplainedItem>(`/api/requests/${encodeURIComponent(subject)}`)
  return (
    <>
      <p class="crumbs">
        <a href="/console/requests">Requests</a>
      </p>
      <div class="console-head">
        <h1>Request</h1>
        <p class="id">
          <code>{subject}</code>
          <CopyButton text={subject} what="request id" />
        </p>
      </div>
      {refusal && <Refused refusal={refusal} again={again} />}
      {value ? <Explained request={value} address={address} /> : !refusal && <Loading what="the request" />}
    </>
  )
}

function Explained({ request, address }: { readonly request: ExplainedItem; readonly address: string }) {
  const { reason, warnings, notes, candidates, attempts } = request
  const lost = [...warnings, ...notes]
  return (
    <>
      {reason !== null && (
        <p class="warning" role="note">
          {reason}
        </p>
      )}
      <Facts request={request} />
      <section class="card" aria-labelledby="charge">
        <h2 id="charge">Explain this charge</h2>
        <ChargeReceipt request={request} />
      </section>
      <section class="card" aria-labelledby="attempts">
        <h2 id="attempts">Attempts</h2>
        <AttemptWaterfall attempts={attempts} totalMs={request.total_ms} />
      </section>
      <section class="card" aria-labelledby="candidates">
        <h2 id="candidates">Candidates, in the order of the plan</h2>
        {candidates.length === 0 ? (
          <p>None was planned.</p>
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
      {lost.length > 0 && (
        <section class="card" aria-labelledby="lost">
          <h2 id="lost">What was dropped or odd</h2>
          <ul>
            {lost.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </section>
      )}
      <section class="card" aria-labelledby="elsewhere">
        <h2 id="elsewhere">The same elsewhere</h2>
        <CodeBlock code={`tollgate explain ${request.id}`} what="command" />
        <CodeBlock
          code={`curl ${address}/api/requests/${request.id} -H "Authorization: Bearer $TOLLGATE_ADMIN_TOKEN"`}
          what="call of the API"
        />
      </section>
    </>
  )
}

function Facts({ request }: { readonly request: ExplainedItem }) {
  const { usage } = request
  const facts = [
    ['Outcome', <Outcome key="outcome" request={request} />],
    ['Began', <Moment key="began" at={request.started_at} />],
    ['Model', request.model ?? 'no known one'],
    ['Served by', servedBy(request)],
    ['Asked at', <AskedAt key="asked" request={request} />],
    ['Lane', request.lane ?? 'none'],
    ['First token', request.first_event_ms === null ? 'none' : shortMs(request.first_event_ms)],
    ['In all', shortMs(request.total_ms)],
    ['Output', usage ? countOf(usage.output_tokens, 'token') : 'none'],
    ['Client', request.client ?? 'not told'],
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

/** A path may be broken before a slash, where a word would be broken otherwise. */
function AskedAt({ request: { path, stream } }: { readonly request: ExplainedItem }) {
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

/** A provider that was only tried stands under the attempts. */
function servedBy({ provider, upstream_model: model, code, attempts }: ExplainedItem): string {
  const isServed = code === null || attempts.some(({ outcome }) => /^(ok|interrupted)/.test(outcome))
  return isServed && provider !== null ? `${provider} ${model ?? ''}` : 'nobody'
}
