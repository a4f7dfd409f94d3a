/** @jsxImportSource preact */
// The playground: a conversation with one model, or with two side by side, with a real key. Shows the answers as they
// stream, the cost before and after, and the conversation as code.

import type { ComponentChildren, TargetedSubmitEvent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { formatUsd, parsePrice, picoToNano } from '../../../kernel/money.ts'
import { type CatalogEntry, isEmbedder, withOwnKeyModels } from '../../catalog/entry.ts'
import { countOf, usdText } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import { ApiError, callApi } from '../api.ts'
import { Button, CodeBlock, ErrorNotice, Menu, Tabs } from '../components.tsx'
import { Checkbox, Field, type FieldLook } from '../form.tsx'
import { useAddressQuery, useApi, useQuery, useSubmit } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { AnswerCard } from './answer-card.tsx'
import { Amount, curlText, exampleModel, QueryView } from './components.tsx'
import { useMay, useWorkspaces } from './context.tsx'
import { sumOf } from './figures.ts'
import {
  bodyOf,
  type CallState,
  type ChatMessage,
  idleCall,
  imageTypes,
  type PlaygroundRequest,
  type Surface,
  surfaces,
  type Tool,
  useModelCall,
} from './model-call.ts'
import { usePlace } from './navigation.ts'
import { Dialog, useOverlay } from './overlay.tsx'
import { playgroundKeyName, readOwnKeyModels } from './workspace-data.ts'

const surfaceOptions = Object.entries(surfaces).map(([value, { label }]) => ({ value, label }))

export function PlaygroundView({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(['model', 'other', 'surface'])
  const catalog = useApi('getCatalog', {})
  const { workspaces, current } = useWorkspaces()
  const may = useMay()
  const reader = current && may('listCredentials', current.id) ? current.id : undefined
  const own = useQuery(reader, () => readOwnChatModels(reader ?? ''))
  const surface = Object.hasOwn(surfaces, query.surface) ? (query.surface as Surface) : 'chat'
  return (
    <>
      {own.error && <ErrorNotice error={own.error} retry={own.reload} />}
      <QueryView what="models" query={catalog}>
        {({ data }) => {
          const models = withOwnKeyModels(data, own.value ?? []).filter((each) => each.callable && !isEmbedder(each))
          const model = models.find(({ id }) => id === query.model) ?? exampleModel(models)
          const other = models.find(({ id }) => id === query.other)
          if (!model) {
            return <p class="empty">No model can be called yet. Add a provider key under Providers & routes.</p>
          }
          return (
            <>
              <div class="controls">
                <ModelMenu label="Model" models={models} chosen={model} onChoose={(next) => change({ model: next })} />
                <ModelMenu
                  label="Compare with"
                  models={models}
                  chosen={other}
                  none="no other model"
                  onChoose={(next) => change({ other: next })}
                />
                <Field
                  label="API"
                  value={surface}
                  options={surfaceOptions}
                  isWide
                  onChange={(next) => change({ surface: next })}
                />
              </div>
              {workspaces && !current && (
                <p class="hint">Choose a workspace to include the models that its own provider keys unlock.</p>
              )}
              <Prompt models={other ? [model, other] : [model]} surface={surface} address={address} />
            </>
          )
        }}
      </QueryView>
    </>
  )
}

/** The capabilities of models that only own keys unlock are in the catalog of all models. */
async function readOwnChatModels(id: string) {
  const { models } = await readOwnKeyModels(id)
  if (models.length === 0) return models
  const { data } = await callApi('getCatalog', { query: { all: 'true' } })
  const others = new Set(data.filter(isEmbedder).map((model) => model.id))
  return models.filter((model) => !others.has(model.id))
}

interface ModelMenuProps {
  readonly label: string
  readonly models: readonly CatalogEntry[]
  readonly chosen: CatalogEntry | undefined
  /** The name of no choice; absent = one has to be chosen. */
  readonly none?: string
  onChoose(id: string): void
}

/** A list of models with their prices, found by typing words of their ids. */
function ModelMenu({ label, models, chosen, none, onChoose }: ModelMenuProps) {
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
          placeholder: `Search ${countOf(models.length, 'model')}`,
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

interface PromptProps {
  /** One, or two side by side. */
  readonly models: readonly [CatalogEntry, ...CatalogEntry[]]
  readonly surface: Surface
  readonly address: string
}

/** As typed. */
const emptySettings = { system: '', maxTokens: '200', temperature: '', topP: '', effort: '' }
type Settings = typeof emptySettings

interface Message {
  readonly prompt: string
  /** Data URLs. */
  readonly images?: readonly string[] | undefined
}

/** A message and the answers of the models, in their order. */
interface Turn extends Message {
  readonly answers: readonly CallState[]
}

function Prompt({ models, surface, address }: PromptProps) {
  const { open } = useOverlay()
  const [prompt, setPrompt] = useState('hello from the other side of the gate')
  const attached = useImages(models.every(({ tags }) => tags.includes('vision')))
  const [past, setPast] = useState<readonly Turn[]>([])
  /** The last turn, whose answers are those of the calls. */
  const [asked, setAsked] = useState<Message | undefined>(undefined)
  const [settings, setSettings] = useState(emptySettings)
  const [toolInput, setToolInput] = useState(exampleTool)
  const costs = useCosts()
  const { scope } = usePlace()
  const source = useKeySource()
  const calls = [useModelCall(), useModelCall()] as const
  const [first] = models
  const isNamed = models.length > 1
  const tool = toolOf(toolInput)
  const maxTokens = Math.max(1, Math.floor(Number(settings.maxTokens) || 1))
  const isReasoning = models.every(({ tags }) => tags.includes('reasoning'))
  const requestFor = (at: number, turns: readonly Turn[], message: Message, key = ''): PlaygroundRequest => ({
    ...{ surface, key, model: (models[at] ?? first).id, system: settings.system.trim(), maxTokens },
    messages: [...turns.flatMap((turn) => messagesOf(turn, at)), userMessage(message)],
    effort: isReasoning ? settings.effort : '',
    ...{ temperature: numberOf(settings.temperature), topP: numberOf(settings.topP), ...(tool && { tool }) },
  })
  const isRunning = calls.some((call) => call.isRunning) || source.isBusy
  const ended: readonly Turn[] = asked === undefined ? past : [...past, { ...asked, answers: calls }]
  useEffect(() => {
    const kept = readKept(scope)
    setPast(kept.turns)
    costs.restore(kept.costs)
  }, [])
  useEffect(() => {
    if (!isRunning) keep(scope, { turns: ended, costs: costs.byRequest })
  }, [isRunning, costs.count, ended.length])
  const send = (turns: readonly Turn[], message: Message) => {
    if (isRunning || (toolInput.isOffered && !tool)) return
    source.withKey((key) => {
      setPast(turns)
      setAsked({ prompt: message.prompt, images: message.images })
      setPrompt((typed) => (typed === message.prompt ? '' : typed))
      attached.set([])
      for (const at of models.keys()) calls[at]?.send(requestFor(at, turns, message, key))
    })
  }
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    send(ended, { prompt, images: attached.images })
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
  // What would be sent now, or what was sent last.
  const code =
    prompt.trim() === '' && last
      ? requestFor(0, earlier, last)
      : requestFor(0, ended, { prompt, images: attached.images })
  return (
    <form class="playground" onSubmit={submit}>
      <div class="stack">
        {ended.length === 0 && <Answers models={models} answers={calls} isNamed={isNamed} onCost={costs.add} />}
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
            <Answers models={models} answers={turn.answers} isNamed={isNamed} onCost={costs.add} />
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
            <CostEstimate key={each.id} model={each} maxTokens={maxTokens} isNamed={isNamed} />
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
        isReasoning={isReasoning}
        change={(part) => setSettings({ ...settings, ...part })}
      >
        <ToolFields input={toolInput} onChange={setToolInput} />
        {source.fields}
      </SettingsFields>
    </form>
  )
}

function userMessage({ prompt, images }: Message): ChatMessage {
  return { role: 'user', content: prompt, images }
}

const imagesMax = 4
/** The lowest limit of the large providers. */
const imageBytesMax = 5_000_000

/** The images of the next message, where the models take them. */
function useImages(isOffered: boolean) {
  const [images, set] = useState<readonly string[]>([])
  const [problem, setProblem] = useState('')
  const input = useRef<HTMLInputElement>(null)
  const add = async (files: readonly File[]) => {
    const fitting = files.filter(({ type, size }) => imageTypes.includes(type) && size <= imageBytesMax)
    const read = await Promise.all(fitting.map(dataUrlOf))
    const all = [...images, ...read]
    const isRefused = fitting.length < files.length || all.length > imagesMax
    setProblem(isRefused ? `Up to ${imagesMax} images: PNG, JPEG, GIF or WebP of at most 5 MB each.` : '')
    set(all.slice(0, imagesMax))
  }
  return {
    images: isOffered ? images : [],
    set,
    fields: isOffered && (
      <>
        <Thumbnails images={images} onRemove={(at) => set(images.filter((_, place) => place !== at))} />
        {problem !== '' && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
      </>
    ),
    button: isOffered && (
      <>
        <input
          ref={input}
          type="file"
          class="visually-hidden"
          aria-label="Images"
          tabIndex={-1}
          accept={imageTypes.join()}
          multiple
          onChange={({ currentTarget }) => {
            void add([...(currentTarget.files ?? [])])
            currentTarget.value = ''
          }}
        />
        <Button look="quiet" onClick={() => input.current?.click()}>
          Attach images
        </Button>
      </>
    ),
  }
}

function dataUrlOf(file: File): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const reader = new FileReader()
  reader.onload = () => resolve(String(reader.result))
  reader.onerror = () => reject(reader.error)
  reader.readAsDataURL(file)
  return promise
}

interface ThumbnailsProps {
  /** Data URLs. */
  readonly images: readonly string[]
  onRemove?(at: number): void
}

function Thumbnails({ images, onRemove }: ThumbnailsProps) {
  if (images.length === 0) return null
  return (
    <ul class="plain row thumbnails">
      {images.map((url, at) => (
        <li key={at}>
          <img src={url} alt={`Attached ${at + 1}`} />
          {onRemove && (
            <Button look="quiet small" aria-label={`Remove image ${at + 1}`} onClick={() => onRemove(at)}>
              Remove
            </Button>
          )}
        </li>
      ))}
    </ul>
  )
}

/** What a model is sent of an earlier turn. A model that joined later gets the first one's answer. */
function messagesOf({ answers, ...message }: Turn, at: number): readonly ChatMessage[] {
  const text = answers[at]?.text || answers[0]?.text
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
    const whole = answers.map(({ text, reasoning, toolCalls, outcome }) => ({
      ...{ text, reasoning, toolCalls, outcome, isRunning: false },
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
  readonly models: readonly CatalogEntry[]
  readonly answers: readonly CallState[]
  readonly isNamed: boolean
  onCost(requestId: string, usd: string): void
}

/** Side by side. */
function Answers({ models, answers, isNamed, onCost }: AnswersProps) {
  return (
    <div class="answers">
      {models.map(({ id }, at) => (
        <AnswerCard key={`${at} ${id}`} id={id} isNamed={isNamed} call={answers[at] ?? idleCall} onCost={onCost} />
      ))}
    </div>
  )
}

function numberOf(text: string): number | undefined {
  return text.trim() === '' || Number.isNaN(Number(text)) ? undefined : Number(text)
}

interface SettingsFieldsProps {
  readonly settings: Settings
  readonly outputMax: number | undefined
  readonly isReasoning: boolean
  readonly children: ComponentChildren
  change(part: Partial<Settings>): void
}

const effortOptions = [
  { value: '', label: 'default' },
  ...['low', 'medium', 'high'].map((value) => ({ value, label: value })),
]

function SettingsFields({ settings, outputMax, isReasoning, children, change }: SettingsFieldsProps) {
  const sampling = { type: 'number', min: 0, step: 0.05, placeholder: 'default' }
  const field = (name: keyof Settings, label: string, look: Omit<FieldLook, 'label'>) => (
    <Field label={label} value={settings[name]} {...look} onChange={(value) => change({ [name]: value })} />
  )
  return (
    <section class="card stack playground-settings" aria-label="Settings">
      {field('system', 'System prompt', {
        kind: 'lines',
        attributes: { rows: 3, spellcheck: true, placeholder: 'none' },
      })}
      <div class="playground-numbers">
        {field('maxTokens', 'Max output tokens', {
          attributes: { type: 'number', min: 1, max: outputMax, required: true },
        })}
        {field('temperature', 'Temperature', { attributes: { ...sampling, max: 2 } })}
        {field('topP', 'Top p', { attributes: { ...sampling, max: 1 } })}
      </div>
      {isReasoning && field('effort', 'Reasoning effort', { options: effortOptions })}
      {children}
    </section>
  )
}

const keyMinutes = 60
/** The playground's own keys by project, until they expire or the document is left. */
const ownKeys = new Map<string, { readonly secret: string; readonly expiresAt: number }>()

/** A key that expires within the hour, so that nothing has to be pasted. Limits and balance apply to it. */
async function ownKeyOf(project: string): Promise<string> {
  const kept = ownKeys.get(project)
  if (kept && kept.expiresAt > systemClock.now() + 60_000) return kept.secret
  const expiresAt = systemClock.now() + keyMinutes * 60_000
  const body = { name: playgroundKeyName, expires_at: isoTime(expiresAt) }
  const { secret } = await callApi('createKey', { id: project, body })
  ownKeys.set(project, { secret, expiresAt })
  return secret
}

/** Who pays: a key that the playground creates in a project, or one that is typed in. */
function useKeySource() {
  const { current } = useWorkspaces()
  const projects = useApi('listProjects', current && { id: current.id, query: { limit: 200 } }).value?.data ?? []
  const [chosen, setChosen] = useState('')
  const [typed, setTyped] = useState('')
  const { isBusy, error, run } = useSubmit()
  const project = projects.find(({ id }) => id === chosen) ?? projects[0]
  return {
    isBusy,
    error,
    withKey(use: (key: string) => void) {
      if (typed !== '' || !project) use(typed)
      else run(() => ownKeyOf(project.id), use)
    },
    fields: (
      <>
        {project && (
          <Field
            label="Project"
            value={project.id}
            options={projects.map(({ id, name }) => ({ value: id, label: name }))}
            hint={`Its limits apply. The first request creates the key “playground”, which expires in ${keyMinutes} minutes.`}
            onChange={setChosen}
          />
        )}
        <Field
          label={project ? 'API key to use instead' : 'API key'}
          kind="password"
          value={typed}
          isRequired={!project}
          hint="Its limits apply and its workspace is charged. It stays on this page."
          attributes={{ placeholder: 'sk-tg-…' }}
          onChange={(text) => setTyped(text.trim())}
        />
      </>
    ),
  }
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
