/** @jsxImportSource preact */
// One function to offer to the model, written by hand. Nobody runs it: the playground shows which call the model makes.

import { Field } from '../manage/field.tsx'
import type { OfferedTool } from './playground-call.ts'

/** As typed; it may be wrong. */
export interface ToolTexts {
  readonly isOffered: boolean
  readonly name: string
  readonly description: string
  readonly parameters: string
}

export const exampleTool: ToolTexts = {
  isOffered: false,
  name: 'get_weather',
  description: 'The weather in a city, now.',
  parameters: JSON.stringify(
    { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    undefined,
    2,
  ),
}

/** undefined = none is offered, or what is typed is none. */
export function toolOf({ isOffered, name, description, parameters }: ToolTexts): OfferedTool | undefined {
  const schema = isOffered ? schemaOf(parameters) : undefined
  return schema && { name: name.trim(), description: description.trim(), parameters: schema }
}

function schemaOf(text: string): OfferedTool['parameters'] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

export interface ToolFieldsProps {
  readonly texts: ToolTexts
  onChange(texts: ToolTexts): void
}

export function ToolFields({ texts, onChange }: ToolFieldsProps) {
  const change = (part: Partial<ToolTexts>) => onChange({ ...texts, ...part })
  const isWrong = texts.isOffered && toolOf(texts) === undefined
  return (
    <fieldset class="tool">
      <legend class="visually-hidden">Tool</legend>
      <label class="tick">
        <input
          type="checkbox"
          checked={texts.isOffered}
          onChange={({ currentTarget }) => change({ isOffered: currentTarget.checked })}
        />
        <span>Offer a tool: the call the model makes is shown, and nothing is run</span>
      </label>
      {texts.isOffered && (
        <>
          <div class="field-grid">
            <Field label="Tool name" value={texts.name} isRequired onChange={(name) => change({ name })} />
            <Field label="What it does" value={texts.description} onChange={(description) => change({ description })} />
          </div>
          <label class="field">
            <span>Parameters, a JSON Schema</span>
            <textarea
              rows={5}
              class="code"
              spellcheck={false}
              required
              aria-invalid={isWrong}
              value={texts.parameters}
              onInput={({ currentTarget }) => change({ parameters: currentTarget.value })}
            />
          </label>
          {isWrong && (
            <p class="problem" role="alert">
              The parameters are not a JSON object.
            </p>
          )}
        </>
      )}
    </fieldset>
  )
}
