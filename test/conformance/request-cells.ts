// What becomes of each request fixture on each pair, found out by sending it.

import type { UpstreamHandler } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import type { Pair, Stage } from './cells.ts'
import { hi, type RequestFixture } from './requests/request-fixture.ts'
import { fits } from './shape.ts'

/** P carried · E emulated · W left out with a warning · R refused by name · – cannot be said · lost: a defect of ours. */
export type Mark = 'P' | 'E' | 'W' | 'R' | '–' | 'lost'

export interface Cell {
  readonly mark: Mark
  /** The codes of the warnings, or the field that was refused. */
  readonly notes: readonly string[]
}

export const answerHello: UpstreamHandler = async (call, reply) => {
  const words = wordsFor(call)
  if (call.json().stream !== true) return reply.send(200, { 'content-type': 'application/json' }, words.whole)
  await reply.startStream()
  await reply.chunk(words.opening + words.says('hello') + words.ending)
  await reply.finish()
}

export async function requestCell(
  stage: Stage,
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
  if (fits(upstreamBody, fixture.carried[pair.upstream]))
    return { mark: warnings.length > 0 ? 'W' : 'P', notes: warnings }
  const emulated = fixture.emulated?.[pair.upstream]
  if (emulated !== undefined && fits(upstreamBody, emulated)) return { mark: 'E', notes: warnings }
  if (warnings.length > 0) return { mark: 'W', notes: warnings }
  return { mark: 'lost', notes: [JSON.stringify(upstreamBody)] }
}

export function bodyOf({ surface }: Pair, fixture: RequestFixture): object | undefined {
  const members = fixture[surface]
  if (!members) return undefined
  return { messages: [hi], ...(surface === 'messages' ? { max_tokens: 1000 } : {}), ...members }
}

/** The chat surface has a member for it; on the message surface the text names it, in backticks. */
function refusedField(answer: string): string[] {
  const { error } = JSON.parse(answer) as { error: { param?: string | null; message: string; code: string } }
  if (error.code !== 'INVALID_REQUEST') throw new Error(`refused with ${answer}`)
  const field = error.param ?? /`([^`]+)`/.exec(error.message)?.[1]
  return field === undefined ? [] : [field]
}

function warningsOf(response: Response): string[] {
  const header = response.headers.get('x-tollgate-warnings')
  return header === null ? [] : header.split(', ').map((entry) => entry.slice(0, entry.indexOf(';')))
}
