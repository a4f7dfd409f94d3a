// Checks every line of a batch before the first one runs, and adds up what they will probably cost.

import { Failure } from '../kernel/failure.ts'
import type { Nano } from '../kernel/money.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { JudgeRequest } from '../pipeline/expected-cost.ts'
import type { BatchError } from '../tenancy/batches.ts'
import { parseLine, readLines } from './read-lines.ts'

export interface CheckedLines {
  readonly total: number
  /** By model. */
  readonly estimates: ReadonlyMap<string, Nano>
  /** The first of them; empty = the batch can run. */
  readonly errors: readonly BatchError[]
  /** Where all of them can run in batches of one provider; undefined = they are called one by one. */
  readonly atProvider: AtProvider | undefined
}

export interface AtProvider {
  readonly providerId: string
  readonly model: string
  /** What has to be held for each line. */
  readonly shares: Map<number, Nano>
}

export interface LineRules {
  readonly endpoint: string
  readonly linesMax: number
  /** Whether its lines may name different models. */
  readonly mixesModels: boolean
}

const errorsMax = 100
/** A turn of the event loop takes about this many bytes of lines: a millisecond or two. */
const turnBytes = 64 * 1024

export async function checkLines(
  pieces: AsyncIterable<Uint8Array>,
  judge: JudgeRequest,
  { endpoint, linesMax, mixesModels }: LineRules,
): Promise<CheckedLines> {
  const errors: BatchError[] = []
  const firstLines = new Map<string, number>()
  let total = 0
  const estimates = new Map<string, Nano>()
  let model: string | undefined
  let atProvider: AtProvider | undefined
  let isLive = false
  let turn = 0
  for await (const raw of readLines(pieces)) {
    turn += raw.bytes.length
    if (turn > turnBytes) {
      await yieldToEventLoop()
      turn = 0
    }
    if (++total > linesMax) {
      const message = `The file has more than ${linesMax} lines. Split it into several batches.`
      return {
        total,
        estimates,
        atProvider: undefined,
        errors: [{ code: 'too_many_lines', message, line: null, param: null }],
      }
    }
    if (errors.length === errorsMax) continue
    const { line } = raw
    const wrong = (code: string, message: string, param: string | null) => errors.push({ code, message, line, param })
    const parsed = parseLine(raw, endpoint)
    if ('code' in parsed) {
      errors.push(parsed)
      continue
    }
    const { customId, body } = parsed
    const first = firstLines.get(customId)
    if (first !== undefined)
      wrong('duplicate_custom_id', `Lines ${first} and ${line} have the same \`custom_id\`.`, 'custom_id')
    else firstLines.set(customId, line)
    const judged = judge(body)
    if (judged instanceof Failure) {
      const { param } = judged.facts
      wrong(judged.code.toLowerCase(), judged.message, param === undefined ? 'body' : `body.${param}`)
    } else if (judged.isStreamed) {
      wrong('invalid_request', 'Answers of a batch are not streamed. Leave out `stream`.', 'body.stream')
    } else {
      model ??= judged.model
      const { inBatch } = judged
      atProvider ??= inBatch && { providerId: inBatch.providerId, model: judged.model, shares: new Map() }
      isLive ||= inBatch?.providerId !== atProvider?.providerId || judged.model !== atProvider?.model
      if (inBatch) atProvider?.shares.set(line, inBatch.amount)
      estimates.set(judged.model, ((estimates.get(judged.model) ?? 0n) + judged.cost) as Nano)
      if (!mixesModels && judged.model !== model) {
        const message = `Line ${line} names the model \`${judged.model}\`, and lines before it \`${model}\`. A batch has one model.`
        wrong('mismatched_model', message, 'body.model')
      }
    }
  }
  if (total === 0) errors.push({ code: 'empty_file', message: 'The file has no lines.', line: null, param: null })
  return { total, estimates, errors, atProvider: isLive ? undefined : atProvider }
}
