/** @jsxImportSource preact */
// Explain this charge: tokens of each kind × their price = what the ledger moved, to the last digit, with what was held
// and given back.

import { exactCount } from '../../../catalog/figures.ts'
import { Amount } from '../parts/amount.tsx'
import type { ChargeLine, ExplainedItem } from '../parts/api-answers.ts'
import { usdText } from '../parts/usd-text.ts'
import { Moment } from '../parts/zone.tsx'

const kindNames: Readonly<Record<ChargeLine['kind'], string>> = {
  input: 'Input',
  cache_read: 'Cache read',
  cache_write: 'Cache write',
  cache_write_1h: 'Cache write, 1 h',
  output: 'Output',
  audio_input: 'Sound, input',
  audio_cache_read: 'Sound, cache read',
  audio_output: 'Sound, output',
  web_search: 'Web searches',
}

export function ChargeReceipt({ request }: { readonly request: ExplainedItem }) {
  const { charge, transfers, usage, held } = request
  if (!charge) return <p>{whyNone(request)}</p>
  return (
    <>
      <table class="bill">
        <caption class="visually-hidden">The charge, kind by kind</caption>
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
              <th scope="row">{kindNames[kind]}</th>
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
                Written off: more than the wallet had
              </th>
              <td class="number">
                −<Amount usd={charge.written_off} />
              </td>
            </tr>
          )}
          <tr>
            <th scope="row" colSpan={2}>
              Charge
            </th>
            <td class="number" data-charge={charge.charged}>
              <Amount usd={charge.charged} />
            </td>
          </tr>
        </tfoot>
      </table>
      {transfers.map((transfer) => (
        <p key={transfer.id}>
          The {transfer.kind} <code>{transfer.id}</code> moved <Amount usd={transfer.amount} /> {wayOf(transfer)},{' '}
          <Moment at={transfer.created_at} />.
        </p>
      ))}
      <p class="hint">
        Tokens{' '}
        {usage?.source === 'estimated' ? 'estimated, because the provider reported none' : 'reported by the provider'}
        {usage?.us_only === true && ', which kept the work in the United States'}
        {usage?.reasoning_tokens != null && `, ${exactCount(usage.reasoning_tokens)} of the output for reasoning`}. The
        lines are added up and rounded up once, to a billionth of a dollar.{' '}
        {held !== null && (
          <>
            Held before <Amount usd={held} />, given back <Amount usd={charge.released} />.{' '}
          </>
        )}
        Price <code>{charge.price_version}</code>, {charge.price_source}, since{' '}
        <Moment at={charge.price_effective_from} />.
      </p>
    </>
  )
}

/** What is written off never was in the wallet. */
function wayOf({ kind, direction }: ExplainedItem['transfers'][number]): string {
  if (kind === 'writeoff') return 'from the operator’s losses'
  return direction === 'out' ? 'out of the wallet' : 'into the wallet'
}

function whyNone({ cost, usage, code }: ExplainedItem): string {
  if (cost !== null) return `${usdText(cost)} was charged, by no price of the catalog.`
  return code !== null && usage === null
    ? 'Nothing was charged: no provider produced an answer.'
    : 'Nothing was charged for this request.'
}
