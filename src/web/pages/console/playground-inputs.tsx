/** @jsxImportSource preact */
// What the playground's form has beside the message: settings, a tool, a schema of the answer, images, saved prompts, and who
// pays.

import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import type { CatalogEntry } from '../../catalog/entry.ts'
import { callApi } from '../api.ts'
import { Button } from '../components.tsx'
import { Checkbox, CheckedForm, Field, type FieldLook } from '../form.tsx'
import { useApi, useSubmit } from '../hooks.ts'
import type { Subject } from '../live-catalog.ts'
import { useViewer, useWorkspaces } from './context.tsx'
import { imageTypes, type Schema, type Tool } from './model-call.ts'
import { Dialog, useOverlay } from './overlay.tsx'
import { playgroundKeyName } from './workspace-data.ts'

const imagesMax = 4
/** The lowest limit of the large providers. */
const imageBytesMax = 5_000_000

export const takesImages = ({ tags }: CatalogEntry) => tags.includes('vision')

/** The images of the next message, as data URLs, and how to replace them. */
export type Images = readonly [images: readonly string[], set: (images: readonly string[]) => void]

/** The fields of the images, where all the models take them. */
export function useImages(models: readonly CatalogEntry[], [images, set]: Images) {
  const [problem, setProblem] = useState('')
  const input = useRef<HTMLInputElement>(null)
  const refusing = models.filter((model) => !takesImages(model)).map(({ id }) => id)
  const isOffered = refusing.length === 0
  const isMissed = images.length > 0 || refusing.length < models.length
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
    fields: isOffered ? (
      <>
        <Thumbnails images={images} onRemove={(at) => set(images.filter((_, place) => place !== at))} />
        {problem !== '' && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
      </>
    ) : (
      isMissed && (
        <p class="hint">
          No images can be attached: {refusing.join(', ')} {refusing.length === 1 ? 'does' : 'do'} not take them.
        </p>
      )
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

export function Thumbnails({ images, onRemove }: ThumbnailsProps) {
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

/** As typed. */
export const emptySettings = { system: '', maxTokens: '200', temperature: '', topP: '', effort: '' }
export type Settings = typeof emptySettings

interface SettingsFieldsProps {
  readonly settings: Settings
  readonly outputMax: number | undefined
  /** Ids of the models that reason. */
  readonly reasoning: readonly string[]
  /** Whether all of them do. */
  readonly isReasoning: boolean
  readonly children: ComponentChildren
  change(part: Partial<Settings>): void
}

const effortOptions = [
  { value: '', label: 'default' },
  // Where a model has fewer, the gateway sends the nearest one.
  ...['none', 'minimal', 'low', 'medium', 'high', 'xhigh'].map((value) => ({ value, label: value })),
]

export function SettingsFields({ settings, outputMax, reasoning, isReasoning, children, change }: SettingsFieldsProps) {
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
      {reasoning.length > 0 &&
        field('effort', 'Reasoning effort', {
          options: effortOptions,
          hint: isReasoning ? undefined : `Sent to ${reasoning.join(', ')}.`,
        })}
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

/** Who pays, and whose models and prices are shown: a key that the playground creates in a project, or one that is typed in. */
export function useKeySource() {
  const { current, workspaces } = useWorkspaces()
  const listed = useApi('listProjects', current && { id: current.id, query: { limit: 200 } })
  const projects = listed.value?.data ?? []
  const [chosen, setChosen] = useState('')
  const [typed, setTyped] = useState('')
  /** Once it is complete. */
  const [entered, setEntered] = useState('')
  const { isBusy, error, run } = useSubmit()
  const project = projects.find(({ id }) => id === chosen) ?? projects[0]
  const viewed = project && current && { id: project.id, name: project.name, workspace: current.name }
  const ofProject: Subject = viewed ? { kind: 'project', project: viewed } : { kind: 'public' }
  const subject: Subject = entered === '' ? ofProject : { kind: 'key', secret: entered }
  return {
    subject,
    isLoading: workspaces === undefined || (current !== undefined && listed.value === undefined && !listed.error),
    isBusy,
    error: error ?? listed.error,
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
            hint={`Its models, prices and limits apply. The first request creates the key “playground”, which expires in ${keyMinutes} minutes.`}
            onChange={setChosen}
          />
        )}
        <Field
          label={project ? 'API key to use instead' : 'API key'}
          kind="password"
          value={typed}
          isRequired={!project}
          hint="Its models, prices and limits apply, and its workspace is charged. It stays on this page."
          attributes={{ placeholder: 'sk-tg-…', onChange: () => setEntered(typed) }}
          onChange={(text) => setTyped(text.trim())}
        />
      </>
    ),
  }
}

/** As typed, possibly invalid. */
export interface ToolInput {
  readonly isOffered: boolean
  readonly name: string
  readonly description: string
  readonly parameters: string
}

export const exampleTool: ToolInput = {
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
export function toolOf({ isOffered, name, description, parameters }: ToolInput): Tool | undefined {
  const schema = isOffered ? parseSchema(parameters) : undefined
  return schema && { name: name.trim(), description: description.trim(), parameters: schema }
}

function parseSchema(text: string): Schema | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

export function ToolFields({ input, onChange }: { readonly input: ToolInput; onChange(input: ToolInput): void }) {
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
            error={isInvalid ? 'The parameters are not a JSON object.' : undefined}
            attributes={{ rows: 5, class: 'code' }}
            onChange={(parameters) => change({ parameters })}
          />
        </>
      )}
    </fieldset>
  )
}

/** As typed, possibly invalid. */
export interface SchemaInput {
  readonly isOn: boolean
  readonly text: string
}

export const exampleSchema: SchemaInput = {
  isOn: false,
  text: JSON.stringify(
    {
      type: 'object',
      properties: { answer: { type: 'string' }, confidence: { type: 'number' } },
      required: ['answer', 'confidence'],
      additionalProperties: false,
    },
    undefined,
    2,
  ),
}

/** undefined = the answer is text, or the input is invalid. */
export function schemaOf({ isOn, text }: SchemaInput): Schema | undefined {
  return isOn ? parseSchema(text) : undefined
}

interface SchemaFieldsProps {
  readonly input: SchemaInput
  /** Ids of the models without JSON output. */
  readonly without: readonly string[]
  onChange(input: SchemaInput): void
}

export function SchemaFields({ input, without, onChange }: SchemaFieldsProps) {
  const isInvalid = input.isOn && schemaOf(input) === undefined
  return (
    <fieldset class="stack tight">
      <legend class="visually-hidden">JSON output</legend>
      <Checkbox
        label="Answer as JSON that follows a schema."
        isChecked={input.isOn}
        onChange={(isOn) => onChange({ ...input, isOn })}
      />
      {input.isOn && (
        <Field
          label="JSON Schema"
          kind="lines"
          value={input.text}
          isRequired
          hint={without.length === 0 ? undefined : `The catalog lists no JSON output for ${without.join(', ')}.`}
          error={isInvalid ? 'The schema is not a JSON object.' : undefined}
          attributes={{ rows: 6, class: 'code' }}
          onChange={(text) => onChange({ ...input, text })}
        />
      )}
    </fieldset>
  )
}

export interface SavedPrompt {
  readonly name: string
  readonly prompt: string
  readonly system: string
}

/** Of one person in this browser. */
const promptsName = (actor: string) => `tollgate-prompts ${actor}`
const promptsMax = 100

function readPrompts(actor: string): readonly SavedPrompt[] {
  return JSON.parse(localStorage.getItem(promptsName(actor)) ?? '[]') as readonly SavedPrompt[]
}

interface PromptsDialogProps {
  /** What is typed now. */
  readonly prompt: string
  readonly system: string
  onUse(prompt: SavedPrompt): void
}

/** Prompts with their system prompts, kept in this browser. */
export function PromptsDialog({ prompt, system, onUse }: PromptsDialogProps) {
  const { actor } = useViewer()
  const { close } = useOverlay()
  const [prompts, setPrompts] = useState(() => readPrompts(actor))
  const [name, setName] = useState('')
  const [problem, setProblem] = useState('')
  const keep = (next: readonly SavedPrompt[]) => {
    try {
      localStorage.setItem(promptsName(actor), JSON.stringify(next))
      setPrompts(next)
      setProblem('')
    } catch {
      setProblem('The browser has no room for it. Delete a saved prompt first.')
    }
  }
  const save = () => {
    const others = prompts.filter((each) => each.name !== name.trim())
    if (others.length >= promptsMax) return setProblem(`At most ${promptsMax} prompts are kept. Delete one first.`)
    keep([{ name: name.trim(), prompt, system }, ...others])
    setName('')
  }
  return (
    <Dialog title="Saved prompts">
      <div class="form">
        {prompts.length === 0 && <p class="empty">No prompts yet. They are kept in this browser only.</p>}
        <ul class="plain stack tight saved-prompts">
          {prompts.map((each) => (
            <li key={each.name} class="between">
              <span class="row-name" title={each.prompt}>
                {each.name}
              </span>
              <span class="row">
                <Button
                  look="quiet small"
                  aria-label={`Use ${each.name}`}
                  onClick={() => {
                    onUse(each)
                    close()
                  }}
                >
                  Use
                </Button>
                <Button
                  look="quiet small"
                  aria-label={`Delete ${each.name}`}
                  onClick={() => keep(prompts.filter((other) => other !== each))}
                >
                  Delete
                </Button>
              </span>
            </li>
          ))}
        </ul>
        <CheckedForm class="stack tight" onSubmit={save}>
          <Field
            label="Save the current message and system prompt as"
            value={name}
            isRequired
            hint="A name that exists is replaced."
            attributes={{ maxLength: 100 }}
            onChange={setName}
          />
          {problem !== '' && (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
          <p>
            <button type="submit" class="button" disabled={prompt.trim() === '' && system.trim() === ''}>
              Save prompt
            </button>
          </p>
        </CheckedForm>
      </div>
    </Dialog>
  )
}
