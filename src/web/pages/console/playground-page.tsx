/** @jsxImportSource preact */
// The playground: a conversation with up to four models side by side, with a real key. Shows the models and prices of the
// project or key that pays, the answers as they stream, the cost before and after, and the conversation as code.

import { useEffect, useState } from 'preact/hooks'
import { formatUsd, parsePrice, picoToNano } from '../../../kernel/money.ts'
import { type CatalogEntry, isEmbedder } from '../../catalog/entry.ts'
import { countOf, usdText } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import { ApiError } from '../api.ts'
import { Amount, Button, CodeBlock, ErrorNotice, Menu, Skeleton, Tabs } from '../components.tsx'
import { CheckedForm, Field } from '../form.tsx'
import { useAddressQuery } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { useLiveCatalog } from '../live-catalog.ts'
import { AnswerCard } from './answer-card.tsx'
import { curlText, exampleModel } from './components.tsx'
import { useWorkspaces } from './context.tsx'
import { sumOf } from './figures.ts'
import {
  bodyOf,
  type CallState,
  type ChatMessage,
  idleCall,
  type PlaygroundRequest,
  type Surface,
  surfaces,
  useModelCall,
} from './model-call.ts'
import { usePlace } from './navigation.ts'
import { Dialog, useOverlay } from './overlay.tsx'
import {
  emptySettings,
  exampleSchema,
  exampleTool,
  type Images,
  PromptsDialog,
  SchemaFields,
  SettingsFields,
  schemaOf,
  Thumbnails,
  ToolFields,
  takesImages,
  toolOf,
  useImages,
  useKeySource,
} from './playground-inputs.tsx'

const surfaceOptions = Object.entries(surfaces).map(([value, { label }]) => ({ value, label }))

const modelsMax = 4

const answersMessages = (entries: readonly CatalogEntry[]) =>
  entries.filter((entry) => entry.callable && !isEmbedder(entry))

export function PlaygroundView({ address }: ConsoleData) {
  const source = useKeySource()
  return source.isLoading ? <Skeleton what="models" /> : <Playground source={source} address={address} />
}

interface PlaygroundProps extends Pick<ConsoleData, 'address'> {
  readonly source: ReturnType<typeof useKeySource>
}

function Playground({ source, address }: PlaygroundProps) {
  // `other` has the further models, separated by commas.
  const [query, change] = useAddressQuery(['model', 'other', 'surface'])
  const images = useState<readonly string[]>([])
  const { workspaces, current } = useWorkspaces()
  const { subject } = source
  const catalog = useLiveCatalog({ initial: undefined, state: '', subject, select: answersMessages })
  const wanted = JSON.stringify(subject)
  useEffect(() => {
    if (wanted !== JSON.stringify(catalog.subject)) catalog.choose(subject)
  }, [wanted])
  const models = catalog.entries
  if (!models) return catalog.error ? <ErrorNotice error={catalog.error} /> : <Skeleton what="models" />
  const model = models.find(({ id }) => id === query.model) ?? exampleModel(models)
  if (!model) return <p class="empty">No model can be called yet. Add a provider key under Providers & routes.</p>
  const others = query.other.split(',').flatMap((id) => models.find((each) => each.id === id) ?? [])
  const chosen = [model, ...others.slice(0, modelsMax - 1)] as const
  const changeOther = (at: number, id: string) => {
    const ids = others.map((other) => other.id)
    change({ other: (id === '' ? ids.toSpliced(at, 1) : ids.toSpliced(at, 1, id)).join() })
  }
  const surface = Object.hasOwn(surfaces, query.surface) ? (query.surface as Surface) : 'chat'
  const withImages = images[0].length > 0
  const offered = withImages ? models.filter(takesImages) : models
  const menu = { models: offered, kind: withImages ? 'model that takes images' : 'model' }
  const isMissing = query.model !== '' && model.id !== query.model
  return (
    <>
      {catalog.error && <ErrorNotice error={catalog.error} />}
      <div class="controls playground-models">
        <ModelMenu label="Model" {...menu} chosen={model} onChoose={(next) => change({ model: next })} />
        {[...others, undefined].slice(0, modelsMax - 1).map((other, at) => (
          <ModelMenu
            key={at}
            label="Compare with"
            {...menu}
            chosen={other}
            none="no other model"
            onChoose={(next) => changeOther(at, next)}
          />
        ))}
        <Field
          label="API"
          value={surface}
          options={surfaceOptions}
          isWide
          onChange={(next) => change({ surface: next })}
        />
      </div>
      {isMissing && (
        <p class="warning" role="status">
          {subject.kind === 'project' ? `Project ${subject.project.name}` : 'This key'} cannot call {query.model}.
        </p>
      )}
      {workspaces && !current && subject.kind === 'public' && (
        <p class="hint">Choose a workspace, or enter a key, to see its models and prices.</p>
      )}
      <Prompt models={chosen} surface={surface} address={address} source={source} images={images} />
    </>
  )
}

interface ModelMenuProps {
  readonly label: string
  readonly models: readonly CatalogEntry[]
  /** What the list has, in the singular. */
  readonly kind: string
  readonly chosen: CatalogEntry | undefined
  /** The name of no choice; absent = one has to be chosen. */
  readonly none?: string
  onChoose(id: string): void
}

/** A list of models with their prices, found by typing words of their ids. */
function ModelMenu({ label, models, kind, chosen, none, onChoose }: ModelMenuProps) {
  const items = models.map((model) => ({
    label: model.id,
    note: priceNote(model),
    isChosen: model.id === chosen?.id,
    run: () => onChoose(model.id),
  }))
  const noneItem = { label: none ?? '', isChosen: chosen === undefined, run: () => onChoose('') }
  return (
    <div class="field wide">
      <span class="label" aria-hidden="true">
        {label}
      </span>
      <Menu
        name={label}
        look="model-button"
        isStart
        items={none === undefined ? items : [noneItem, ...items]}
        search={{
          label: 'Search models',
          placeholder: `Search ${countOf(models.length, kind)}`,
          none: 'No models match.',
        }}
      >
        <span class="visually-hidden">{label}:</span>
        <span class="model-button-name">{chosen?.id ?? none}</span>
        <Icon name="down" size={14} />
      </Menu>
    </div>
  )
}

/** Input and output per million tokens. */
function priceNote({ price, own_key: isOwn }: CatalogEntry): string {
  if (isOwn) return 'your key'
  return price === 'free' ? 'free' : price ? `${usdText(price.input)} / ${usdText(price.output)}` : ''
}

interface PromptProps extends PlaygroundProps {
  /** Side by side. */
  readonly models: readonly [CatalogEntry, ...CatalogEntry[]]
  readonly surface: Surface
  readonly images: Images
}

interface Message {
  readonly prompt: string
  /** Data URLs. */
  readonly images?: readonly string[] | undefined
}

/** A message and the answers to it, each with the model that gave it. */
interface Turn extends Message {
  readonly answers: readonly CallState[]
}

interface AskedMessage extends Message {
  /** How many models it was sent to. */
  readonly count: number
}

const reasons = ({ tags }: CatalogEntry) => tags.includes('reasoning')

function Prompt({ models, surface, address, source, images }: PromptProps) {
  const { open } = useOverlay()
  const [prompt, setPrompt] = useState('hello from the other side of the gate')
  const attached = useImages(models, images)
  const [past, setPast] = useState<readonly Turn[]>([])
  /** The last turn, whose answers are those of the calls. */
  const [asked, setAsked] = useState<AskedMessage | undefined>(undefined)
  const [settings, setSettings] = useState(emptySettings)
  const [toolInput, setToolInput] = useState(exampleTool)
  const [schemaInput, setSchemaInput] = useState(exampleSchema)
  const costs = useCosts()
  const { scope } = usePlace()
  const calls = [useModelCall(), useModelCall(), useModelCall(), useModelCall()] as const
  const [first] = models
  const tool = toolOf(toolInput)
  const schema = schemaOf(schemaInput)
  const maxTokens = Math.max(1, Math.floor(Number(settings.maxTokens) || 1))
  const requestFor = (at: number, turns: readonly Turn[], message: Message, key = ''): PlaygroundRequest => {
    const model = models[at] ?? first
    return {
      ...{ surface, key, model: model.id, system: settings.system.trim(), maxTokens },
      messages: [...turns.flatMap((turn) => messagesOf(turn, model.id, at)), userMessage(message)],
      effort: reasons(model) ? settings.effort : '',
      ...{ temperature: numberOf(settings.temperature), topP: numberOf(settings.topP), schema, ...(tool && { tool }) },
    }
  }
  const isRunning = calls.some((call) => call.isRunning) || source.isBusy
  const ended: readonly Turn[] =
    asked === undefined ? past : [...past, { ...asked, answers: calls.slice(0, asked.count) }]
  useEffect(() => {
    const kept = readKept(scope)
    setPast(kept.turns)
    costs.restore(kept.costs)
  }, [])
  useEffect(() => {
    if (!isRunning) keep(scope, { turns: ended, costs: costs.byRequest })
  }, [isRunning, costs.count, ended.length])
  const send = (turns: readonly Turn[], message: Message) => {
    if (isRunning || (toolInput.isOffered && !tool) || (schemaInput.isOn && !schema)) return
    source.withKey((key) => {
      setPast(turns)
      setAsked({ prompt: message.prompt, images: message.images, count: models.length })
      setPrompt((typed) => (typed === message.prompt ? '' : typed))
      attached.set([])
      for (const at of models.keys()) calls[at]?.send(requestFor(at, turns, message, key))
    })
  }
  const last = ended.at(-1)
  const earlier = ended.slice(0, -1)
  /** Takes the last message back, to send another one in its place. */
  const edit = () => {
    setPrompt(last?.prompt ?? '')
    attached.set(last?.images ?? [])
    setPast(earlier)
    forget()
    focusComposer()
  }
  const forget = () => {
    setAsked(undefined)
    for (const call of calls) call.clear()
  }
  const startOver = () => {
    setPast([])
    forget()
    costs.clear()
    focusComposer()
  }
  const openPrompts = () =>
    open(
      <PromptsDialog
        prompt={prompt}
        system={settings.system}
        onUse={(saved) => {
          setPrompt(saved.prompt)
          setSettings((before) => ({ ...before, system: saved.system }))
        }}
      />,
    )
  // What would be sent now, or what was sent last.
  const code =
    prompt.trim() === '' && last
      ? requestFor(0, earlier, last)
      : requestFor(0, ended, { prompt, images: attached.images })
  return (
    <CheckedForm class="playground" onSubmit={() => send(ended, { prompt, images: attached.images })}>
      <div class="stack">
        {ended.length === 0 && <Answers ids={models.map(({ id }) => id)} answers={[]} onCost={costs.add} />}
        {ended.map((turn, at) => (
          <section key={at} class="stack tight" aria-label={`Turn ${at + 1}`}>
            <div class="user-message">
              <Thumbnails images={turn.images ?? []} />
              <p>{turn.prompt}</p>
              {at === ended.length - 1 && !isRunning && (
                <span class="row">
                  <Button look="quiet small" onClick={edit}>
                    Edit
                  </Button>
                  <Button look="quiet small" onClick={() => send(earlier, turn)}>
                    Regenerate
                  </Button>
                </span>
              )}
            </div>
            <Answers ids={turn.answers.map(({ model }) => model)} answers={turn.answers} onCost={costs.add} />
          </section>
        ))}
        <div class="card stack" data-composer>
          <Field
            label="Message"
            kind="lines"
            value={prompt}
            isRequired
            attributes={{ rows: 3, 'data-search': true, spellcheck: true, onKeyDown: sendWithEnter }}
            onChange={setPrompt}
          />
          {attached.fields}
          {models.map((each) => (
            <CostEstimate key={each.id} model={each} maxTokens={maxTokens} isNamed={models.length > 1} />
          ))}
          {source.error && <ErrorNotice error={source.error} />}
          <div class="between">
            <span class="row">
              <button type="submit" class="button" disabled={isRunning} title="Ctrl Enter">
                {isRunning ? 'Streaming …' : 'Send'}
              </button>
              {isRunning && (
                <Button look="quiet" onClick={() => calls.forEach((call) => void call.stop())}>
                  Stop
                </Button>
              )}
              {attached.button}
              <Button look="quiet" onClick={() => open(<CodeDialog request={code} address={address} />)}>
                View code
              </Button>
              <Button look="quiet" onClick={openPrompts}>
                Saved prompts
              </Button>
              {ended.length > 0 && !isRunning && (
                <Button look="quiet" onClick={startOver}>
                  New conversation
                </Button>
              )}
            </span>
            {costs.count > 0 && (
              <span class="muted" data-total={costs.total}>
                {countOf(costs.count, 'answer')}: <Amount usd={costs.total} />
              </span>
            )}
          </div>
        </div>
      </div>
      <SettingsFields
        settings={settings}
        outputMax={first.max_output_tokens ?? undefined}
        reasoning={models.filter(reasons).map(({ id }) => id)}
        isReasoning={models.every(reasons)}
        change={(part) => setSettings({ ...settings, ...part })}
      >
        <ToolFields input={toolInput} onChange={setToolInput} />
        <SchemaFields
          input={schemaInput}
          without={models.filter(({ tags }) => !tags.includes('json')).map(({ id }) => id)}
          onChange={setSchemaInput}
        />
        {source.fields}
      </SettingsFields>
    </CheckedForm>
  )
}

function userMessage({ prompt, images }: Message): ChatMessage {
  return { role: 'user', content: prompt, images }
}

/** What a model is sent of an earlier turn: its own answer, or that of the model in whose place it is now, or the first one. */
function messagesOf({ answers, ...message }: Turn, model: string, at: number): readonly ChatMessage[] {
  const own = answers.find((answer) => answer.model === model)
  const text = own?.text || answers[at]?.text || answers[0]?.text
  // Without an answer the message would be sent twice.
  if (!text) return []
  return [userMessage(message), { role: 'assistant', content: text }]
}

interface Kept {
  readonly turns: readonly Turn[]
  readonly costs: Readonly<Record<string, string>>
}

const keptName = (scope: string) => `tollgate-playground ${scope}`

/** Until the tab is closed or its user signs out, so that a look at a request does not lose the conversation. */
function keep(scope: string, { turns, costs }: Kept): void {
  const answered = turns.flatMap(({ prompt, images, answers }) => {
    const whole = answers.map(({ model, requestId, text, reasoning, toolCalls, outcome }) => ({
      ...{ model, requestId, text, reasoning, toolCalls, outcome, isRunning: false },
    }))
    const isWhole = whole[0]?.outcome !== undefined && !whole.some(({ outcome }) => outcome instanceof ApiError)
    return isWhole ? [{ prompt, images, answers: whole }] : []
  })
  try {
    sessionStorage.setItem(keptName(scope), JSON.stringify({ turns: answered, costs }))
  } catch {
    // There is no room for it; the page works without.
  }
}

function readKept(scope: string): Kept {
  return (JSON.parse(sessionStorage.getItem(keptName(scope)) ?? 'null') as Kept | null) ?? { turns: [], costs: {} }
}

/** The charges of all answers of a conversation, also of those that were generated again. */
function useCosts() {
  const [costs, setCosts] = useState<Readonly<Record<string, string>>>({})
  const amounts = Object.values(costs)
  return {
    count: amounts.length,
    total: sumOf(amounts),
    byRequest: costs,
    restore: setCosts,
    add: (requestId: string, usd: string) => setCosts((before) => ({ ...before, [requestId]: usd })),
    clear: () => setCosts({}),
  }
}

function sendWithEnter(event: KeyboardEvent): void {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
  event.preventDefault()
  if (event.currentTarget instanceof HTMLTextAreaElement) event.currentTarget.form?.requestSubmit()
}

function focusComposer(): void {
  document.querySelector<HTMLElement>('[data-composer] textarea')?.focus()
}

interface AnswersProps {
  /** Of the models, in their order. */
  readonly ids: readonly string[]
  readonly answers: readonly CallState[]
  onCost(requestId: string, usd: string): void
}

/** Side by side. */
function Answers({ ids, answers, onCost }: AnswersProps) {
  return (
    <div class="answers">
      {ids.map((id, at) => (
        <AnswerCard key={`${at} ${id}`} id={id} call={answers[at] ?? idleCall} onCost={onCost} />
      ))}
    </div>
  )
}

function numberOf(text: string): number | undefined {
  return text.trim() === '' || Number.isNaN(Number(text)) ? undefined : Number(text)
}

function CodeDialog({ request, address }: { readonly request: PlaygroundRequest; readonly address: string }) {
  const { path, auth, headers } = surfaces[request.surface]
  const body = bodyOf({ ...request, messages: request.messages.map(withoutImageData) })
  const javascript = `const response = await fetch(${JSON.stringify(address + path)}, {
  method: "POST",
  headers: ${JSON.stringify({ 'content-type': 'application/json', ...headers('$KEY') })
    .replace('"$KEY"', 'process.env.TOLLGATE_KEY')
    .replace('"Bearer $KEY"', '"Bearer " + process.env.TOLLGATE_KEY')},
  body: JSON.stringify(${JSON.stringify(body, undefined, 2).replaceAll('\n', '\n  ')}),
})
for await (const chunk of response.body) process.stdout.write(chunk)`
  return (
    <Dialog title="Code">
      <div class="form">
        <p class="hint">
          Set <code>TOLLGATE_KEY</code> to an API key.
        </p>
        <Tabs
          name="Languages"
          tabs={[
            { label: 'curl', content: <CodeBlock code={curlText(address, body, { path, auth })} what="request" /> },
            { label: 'JavaScript', content: <CodeBlock code={javascript} what="request in JavaScript" /> },
          ]}
        />
      </div>
    </Dialog>
  )
}

/** The data of an image would fill the page. */
function withoutImageData({ images, ...message }: ChatMessage): ChatMessage {
  return { ...message, images: images?.map((url) => url.replace(/,.*/s, ',…')) }
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
