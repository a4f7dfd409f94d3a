/** @jsxImportSource preact */
// A model's answer: its reasoning, its text as Markdown, its tool calls, and what it cost.

import { useEffect } from 'preact/hooks'
import { countOf, shortMs } from '../../catalog/format.ts'
import { ApiError } from '../api.ts'
import { CopyButton, ErrorNotice, Facts } from '../components.tsx'
import { useApi } from '../hooks.ts'
import { Markdown } from '../markdown.tsx'
import { Amount } from './components.tsx'
import type { CallState, PlaygroundAnswer } from './model-call.ts'

interface AnswerCardProps {
  readonly id: string
  readonly isNamed: boolean
  readonly call: CallState
  /** Opens the request in another tab, because a dialog shows a secret. */
  readonly isInDialog?: boolean
  /** The charge is known. */
  onCost?(requestId: string, usd: string): void
}

export function AnswerCard({ id, isNamed, call, isInDialog = false, onCost }: AnswerCardProps) {
  const { text, reasoning, toolCalls, outcome, isRunning } = call
  const isEmpty = text === '' && reasoning === '' && toolCalls.length === 0 && !outcome
  return (
    <section class="card stack" aria-label={`Answer of ${id}`} data-answer={id}>
      <div class="between">
        <h2>Answer{isNamed && <small class="note">{id}</small>}</h2>
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
        <AnswerCost answer={outcome} isInDialog={isInDialog} {...(onCost && { onCost })} />
      )}
    </section>
  )
}

interface AnswerCostProps extends Pick<AnswerCardProps, 'onCost'> {
  readonly answer: PlaygroundAnswer
  readonly isInDialog: boolean
}

/** From the request log: the charge is recorded before the answer's last bytes are sent. */
function AnswerCost({ answer, isInDialog, onCost }: AnswerCostProps) {
  const { requestId, problem } = answer
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
        <div role="status" class="stack tight">
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
          <a href={`/console/requests/${requestId}`} target={isInDialog ? '_blank' : undefined}>
            View request
          </a>
        </div>
      )}
    </>
  )
}
