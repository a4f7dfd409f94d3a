// Anthropic's Messages API, as clients speak it to us and as we speak it to providers.

import type { Dialect } from '../dialect.ts'
import { conversationSpans } from './conversation-spans.ts'
import { editRequest } from './edit-request.ts'
import { readCountEnvelope, readEnvelope } from './envelope.ts'
import { readFault, renderFailure, renderStreamFailure } from './failure.ts'
import { forwardedHeaders } from './forwarded-headers.ts'
import { limitHeaders } from './limit-headers.ts'
import { parseRequest } from './parse-request.ts'
import { parseStream } from './parse-stream.ts'
import { relayReply } from './relay-reply.ts'
import { earlyKeepAlive, MessagesStreamRelay } from './relay-stream.ts'
import { renderReply } from './render-reply.ts'
import { renderRequest } from './render-request.ts'
import { renderStream } from './render-stream.ts'
import { replyAsStream } from './reply-as-stream.ts'

export const anthropicMessages: Dialect = {
  id: 'anthropic-messages',
  generationPath: () => '/v1/messages',
  readEnvelope,
  conversationSpans,
  tokenCount: { path: '/v1/messages/count_tokens', readEnvelope: readCountEnvelope },
  editRequest,
  forwardedHeaders,
  relayStream: (context) => new MessagesStreamRelay(context),
  keepAlive: earlyKeepAlive,
  relayReply,
  replyAsStream,
  readFault,
  renderFailure,
  limitHeaders,
  renderStreamFailure,
  translation: { parseRequest, renderRequest, parseStream, renderStream, renderReply },
}
