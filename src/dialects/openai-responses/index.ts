// OpenAI's Responses, used by callers and for calling providers. Nothing is stored at the provider: each request to it
// carries the whole conversation, with its reasoning encrypted.

import { faultFromBody } from '../canonical/faults.ts'
import { responsesHostTiers } from '../canonical/tiers.ts'
import { noHeaders } from '../canonical/translation.ts'
import type { Dialect, LimitViews } from '../dialect.ts'
import { limitHeaders as openaiLimitHeaders } from '../reply/openai.ts'
import { conversationSpans, readCompaction, readEnvelope } from './envelope.ts'
import { renderFailure, renderStreamFailure } from './errors.ts'
import { parseStream } from './reply/parse.ts'
import { ResponsesStreamRelay, relayReply } from './reply/relay.ts'
import { renderReply, renderStream } from './reply/render.ts'
import { editRequest } from './request/edit.ts'
import { parseRequest } from './request/parse.ts'
import { renderRequest } from './request/render.ts'
import { storage } from './storage.ts'
import { turns } from './turns.ts'

export const openaiResponses: Dialect = {
  id: 'openai-responses',
  hostTiers: responsesHostTiers,
  generationPath: () => '/responses',
  readEnvelope,
  readCompaction,
  conversationSpans,
  tokenCount: {
    readEnvelope,
    renderCount: (tokens) => JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens }),
  },
  storage,
  turns,
  editRequest,
  forwardedHeaders: () => noHeaders,
  relayStream: (context) => new ResponsesStreamRelay(context),
  relayReply,
  // Open Responses requires it; OpenAI's servers do not send it, and their clients accept it.
  streamEnd: new TextEncoder().encode('data: [DONE]\n\n'),
  readFault: faultFromBody,
  renderFailure,
  limitHeaders,
  renderStreamFailure,
  translation: { parseRequest, renderRequest, parseStream, renderStream, renderReply },
}

const windowDays = { daily: 1, weekly: 7, monthly: 30 } as const

/**
 * Codex shows a spend limit in its status line (`codex-rs/codex-api/src/rate_limits.rs`, 2026-08): the share that is used,
 * the length of the window, and when it ends in epoch seconds.
 */
function limitHeaders(limits: LimitViews): Record<string, string> {
  const headers = openaiLimitHeaders(limits)
  const spend = limits.spend?.()
  if (!spend) return headers
  headers['x-codex-primary-used-percent'] = String(Math.min(100, Math.round(spend.used * 1000) / 10))
  headers['x-codex-primary-window-minutes'] = String(spend.windowMinutes ?? windowDays[spend.period] * 24 * 60)
  headers['x-codex-primary-reset-at'] = String(Math.floor(spend.resetsAt / 1000))
  return headers
}
