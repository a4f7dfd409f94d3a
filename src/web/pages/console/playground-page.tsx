/** @jsxImportSource preact */
// The playground: sends a message to one model, or to two side by side, with a real key. Shows the answers as they stream,
// the cost before and after, and the request as code.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { formatUsd, parsePrice, picoToNano } from '../../../kernel/money.ts'
import { type CatalogEntry, isEmbedder } from '../../catalog/entry.ts'
import { countOf, exactCount, shortMs, usdText } from '../../catalog/format.ts'
import { withOwnKeyModels } from '../../catalog/usable-models.ts'
import type { ConsoleData } from '../../page-data.ts'
import { ApiError } from '../api.ts'
import { Button, CodeBlock, ErrorNotice } from '../components.tsx'
import { Checkbox, Field } from '../form.tsx'
import { useAddressQuery, useApi, useQuery } from '../hooks.ts'
import { Amount, Card, curlText, exampleModel, QueryView } from './components.tsx'
import { useMay, useWorkspaces } from './context.tsx'
import {
  bodyOf,
  type Dialect,
  dialects,
  type ModelCall,
  type PlaygroundAnswer,
  type PlaygroundRequest,
  type Tool,
  useModelCall,
} from './model-call.ts'
import { readOwnKeyModels } from './workspace-data.ts'

const dialectOptions = Object.entries(dialects).map(([value, { label }]) => ({ value, label }))

export function PlaygroundView({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(['model', 'other', 'dialect'])
  const catalog = useApi('getCatalog', {})
  const { workspaces, current } = useWorkspaces()
  const may = useMay()
  const reader = current && may('listCredentials', current.id) ? current.id : undefined
  const own = useQuery(reader, () => readOwnKeyModels(reader ?? ''))
  const dialect = Object.hasOwn(dialects, query.dialect) ? (query.dialect as Dialect) : 'chat'
  return (
    <>
      {own.error && <ErrorNotice error={own.error} retry={own.reload} />}
      <QueryView what="models" query={catalog}>
        {({ data }) => {
          const models = withOwnKeyModels(data, own.value?.models ?? []).filter(
            (entry) => entry.callable && !isEmbedder(entry),
          )
          const model = models.find(({ id }) => id === query.model) ?? exampleModel(models)
          const other = models.find(({ id }) => id === query.other)
          const options = models.map(({ id }) => ({ value: id, label: id }))
          if (!model) {
            return (
              <p class="empty">No model can be called yet. Set a provider’s API key, or add one to tollgate.yaml.</p>
            )
          }
          return (
            <>
              <div class="controls">
                <Field
                  label="Model"
                  value={model.id}
                  options={options}
                  isWide
                  onChange={(next) => change({ model: next })}
                />
                <Field
                  label="Compare with"
                  value={other?.id ?? ''}
                  options={[{ value: '', label: 'no other model' }, ...options]}
                  isWide
                  onChange={(next) => change({ other: next })}
                />
                <Field
                  label="API"
                  value={dialect}
                  options={dialectOptions}
                  isWide
                  onChange={(next) => change({ dialect: next })}
                />
              </div>
              {workspaces && !current && (
                <p class="hint">Choose a workspace to include the models that its own provider keys unlock.</p>
              )}
              <Prompt models={other ? [model, other] : [model]} dialect={dialect} address={address} />
            </>
          )
        }}
      </QueryView>
    </>
  )
}

interface PromptProps {
  /** One, or two side by side. */
  readonly models: readonly [CatalogEntry, ...CatalogEntry[]]
  readonly dialect: Dialect
  readonly address: string
}

function Prompt({ models, dialect, address }: PromptProps) {
  const [key, setKey] = useState('')
  const [prompt, setPrompt] = useState('hello from the other side of the gate')
  const [maxTokens, setMaxTokens] = useState(200)
  const [toolInput, setToolInput] = useState(exampleTool)
  const calls = [useModelCall(), useModelCall()] as const
  const [first] = models
  const isNamed = models.length > 1
  const tool = toolOf(toolInput)
  const requestFor = ({ id }: CatalogEntry): PlaygroundRequest => {
    return { dialect, key, model: id, prompt, maxTokens, ...(tool && { tool }) }
  }
  const isRunning = calls.some((call) => call.isRunning)
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (toolInput.isOffered && !tool) return
    for (const [at, each] of models.entries()) calls[at]?.send(requestFor(each))
  }
  const stop = () => {
    for (const call of calls) call.stop()
  }
  return (
    <>
      <form class="card stack" onSubmit={submit}>
        <Field
          label="API key. Its limits apply and its workspace is charged. The key stays on this page."
          kind="password"
          value={key}
          isRequired
          attributes={{ placeholder: 'sk-tg-…' }}
          onChange={(text) => setKey(text.trim())}
        />
        <Field
          label="Message"
          kind="lines"
          value={prompt}
          isRequired
          attributes={{ rows: 4, 'data-search': true, spellcheck: true }}
          onChange={setPrompt}
        />
        <ToolFields input={toolInput} onChange={setToolInput} />
        <div class="controls">
          <Field
            label="Max output tokens"
            value={String(maxTokens)}
            attributes={{ type: 'number', min: 1, max: first.max_output_tokens ?? undefined }}
            onChange={(text) => setMaxTokens(Math.max(1, Math.floor(Number(text) || 1)))}
          />
          <button type="submit" class="button" disabled={isRunning}>
            {isRunning ? 'Streaming …' : 'Send'}
          </button>
          {isRunning && (
            <Button look="quiet" onClick={stop}>
              Stop
            </Button>
          )}
        </div>
        {models.map((each) => (
          <CostEstimate key={each.id} model={each} maxTokens={maxTokens} isNamed={isNamed} />
        ))}
      </form>
      <div class="answers">
        {models.map(({ id }, at) => {
          const call = calls[at]
          return call && <AnswerCard key={`${at} ${id}`} id={id} isNamed={isNamed} call={call} />
        })}
      </div>
      <Card title="Code">
        <CodeBlock code={curlText(address, bodyOf(requestFor(first)), dialects[dialect])} what="request" />
      </Card>
    </>
  )
}

interface CostEstimateProps {
  readonly model: CatalogEntry
  readonly maxTokens: number
  /** With two models each estimate is named. */
  readonly isNamed: boolean
}

function CostEstimate({ model, maxTokens, isNamed }: CostEstimateProps) {
  const { price } = model
  const subject = isNamed ? model.id : 'This model'
  if (price === 'free') return <p class="hint">{subject} is free.</p>
  if (model.own_key) {
    return <p class="hint">{subject} uses the workspace’s own provider key; the provider bills it.</p>
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

function AnswerCard({
  id,
  isNamed,
  call,
}: {
  readonly id: string
  readonly isNamed: boolean
  readonly call: ModelCall
}) {
  const { text, toolCalls, outcome, isRunning } = call
  const isEmpty = text === '' && toolCalls.length === 0 && !outcome
  return (
    <section class="card stack" aria-label={`Answer of ${id}`} data-answer={id}>
      <h2>Answer{isNamed && <small class="note">{id}</small>}</h2>
      <div class="answer-text" aria-live="polite" aria-busy={isRunning}>
        {isEmpty && <span class="muted">{isRunning ? 'Waiting …' : 'The answer appears here.'}</span>}
        {text}
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
      {outcome && !(outcome instanceof ApiError) && <AnswerCost answer={outcome} />}
    </section>
  )
}

/** From the request log: the charge is recorded before the answer's last bytes are sent. */
function AnswerCost({ answer: { requestId, problem } }: { readonly answer: PlaygroundAnswer }) {
  const { value, error, reload } = useApi('getRequest', requestId === '' ? undefined : { id: requestId })
  return (
    <>
      {problem !== '' && (
        <p class="warning" role="alert">
          {problem}
        </p>
      )}
      {error && <ErrorNotice error={error} retry={reload} />}
      {value && (
        <p role="status">
          Cost{' '}
          <strong data-cost={value.cost ?? ''}>
            <Amount usd={value.cost} />
          </strong>
          {value.usage && `: ${exactCount(value.usage.input_tokens)} in, ${exactCount(value.usage.output_tokens)} out`}
          {value.first_event_ms !== null && `, first token after ${shortMs(value.first_event_ms)}`}.{' '}
          <a href={`/console/requests/${requestId}`}>View request</a>
        </p>
      )}
    </>
  )
}

/** As typed, possibly invalid. */
interface ToolInput {
  readonly isOffered: boolean
  readonly name: string
  readonly description: string
  readonly parameters: string
}

const exampleTool: ToolInput = {
  isOffered: false,
  name: 'get_weather',
  description: 'The current weather in a city.',
  parameters: JSON.stringify(
    { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    undefined,
    2,
  ),
}

/** undefined = none is offered, or the input is invalid. */
function toolOf({ isOffered, name, description, parameters }: ToolInput): Tool | undefined {
  const schema = isOffered ? parseSchema(parameters) : undefined
  return schema && { name: name.trim(), description: description.trim(), parameters: schema }
}

function parseSchema(text: string): Tool['parameters'] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

function ToolFields({ input, onChange }: { readonly input: ToolInput; onChange(input: ToolInput): void }) {
  const change = (part: Partial<ToolInput>) => onChange({ ...input, ...part })
  const isInvalid = input.isOffered && toolOf(input) === undefined
  return (
    <fieldset class="stack tight">
      <legend class="visually-hidden">Tool</legend>
      <Checkbox
        label="Offer a tool. The model’s call is shown, not run."
        isChecked={input.isOffered}
        onChange={(isOffered) => change({ isOffered })}
      />
      {input.isOffered && (
        <>
          <div class="columns">
            <Field label="Tool name" value={input.name} isRequired onChange={(name) => change({ name })} />
            <Field label="Description" value={input.description} onChange={(description) => change({ description })} />
          </div>
          <Field
            label="Parameters (JSON Schema)"
            kind="lines"
            value={input.parameters}
            isRequired
            attributes={{ rows: 5, class: 'code', 'aria-invalid': isInvalid }}
            onChange={(parameters) => change({ parameters })}
          />
          {isInvalid && (
            <p class="problem" role="alert">
              The parameters are not a JSON object.
            </p>
          )}
        </>
      )}
    </fieldset>
  )
}
