/** @jsxImportSource preact */
// One line of the tariff board; on a phone the same line is a card, with each column's name before its value.

import { type CatalogEntry, isRehearsal, modelPath } from '../../catalog/entry.ts'
import { exactCount, shortCount } from '../../catalog/figures.ts'
import { isPrivate } from '../../catalog/seen-entries.ts'
import { busiest, modelStanding } from '../../catalog/standing.ts'
import { CopyButton } from '../shell/copy-button.tsx'
import { Lamp } from '../shell/lamp.tsx'
import { Badges, Tags } from './badges.tsx'
import { Measured } from './measured.tsx'
import { ModelMoney } from './money.tsx'

export interface ModelRowProps {
  readonly entry: CatalogEntry
  readonly isChosen: boolean
  /** Four are chosen already, and this one is not. */
  readonly isFull: boolean
  choose(id: string): void
}

export function ModelRow({ entry, isChosen, isFull, choose }: ModelRowProps) {
  const { id, name, routes } = entry
  const cachedAsInput = entry.price !== null && entry.price !== 'free' && entry.price.cache_read === entry.price.input
  return (
    <tr class={entry.callable ? undefined : 'dim'} data-model={id}>
      <td class="pick">
        <input
          type="checkbox"
          form="compare"
          name="m"
          value={id}
          aria-label={`Compare ${id}`}
          checked={isChosen}
          disabled={isFull}
          onChange={() => choose(id)}
        />
      </td>
      <th scope="row" class="model">
        {isPrivate(entry) ? (
          // It has no page: there is nothing about it that everybody may read.
          <span class="model-link">{name}</span>
        ) : (
          <a class="model-link" href={modelPath(id)}>
            {name}
          </a>
        )}
        <Badges entry={entry} />
        <span class="id">
          <code>{id}</code>
          <CopyButton text={id} what={`id ${id}`} />
        </span>
      </th>
      <td class="price" data-label="Input">
        <ModelMoney entry={entry} kind="input" />
      </td>
      <td class={`price${cachedAsInput ? ' same' : ''}`} data-label="Cached input">
        <ModelMoney entry={entry} kind="cache_read" />
      </td>
      <td class="price" data-label="Output">
        <ModelMoney entry={entry} kind="output" />
      </td>
      <Count label="Context" tokens={entry.context_tokens} />
      <Count label="Max output" tokens={entry.max_output_tokens} />
      <td class="can" data-label="Can">
        <Tags tags={entry.tags} />
      </td>
      <td class="health" data-label="Routes">
        <Lamp {...modelStanding(entry)} />
        <small>{routes.length === 1 ? routes[0]?.provider : `${routes.length} routes`}</small>
      </td>
      <td class="figure" data-label="First token">
        <Measured figures={busiest(routes, 'first_event_ms')} unit="time" isRehearsed={isRehearsal(entry)} />
      </td>
      <td class="figure" data-label="Tokens/s">
        <Measured figures={busiest(routes, 'tokens_per_second')} unit="tokens" isRehearsed={isRehearsal(entry)} />
      </td>
    </tr>
  )
}

function Count({ label, tokens }: { readonly label: string; readonly tokens: number | null }) {
  return (
    <td class="count" data-label={label}>
      {tokens === null ? (
        <span class="muted">not known</span>
      ) : (
        <span title={`${exactCount(tokens)} tokens`}>{shortCount(tokens)}</span>
      )}
    </td>
  )
}
