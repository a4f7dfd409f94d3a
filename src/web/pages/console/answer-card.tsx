/** @jsxImportSource preact */
// A model's answer: which model gave it, its reasoning, its text as Markdown, its tool calls, what it cost, and its request.

import { useEffect } from 'preact/hooks'
import { countOf, shortMs } from '../../catalog/format.ts'
import { ApiError } from '../api.ts'
import { Amount, CopyButton, ErrorNotice, Facts } from '../components.tsx'
import { useApi } from '../hooks.ts'
import { Markdown } from '../markdown.tsx'
import type { CallState } from './model-call.ts'

interface AnswerCardProps {
  /** Of the model that is called; an answer names the one that gave it. */
  readonly id: string
  readonly call: CallState
  /** Opens the request in another tab, because a dialog shows a secret. */
  readonly isInDialog?: boolean
  /** The charge is known. */
  onCost?(requestId: string, usd: string): void
}

export function AnswerCard({ id, call, isInDialog = false, onCost }: AnswerCardProps) {
  const { text, reasoning, toolCalls, outcome, isRunning, requestId } = call
  const model = call.model || id
  const isEmpty = text === '' && reasoning === '' && toolCalls.length === 0 && !outcome
  return (
    <section class="card stack" aria-label={`Answer of ${model}`} data-answer={model}>
      <div class="between">
        <h2 class="answer-model">
          <code class="wrap">{model}</code>
        </h2>
        {text !== '' && !isRunning && <CopyButton text={text} what="answer" label="Copy" />}
      </div>
      {reasoning !== '' && (
        <details class="reasoning">
          <summary>{text === '' && isRunning ? 'Reasoning …' : 'Reasoning'}</summary>
          <p class="inset">{reasoning}</p>
        </details>
      )}
      <div class="answer-text" aria-live="polite" aria-busy={isRunning}>
        {isEmpty && <span class="muted">{isRunning ? 'Waiting …' : 'The answer appears here.'}</span>}
        {text !== '' && <Markdown text={text} />}
        {toolCalls.map(({ name, arguments: input }, at) => (
          <div key={at} class="tool-call inset stack tight">
            <small>Tool call</small>
            <code class="wrap">
              {name}({input})
            </code>
          </div>
        ))}
      </div>
      {outcome instanceof ApiError && <ErrorNotice error={outcome} />}
      {outcome && !(outcome instanceof ApiError) && (
        <AnswerCost requestId={requestId} problem={outcome.problem} {...(onCost && { onCost })} />
      )}
      {/* A request that was refused for its key is not in the log. */}
      {outcome && requestId !== '' && !(outcome instanceof ApiError && outcome.status === 401) && (
        <a href={`/console/requests/${requestId}`} target={isInDialog ? '_blank' : undefined}>
          View request
        </a>
      )}
    </section>
  )
}

interface AnswerCostProps extends Pick<AnswerCardProps, 'onCost'> {
  readonly requestId: string
  /** An error inside the stream; empty = none. */
  readonly problem: string
}

/** From the request log: the charge is recorded before the answer's last bytes are sent. */
function AnswerCost({ requestId, problem, onCost }: AnswerCostProps) {
  const { value, error, reload } = useApi('getRequest', requestId === '' ? undefined : { id: requestId })
  useEffect(() => {
    if (value?.cost) onCost?.(requestId, value.cost)
  }, [value?.cost])
  return (
    <>
      {problem !== '' && (
        <p class="warning" role="alert">
          {problem}
        </p>
      )}
      {error && <ErrorNotice error={error} retry={reload} />}
      {value && (
        <div role="status">
          <Facts
            class="facts-grid answer-facts"
            facts={[
              [
                'Cost',
                <strong key="cost" data-cost={value.cost ?? ''}>
                  <Amount usd={value.cost} />
                </strong>,
              ],
              ['Input', value.usage ? countOf(value.usage.input_tokens, 'token') : '–'],
              ['Output', value.usage ? countOf(value.usage.output_tokens, 'token') : '–'],
              ['First token', value.first_event_ms === null ? '–' : shortMs(value.first_event_ms)],
              ['Duration', shortMs(value.total_ms)],
            ]}
          />
        </div>
      )}
    </>
  )
}
