// OpenAI's Chat Completions, used by callers and for calling providers. registry.ts adds bodies of Responses on its path.

import { openaiHostTiers } from '../canonical/tiers.ts'
import { noHeaders } from '../canonical/translation.ts'
import type { Dialect } from '../dialect.ts'
import { limitHeaders, renderOpenaiFailure } from '../reply/openai.ts'
import { embeddings } from './embeddings.ts'
import { conversationSpans, readEnvelope } from './envelope.ts'
import { readFault, renderStreamFailure } from './errors.ts'
import { parseStream } from './reply/parse.ts'
import { ChatStreamRelay, relayReply } from './reply/relay.ts'
import { renderReply, renderStream } from './reply/render.ts'
import { editRequest } from './request/edit.ts'
import { parseRequest } from './request/parse.ts'
import { renderRequest } from './request/render.ts'

export const openaiChat: Dialect = {
  id: 'openai-chat',
  isSpecified: true,
  hostTiers: openaiHostTiers,
  generationPath: () => '/chat/completions',
  readEnvelope,
  embeddings,
  conversationSpans,
  editRequest,
  forwardedHeaders: () => noHeaders,
  relayStream: (context) => new ChatStreamRelay(context),
  relayReply,
  readFault,
  renderFailure: renderOpenaiFailure,
  limitHeaders,
  renderStreamFailure,
  losesReasoning: true,
  translation: { parseRequest, renderRequest, parseStream, renderStream, renderReply },
}
