// A turn on a connection that generates nothing: it is admitted and answered with an empty response, which later turns
// continue. It calls no provider and costs nothing.

import { estimatedInput } from '../kernel/usage.ts'
import { admit } from './admit.ts'
import { Answer, answerHeaders, streamHeaders } from './answer.ts'
import { Exchange } from './exchange.ts'
import type { RunDependencies, RunRequest } from './run.ts'
import { endRefused, endUncharged, endWithError } from './settlement.ts'
import { type Admitted, Refusal } from './stages.ts'

export function createWarmUp(deps: RunDependencies): RunRequest {
  return async (http, surface, path, connection) => {
    const exchange = new Exchange(deps.clock, http, surface, path, connection)
    try {
      const admitted = await admit(deps, exchange, surface.readEnvelope, () => 0)
      if (admitted instanceof Refusal) return endRefused(deps, exchange, admitted)
      const body = emptyReply(admitted)
      exchange.record.notes.push('warmed up: nothing was generated')
      endUncharged(deps, exchange)
      return new Answer(200, streamHeaders(answerHeaders(exchange, admitted.limits)), body)
    } catch (error) {
      return endWithError(deps, exchange, deps.onDefect(error, exchange.record.id))
    }
  }
}

/** The events of a reply without output. The connection remembers it with the input. */
function emptyReply({ exchange, content, model, storing }: Admitted): string {
  const { record, surface, connection } = exchange
  const parsed = content.parsed()
  const usage = estimatedInput(0)
  const createdSeconds = Math.floor(record.startedAt / 1000)
  const renderer = surface.translation.renderStream({
    ...{ model: model.id, requestId: record.id, createdSeconds, nowSeconds: () => createdSeconds },
    ...{ wantsStreamUsage: true, estimatedInputTokens: 0, quoteUsage: () => usage, quotedUsd: () => '0' },
    // What only the provider can judge is left to the turn that generates.
    echo: 'conversation' in parsed ? parsed.echo : undefined,
    stateEcho: { store: false, previous_response_id: storing.previousId ?? null },
  })
  const begun = renderer.render({ type: 'reply-start', id: undefined, usage: undefined })
  const ended = renderer.render({ type: 'reply-end', stop: { unified: 'end', raw: '' }, usage })
  const read = surface.storage?.readResponse(new TextEncoder().encode(renderer.terminal))
  if (read) connection.memory?.keep(read.id, { input: storing.remembered ?? '[]', ...read })
  return begun + ended + renderer.terminal
}
