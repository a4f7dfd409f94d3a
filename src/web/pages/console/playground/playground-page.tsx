/** @jsxImportSource preact */
// Try a model with a real key: the answer as it streams, what it may cost before and what it did cost after, and the same
// call as code.

import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ConsoleData } from '../../../page-data.ts'
import { useAddressQuery } from '../parts/address-query.ts'
import type { CatalogItem } from '../parts/api-answers.ts'
import { Refusal } from '../parts/call-api.ts'
import { firstModel } from '../parts/first-call.tsx'
import { CodeBlock, Loading, Refused } from '../parts/resource-view.tsx'
import { type ListAnswer, useResource } from '../parts/use-resource.ts'
import { CallCost, CallEstimate } from './call-cost.tsx'
import { bodyOf, callModel, type Dialect, type PlaygroundAnswer, playgroundPaths } from './playground-call.ts'

export function PlaygroundPage({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(['model', 'dialect'])
  const { value, refusal, again } = useResource<ListAnswer<CatalogItem>>('/api/catalog')
  const models = (value?.data ?? []).filter(({ callable }) => callable)
  const model = models.find(({ id }) => id === query.model) ?? firstModel(models)
  const dialect: Dialect = query.dialect === 'messages' ? 'messages' : 'chat'
  return (
    <>
      <h1>Playground</h1>
      {refusal && <Refused refusal={refusal} again={again} />}
      {!value && !refusal && <Loading what="models" />}
      {value && !model && (
        <p class="empty">No model can be called yet. Set a provider’s key, or add one to tollgate.yaml.</p>
      )}
      {model && (
        <>
          <div class="controls">
            <label class="field wide">
              <span>Model</span>
              <select value={model.id} onChange={({ currentTarget }) => change({ model: currentTarget.value })}>
                {models.map(({ id }) => (
                  <option key={id} value={id}>
                    {id}
                  </option>
                ))}
              </select>
            </label>
            <label class="field">
              <span>Dialect</span>
              <select value={dialect} onChange={({ currentTarget }) => change({ dialect: currentTarget.value })}>
                <option value="chat">OpenAI chat</option>
                <option value="messages">Anthropic messages</option>
              </select>
            </label>
          </div>
          <Bench model={model} dialect={dialect} address={address} />
        </>
      )}
    </>
  )
}

interface BenchProps {
  readonly model: CatalogItem
  readonly dialect: Dialect
  readonly address: string
}

function Bench({ model, dialect, address }: BenchProps) {
  const [key, setKey] = useState('')
  const [prompt, setPrompt] = useState('hello from the other side of the gate')
  const [maxTokens, setMaxTokens] = useState(200)
  const { text, outcome, isRunning, send, stop } = useModelCall()
  const call = { dialect, key, model: model.id, prompt, maxTokens }
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    void send(call)
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
        <div class="controls">
          <label class="field">
            <span>Longest answer, tokens</span>
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
        <CallEstimate model={model} maxTokens={maxTokens} />
      </form>
      <section class="card" aria-labelledby="answer">
        <h2 id="answer">Answer</h2>
        <div class="conversation" aria-live="polite" aria-busy={isRunning}>
          {text === '' ? <span class="muted">It streams in here.</span> : text}
        </div>
        {outcome instanceof Refusal && <Refused refusal={outcome} />}
        {outcome && !(outcome instanceof Refusal) && <CallCost answer={outcome} />}
      </section>
      <section class="card" aria-labelledby="as-code">
        <h2 id="as-code">As code</h2>
        <CodeBlock code={curlOf(address, dialect, bodyOf(call))} what="call" />
      </section>
    </>
  )
}

function useModelCall() {
  const [text, setText] = useState('')
  const [outcome, setOutcome] = useState<PlaygroundAnswer | Refusal | undefined>(undefined)
  const [isRunning, setRunning] = useState(false)
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const send = async (call: Parameters<typeof callModel>[0]) => {
    const own = new AbortController()
    running.current = own
    setText('')
    setOutcome(undefined)
    setRunning(true)
    try {
      setOutcome(await callModel(call, (more) => setText((before) => before + more), own.signal))
    } catch {
      const words = own.signal.aborted ? 'You stopped it.' : 'The connection broke off.'
      setOutcome(new Refusal(0, `${words} What was charged stands under Requests.`, ''))
    }
    setRunning(false)
  }
  return { text, outcome, isRunning, send, stop: () => running.current?.abort() }
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
