import type { Pair, Stage } from './cells.ts'
import { geminiBodies } from './requests/gemini-bodies.ts'
import { geminiShapes } from './requests/gemini-shapes.ts'
import { hi, type RequestFixture, type Shapes, unreasoned } from './requests/request-fixture.ts'
import { responsesBodies } from './requests/responses-bodies.ts'
import { responsesShapes } from './requests/responses-shapes.ts'
import { fits, type Shape } from './shape.ts'

/** P carried · E emulated · W left out with a warning · R refused by name · – cannot be said · lost: a defect of ours. */
export type Mark = 'P' | 'E' | 'W' | 'R' | '–' | 'lost'

export interface Cell {
  readonly mark: Mark
  /** The codes of the warnings, or the field that was refused. */
  readonly notes: readonly string[]
}

export async function requestCell(
  stage: Pick<Stage, 'ask' | 'upstream'>,
  pair: Pair,
  fixture: RequestFixture,
  { stream }: { readonly stream: boolean },
): Promise<Cell> {
  const body = bodyOf(pair, fixture)
  if (!body) return { mark: '–', notes: [] }
  const before = stage.upstream.calls.length
  const response = await stage.ask(pair, { ...body, stream })
  const answer = await response.text()
  const sent = stage.upstream.calls.slice(before)
  if (response.status === 400 && sent.length === 0) return { mark: 'R', notes: refusedField(answer) }
  if (response.status !== 200 || !sent[0]) throw new Error(`${fixture.feature}: ${response.status} ${answer}`)
  const warnings = warningsOf(response)
  const upstreamBody = sent[0].json()
  const { carried, emulated } = shapesOf(fixture, pair)
  if (carried !== undefined && fits(upstreamBody, carried)) {
    return { mark: warnings.length > 0 ? 'W' : 'P', notes: warnings }
  }
  if (emulated !== undefined && fits(upstreamBody, emulated)) return { mark: 'E', notes: warnings }
  if (warnings.length > 0) return { mark: 'W', notes: warnings }
  return { mark: 'lost', notes: [JSON.stringify(upstreamBody)] }
}

function shapesOf({ feature, carried, emulated }: RequestFixture, { surface, upstream }: Pair): Shapes {
  if (surface === 'responses' && upstream === surface) return { carried: responsesBodies[feature] as Shape }
  if (surface === 'gemini' && upstream === surface) return { carried: geminiBodies[feature] as Shape }
  if (upstream === 'gemini') return geminiShapes[feature] ?? {}
  if (upstream === 'responses') return responsesShapes[feature] ?? {}
  const made = emulated?.[upstream]
  return { carried: carried[upstream], ...(made !== undefined && { emulated: made }) }
}

export function bodyOf({ surface, upstream }: Pair, fixture: RequestFixture): object | undefined {
  if (surface === 'responses') {
    const body = responsesBodies[fixture.feature]
    return body && { input: 'hi', ...body }
  }
  if (surface === 'gemini') {
    const body = geminiBodies[fixture.feature]
    return body && { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], ...body }
  }
  const written = fixture[surface]
  if (!written) return undefined
  // If nothing turns reasoning off, turning it off would be all that the row shows; there is a separate row for it.
  const isBeside = upstream === 'gemini' && written.thinking === unreasoned.thinking
  const members = isBeside ? { ...written, thinking: undefined } : written
  return { messages: [hi], ...(surface === 'messages' ? { max_tokens: 1000 } : {}), ...members }
}

interface RefusedError {
  readonly param?: string | null
  readonly message: string
  readonly code: string | number
  /** Of Google's errors. */
  readonly details?: { readonly reason: string; readonly metadata: { readonly param?: string } }[]
}

/** OpenAI's errors have a member for it; on the messages surface the text names it, in backticks. */
function refusedField(answer: string): string[] {
  const { error } = JSON.parse(answer) as { error: RefusedError }
  const info = Array.isArray(error.details) ? error.details[0] : undefined
  if (info?.reason === 'INVALID_REQUEST') return info.metadata.param === undefined ? [] : [info.metadata.param]
  if (error.code !== 'INVALID_REQUEST') throw new Error(`refused with ${answer}`)
  const field = error.param ?? /`([^`]+)`/.exec(error.message)?.[1]
  return field === undefined ? [] : [field]
}

function warningsOf(response: Response): string[] {
  const header = response.headers.get('x-tollgate-warnings')
  return header === null ? [] : header.split(', ').map((entry) => entry.slice(0, entry.indexOf(';')))
}
