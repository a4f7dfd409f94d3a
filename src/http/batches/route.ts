// What the two APIs for batches have in common.

import type { CreateBatchDependencies } from '../../batches/create-batch.ts'
import type { BatchRunner } from '../../batches/runner.ts'
import type { Dialect } from '../../dialects/dialect.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { createId } from '../../kernel/ids.ts'
import { Answer, requestIdHeaders, textStream } from '../../pipeline/answer.ts'
import { type ClientRequest, queryOf } from '../../pipeline/client-request.ts'
import type { Connection } from '../../pipeline/exchange.ts'
import { isFullDisk } from '../../store/start-refusal.ts'
import type { Caller } from '../../tenancy/caller.ts'
import { admitCaller, type CallerDependencies } from '../request.ts'
import { refuse } from '../responses.ts'

export interface BatchRouteDependencies extends CallerDependencies, CreateBatchDependencies {
  readonly runner: Pick<BatchRunner, 'wake' | 'cancel'>
  readonly settings: { readonly current: BatchRouteSettings }
  /** The protocol that the client used, if a trusted proxy says so. */
  forwardedProtoOf(request: ClientRequest): string | undefined
  /** Reports what is thrown while results are read. */
  onReadFault(error: unknown): void
}

export interface BatchRouteSettings {
  readonly dataFolder: string
  readonly publicUrl: string | undefined
  readonly batches: {
    readonly enabled: boolean
    readonly fileBytesMax: number
    readonly linesMax: number
    readonly outputDays: number
  }
}

/** A call of one of the two APIs. */
export interface BatchCall {
  readonly request: ClientRequest
  readonly surface: Dialect
  readonly address: string | undefined
  readonly connection: Pick<Connection, 'keepOpen' | 'rearm'>
}

/** Prompts and answers must not be kept by caches. */
export const noStore = { 'cache-control': 'no-store' }

/** Answers for a caller; whatever is thrown as a Failure is answered in the words of the surface. */
export async function answerCaller(
  deps: BatchRouteDependencies,
  { request, surface, address, connection }: BatchCall,
  answer: (caller: Caller) => Promise<Answer | Failure>,
): Promise<Answer> {
  // An upload, and a check of 50,000 lines, may take longer than a connection may be silent.
  connection.keepOpen()
  try {
    const caller = await admitCaller(deps, request, address)
    const result = caller instanceof Failure ? caller : await answer(caller)
    return result instanceof Failure ? refuse(surface, result) : result
  } catch (thrown) {
    if (thrown instanceof Failure) return refuse(surface, thrown)
    if (isFullDisk(thrown, deps.settings.current.dataFolder)) return refuse(surface, fullDisk())
    throw thrown
  } finally {
    connection.rearm()
  }
}

function fullDisk(): Failure {
  const message =
    'Tollgate has no room on its disk to store this, so nothing was stored. Tell the operator of this gateway, and try again later.'
  return new Failure('OVERLOADED', message, { retryAfterMs: 60_000 })
}

/** Lines as a file that is read while it is sent. */
export function linesAnswer(
  deps: Pick<BatchRouteDependencies, 'onReadFault'>,
  type: string,
  pieces: AsyncIterable<string | Uint8Array>,
): Answer {
  const headers = { ...requestIdHeaders(createId('req')), 'content-type': type, ...noStore }
  return new Answer(200, headers, textStream(pieces, deps.onReadFault))
}

export function unknownBatch(id: string): Failure {
  return new Failure('NOT_FOUND', `There is no batch \`${id.slice(0, 100)}\` here.`)
}

/** `limit` of a page. */
export function limitOf(request: ClientRequest, usual: number, max: number): number {
  const text = queryOf(request.url).get('limit')
  const limit = text === null ? usual : Number(text)
  if (!Number.isInteger(limit) || limit < 1 || limit > max)
    throw invalidRequest(`\`limit\` must be a whole number from 1 to ${max}.`, 'limit')
  return limit
}
