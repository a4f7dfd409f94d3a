// Anthropic's Messages API, used by callers and for calling providers.

import { faultFromBody } from '../canonical/faults.ts'
import type { Dialect } from '../dialect.ts'
import { conversationSpans, forwardedHeaders, limitHeaders, readCountEnvelope, readEnvelope } from './envelope.ts'
import { renderFailure, renderStreamFailure } from './errors.ts'
import { parseStream } from './reply/parse.ts'
import { MessagesStreamRelay, relayReply } from './reply/relay.ts'
import { renderReply, renderStream } from './reply/render.ts'
import { editRequest } from './request/edit.ts'
import { parseRequest } from './request/parse.ts'
import { renderRequest } from './request/render.ts'
import { hostTiers } from './tiers.ts'

export const anthropicMessages: Dialect = {
  id: 'anthropic-messages',
  isSpecified: true,
  hostTiers,
  generationPath: () => '/v1/messages',
  readEnvelope,
  conversationSpans,
  tokenCount: {
    path: '/v1/messages/count_tokens',
    readEnvelope: readCountEnvelope,
    renderCount: (tokens) => JSON.stringify({ input_tokens: tokens }),
  },
  editRequest,
  forwardedHeaders,
  relayStream: (context) => new MessagesStreamRelay(context),
  relayReply,
  readFault: faultFromBody,
  renderFailure,
  limitHeaders,
  renderStreamFailure,
  translation: { parseRequest, renderRequest, parseStream, renderStream, renderReply },
}
