/** @jsxImportSource preact */
// The message and its settings, sent to one model or to two at once, with the answers side by side and the call as code.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import type { CatalogItem } from '../parts/api-answers.ts'
import { CodeBlock } from '../parts/resource-view.tsx'
import { AnswerCard } from './answer-card.tsx'
import { CallEstimate } from './call-cost.tsx'
import { bodyOf, type Dialect, type PlaygroundCall, playgroundPaths } from './playground-call.ts'
import { exampleTool, ToolFields, toolOf } from './tool-fields.tsx'
import { useModelCall } from './use-model-call.ts'

export interface BenchProps {
  readonly model: CatalogItem
  /** undefined = only one is asked. */
  readonly other: CatalogItem | undefined
  readonly dialect: Dialect
  readonly address: string
}

export function Bench({ model, other, dialect, address }: BenchProps) {
  const [key, setKey] = useState('')
  const [prompt, setPrompt] = useState('hello from the other side of the gate')
  const [maxTokens, setMaxTokens] = useState(200)
  const [texts, setTexts] = useState(exampleTool)
  const calls = [useModelCall(), useModelCall()] as const
  const models = other ? [model, other] : [model]
  const tool = toolOf(texts)
  const callOf = ({ id }: CatalogItem): PlaygroundCall => {
    return { dialect, key, model: id, prompt, maxTokens, ...(tool && { tool }) }
  }
  const isRunning = calls.some((call) => call.isRunning)
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (texts.isOffered && !tool) return
    for (const [at, each] of models.entries()) calls[at]?.send(callOf(each))
  }
  const stop = () => {
    for (const call of calls) call.stop()
  }
  return (
    <>
      <form class="card" onSubmit={submit}>
        <label class="field">
          <span>API key: a real one, so limits and wallet apply; it stays in this page</span>
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            placeholder="sk-tg-…"
            value={key}
            onInput={({ currentTarget }) => setKey(currentTarget.value.trim())}
          />
        </label>
        <label class="field">
          <span>Message</span>
          <textarea
            rows={4}
            data-search
            required
            value={prompt}
            onInput={({ currentTarget }) => setPrompt(currentTarget.value)}
          />
        </label>
        <ToolFields texts={texts} onChange={setTexts} />
        <div class="controls">
          <label class="field">
            <span>Max output, tokens</span>
            <input
              type="number"
              min={1}
              max={model.max_output_tokens ?? undefined}
              value={maxTokens}
              onInput={({ currentTarget }) => setMaxTokens(Math.max(1, Math.floor(currentTarget.valueAsNumber || 1)))}
            />
          </label>
          <button type="submit" class="button" disabled={isRunning}>
            {isRunning ? 'Streaming …' : 'Send'}
          </button>
          {isRunning && (
            <button type="button" class="button quiet" onClick={stop}>
              Stop
            </button>
          )}
        </div>
        {models.map((each) => (
          <CallEstimate key={each.id} model={each} maxTokens={maxTokens} isNamed={other !== undefined} />
        ))}
      </form>
      <div class="answers">
        {models.map(({ id }, at) => {
          const call = calls[at]
          return call && <AnswerCard key={`${at} ${id}`} id={id} isNamed={other !== undefined} call={call} />
        })}
      </div>
      <section class="card" aria-labelledby="as-code">
        <h2 id="as-code">As code</h2>
        <CodeBlock code={curlOf(address, dialect, bodyOf(callOf(model)))} what="call" />
      </section>
    </>
  )
}

function curlOf(address: string, dialect: Dialect, body: object): string {
  const auth =
    dialect === 'chat'
      ? '-H "Authorization: Bearer $TOLLGATE_KEY"'
      : '-H "x-api-key: $TOLLGATE_KEY" -H "anthropic-version: 2023-06-01"'
  return `curl -N ${address}${playgroundPaths[dialect]} \\
  ${auth} -H "Content-Type: application/json" \\
  -d '${JSON.stringify(body).replaceAll("'", `'\\''`)}'`
}
