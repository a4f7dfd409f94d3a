/** @jsxImportSource preact */
// One model: what it is, what it costs and why one can believe that, how it is reached, and the code that calls it.

import type { CatalogEntry } from '../../catalog/entry.ts'
import { exactCount } from '../../catalog/figures.ts'
import { modelStanding } from '../../catalog/standing.ts'
import type { ModelData } from '../../page-data.ts'
import { useLiveEntries } from '../browser/live-entries.ts'
import { useHistory } from '../browser/use-history.ts'
import { CopyButton } from '../shell/copy-button.tsx'
import { Lamp } from '../shell/lamp.tsx'
import { Badges, Tags } from './badges.tsx'
import { Calculator } from './calculator.tsx'
import { CodeTabs } from './code-tabs.tsx'
import { LiveLamp } from './live-lamp.tsx'
import { PriceHistory } from './price-history.tsx'
import { PriceTicket } from './price-ticket.tsx'
import { RouteTable } from './route-table.tsx'

export function ModelPage({ entry: initial, state, sample, snippets, history: initialHistory }: ModelData) {
  const keep = (all: readonly CatalogEntry[]) => all.filter(({ id }) => id === initial.id)
  const { entries, live } = useLiveEntries([initial], state, keep)
  // A model that was taken off the list stays readable; its page says so.
  const entry = entries[0] ?? initial
  const history = useHistory(entry, initialHistory)
  const inForce = history.find(({ version }) => version === entry.price_version)
  return (
    <article class="model-page">
      <p class="crumbs">
        <a href="/">Catalog</a> / <a href={`/?creator=${encodeURIComponent(makerOf(entry))}`}>{makerOf(entry)}</a>
      </p>
      <header class="model-head">
        <h1>{entry.name}</h1>
        <p class="id large">
          <code>{entry.id}</code>
          <CopyButton text={entry.id} what="id" label="Copy id" />
        </p>
        <p class="facts-line">
          <Lamp {...modelStanding(entry)} />
          <Badges entry={entry} />
          <LiveLamp state={live} />
        </p>
        {entries.length === 0 && (
          <p class="warning" role="alert">
            This model was just taken off the list.
          </p>
        )}
        <Facts entry={entry} />
      </header>
      <section aria-labelledby="pay">
        <h2 id="pay">What you pay</h2>
        <div class="pay">
          <PriceTicket entry={entry} inForce={inForce} />
          <Calculator entry={entry} sample={sample} />
        </div>
      </section>
      <section aria-labelledby="routes">
        <h2 id="routes">Routes, in the order they are tried now</h2>
        <RouteTable routes={entry.routes} />
      </section>
      <section aria-labelledby="call">
        <h2 id="call">Call it</h2>
        <CodeTabs snippets={snippets} />
      </section>
      <section aria-labelledby="history">
        <h2 id="history">Prices so far</h2>
        <PriceHistory history={history} />
      </section>
    </article>
  )
}

function Facts({ entry }: { readonly entry: CatalogEntry }) {
  const tokens = (count: number | null) => (count === null ? 'not known' : `${exactCount(count)} tokens`)
  return (
    <dl class="facts">
      <div>
        <dt>Context</dt>
        <dd>{tokens(entry.context_tokens)}</dd>
      </div>
      <div>
        <dt>Max output</dt>
        <dd>{tokens(entry.max_output_tokens)}</dd>
      </div>
      <div>
        <dt>Maker</dt>
        <dd>{entry.owned_by}</dd>
      </div>
      <div>
        <dt>Released</dt>
        <dd>{entry.released ?? 'not known'}</dd>
      </div>
      <div>
        <dt>Can</dt>
        <dd>
          <Tags tags={entry.tags} />
        </dd>
      </div>
    </dl>
  )
}

function makerOf({ id }: CatalogEntry): string {
  return id.slice(0, id.indexOf('/'))
}
