// Google's generateContent, used by callers and for calling providers.

import { noHeaders } from '../canonical/translation.ts'
import type { Dialect } from '../dialect.ts'
import { embeddings } from './embeddings.ts'
import { conversationSpans, readCountEnvelope, readEnvelope } from './envelope.ts'
import { readFault, renderFailure, renderStreamFailure } from './errors.ts'
import { parseStream } from './reply/parse.ts'
import { GeminiStreamRelay, relayReply } from './reply/relay.ts'
import { renderReply, renderStream } from './reply/render.ts'
import { editRequest } from './request/edit.ts'
import { parseRequest } from './request/parse.ts'
import { renderRequest } from './request/render.ts'
import { hostTiers } from './tiers.ts'

export const gemini: Dialect = {
  id: 'gemini',
  /** Base URLs end in the version, such as /v1beta. */
  hostTiers,
  generationPath: (upstreamModel, isStreamed) =>
    `/models/${upstreamModel}:${isStreamed ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  readEnvelope,
  conversationSpans,
  tokenCount: {
    readEnvelope: readCountEnvelope,
    renderCount: (tokens) => JSON.stringify({ totalTokens: tokens }),
  },
  embeddings,
  editRequest,
  forwardedHeaders: () => noHeaders,
  relayStream: (context) => new GeminiStreamRelay(context),
  relayReply,
  readFault,
  renderFailure,
  renderStreamFailure,
  translation: { parseRequest, renderRequest, parseStream, renderStream, renderReply },
}
