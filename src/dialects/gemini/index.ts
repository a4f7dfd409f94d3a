// Google's generateContent, used by callers and for calling providers. Calls of callers are always translated.

import { assert } from '../../kernel/assert.ts'
import { noHeaders } from '../canonical/translation.ts'
import type { Dialect } from '../dialect.ts'
import { embeddings } from './embeddings.ts'
import { conversationSpans, readCountEnvelope, readEnvelope } from './envelope.ts'
import { readFault, renderFailure, renderStreamFailure } from './errors.ts'
import { parseStream } from './reply/parse.ts'
import { keepAliveText, renderReply, renderStream } from './reply/render.ts'
import { parseRequest } from './request/parse.ts'
import { renderRequest } from './request/render.ts'

/** `readEnvelope` says that no body may be passed on as it is. */
function notPassed(): never {
  assert(false, 'generateContent is always translated')
}

export const gemini: Dialect = {
  id: 'gemini',
  /** Base URLs end in the version, such as /v1beta. */
  generationPath: (upstreamModel, isStreamed) =>
    `/models/${upstreamModel}:${isStreamed ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  readEnvelope,
  conversationSpans,
  tokenCount: {
    readEnvelope: readCountEnvelope,
    renderCount: (tokens) => JSON.stringify({ totalTokens: tokens }),
  },
  embeddings,
  editRequest: notPassed,
  forwardedHeaders: () => noHeaders,
  relayStream: notPassed,
  keepAlive: new TextEncoder().encode(keepAliveText),
  relayReply: notPassed,
  readFault,
  renderFailure,
  renderStreamFailure,
  translation: { parseRequest, renderRequest, parseStream, renderStream, renderReply },
}
