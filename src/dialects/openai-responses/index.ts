// OpenAI's Responses, used by callers and for calling providers. Nothing is stored, here or at the provider: each request
// carries the whole conversation, with its reasoning encrypted.

import type { Dialect } from '../dialect.ts'
import { renderOpenaiFailure } from '../reply/openai-error.ts'
import { limitHeaders } from '../reply/openai-limits.ts'
import { conversationSpans, readEnvelope } from './envelope.ts'
import { readFault, renderStreamFailure } from './errors.ts'
import { parseStream } from './reply/parse.ts'
import { keepAlive, ResponsesStreamRelay, relayReply } from './reply/relay.ts'
import { renderReply, renderStream } from './reply/render.ts'
import { editRequest } from './request/edit.ts'
import { parseRequest } from './request/parse.ts'
import { renderRequest } from './request/render.ts'

export const openaiResponses: Dialect = {
  id: 'openai-responses',
  generationPath: () => '/responses',
  readEnvelope,
  conversationSpans,
  tokenCount: {
    readEnvelope,
    renderCount: (tokens) => JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens }),
  },
  editRequest,
  forwardedHeaders: () => ({}),
  relayStream: (context) => new ResponsesStreamRelay(context),
  keepAlive,
  relayReply,
  readFault,
  renderFailure: renderOpenaiFailure,
  limitHeaders,
  renderStreamFailure,
  translation: { parseRequest, renderRequest, parseStream, renderStream, renderReply },
}
