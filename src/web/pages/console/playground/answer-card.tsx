/** @jsxImportSource preact */
// The answer of one model: its text as it streams, the tool calls it asks for, and what it cost.

import { Refusal } from '../parts/call-api.ts'
import { Refused } from '../parts/resource-view.tsx'
import { CallCost } from './call-cost.tsx'
import type { AskedCall } from './playground-call.ts'
import type { ModelCall } from './use-model-call.ts'

export interface AnswerCardProps {
  /** Of the model. */
  readonly id: string
  /** Beside another one it is named. */
  readonly isNamed: boolean
  readonly call: ModelCall
}

export function AnswerCard({ id, isNamed, call: { text, calls, outcome, isRunning } }: AnswerCardProps) {
  const heading = `answer-${id.replaceAll(/\W/g, '-')}`
  const isEmpty = text === '' && calls.length === 0 && !outcome
  return (
    <section class="card" aria-labelledby={heading} data-answer={id}>
      <h2 id={heading}>Answer{isNamed && <small class="row-note wrap">{id}</small>}</h2>
      <div class="conversation" aria-live="polite" aria-busy={isRunning}>
        {isEmpty && <span class="muted">{isRunning ? 'Waiting …' : 'It streams in here.'}</span>}
        {text}
        {calls.map((call, at) => (
          <ToolCall key={at} {...call} />
        ))}
      </div>
      {outcome instanceof Refusal && <Refused refusal={outcome} />}
      {outcome && !(outcome instanceof Refusal) && <CallCost answer={outcome} />}
    </section>
  )
}

function ToolCall({ name, arguments: text }: AskedCall) {
  return (
    <div class="tool-call">
      <small>Tool call</small>
      <code class="wrap">
        {name}({text})
      </code>
    </div>
  )
}
