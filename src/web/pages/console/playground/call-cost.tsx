/** @jsxImportSource preact */
// What a call of the playground may cost, and what it did cost by the ledger.

import { formatUsd, parsePrice, picoToNano } from '../../../../kernel/money.ts'
import { countOf, exactCount, shortMs } from '../../../catalog/figures.ts'
import { Amount } from '../parts/amount.tsx'
import type { CatalogItem, ExplainedItem } from '../parts/api-answers.ts'
import { Refused } from '../parts/resource-view.tsx'
import { usdText } from '../parts/usd-text.ts'
import { useResource } from '../parts/use-resource.ts'
import type { PlaygroundAnswer } from './playground-call.ts'

export interface CallEstimateProps {
  readonly model: CatalogItem
  readonly maxTokens: number
  /** Beside another one it is named. */
  readonly isNamed: boolean
}

export function CallEstimate({ model, maxTokens, isNamed }: CallEstimateProps) {
  const { price } = model
  if (price === 'free') return <p class="hint">{isNamed ? model.id : 'This model'} is free.</p>
  if (model.own_key) {
    return (
      <p class="hint">
        {isNamed ? model.id : 'This model'} is called with the workspace’s own key: its provider sends the bill.
      </p>
    )
  }
  const output = price && parsePrice(price.output)
  if (!price || !output) return null
  const most = formatUsd(picoToNano(output * BigInt(maxTokens)))
  return (
    <p class="hint">
      {isNamed && <code class="wrap">{model.id}: </code>}The answer costs at most {usdText(most)} (
      {countOf(maxTokens, 'token')} × {usdText(price.output)} per million), the message {usdText(price.input)} per
      million tokens.
    </p>
  )
}

/** As the request log has it; the answer's last bytes come after its charge. */
export function CallCost({ answer: { requestId, problem } }: { readonly answer: PlaygroundAnswer }) {
  const { value, refusal, again } = useResource<ExplainedItem>(
    requestId === '' ? undefined : `/api/requests/${requestId}`,
  )
  return (
    <>
      {problem !== '' && (
        <p class="warning" role="alert">
          {problem}
        </p>
      )}
      {refusal && <Refused refusal={refusal} again={again} />}
      {value && (
        <p role="status">
          Cost{' '}
          <strong data-cost={value.cost ?? ''}>
            <Amount usd={value.cost} />
          </strong>
          {value.usage && `: ${exactCount(value.usage.input_tokens)} in, ${exactCount(value.usage.output_tokens)} out`}
          {value.first_event_ms !== null && `, first token after ${shortMs(value.first_event_ms)}`}.{' '}
          <a href={`/console/requests/${requestId}`}>Explain this charge</a>
        </p>
      )}
    </>
  )
}
