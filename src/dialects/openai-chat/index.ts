// OpenAI's Chat Completions, as clients speak it to us and as we speak it to providers.

import type { Dialect } from '../dialect.ts'
import { conversationSpans } from './conversation-spans.ts'
import { editRequest } from './edit-request.ts'
import { readEnvelope } from './envelope.ts'
import { readFault, renderFailure, renderStreamFailure } from './failure.ts'
import { limitHeaders } from './limit-headers.ts'
import { parseRequest } from './parse-request.ts'
import { parseStream } from './parse-stream.ts'
import { relayReply } from './relay-reply.ts'
import { ChatStreamRelay, keepAlive } from './relay-stream.ts'
import { renderReply } from './render-reply.ts'
import { renderRequest } from './render-request.ts'
import { renderStream } from './render-stream.ts'
import { replyAsStream } from './reply-as-stream.ts'

export const openaiChat: Dialect = {
  id: 'openai-chat',
  generationPath: () => '/chat/completions',
  readEnvelope,
  conversationSpans,
  editRequest,
  forwardedHeaders: () => ({}),
  relayStream: (context) => new ChatStreamRelay(context),
  keepAlive,
  relayReply,
  replyAsStream,
  readFault,
  renderFailure,
  limitHeaders,
  renderStreamFailure,
  translation: { parseRequest, renderRequest, parseStream, renderStream, renderReply },
}
