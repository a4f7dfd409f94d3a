/** @jsxImportSource preact */
// The tariff board: every model that is sold here, what it costs, and how its routes are doing. The view is in the
// address; the list is whole without scripts, and follows the server with them.

import { useEffect, useMemo, useState } from 'preact/hooks'
import type { CatalogEntry } from '../../catalog/entry.ts'
import { type CatalogQuery, comparedMax, emptyQuery, isNarrowed, renderQuery } from '../../catalog/query.ts'
import { seenEntries } from '../../catalog/seen-entries.ts'
import { choicesOf, creatorOf, describeSources, selectEntries } from '../../catalog/select-entries.ts'
import type { ListData } from '../../page-data.ts'
import { useLiveEntries } from '../browser/live-entries.ts'
import { useNarrowing } from '../browser/use-narrowing.ts'
import { KeyHelp } from '../shell/key-help.tsx'
import { boardKeys, useBoardKeys } from './board-keys.ts'
import { CompareBar } from './compare-bar.tsx'
import { FilterForm } from './filter-form.tsx'
import { LiveLamp } from './live-lamp.tsx'
import { ModelRow } from './model-row.tsx'
import { NarrowingForm } from './narrowing-form.tsx'

const all = (entries: readonly CatalogEntry[]) => entries

export function ListPage({ entries: initial, state, query: initialQuery, builtInDate, isSignedIn }: ListData) {
  const { entries: sold, live, accessTurn } = useLiveEntries(initial, state, all)
  const narrowing = useNarrowing(accessTurn)
  const entries = useMemo(() => seenEntries(sold, narrowing.seen), [sold, narrowing.seen])
  const [query, setQuery] = useState(() => withKnownTicks(initialQuery, initial))
  const shown = useMemo(() => selectEntries(entries, query), [entries, query])
  const choices = useMemo(() => choicesOf(entries), [entries])
  const change = (part: Partial<CatalogQuery>) => setQuery((before) => ({ ...before, ...part }))
  const choose = (id: string) => setQuery((before) => ({ ...before, compared: toggled(before.compared, id) }))
  const chosen = query.compared.filter((id) => entries.some((entry) => entry.id === id))
  const unseen = chosen.filter((id) => !shown.some((entry) => entry.id === id))
  useEffect(() => {
    const text = renderQuery(query)
    const address = text === '' ? '/' : `/?${text}`
    if (address !== location.pathname + location.search) history.replaceState(null, '', address)
  }, [query])
  useBoardKeys(choose)
  return (
    <>
      <div class="board-head">
        <h1>Tariffs</h1>
        <p class="lede">{describeSources(entries, builtInDate)}.</p>
        <LiveLamp state={live} />
      </div>
      <NarrowingForm narrowing={narrowing} isSignedIn={isSignedIn} />
      <FilterForm query={query} choices={choices} change={change} />
      <p class="tally" role="status">
        {tallyText(shown.length, entries.length)}
        {isNarrowed(query) && (
          <>
            {' '}
            <a
              href="/"
              onClick={(event) => {
                event.preventDefault()
                setQuery({ ...emptyQuery, sort: query.sort, compared: query.compared })
              }}
            >
              Show all
            </a>
          </>
        )}
      </p>
      {shown.length > 0 ? (
        <Board entries={shown} isGrouped={query.sort === 'name'} chosen={chosen} choose={choose} />
      ) : (
        <NothingFound isEmpty={sold.length === 0} isNarrowed={narrowing.seen !== undefined && entries.length === 0} />
      )}
      <CompareBar chosen={chosen} unseen={unseen} clear={() => change({ compared: [] })} />
      <KeyHelp keys={boardKeys} />
    </>
  )
}

interface BoardProps {
  readonly entries: readonly CatalogEntry[]
  /** By maker, each under a heading. */
  readonly isGrouped: boolean
  readonly chosen: readonly string[]
  choose(id: string): void
}

function Board({ entries, isGrouped, chosen, choose }: BoardProps) {
  const groups = isGrouped ? [...Map.groupBy(entries, creatorOf)] : [['', entries] as const]
  return (
    <table class="board">
      <caption class="visually-hidden">Models and their prices in US dollars per million tokens</caption>
      <thead>
        <tr>
          <th scope="col" class="pick">
            <span class="visually-hidden">Compare</span>
          </th>
          <th scope="col">Model</th>
          <th scope="col" class="price">
            Input
          </th>
          <th scope="col" class="price">
            Cached
          </th>
          <th scope="col" class="price">
            Output
          </th>
          <th scope="col" class="count">
            Context
          </th>
          <th scope="col" class="count">
            Max output
          </th>
          <th scope="col">Can</th>
          <th scope="col">Routes</th>
          <th scope="col" class="figure">
            First token
          </th>
          <th scope="col" class="figure">
            Tokens/s
          </th>
        </tr>
      </thead>
      {groups.map(([creator, group]) => (
        <tbody key={creator}>
          {creator !== '' && (
            <tr class="maker">
              <th scope="rowgroup" colSpan={11}>
                {creator}
              </th>
            </tr>
          )}
          {group.map((entry) => (
            <ModelRow
              key={entry.id}
              entry={entry}
              isChosen={chosen.includes(entry.id)}
              isFull={chosen.length >= comparedMax && !chosen.includes(entry.id)}
              choose={choose}
            />
          ))}
        </tbody>
      ))}
    </table>
  )
}

function NothingFound({ isEmpty, isNarrowed }: { readonly isEmpty: boolean; readonly isNarrowed: boolean }) {
  if (isNarrowed) return <p class="empty">It can use none of the models. The allowlist of its project says which.</p>
  return (
    <p class="empty">
      {isEmpty
        ? 'Nothing is sold here yet. Set a provider’s key, such as OPENAI_API_KEY, or add a model to tollgate.yaml.'
        : 'No model is like that. Take a filter away, or search for less.'}
    </p>
  )
}

function tallyText(shown: number, total: number): string {
  return shown === total ? `${total} models` : `${shown} of ${total} models`
}

/** An address may name what is not sold; it must not take the place of a tick that somebody can see. */
function withKnownTicks(query: CatalogQuery, entries: readonly CatalogEntry[]): CatalogQuery {
  return { ...query, compared: query.compared.filter((id) => entries.some((entry) => entry.id === id)) }
}

function toggled(chosen: readonly string[], id: string): readonly string[] {
  if (chosen.includes(id)) return chosen.filter((each) => each !== id)
  return chosen.length < comparedMax ? [...chosen, id] : chosen
}
